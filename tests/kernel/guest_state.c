// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests with an unusual or invalid state: code that is not 64-bit, states that
 * the processor refuses, returns to invalid addresses. Each runs in a child
 * (isolated.h). Fails when a state that is refused shows something of the host or
 * changes it, or when a later state of the same guest does not run.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "tap.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void compat_code(u16 attributes)
{
	struct dune_state s = g.state;

	page = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	memset(page, 0x90, 4096);
	memcpy(page + 16, "\xb8\x27\x00\x00\x00\x0f\x01\xd9\xeb\xf6", 10);
	use_vmcall(page, 26);
	guest_prepare_code(&g, page);
	s.cs.attributes = attributes;
	bounded(200);
	if (guest_set_state(&g, &s))
		raise(SIGALRM);
	enum guest_end end;

	do
		end = guest_resume(&g);
	while (end == GUEST_TRAP);
	diag("%s", guest_end_name(&g, end));
	raise(SIGALRM);
}

static void compat_32(void) { compat_code(0xc9b); }
static void compat_16(void) { compat_code(0x09b); }
static void long_and_big(void) { compat_code(CS_LONG_AND_32BIT); }
static void not_code(void) { compat_code(0xa93); }

/*
 * A state that the processor refuses: the exit reports it, the registers are
 * those that went in, and nothing of the host shows. A later good state runs.
 */
static void refused_state(void)
{
	struct dune_state s = g.state, after;
	struct dune_regs before;

	guest_prepare(&g, 0, guest_return, (void *)5);
	s.cs.attributes = CS_LONG_AND_32BIT;
	if (guest_set_state(&g, &s))
		_exit(0);
	before = g.run->regs;
	int err;

	do
		err = guest_run(&g);
	while (err == -EINTR || g.run->exit_reason == DUNE_EXIT_INTR);
	if (err || g.run->exit_reason != DUNE_EXIT_INVALID)
		_exit(1);
	if (g.run->regs.rip != before.rip || g.run->regs.rsp != before.rsp ||
	    g.run->regs.rax != before.rax)
		_exit(2);
	guest_get_state(&g, &after);
	/* Each shows the value that was set, or 0. */
	u64 shown[] = { after.cr3, after.gdtr.base, after.idtr.base, after.gs.base, after.fs.base,
			after.tr.base, after.lstar, after.kernel_gs_base };
	u64 set[] = { s.cr3, s.gdtr.base, s.idtr.base, s.gs.base, s.fs.base,
		      s.tr.base, s.lstar, s.kernel_gs_base };

	for (int i = 0; i < 8; i++) {
		if (shown[i] && shown[i] != set[i])
			_exit(3);
	}
	enum guest_end end = guest_call(&g, guest_return, (void *)5);

	expect(end, end == GUEST_DONE && g.value == 5);
}

/*
 * After a refused state, the host's timer still interrupts a guest that runs with
 * interrupts off.
 */
static void spin_after_refusal(void)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, guest_return, NULL);
	s.cs.attributes = CS_LONG_AND_32BIT;
	guest_set_state(&g, &s);
	guest_resume(&g);
	guest_set_state(&g, &g.state);
	loop_of("\xfa", 1, 0, 0);	/* CLI */
}

static u64 bad_iret(void *arg)
{
	asm volatile("push $0x10; push %0; push $0x2; push $8; push %0; iretq" : : "r"(arg) :
		     "memory");
	return 0;
}

static void iret_not_canonical(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, bad_iret, (void *)0x8000000000000000);

	expect(end, end == GUEST_TRAP && (g.frame->vector == X86_TRAP_GP ||
					  g.frame->vector == X86_TRAP_SS));
}

static u64 bad_sysret(void *arg)
{
	asm volatile("mov %0, %%rcx; mov $2, %%r11; sysretq" : : "r"(arg) : "rcx", "r11", "memory");
	return 0;
}

static void sysret_not_canonical(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, bad_sysret, (void *)0x800000000000);

	expect(end, end == GUEST_TRAP);
}

static u64 nested_task(void *arg)
{
	asm volatile("pushfq; orq %0, (%%rsp); popfq\n"
		     "push $0x10; push %%rsp; push $2; push $8; push $1; iretq"
		     : : "i"(X86_EFLAGS_NT) : "memory");
	return 0;
}

static void iret_nested_task(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, nested_task, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_GP);
}

static void task_gate(void)
{
	g.mem->idt[0x50 * 2] = (u64)GUEST_TR << 16 | (DESC_P | GATE_TASK) << 40;
	code("\xcd\x50", 2);
	guest_prepare_code(&g, page);
	bounded(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_GP);
}

static u64 use_fpu_after_ts(void *arg)
{
	asm volatile("fninit; fld1; fldpi; fdivp; fstp %%st(0); pxor %%xmm0, %%xmm0" : : :
		     "memory");
	return 0;
}

static void fpu(void)
{
	enum guest_end end = guest_call(&g, use_fpu_after_ts, NULL);

	expect(end, end == GUEST_DONE);
}

static const struct isolated guests[] = {
	{ "32-bit code", compat_32, SIGALRM },
	{ "16-bit code", compat_16, ANY_END },
	{ "CS both L and D", long_and_big, SIGALRM },
	{ "CS of a data segment", not_code, SIGALRM },
	{ "a refused state shows nothing of the host", refused_state, 0 },
	{ "endless loop, interrupts off, after a refused state", spin_after_refusal, SIGALRM },
	{ "IRETQ to nowhere", iret_not_canonical, 0 },
	{ "SYSRETQ to nowhere", sysret_not_canonical, 0 },
	{ "IRETQ with NT", iret_nested_task, 0 },
	{ "INT through a task gate", task_gate, 0 },
	{ "floating point", fpu, 0 },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}

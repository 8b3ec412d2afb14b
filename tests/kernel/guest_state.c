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

#define CODE32	0xc9b	/* present, code, readable, accessed; D, G */
#define CODE16	0x89b	/* G */
#define CODE16_BYTES	0x09b
#define DATA64	0xa93	/* present, data, writable, accessed; L, G */

/*
 * Run @bytes with @attributes for CS, after 16 NOPs. GUEST_ERROR where
 * DUNE_SET_STATE refuses the state.
 */
static enum guest_end run_with_cs(u16 attributes, const char *bytes, int len)
{
	struct dune_state s = g.state;

	page = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		child_fails("mmap() of a page failed");
	memset(page, 0x90, 4096);
	memcpy(page + 16, bytes, len);
	use_vmcall(page, 16 + len);
	guest_prepare_code(&g, page);
	s.cs.attributes = attributes;
	end_after(200);
	g.error = guest_set_state(&g, &s);
	return g.error ? GUEST_ERROR : guest_resume(&g);
}

#define RUN_WITH_CS(attributes, bytes)	run_with_cs(attributes, bytes, sizeof(bytes) - 1)
/* 1: mov $39, %eax; vmmcall; jmp 1b */
#define CALL_FOREVER	"\xb8\x27\x00\x00\x00\x0f\x01\xd9\xeb\xf6"
#define CALL_AND_HALT	"\xb8\x27\x00\x00\x00\x0f\x01\xd9\xf4"	/* mov $39, %eax; vmmcall; hlt */
#define CALL_AND_HALT16	"\xb8\x27\x00\x0f\x01\xd9\xf4"	/* mov $39, %ax; vmmcall; hlt */

/* The state was refused, by DUNE_SET_STATE or by the processor. */
static bool refused(enum guest_end end)
{
	return (end == GUEST_ERROR && g.error == -EINVAL) ||
	       (end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_INVALID);
}

/* CALL_AND_HALT, or CALL_AND_HALT16, was executed to its end. */
static bool called(enum guest_end end)
{
	return end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_HLT &&
	       (long)g.run->regs.rax == getpid();
}

static void compat_32(void)
{
	enum guest_end end = RUN_WITH_CS(CODE32, CALL_AND_HALT);

	expect(end, called(end));
}

static void compat_32_forever(void) { expect(RUN_WITH_CS(CODE32, CALL_FOREVER), false); }

static void compat_16(void)
{
	enum guest_end end = RUN_WITH_CS(CODE16, CALL_AND_HALT16);

	expect(end, called(end));
}

/*
 * The limit of 4 GB cannot be one in bytes: a VM entry refuses the state (SDM vol. 3,
 * 27.3.1.2). VMRUN does not look at G.
 */
static void compat_16_bytes(void)
{
	enum guest_end end = RUN_WITH_CS(CODE16_BYTES, CALL_AND_HALT16);

	expect(end, guest_vmx ? refused(end) : called(end));
}

static void long_and_big(void)
{
	enum guest_end end = RUN_WITH_CS(CS_LONG_AND_32BIT, CALL_AND_HALT);

	expect(end, refused(end));
}

/*
 * VMRUN does not look at the type of CS (APM vol. 2, 15.5.1), and the code runs.
 * A VM entry refuses the state (SDM vol. 3, 27.3.1.2).
 */
static void not_code(void)
{
	enum guest_end end = RUN_WITH_CS(DATA64, CALL_AND_HALT);

	expect(end, guest_vmx ? refused(end) : called(end));
}

/*
 * A state that the processor refuses: the exit reports it, the registers are
 * those that went in, and the state is that of a new vCPU: nothing of the host shows, and
 * nothing of the state that was refused. A later good state runs.
 */
static void refused_state(void)
{
	struct dune_state s = g.state, after;
	struct dune_regs before;

	guest_prepare(&g, 0, guest_return, (void *)5);
	s.cs.attributes = CS_LONG_AND_32BIT;
	s.cr2 = 0x1234567000;
	s.kernel_gs_base = 0x7f0012340000;
	if (guest_set_state(&g, &s))
		_exit(0);
	before = g.run->regs;
	int err = guest_run_to_exit(&g);

	if (err || g.run->exit_reason != DUNE_EXIT_INVALID)
		child_fails("DUNE_RUN does not report DUNE_EXIT_INVALID");
	if (g.run->regs.rip != before.rip || g.run->regs.rsp != before.rsp ||
	    g.run->regs.rax != before.rax)
		child_fails("the refused run changed RIP, RSP or RAX");
	guest_get_state(&g, &after);
	u64 shown[] = { after.cr2, after.cr3, after.gdtr.base, after.idtr.base, after.gs.base,
			after.fs.base, after.tr.base, after.star, after.lstar, after.sfmask,
			after.kernel_gs_base, after.cs.attributes, after.cpl };

	for (unsigned int i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		if (shown[i])
			child_fails("the state after a refusal is not that of a new vCPU");
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
	LOOP("\xfa", 0, 0);	/* cli */
}

static u64 bad_iret(void *arg)
{
	asm volatile("push $0x10; push %0; push $0x2; push $8; push %0; iretq" : : "r"(arg) :
		     "memory");
	return 0;
}

static void iret_not_canonical(void)
{
	must_end_within(2000);
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
	must_end_within(2000);
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
	must_end_within(2000);
	enum guest_end end = guest_call(&g, nested_task, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_GP);
}

static void task_gate(void)
{
	g.mem->idt[0x50 * 2] = (u64)GUEST_TR << 16 | (DESC_P | GATE_TASK) << 40;
	CODE("\xcd\x50");		/* int $0x50 */
	guest_prepare_code(&g, page);
	must_end_within(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_GP);
}

static u64 use_fpu(void *arg)
{
	asm volatile("fninit; fld1; fldpi; fdivp; fstp %%st(0); pxor %%xmm0, %%xmm0" : : :
		     "memory");
	return 0;
}

static void fpu(void)
{
	enum guest_end end = guest_call(&g, use_fpu, NULL);

	expect(end, end == GUEST_DONE);
}

static const struct isolated guests[] = {
	{ "32-bit code", compat_32, 0 },
	{ "32-bit code that makes calls for ever", compat_32_forever, SIGALRM },
	{ "16-bit code", compat_16, 0 },
	{ "16-bit code, limit of 4 GB without G", compat_16_bytes, 0 },
	{ "CS both L and D", long_and_big, 0 },
	{ "CS of a data segment", not_code, 0 },
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

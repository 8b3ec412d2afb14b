// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests that do not end by themselves: exceptions without end, endless loops,
 * single steps, interrupts at each moment. Each runs in a child (isolated.h).
 * Fails when a signal does not end such a guest, or when a step or an interrupt
 * is lost.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "tap.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A handler on an IST stack, for an endless loop of exceptions without an exit. */
static void storm(int vector, const void *handler)
{
	guest_set_gate(&g, vector, handler, 1, 0);
}

static void ud_storm(void)
{
	storm(X86_TRAP_UD, ud2);
	end_after(300);
	guest_call(&g, ud2, NULL);
}

static void gp_storm(void)
{
	CODE("\xf4\x0f\x32\x0f\x32");	/* hlt; 1: rdmsr; rdmsr (both intercepted) */
	storm(X86_TRAP_GP, page + 1);
	end_after(300);
	guest_prepare_code(&g, page + 1);
	g.run->regs.rcx = MSR_EFER;
	guest_resume(&g);
}

static void db_storm(void)
{
	CODE("\x48\xcf");		/* iretq, with TF in the frame */
	storm(X86_TRAP_DB, page);
	end_after(300);
	guest_prepare(&g, 0, guest_return, NULL);
	CODE("\xeb\xfe");		/* 1: jmp 1b */
	g.run->regs.rip = (u64)page;
	g.run->regs.rflags |= X86_EFLAGS_TF;
	guest_resume(&g);
}

/* Call fn(arg) step by step, 1,000 at most; @steps counts them. */
static enum guest_end step_through(u64 (*fn)(void *arg), void *arg, int *steps)
{
	enum guest_end end;

	must_end_within(5000);
	guest_prepare(&g, 0, fn, arg);
	g.run->regs.rflags |= X86_EFLAGS_TF;
	*steps = 0;
	/* IRETQ of the handler continues the steps. */
	do
		end = guest_resume(&g);
	while (end == GUEST_TRAP && g.frame->vector == X86_TRAP_DB && (*steps)++ < 1000);
	return end;
}

static void single_step_all(void)
{
	int steps;
	enum guest_end end = step_through(read_byte, &g, &steps);

	expect(end, end == GUEST_DONE && steps >= 5);
}

/* A step over a hypercall: one #DB after it and one result. */
static void single_step_hypercall(void)
{
	int steps;
	enum guest_end end = step_through(five_getpids, NULL, &steps);

	expect(end, end == GUEST_DONE && (long)g.value == 5L * getpid());
}

/* #AC in ring 3. Its handler is the same loop in ring 0, where there is no #AC. */
static void ac_storm(void)
{
	CODE("\x48\x89\x44\x24\x01\xeb\xf9");	/* 1: mov %rax, 1(%rsp); jmp 1b */
	guest_prepare(&g, 3, guest_return, NULL);
	g.run->regs.rip = (u64)page;
	g.run->regs.rsp -= 64;
	g.run->regs.rflags |= X86_EFLAGS_AC;
	storm(X86_TRAP_AC, page);
	end_after(300);
	expect(guest_resume(&g), false);
}

static void spin_quiet(void) { LOOP("", 0, 0); }
static void spin_cli(void) { LOOP("\xfa", 0, 0); }
static void spin_sti(void) { LOOP("\xfb", 0, X86_EFLAGS_IF); }
static void spin_ring3(void) { LOOP("\x90", 3, X86_EFLAGS_IF); }
static void spin_ring3_cli(void) { LOOP("\xfa", 3, X86_EFLAGS_IOPL); }
static void spin_pause(void) { LOOP("\xf3\x90", 0, 0); }
static void spin_hlt(void) { LOOP("\xf4", 0, 0); }
static void spin_sti_hlt(void) { LOOP("\xfb\xf4", 0, 0); }
static void spin_cpuid(void) { LOOP("\x0f\xa2", 0, 0); }
static void spin_rdtsc(void) { LOOP("\x0f\x31", 0, 0); }
static void spin_invlpg(void) { LOOP("\x0f\x01\x3f", 0, 0); }
/* mov %ss, %eax; mov %eax, %ss */
static void spin_mov_ss(void) { LOOP("\x8c\xd0\x8e\xd0", 0, 0); }
/* mov %cr3, %rax; mov %rax, %cr3 */
static void spin_cr3(void) { LOOP("\x0f\x20\xd8\x0f\x22\xd8", 0, 0); }
/* xor %eax, %eax; mov $39, %al; vmmcall */
static void spin_hypercall(void) { LOOP("\x31\xc0\xb0\x27\x0f\x01\xd9", 0, 0); }

/*
 * VMMCALL with any registers: the result becomes the next number, which no call has.
 * dec %rax; or $0x70000000, %eax; and $0x7fffffff, %eax; vmmcall
 */
static void spin_wild_hypercall(void)
{
	LOOP("\x48\xff\xc8\x0d\x00\x00\x00\x70\x25\xff\xff\xff\x7f\x0f\x01\xd9", 0, 0);
}

static void irq_storm(void)
{
	guest_prepare(&g, 0, guest_return, NULL);
	CODE("\xfb\xeb\xfe");		/* sti; 1: jmp 1b */
	g.run->regs.rip = (u64)page;
	CODE("\x48\xcf");		/* iretq: the handler of all vectors */
	for (int v = 32; v < 256; v++)
		storm(v, page);
	end_after(400);
	for (u32 v = 32;; v = v == 255 ? 32 : v + 1) {
		g.run->irq_vector = v;
		int err = guest_run(&g);

		if (err && err != -EINTR)
			child_fails("DUNE_RUN failed");
		if (!err && g.run->exit_reason == DUNE_EXIT_SHUTDOWN)
			child_fails("the guest ended in a shutdown");
	}
}

/* The task priority decides on virtual interrupts; emulators have errors there. */
static void cr8_with_irq(void)
{
	CODE("\x44\x0f\x22\xc0");	/* mov %rax, %cr8; int3 */
	guest_prepare_code(&g, page);
	guest_set_state(&g, &g.state);
	g.run->irq_vector = 0x60;
	must_end_within(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_TRAP);
}

static void irq_without_idt(void)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, guest_return, NULL);
	CODE("\xfb\xeb\xfe");		/* sti; 1: jmp 1b */
	g.run->regs.rip = (u64)page;
	s.idtr.limit = 0;
	guest_set_state(&g, &s);
	g.run->irq_vector = 0x40;
	must_end_within(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

static const struct isolated guests[] = {
	{ "storm of #UD", ud_storm, SIGALRM },
	{ "storm of #GP by intercepts", gp_storm, SIGALRM },
	{ "storm of #DB", db_storm, SIGALRM },
	{ "single-step everything", single_step_all, 0 },
	{ "single-step over hypercalls", single_step_hypercall, 0 },
	{ "storm of #AC", ac_storm, SIGALRM },
	{ "endless loop, interrupts off", spin_quiet, SIGALRM },
	{ "endless CLI", spin_cli, SIGALRM },
	{ "endless loop, interrupts on", spin_sti, SIGALRM },
	{ "endless loop in ring 3", spin_ring3, SIGALRM },
	{ "endless loop in ring 3 with CLI", spin_ring3_cli, SIGALRM },
	{ "endless PAUSE", spin_pause, SIGALRM },
	{ "endless HLT", spin_hlt, SIGALRM },
	{ "endless STI, HLT", spin_sti_hlt, SIGALRM },
	{ "endless CPUID", spin_cpuid, SIGALRM },
	{ "endless RDTSC", spin_rdtsc, SIGALRM },
	{ "endless INVLPG", spin_invlpg, SIGALRM },
	{ "endless MOV SS", spin_mov_ss, SIGALRM },
	{ "endless MOV CR3", spin_cr3, SIGALRM },
	{ "endless hypercalls", spin_hypercall, SIGALRM },
	{ "endless wild hypercalls", spin_wild_hypercall, SIGALRM },
	{ "storm of injected interrupts", irq_storm, SIGALRM },
	{ "MOV CR8 with an interrupt pending", cr8_with_irq, 0 },
	{ "injected interrupt without an IDT", irq_without_idt, 0 },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}

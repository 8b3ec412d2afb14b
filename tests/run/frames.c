// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A handler changes the segments, flags or FPU state in its signal's frame. Prints with which of
 * them the program continues, or by which signal it does not. signals.bash fails when that differs
 * natively and in the sandbox.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define MXCSR_INITIAL	0x1f80
#define STRICT_SS	4	/* UC_STRICT_RESTORE_SS */
#define HEADER_AT	512	/* XSAVE's header, in the FPU's state */
#define STATUS		0x8d5	/* the flags that results have */
#define AC		0x40000

enum change {
	CS, SS, LOOSE_SS, FLAGS, MXCSR, FEATURES, NO_FPU, BAD_FPU,
};

static const struct test {
	const char *name;
	enum change change;
	unsigned long value;
} tests[] = {
	{ "CS, its privilege level 0", CS, 0x30 },
	{ "CS 0", CS, 0 },
	{ "CS of the kernel", CS, 0x10 },
	{ "CS beyond the table", CS, 0xfff8 },
	{ "SS, its privilege level 0", SS, 0x28 },
	{ "SS 0", SS, 0 },
	{ "SS of the kernel", SS, 0x18 },
	{ "SS 0, which may be corrected", LOOSE_SS, 0 },
	{ "SS beyond the table, which may be corrected", LOOSE_SS, 0xfff8 },
	{ "IOPL 3", FLAGS, 0x3000 },
	{ "NT", FLAGS, 0x4000 },
	{ "VM, VIF, VIP and ID", FLAGS, 0x3a0000 },
	{ "AC", FLAGS, AC },
	{ "MXCSR with another rounding", MXCSR, MXCSR_INITIAL | 0x2000 },
	{ "MXCSR with a reserved bit", MXCSR, MXCSR_INITIAL | 1U << 31 },
	{ "a component that does not exist", FEATURES, 1UL << 62 },
	{ "no state of the FPU", NO_FPU, 0 },
	{ "the FPU's state where nothing is", BAD_FPU, 0x1000 },
};

static const struct test *now;
static sigjmp_buf jump;
static volatile int code;

static void change(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *regs = uc->uc_mcontext.gregs;
	char *fpu = (void *)uc->uc_mcontext.fpregs;
	uint16_t segments[4];

	regs[REG_RIP] += 2;
	memcpy(segments, &regs[REG_CSGSFS], sizeof(segments));
	if (now->change == LOOSE_SS)
		uc->uc_flags &= ~STRICT_SS;
	switch (now->change) {
	case CS:
		segments[0] = now->value;
		break;
	case SS:
	case LOOSE_SS:
		segments[3] = now->value;
		break;
	case FLAGS:
		regs[REG_EFL] |= now->value;
		break;
	case MXCSR:
		uc->uc_mcontext.fpregs->mxcsr = now->value;
		break;
	case FEATURES:
		memcpy(fpu + HEADER_AT, &now->value, sizeof(now->value));
		break;
	case NO_FPU:
	case BAD_FPU:
		uc->uc_mcontext.fpregs = (void *)now->value;
		break;
	}
	memcpy(&regs[REG_CSGSFS], segments, sizeof(segments));
}

static void leave(int sig, siginfo_t *info, void *context)
{
	code = info->si_code;
	siglongjmp(jump, sig);
}

int main(void)
{
	static char other[65536];
	stack_t alt = { .ss_sp = other, .ss_size = sizeof(other) };
	struct sigaction changes = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
	struct sigaction leaves = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	setvbuf(stdout, NULL, _IONBF, 0);
	sigaltstack(&alt, NULL);
	sigaction(SIGILL, &changes, NULL);
	sigaction(SIGSEGV, &leaves, NULL);
	for (now = tests; now < tests + sizeof(tests) / sizeof(tests[0]); now++) {
		uint32_t mxcsr = MXCSR_INITIAL;
		unsigned long flags, cs, ss;
		int sig;

		__asm__ volatile("ldmxcsr %0" : : "m" (mxcsr));
		sig = sigsetjmp(jump, 1);
		if (sig) {
			printf("%s: signal %d, code %#x\n", now->name, sig, code);
			continue;
		}
		__asm__ volatile("ud2\n\t"
				 "pushf\n\t"
				 "pop %0\n\t"
				 "push %0\n\t"
				 "andl %4, (%%rsp)\n\t"
				 "popf\n\t"
				 "mov %%cs, %1\n\t"
				 "mov %%ss, %2\n\t"
				 "stmxcsr %3"
				 : "=r" (flags), "=r" (cs), "=r" (ss), "=m" (mxcsr)
				 : "i" (~AC) : "memory", "cc");
		printf("%s: CS %#x, SS %#x, flags %#lx, MXCSR %#x\n", now->name, (uint16_t)cs,
		       (uint16_t)ss, flags & ~(unsigned long)STATUS, mxcsr);
	}
	return 0;
}

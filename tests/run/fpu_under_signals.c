// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program with values in its FPU registers, while another process sends it two signals whose
 * handlers change them, and which also raises exceptions of the FPU. Prints whether a value was
 * lost, and the exceptions' codes. signals.bash fails when that differs between the native run and
 * the one in the sandbox.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNALS		3000
#define MXCSR_INITIAL	0x1f80
#define ROUND_UP	0x4000
#define CONTROL_INITIAL	0x37f
#define DIVISION_TRAPS	(CONTROL_INITIAL & ~4)

typedef unsigned int vector __attribute__((vector_size(16)));

static volatile unsigned long signals, exceptions, wrong_code;

static void set_mxcsr(unsigned int mxcsr)
{
	__asm__ volatile("ldmxcsr %0" : : "m" (mxcsr));
}

static unsigned int get_mxcsr(void)
{
	unsigned int mxcsr;

	__asm__ volatile("stmxcsr %0" : "=m" (mxcsr));
	return mxcsr;
}

static void change(int sig)
{
	vector v = { 1, 2, 3, sig };

	signals++;
	set_mxcsr(MXCSR_INITIAL | 0x6000);
	__asm__ volatile("movdqa %0, %%xmm0; movdqa %0, %%xmm7; movdqa %0, %%xmm15"
			 : : "x" (v) : "xmm0", "xmm7", "xmm15");
}

static void divided(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	exceptions++;
	wrong_code += info->si_code != FPE_FLTDIV;
	uc->uc_mcontext.fpregs->cwd = CONTROL_INITIAL;
	uc->uc_mcontext.fpregs->swd = 0;
}

/* Returns whether registers that were set are the same after a while. */
static bool kept(unsigned int n)
{
	vector is[3], was = { n, ~n, n * 3, n ^ 0x5555 };
	long spin = 300;

	set_mxcsr(MXCSR_INITIAL | ROUND_UP);
	__asm__ volatile("movdqa %4, %%xmm0; movdqa %4, %%xmm7; movdqa %4, %%xmm15\n"
			 "1: dec %0; jnz 1b\n"
			 "movdqa %%xmm0, %1; movdqa %%xmm7, %2; movdqa %%xmm15, %3"
			 : "+r" (spin), "=m" (is[0]), "=m" (is[1]), "=m" (is[2])
			 : "m" (was) : "xmm0", "xmm7", "xmm15", "cc");
	if (get_mxcsr() != (MXCSR_INITIAL | ROUND_UP))
		return false;
	for (n = 0; n < 3; n++)
		if (memcmp(&is[n], &was, sizeof(was)))
			return false;
	return true;
}

static void divide(void)
{
	unsigned short traps = DIVISION_TRAPS;

	/* QEMU does not raise exceptions of SSE. */
	__asm__ volatile("fninit; fldcw %0; fld1; fldz; fdivrp; fwait; fninit" : : "m" (traps));
}

static void send_all(pid_t to)
{
	for (;;) {
		if (kill(to, SIGUSR1) || kill(to, SIGUSR2))
			_exit(0);
	}
}

int main(void)
{
	struct sigaction act = { .sa_handler = change }, fpe = { .sa_flags = SA_SIGINFO };
	unsigned long lost = 0, divisions = 0, n;
	pid_t sender, parent = getpid();

	fpe.sa_sigaction = divided;
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act, NULL);
	sigaction(SIGFPE, &fpe, NULL);
	sender = fork();
	if (!sender)
		send_all(parent);
	for (n = 0; signals < SIGNALS; n++) {
		lost += !kept(n);
		if (n % 8 == 0) {
			divide();
			divisions++;
		}
	}
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
	printf("registers lost: %lu; exceptions missing: %lu, with a wrong code: %lu\n", lost,
	       divisions - exceptions, wrong_code);
	return 0;
}

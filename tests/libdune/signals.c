// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Handlers of signals that are sent, natively, in ring 0 and in ring 3: the frame that
 * they see and change, masks, queues, nesting, flags, the alternate stack, timers. Fails
 * when one of these differs from what Linux does natively.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <unistd.h>
#include "handler.h"
#include "rings.h"
#include "tap.h"

static void test_kill(void)
{
	sigset_t now;

	handled_clear();
	handle(SIGUSR1, note, 0, SIGUSR2);
	is(kill(getpid(), SIGUSR1), 0, "kill() of oneself succeeds");
	is(handled.count, 1, "a handler has run when kill of oneself returns");
	is(handled.info.si_signo, SIGUSR1, "kill of oneself: si_signo");
	is(handled.info.si_code, SI_USER, "kill of oneself: si_code");
	is(handled.info.si_pid, getpid(), "kill of oneself: si_pid");
	is(handled.info.si_uid, getuid(), "kill of oneself: si_uid");
	is(handled.uc.uc_mcontext.gregs[REG_RAX], 0, "ucontext: rax is the result");
	ok(sigismember(&handled.mask, SIGUSR1) == 1 &&
	   sigismember(&handled.mask, SIGUSR2) == 1, "mask in the handler");
	sigprocmask(SIG_BLOCK, NULL, &now);
	ok(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2),
	   "mask after the handler");
}

static void test_queue(void)
{
	union sigval v = { .sival_int = 4711 };
	sigset_t set, pending;
	int i;

	handled_clear();
	handle(SIGRTMIN + 1, note, 0, 0);
	handle(SIGRTMIN, note, 0, 0);
	sigqueue(getpid(), SIGRTMIN, v);
	is(handled.info.si_value.sival_int, 4711, "the handler gets the si_value of sigqueue()");
	is(handled.info.si_code, SI_QUEUE, "the handler gets the si_code of sigqueue()");

	handled_clear();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < 3; i++)
		sigqueue(getpid(), SIGRTMIN, v);
	sigqueue(getpid(), SIGRTMIN + 1, v);
	sigpending(&pending);
	ok(sigismember(&pending, SIGRTMIN) == 1, "a queued signal is pending while it is blocked");
	is(handled.count, 0, "no handler runs while its signal is blocked");
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	is(handled.count, 4, "handlers of all queued signals run when they are unblocked");
}

static void nest(int sig, siginfo_t *info, void *uc)
{
	note(sig, info, uc);
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	handled.order[handled.orders++] = -sig;
}

/* The order in which handlers began and ended (negative). */
static int order_is(int first, int second, int third, int fourth)
{
	return handled.order[0] == first && handled.order[1] == second &&
	       handled.order[2] == third && handled.order[3] == fourth;
}

static void test_nested(void)
{
	handled_clear();
	handle(SIGUSR1, nest, 0, 0);
	handle(SIGUSR2, nest, 0, 0);
	raise(SIGUSR1);
	ok(order_is(SIGUSR1, SIGUSR2, -SIGUSR2, -SIGUSR1),
	   "a handler is interrupted by another signal");

	handled_clear();
	handle(SIGUSR1, nest, 0, SIGUSR2);
	raise(SIGUSR1);
	ok(order_is(SIGUSR1, -SIGUSR1, SIGUSR2, -SIGUSR2),
	   "sa_mask keeps another signal waiting");
}

static volatile int depth, deepest;

static void again(int sig, siginfo_t *info, void *uc)
{
	(void)info;
	(void)uc;
	if (++depth > deepest)
		deepest = depth;
	if (depth < 3)
		raise(sig);
	depth--;
	handled.count++;
}

static void test_flags(void)
{
	struct sigaction old;

	handled_clear();
	deepest = 0;
	handle(SIGUSR1, again, SA_NODEFER, 0);
	raise(SIGUSR1);
	is(deepest, 3, "SA_NODEFER: the signal in its own handler");
	handle(SIGUSR1, note, SA_RESETHAND, 0);
	handled_clear();
	raise(SIGUSR1);
	is(handled.count, 1, "a handler with SA_RESETHAND runs");
	sigaction(SIGUSR1, NULL, &old);
	ok(old.sa_handler == SIG_DFL, "SA_RESETHAND: then the default");
	signal(SIGUSR1, SIG_IGN);
	sigaction(SIGUSR1, NULL, &old);
	ok(old.sa_handler == SIG_IGN, "sigaction() returns SIG_IGN as the old action");
	handle(SIGUSR1, note, SA_RESTART, SIGUSR2);
	sigaction(SIGUSR1, NULL, &old);
	ok(old.sa_sigaction == note && (old.sa_flags & SA_RESTART) &&
	   sigismember(&old.sa_mask, SIGUSR2) == 1, "an action reads back");
	errno = 0;
	ok(sigaction(SIGKILL, &old, NULL) == -1 && errno == EINVAL,
	   "no handler for SIGKILL");
}

#define UC_FP_XSTATE	1UL	/* <asm/ucontext.h>, which libc replaces */

static volatile unsigned int fp_magic;

static void change_xmm(int sig, siginfo_t *info, void *uc)
{
	ucontext_t *u = uc;

	note(sig, info, uc);
	/* read here: afterwards the frame is free stack */
	fp_magic = *(unsigned int *)((char *)u->uc_mcontext.fpregs + 464);
	u->uc_mcontext.fpregs->_xmm[7].element[0] = 0x1234;
	__asm__ volatile("pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7"
			 : : : "xmm6", "xmm7");
}

static void test_fpu(void)
{
	unsigned long six = 0x6666, seven = 0x7777, out6, out7, rsp8;
	long pid = getpid(), r;

	handle(SIGUSR1, change_xmm, 0, 0);
	rsp8 = 0xabcd;
	__asm__ volatile("movq %6, %%xmm6; movq %7, %%xmm7\n"
			 "movq %8, -8(%%rsp)\n"		/* red zone */
			 "syscall\n"
			 "movq -8(%%rsp), %3\n"
			 "movq %%xmm6, %1; movq %%xmm7, %2"
			 : "=a" (r), "=&r" (out6), "=&r" (out7), "=&r" (rsp8)
			 : "D" (pid), "S" ((long)SIGUSR1), "r" (six), "r" (seven),
			   "r" (0xabcdUL), "0" ((long)SYS_kill)
			 : "rcx", "r11", "memory", "xmm6", "xmm7");
	is(r, 0, "kill() by the syscall instruction itself succeeds");
	is(out6, 0x6666, "xmm6 is restored after the handler");
	is(out7, 0x1234, "xmm7 is what the handler wrote into the frame");
	is(rsp8, 0xabcd, "the red zone is unchanged after the handler");
	if (handled.uc.uc_flags & UC_FP_XSTATE)
		is(fp_magic, FP_XSTATE_MAGIC1, "the signal frame's fpstate has its magic");
	else
		skip("no XSAVE", "the signal frame's fpstate has its magic");
}

#define MXCSR_INITIAL	0x1f80U
#define MXCSR_TO_ZERO	0x7f80U		/* rounds to zero */

static volatile unsigned int handler_mxcsr, handler_tags;

static void look_at_fpu(int sig, siginfo_t *info, void *uc)
{
	unsigned int mxcsr, environment[7];

	note(sig, info, uc);
	__asm__ volatile("stmxcsr %0; fnstenv %1; fldenv %1" : "=m" (mxcsr), "=m" (environment));
	handler_mxcsr = mxcsr;
	handler_tags = environment[2] & 0xffff;
}

static void test_fresh_fpu(void)
{
	unsigned int to_zero = MXCSR_TO_ZERO, initial = MXCSR_INITIAL, after;
	long pid = getpid(), r;

	handle(SIGUSR1, look_at_fpu, 0, 0);
	__asm__ volatile("ldmxcsr %2; fld1\n"
			 "syscall\n"
			 "stmxcsr %1; ldmxcsr %3; fstp %%st(0)"
			 : "=a" (r), "=m" (after)
			 : "m" (to_zero), "m" (initial), "D" (pid), "S" ((long)SIGUSR1),
			   "0" ((long)SYS_kill)
			 : "rcx", "r11", "memory", "st");
	is(handler_mxcsr, MXCSR_INITIAL, "a handler starts with the initial MXCSR");
	is(handler_tags, 0xffff, "a handler starts with an empty x87 stack");
	is(after, MXCSR_TO_ZERO, "MXCSR is restored after the handler");
}

static char alt[65536];
static volatile uintptr_t handler_sp;
static sigjmp_buf out;

static void on_alt(int sig, siginfo_t *info, void *uc)
{
	note(sig, info, uc);
	handler_sp = (uintptr_t)__builtin_frame_address(0);
}

static void jump_out(int sig, siginfo_t *info, void *uc)
{
	on_alt(sig, info, uc);
	siglongjmp(out, 1);
}

static int recurse(int n)
{
	volatile char use[4096];

	use[0] = n;
	if (n == 0)
		return use[0];
	return recurse(n + 1) + use[0];
}

static int in_alt(uintptr_t p)
{
	return p - (uintptr_t)alt < sizeof(alt);
}

static void test_altstack(void)
{
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) }, old;
	sigset_t now;

	handled_clear();
	is(sigaltstack(&ss, NULL), 0, "sigaltstack() succeeds");
	sigaltstack(NULL, &old);
	ok(old.ss_sp == alt && old.ss_size == sizeof(alt) && !old.ss_flags,
	   "sigaltstack reads back what was set");
	handle(SIGUSR1, on_alt, SA_ONSTACK, 0);
	raise(SIGUSR1);
	ok(in_alt(handler_sp), "a handler with SA_ONSTACK runs on the alternate stack");
	ok(handled.uc.uc_stack.ss_sp == alt, "uc_stack is the alternate stack");
	handle(SIGUSR1, on_alt, 0, 0);
	raise(SIGUSR1);
	ok(!in_alt(handler_sp), "a handler without SA_ONSTACK runs on the common stack");
	handle(SIGSEGV, jump_out, SA_ONSTACK, 0);
	if (!sigsetjmp(out, 1))
		recurse(1);
	ok(in_alt(handler_sp), "stack overflow: handled on the alternate stack");
	is(handled.info.si_signo, SIGSEGV, "stack overflow is a SIGSEGV");
	sigprocmask(SIG_BLOCK, NULL, &now);
	ok(!sigismember(&now, SIGSEGV), "siglongjmp restores the mask");
	signal(SIGSEGV, SIG_DFL);
	ss.ss_size = 100;
	errno = 0;
	ok(sigaltstack(&ss, NULL) == -1 && errno == ENOMEM,
	   "sigaltstack with too small a stack: ENOMEM");
	ss.ss_flags = SS_DISABLE;
	is(sigaltstack(&ss, NULL), 0, "sigaltstack disables the alternate stack");
}

static void test_timer(void)
{
	struct itimerval it = { { 0, 2000 }, { 0, 2000 } };
	struct itimerval off = { { 0, 0 }, { 0, 0 } };
	volatile long n = 0;
	long sum = 0;

	handled_clear();
	handle(SIGALRM, note, SA_RESTART, 0);
	setitimer(ITIMER_REAL, &it, NULL);
	while (handled.count < 20) {
		n++;
		sum += n;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	ok(handled.count >= 20, "a timer interrupts a loop that makes no calls");
	is(sum, n * (n + 1) / 2, "a loop that a timer interrupts has the right result");
}

static void body(void)
{
	test_kill();
	test_queue();
	test_nested();
	test_flags();
	test_fpu();
	test_fresh_fpu();
	test_altstack();
	test_timer();
}

int main(int argc, char **argv)
{
	return in_all_rings(argc, argv, body);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Handlers of signals, natively, in ring 0 and in ring 3: the frame that they see
 * and change, masks, queues, nesting, faults, the alternate stack. Fails when one
 * of these differs from what Linux does natively.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"

static volatile int count, order[16], norder;
static siginfo_t last_info;
static ucontext_t last_uc;
static sigset_t mask_in_handler;

static void install(int sig, void (*fn)(int, siginfo_t *, void *), int flags,
		    int also_block)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&sa.sa_mask);
	if (also_block)
		sigaddset(&sa.sa_mask, also_block);
	sigaction(sig, &sa, NULL);
}

static void note(int sig, siginfo_t *info, void *uc)
{
	last_info = *info;
	last_uc = *(ucontext_t *)uc;
	sigprocmask(SIG_BLOCK, NULL, &mask_in_handler);
	if (norder < 16)
		order[norder++] = sig;
	count++;
}

static void start(void)
{
	count = 0;
	norder = 0;
	memset(&last_info, 0, sizeof(last_info));
}

static void test_kill(void)
{
	sigset_t now;

	start();
	install(SIGUSR1, note, 0, SIGUSR2);
	is(kill(getpid(), SIGUSR1), 0, "kill() of oneself succeeds");
	is(count, 1, "a handler has run when kill of oneself returns");
	is(last_info.si_signo, SIGUSR1, "kill of oneself: si_signo");
	is(last_info.si_code, SI_USER, "kill of oneself: si_code");
	is(last_info.si_pid, getpid(), "kill of oneself: si_pid");
	is(last_info.si_uid, getuid(), "kill of oneself: si_uid");
	is(last_uc.uc_mcontext.gregs[REG_RAX], 0, "ucontext: rax is the result");
	ok(sigismember(&mask_in_handler, SIGUSR1) == 1 &&
	   sigismember(&mask_in_handler, SIGUSR2) == 1, "mask in the handler");
	sigprocmask(SIG_BLOCK, NULL, &now);
	ok(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2),
	   "mask after the handler");
}

static void test_queue(void)
{
	union sigval v = { .sival_int = 4711 };
	sigset_t set, pending;
	int i;

	start();
	install(SIGRTMIN + 1, note, 0, 0);
	install(SIGRTMIN, note, 0, 0);
	sigqueue(getpid(), SIGRTMIN, v);
	is(last_info.si_value.sival_int, 4711, "the handler gets the si_value of sigqueue()");
	is(last_info.si_code, SI_QUEUE, "the handler gets the si_code of sigqueue()");

	start();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < 3; i++)
		sigqueue(getpid(), SIGRTMIN, v);
	sigqueue(getpid(), SIGRTMIN + 1, v);
	sigpending(&pending);
	ok(sigismember(&pending, SIGRTMIN) == 1, "a queued signal is pending while it is blocked");
	is(count, 0, "no handler runs while its signal is blocked");
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	is(count, 4, "handlers of all queued signals run when they are unblocked");
}

static void nest(int sig, siginfo_t *info, void *uc)
{
	note(sig, info, uc);
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	order[norder++] = -sig;
}

static void test_nested(void)
{
	start();
	install(SIGUSR1, nest, 0, 0);
	install(SIGUSR2, nest, 0, 0);
	raise(SIGUSR1);
	ok(order[0] == SIGUSR1 && order[1] == SIGUSR2 && order[2] == -SIGUSR2 &&
	   order[3] == -SIGUSR1, "a handler is interrupted by another signal");

	start();
	install(SIGUSR1, nest, 0, SIGUSR2);
	raise(SIGUSR1);
	ok(order[0] == SIGUSR1 && order[1] == -SIGUSR1 && order[2] == SIGUSR2 &&
	   order[3] == -SIGUSR2, "sa_mask keeps another signal waiting");
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
	count++;
}

static void test_flags(void)
{
	struct sigaction old;

	start();
	deepest = 0;
	install(SIGUSR1, again, SA_NODEFER, 0);
	raise(SIGUSR1);
	is(deepest, 3, "SA_NODEFER: the signal in its own handler");
	install(SIGUSR1, note, SA_RESETHAND, 0);
	start();
	raise(SIGUSR1);
	is(count, 1, "a handler with SA_RESETHAND runs");
	sigaction(SIGUSR1, NULL, &old);
	ok(old.sa_handler == SIG_DFL, "SA_RESETHAND: then the default");
	signal(SIGUSR1, SIG_IGN);
	sigaction(SIGUSR1, NULL, &old);
	ok(old.sa_handler == SIG_IGN, "sigaction() returns SIG_IGN as the old action");
	install(SIGUSR1, note, SA_RESTART, SIGUSR2);
	sigaction(SIGUSR1, NULL, &old);
	ok(old.sa_sigaction == note && (old.sa_flags & SA_RESTART) &&
	   sigismember(&old.sa_mask, SIGUSR2) == 1, "an action reads back");
	errno = 0;
	ok(sigaction(SIGKILL, &old, NULL) == -1 && errno == EINVAL,
	   "no handler for SIGKILL");
}

static void skip_fault(int sig, siginfo_t *info, void *uc)
{
	ucontext_t *u = uc;

	note(sig, info, uc);
	u->uc_mcontext.gregs[REG_RIP] = u->uc_mcontext.gregs[REG_RBX];
	u->uc_mcontext.gregs[REG_RAX] = 77;
}

#define FAULTING(insn) ({					\
	long r;							\
								\
	__asm__ volatile("leaq 1f(%%rip), %%rbx\n" insn "\n1:"	\
			 : "=a" (r) : "a" (1L), "c" (0L), "d" (0L)	\
			 : "rbx", "memory", "cc");		\
	r;							\
})

static void test_faults(void)
{
	char *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long r;

	munmap(gone, 4096);
	start();
	install(SIGSEGV, skip_fault, 0, 0);
	install(SIGILL, skip_fault, 0, 0);
	install(SIGFPE, skip_fault, 0, 0);
	install(SIGTRAP, skip_fault, 0, 0);
	install(SIGBUS, skip_fault, 0, 0);
	__asm__ volatile("leaq 1f(%%rip), %%rbx; movb $1, (%1); 1:"
			 : "=a" (r) : "r" (ro) : "rbx", "memory");
	is(last_info.si_signo, SIGSEGV, "write to a read-only page");
	is(last_info.si_code, SEGV_ACCERR, "write to a read-only page: si_code");
	ok(last_info.si_addr == ro, "write to a read-only page: si_addr");
	is(last_uc.uc_mcontext.gregs[REG_TRAPNO], 14, "write to a read-only page: trap number");
	ok((last_uc.uc_mcontext.gregs[REG_ERR] & 2) == 2,
	   "write to a read-only page: the error code has the write bit");
	is(last_uc.uc_mcontext.gregs[REG_CR2], (long)ro, "write to a read-only page: cr2");
	is(r, 77, "the handler changed rax and rip");
	start();
	__asm__ volatile("leaq 1f(%%rip), %%rbx; movb 5(%1), %%al; 1:"
			 : "=a" (r) : "r" (gone) : "rbx", "memory");
	is(last_info.si_code, SEGV_MAPERR, "read of unmapped memory: si_code");
	ok(last_info.si_addr == gone + 5, "read of unmapped memory: si_addr");
	start();
	FAULTING("ud2");
	is(last_info.si_signo, SIGILL, "ud2 raises SIGILL");
	is(last_info.si_code, ILL_ILLOPN, "the si_code for ud2 is ILL_ILLOPN");
	start();
	FAULTING("divl %%ecx");
	is(last_info.si_signo, SIGFPE, "division by zero raises SIGFPE");
	is(last_info.si_code, FPE_INTDIV, "the si_code for division by zero is FPE_INTDIV");
	start();
	FAULTING("int3");
	is(last_info.si_signo, SIGTRAP, "int3 raises SIGTRAP");
	start();
	FAULTING("movabsq $0x8000000000000000, %%rdx; movq (%%rdx), %%rdx");
	is(last_info.si_signo, SIGSEGV, "an address that is not canonical");
	is(last_info.si_code, SI_KERNEL, "an address that is not canonical: si_code");
	/* The page can be read but not executed. */
	start();
	__asm__ volatile("leaq 1f(%%rip), %%rbx; jmp *%1; 1:"
			 : "=a" (r) : "r" (ro) : "rbx", "memory");
	is(last_info.si_signo, SIGSEGV, "jump to a page that cannot be executed");
	is(last_info.si_code, SEGV_ACCERR, "jump to a page that cannot be executed: si_code");
	ok(last_info.si_addr == ro, "jump to a page that cannot be executed: si_addr");
	signal(SIGSEGV, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	signal(SIGTRAP, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	munmap(ro, 4096);
}

static void test_sigbus(void)
{
	char name[] = "/tmp/dune-sigbus-XXXXXX";
	int fd = mkstemp(name);
	char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	long r;

	start();
	install(SIGBUS, skip_fault, 0, 0);
	__asm__ volatile("leaq 1f(%%rip), %%rbx; movb (%1), %%al; 1:"
			 : "=a" (r) : "r" (p) : "rbx", "memory");
	is(last_info.si_signo, SIGBUS, "access beyond the end of a file");
	is(last_info.si_code, BUS_ADRERR, "access beyond the end of a file: si_code");
	signal(SIGBUS, SIG_DFL);
	munmap(p, 4096);
	close(fd);
	unlink(name);
}

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

	install(SIGUSR1, change_xmm, 0, 0);
	rsp8 = 0xabcd;
	__asm__ volatile("movq %6, %%xmm6; movq %7, %%xmm7\n"
			 "movq %8, -8(%%rsp)\n"		/* red zone */
			 "syscall\n"
			 "movq -8(%%rsp), %3\n"
			 "movq %%xmm6, %1; movq %%xmm7, %2"
			 : "=a" (r), "=&r" (out6), "=&r" (out7), "=&r" (rsp8)
			 : "D" (pid), "S" ((long)SIGUSR1), "r" (six), "r" (seven),
			   "r" (0xabcdUL), "0" (62L)
			 : "rcx", "r11", "memory", "xmm6", "xmm7");
	is(r, 0, "kill() by the syscall instruction itself succeeds");
	is(out6, 0x6666, "xmm6 is restored after the handler");
	is(out7, 0x1234, "xmm7 is what the handler wrote into the frame");
	is(rsp8, 0xabcd, "the red zone is unchanged after the handler");
	ok(last_uc.uc_flags & 1 ? fp_magic == 0x46505853 : 1,
	   "the signal frame's fpstate has its magic");
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

	start();
	is(sigaltstack(&ss, NULL), 0, "sigaltstack() succeeds");
	sigaltstack(NULL, &old);
	ok(old.ss_sp == alt && old.ss_size == sizeof(alt) && !old.ss_flags,
	   "sigaltstack reads back what was set");
	install(SIGUSR1, on_alt, SA_ONSTACK, 0);
	raise(SIGUSR1);
	ok(in_alt(handler_sp), "a handler with SA_ONSTACK runs on the alternate stack");
	ok(last_uc.uc_stack.ss_sp == alt, "uc_stack is the alternate stack");
	install(SIGUSR1, on_alt, 0, 0);
	raise(SIGUSR1);
	ok(!in_alt(handler_sp), "a handler without SA_ONSTACK runs on the common stack");
	install(SIGSEGV, jump_out, SA_ONSTACK, 0);
	if (!sigsetjmp(out, 1))
		recurse(1);
	ok(in_alt(handler_sp), "stack overflow: handled on the alternate stack");
	is(last_info.si_signo, SIGSEGV, "stack overflow is a SIGSEGV");
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

	start();
	install(SIGALRM, note, SA_RESTART, 0);
	setitimer(ITIMER_REAL, &it, NULL);
	while (count < 20) {
		n++;
		sum += n;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	ok(count >= 20, "a timer interrupts a loop that makes no calls");
	is(sum, n * (n + 1) / 2, "a loop that a timer interrupts has the right result");
}

static int status_of(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(111);
	}
	waitpid(pid, &status, 0);
	return status;
}

static volatile uintptr_t nowhere = 8;

static void by_segv(void) { *(volatile int *)nowhere = 1; }
static void by_ud(void) { __asm__ volatile("ud2"); }
static void by_abort(void) { abort(); }
static void by_term(void) { raise(SIGTERM); }
static void by_fpe(void) { FAULTING("divl %%ecx"); }
static void by_trap(void) { __asm__ volatile("int3"); }
static void by_gp(void) { FAULTING("movabsq $0x8000000000000000, %%rdx; movq (%%rdx), %%rdx"); }

static void by_ignored_segv(void)
{
	signal(SIGSEGV, SIG_IGN);
	raise(SIGSEGV);		/* is ignored */
	by_segv();
}

static void by_blocked_segv(void)
{
	sigset_t set;

	install(SIGSEGV, note, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	by_segv();
}

static void by_blocked_ud(void)
{
	sigset_t set;

	install(SIGILL, note, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGILL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	by_ud();
}

static void segv_in_segv(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	(void)uc;
	by_segv();
}

static void by_segv_in_handler(void)
{
	install(SIGSEGV, segv_in_segv, 0, 0);
	by_segv();
}

static void by_bad_stack(void)
{
	install(SIGUSR1, note, 0, 0);
	__asm__ volatile("movq $4096, %%rsp; syscall"
			 : : "a" (62L), "D" ((long)getpid()), "S" ((long)SIGUSR1));
}

static void by_sent_segv(void) { raise(SIGSEGV); }

static void test_deaths(void)
{
	static const struct {
		void (*fn)(void);
		int sig;
		const char *what;
	} deaths[] = {
		{ by_segv, SIGSEGV, "bad address" },
		{ by_ud, SIGILL, "ud2" },
		{ by_abort, SIGABRT, "abort" },
		{ by_term, SIGTERM, "SIGTERM" },
		{ by_fpe, SIGFPE, "division by zero" },
		{ by_trap, SIGTRAP, "int3" },
		{ by_gp, SIGSEGV, "address not canonical" },
		{ by_ignored_segv, SIGSEGV, "bad address, SIGSEGV ignored" },
		{ by_blocked_segv, SIGSEGV, "bad address, SIGSEGV blocked" },
		{ by_blocked_ud, SIGILL, "ud2, SIGILL blocked" },
		{ by_segv_in_handler, SIGSEGV, "bad address in the handler for it" },
		{ by_bad_stack, SIGSEGV, "signal without a stack" },
		{ by_sent_segv, SIGSEGV, "SIGSEGV sent" },
	};
	unsigned int i;
	int status;

	for (i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		status = status_of(deaths[i].fn);
		ok(WIFSIGNALED(status) && WTERMSIG(status) == deaths[i].sig,
		   "death by %s (status 0x%x)", deaths[i].what, status);
	}
}

static void body(void)
{
	test_kill();
	test_queue();
	test_nested();
	test_flags();
	test_faults();
	test_sigbus();
	test_fpu();
	test_altstack();
	test_timer();
	test_deaths();
}

int main(int argc, char **argv)
{
	return in_all_rings(argc, argv, body);
}

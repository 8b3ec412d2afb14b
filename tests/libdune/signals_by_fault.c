// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals that the program's own faults raise, natively, in ring 0 and in ring 3: what
 * their handlers see, and the death of a process that handles no such signal. Fails when
 * the signal, its si_code, its address, its mask or the registers in the frame differ from
 * what Linux gives natively, or when a process dies of another signal, or not.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>
#include "handler.h"
#include "rings.h"
#include "tap.h"

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
	handled_clear();
	handle(SIGSEGV, skip_fault, 0, 0);
	handle(SIGILL, skip_fault, 0, 0);
	handle(SIGFPE, skip_fault, 0, 0);
	handle(SIGTRAP, skip_fault, 0, 0);
	handle(SIGBUS, skip_fault, 0, 0);
	__asm__ volatile("leaq 1f(%%rip), %%rbx; movb $1, (%1); 1:"
			 : "=a" (r) : "r" (ro) : "rbx", "memory");
	is(handled.info.si_signo, SIGSEGV, "write to a read-only page");
	is(handled.info.si_code, SEGV_ACCERR, "write to a read-only page: si_code");
	ok(handled.info.si_addr == ro, "write to a read-only page: si_addr");
	is(handled.uc.uc_mcontext.gregs[REG_TRAPNO], 14, "write to a read-only page: trap number");
	ok((handled.uc.uc_mcontext.gregs[REG_ERR] & 2) == 2,
	   "write to a read-only page: the error code has the write bit");
	is(handled.uc.uc_mcontext.gregs[REG_CR2], (long)ro, "write to a read-only page: cr2");
	is(r, 77, "the handler changed rax and rip");
	handled_clear();
	__asm__ volatile("leaq 1f(%%rip), %%rbx; movb 5(%1), %%al; 1:"
			 : "=a" (r) : "r" (gone) : "rbx", "memory");
	is(handled.info.si_code, SEGV_MAPERR, "read of unmapped memory: si_code");
	ok(handled.info.si_addr == gone + 5, "read of unmapped memory: si_addr");
	handled_clear();
	FAULTING("ud2");
	is(handled.info.si_signo, SIGILL, "ud2 raises SIGILL");
	is(handled.info.si_code, ILL_ILLOPN, "the si_code for ud2 is ILL_ILLOPN");
	handled_clear();
	FAULTING("divl %%ecx");
	is(handled.info.si_signo, SIGFPE, "division by zero raises SIGFPE");
	is(handled.info.si_code, FPE_INTDIV, "the si_code for division by zero is FPE_INTDIV");
	handled_clear();
	FAULTING("int3");
	is(handled.info.si_signo, SIGTRAP, "int3 raises SIGTRAP");
	handled_clear();
	FAULTING("movabsq $0x8000000000000000, %%rdx; movq (%%rdx), %%rdx");
	is(handled.info.si_signo, SIGSEGV, "an address that is not canonical");
	is(handled.info.si_code, SI_KERNEL, "an address that is not canonical: si_code");
	/* The page can be read but not executed. */
	handled_clear();
	__asm__ volatile("leaq 1f(%%rip), %%rbx; jmp *%1; 1:"
			 : "=a" (r) : "r" (ro) : "rbx", "memory");
	is(handled.info.si_signo, SIGSEGV, "jump to a page that cannot be executed");
	is(handled.info.si_code, SEGV_ACCERR, "jump to a page that cannot be executed: si_code");
	ok(handled.info.si_addr == ro, "jump to a page that cannot be executed: si_addr");
	is(handled.uc.uc_mcontext.gregs[REG_TRAPNO], 14,
	   "jump to a page that cannot be executed: trap number");
	is(handled.uc.uc_mcontext.gregs[REG_ERR], 0x15,
	   "jump to a page that cannot be executed: error code");
	is(handled.uc.uc_mcontext.gregs[REG_CR2], (long)ro,
	   "jump to a page that cannot be executed: cr2");
	handled_clear();
	__asm__ volatile("leaq 1f(%%rip), %%rbx; jmp *%1; 1:"
			 : "=a" (r) : "r" (gone) : "rbx", "memory");
	is(handled.info.si_code, SEGV_MAPERR, "jump to unmapped memory: si_code");
	ok(handled.info.si_addr == gone, "jump to unmapped memory: si_addr");
	is(handled.uc.uc_mcontext.gregs[REG_ERR], 0x14, "jump to unmapped memory: error code");
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

	handled_clear();
	handle(SIGBUS, skip_fault, 0, 0);
	__asm__ volatile("leaq 1f(%%rip), %%rbx; movb (%1), %%al; 1:"
			 : "=a" (r) : "r" (p) : "rbx", "memory");
	is(handled.info.si_signo, SIGBUS, "access beyond the end of a file");
	is(handled.info.si_code, BUS_ADRERR, "access beyond the end of a file: si_code");
	signal(SIGBUS, SIG_DFL);
	munmap(p, 4096);
	close(fd);
	unlink(name);
}

static char alt[65536];

/* The frame is of code whose stack pointer is kept in RBX. */
static void back_on_stack(int sig, siginfo_t *info, void *uc)
{
	ucontext_t *u = uc;

	note(sig, info, uc);
	u->uc_mcontext.gregs[REG_RSP] = u->uc_mcontext.gregs[REG_RBX];
}

/*
 * The frame of a SIGUSR1 cannot be written: a SIGSEGV takes its place. Not in ring 0, whose
 * system calls need a stack.
 */
static void test_lost(void)
{
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) }, none = { .ss_flags = SS_DISABLE };
	struct sigaction now;
	long r;

	sigaltstack(&ss, NULL);
	handle(SIGUSR1, note, 0, SIGUSR2);
	handle(SIGSEGV, back_on_stack, SA_ONSTACK | SA_RESETHAND, SIGHUP);
	handled_clear();
	__asm__ volatile("movq %%rsp, %%rbx; movq $4096, %%rsp; syscall; movq %%rbx, %%rsp"
			 : "=a" (r)
			 : "0" ((long)SYS_kill), "D" ((long)getpid()), "S" ((long)SIGUSR1)
			 : "rbx", "rcx", "r11", "memory");
	is(handled.count, 1, "one handler runs for a signal without a stack");
	is(handled.info.si_signo, SIGSEGV, "a signal without a stack becomes SIGSEGV");
	ok(sigismember(&handled.mask, SIGSEGV) && sigismember(&handled.mask, SIGHUP),
	   "the mask of SIGSEGV's action is set");
	ok(!sigismember(&handled.mask, SIGUSR1) && !sigismember(&handled.mask, SIGUSR2),
	   "the mask of the lost signal's action is not set");
	sigaction(SIGSEGV, NULL, &now);
	ok(now.sa_handler == SIG_DFL, "SA_RESETHAND of SIGSEGV counts");
	sigaltstack(&none, NULL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
}

static sigset_t mask_before_end;

/* Is interrupted by the handler of SIGUSR2 before its first instruction. */
static void note_own_mask(int sig, siginfo_t *info, void *uc)
{
	note(sig, info, uc);
	mask_before_end = handled.mask;
}

/*
 * The frame of a SIGUSR1 cannot be written, and a SIGUSR2 waits, too. Linux then starts the handler
 * of SIGSEGV, and at once interrupts it by that of SIGUSR2. Natively both signals wait because they
 * are blocked. In ring 0 both are queued while interrupts are off. Once SIGUSR1 is queued, the host
 * blocks all signals that have a handler. So SIGUSR2 gets its handler only after that; otherwise it
 * would not be queued.
 */
static void test_lost_before_another(void)
{
	char *gone = mmap(NULL, sizeof(alt), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = { .ss_sp = gone, .ss_size = sizeof(alt) }, none = { .ss_flags = SS_DISABLE };
	bool native = ring();
	sigset_t both, before;
	uint64_t flags = 0;

	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	sigaltstack(&ss, NULL);
	handle(SIGSEGV, note_own_mask, 0, SIGHUP);
	handle(SIGUSR1, note, SA_ONSTACK, 0);
	signal(SIGUSR2, SIG_DFL);
	handled_clear();
	if (native)
		sigprocmask(SIG_BLOCK, &both, &before);
	else
		flags = dune_irq_save();
	raise(SIGUSR1);
	handle(SIGUSR2, note, 0, 0);
	raise(SIGUSR2);
	if (native)
		sigprocmask(SIG_SETMASK, &before, NULL);
	else
		dune_irq_restore(flags);
	is(handled.orders, 2, "two handlers run for a lost signal and another one");
	is(handled.order[0], SIGUSR2, "the other signal interrupts the handler of SIGSEGV");
	ok(sigismember(&mask_before_end, SIGSEGV) && sigismember(&mask_before_end, SIGHUP),
	   "that handler continues with the mask of SIGSEGV's action");
	ok(!sigismember(&mask_before_end, SIGUSR1) && !sigismember(&mask_before_end, SIGUSR2),
	   "that mask has nothing of the lost signal's action");
	sigaltstack(&none, NULL);
	munmap(gone, sizeof(alt));
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
}

static bool is_native;

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

/* A blocked signal that a fault raises ends the process in spite of its handler. */
static void handle_and_block(int sig)
{
	sigset_t set;

	handle(sig, note, 0, 0);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void by_blocked_segv(void)
{
	handle_and_block(SIGSEGV);
	by_segv();
}

static void by_blocked_ud(void)
{
	handle_and_block(SIGILL);
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
	handle(SIGSEGV, segv_in_segv, 0, 0);
	by_segv();
}

static void by_bad_stack(void)
{
	handle(SIGUSR1, note, 0, 0);
	__asm__ volatile("movq $4096, %%rsp; syscall"
			 : : "a" ((long)SYS_kill), "D" ((long)getpid()), "S" ((long)SIGUSR1));
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
	test_faults();
	test_sigbus();
	if (ring())
		test_lost();
	/* In ring 3 nothing makes two signals wait at once. */
	if (!ring() || is_native)
		test_lost_before_another();
	test_deaths();
}

int main(int argc, char **argv)
{
	is_native = argc > 1;
	return in_all_rings(argc, argv, body);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals, timers and waiting as a program sees them. Every line is the same each
 * time. signals.bash fails when the output differs natively and in the sandbox.
 */
#define _GNU_SOURCE
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

static volatile int count, last, code;
static volatile void *address;
static volatile int on_alt, value;
static sigjmp_buf jump;
static volatile char *volatile nowhere = (volatile char *)8;

static void simple(int sig)
{
	count++;
	last = sig;
}

static void with_info(int sig, siginfo_t *info, void *uc)
{
	stack_t now;

	count++;
	last = sig;
	code = info->si_code;
	address = info->si_addr;
	value = info->si_value.sival_int;
	sigaltstack(NULL, &now);
	on_alt = !!(now.ss_flags & SS_ONSTACK);
}

static void handle(int sig, void *f, int flags)
{
	struct sigaction act = { .sa_flags = flags };

	act.sa_sigaction = f;
	sigaction(sig, &act, NULL);
}

static void jump_out(int sig, siginfo_t *info, void *uc)
{
	code = info->si_code;
	address = info->si_addr;
	siglongjmp(jump, sig);
}

/*
 * SIGALRM again and again: on a busy machine the first may come before the
 * call that it is to interrupt. 0: no more.
 */
static void timer_every(int usec)
{
	struct itimerval t = { { 0, usec }, { 0, usec } };

	setitimer(ITIMER_REAL, &t, NULL);
}

/* The signal that a statement raises, whose handler is jump_out(); 0: none. */
#define SIGNAL_OF(statement) ({						\
	int signal_ = sigsetjmp(jump, 1);				\
									\
	if (!signal_)							\
		statement;						\
	signal_;							\
})

static void faults(void)
{
	static const int signals[] = { SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS };
	char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[] = "busXXXXXX";
	int fd = mkstemp(name), i;
	char *file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	unlink(name);
	for (i = 0; i < 5; i++)
		handle(signals[i], jump_out, SA_SIGINFO | SA_NODEFER);
	i = SIGNAL_OF(*nowhere = 1);
	printf("null write: signal %d code %d address %p\n", i, code, address);
	i = SIGNAL_OF(*(volatile char *)page = 1);
	printf("read-only write: signal %d code %d right address %d\n", i, code, address == page);
	i = SIGNAL_OF(((void (*)(void))page)());
	printf("no-exec jump: signal %d code %d right address %d\n", i, code, address == page);
	i = SIGNAL_OF(__asm__ volatile("xor %%edx, %%edx; mov $1, %%eax; mov %%edx, %%ecx\n"
				       "div %%ecx" : : : "eax", "ecx", "edx"));
	printf("division: signal %d code %d\n", i, code);
	i = SIGNAL_OF(__asm__ volatile("ud2"));
	printf("ud2: signal %d code %d\n", i, code);
	i = SIGNAL_OF(__asm__ volatile("int3"));
	printf("int3: signal %d code %d\n", i, code);
	i = SIGNAL_OF(__asm__ volatile("hlt"));
	printf("hlt: signal %d code %d\n", i, code);
	i = SIGNAL_OF(__asm__ volatile("in %0, %%al" : : "i"(PORT_POST) : "eax"));
	printf("in: signal %d code %d\n", i, code);
	i = SIGNAL_OF(__asm__ volatile("mov %%cr0, %%rax" : : : "rax"));
	printf("cr0: signal %d code %d\n", i, code);
	i = SIGNAL_OF(*(volatile char *)0xdead000000000000 = 1);
	printf("non-canonical: signal %d code %d address %p\n", i, code, address);
	i = SIGNAL_OF(*(volatile char *)0xffffffff81000000 = 1);
	printf("kernel: signal %d code %d address %p\n", i, code, address);
	i = SIGNAL_OF(*(volatile char *)file = 1);
	printf("beyond the file: signal %d code %d right address %d\n", i, code, address == file);
	for (i = 0; i < 5; i++)
		signal(signals[i], SIG_DFL);
}

static void deep(int n)
{
	volatile char here[4096];

	here[0] = n;
	if (n)
		deep(n - 1);
	here[1] = here[0];
}

static void stacks(void)
{
	static char other[65536];
	stack_t alt = { .ss_sp = other, .ss_size = sizeof(other) };
	volatile double x = 1.5;

	deep(1000);
	printf("the stack grows\n");
	sigaltstack(&alt, NULL);
	handle(SIGUSR1, with_info, SA_SIGINFO | SA_ONSTACK);
	raise(SIGUSR1);
	printf("alternate stack: %d code %d\n", on_alt, code);
	handle(SIGUSR1, with_info, SA_SIGINFO);
	raise(SIGUSR1);
	printf("own stack: %d\n", on_alt);
	handle(SIGSEGV, jump_out, SA_SIGINFO | SA_ONSTACK);
	if (!sigsetjmp(jump, 1)) {
		struct rlimit limit = { 1 << 20, RLIM_INFINITY };

		setrlimit(RLIMIT_STACK, &limit);
		deep(100000);
	}
	printf("stack overflow was caught\n");
	signal(SIGSEGV, SIG_DFL);
	printf("floating point after a stack overflow: %g\n", x * 2);
}

static void masks(void)
{
	sigset_t set, pending;
	siginfo_t info;
	struct timespec soon = { 0, 10000000 };
	union sigval v = { .sival_int = 77 };
	int i;

	count = 0;
	handle(SIGUSR1, simple, 0);
	handle(SIGRTMIN, with_info, SA_SIGINFO);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	raise(SIGUSR1);
	for (i = 0; i < 3; i++)
		sigqueue(getpid(), SIGRTMIN, v);
	sigpending(&pending);
	printf("blocked: %d pending %d %d\n", count, sigismember(&pending, SIGUSR1),
	       sigismember(&pending, SIGUSR2));
	printf("sigtimedwait: %d\n", sigtimedwait(&set, &info, &soon) == SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("unblocked: %d value %d code %d\n", count, value, code);
	sigdelset(&set, SIGRTMIN);
	printf("sigtimedwait, none: %d %d\n", sigtimedwait(&set, &info, &soon), errno == EAGAIN);

	/* sigsuspend: only what it lets through wakes it */
	sigprocmask(SIG_BLOCK, &set, NULL);
	count = 0;
	handle(SIGALRM, simple, 0);
	timer_every(20000);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	raise(SIGUSR1);
	i = sigsuspend(&set);
	printf("sigsuspend: %d %d, ", i, errno == EINTR);
	timer_every(0);
	printf("signal %d, %d run\n", last == SIGALRM, count >= 1);
	count = 0;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("then %d, %d run\n", last == SIGUSR1, count);
}

static volatile int *handled;	/* shared with a child, which waits for it */

static void count_shared(int sig)
{
	++*handled;
}

static void interrupted(void)
{
	char c;
	int fd[2], i;
	struct pollfd p;
	struct timespec ts = { 1000, 0 }, half = { 0, 500000000 }, left = { 0, 0 };
	sigset_t none;
	fd_set r;

	if (pipe(fd)) {
		perror("pipe");
		exit(EXIT_FAILURE);
	}
	count = 0;
	handle(SIGALRM, simple, 0);
	timer_every(20000);
	i = read(fd[0], &c, 1);
	printf("read without restart: %d %d\n", i, errno == EINTR);
	i = nanosleep(&ts, &left);
	printf("nanosleep: %d %d, left %d\n", i, errno == EINTR, left.tv_sec >= 900);
	i = nanosleep(&half, NULL);
	timer_every(0);
	printf("half a second: %d %d\n", i, errno == EINTR);
	i = syscall(SYS_restart_syscall);
	printf("restart_syscall: %d %d\n", i, errno == EINTR);
	timer_every(20000);
	p.fd = fd[0];
	p.events = POLLIN;
	i = poll(&p, 1, 1000000);
	printf("poll: %d %d\n", i, errno == EINTR);
	sigemptyset(&none);
	FD_ZERO(&r);
	FD_SET(fd[0], &r);
	i = pselect(fd[0] + 1, &r, NULL, NULL, &ts, &none);
	printf("pselect: %d %d\n", i, errno == EINTR);
	i = ppoll(&p, 1, &ts, &none);
	printf("ppoll: %d %d\n", i, errno == EINTR);
	timer_every(0);
	printf("at least five handlers ran: %d\n", count >= 5);

	volatile int *ran = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	handled = ran;
	handle(SIGALRM, count_shared, SA_RESTART);
	if (!fork()) {
		while (*ran < 3)
			usleep(1000);
		i = write(fd[1], "x", 1);
		_exit(0);
	}
	timer_every(20000);
	i = read(fd[0], &c, 1);
	timer_every(0);
	printf("read with restart: %d %c, handlers ran: %d\n", i, c, *ran >= 3);
	while (wait(NULL) < 0 && errno == EINTR)
		;
}

static volatile struct {
	int signal, usr1, usr2;		/* which of the two the handler's mask has */
} seen[4];

static void see_mask(int sig)
{
	sigset_t now;
	int i = count++;

	sigprocmask(SIG_BLOCK, NULL, &now);
	seen[i].signal = sig;
	seen[i].usr1 = sigismember(&now, SIGUSR1);
	seen[i].usr2 = sigismember(&now, SIGUSR2);
}

enum waiting { PSELECT, PSELECT_OWN, PPOLL, PPOLL_OWN, SIGSUSPEND, EPOLL_PWAIT, WAITING };

/* Waits with @set, or with the thread's own mask. */
static int wait_with(enum waiting how, const sigset_t *set)
{
	const struct timespec soon = { 0, 10000000 };
	struct epoll_event event;

	switch (how) {
	case PSELECT:
		return pselect(0, NULL, NULL, NULL, NULL, set);
	case PSELECT_OWN:
		return pselect(0, NULL, NULL, NULL, &soon, NULL);
	case PPOLL:
		return ppoll(NULL, 0, NULL, set);
	case PPOLL_OWN:
		return ppoll(NULL, 0, &soon, NULL);
	case SIGSUSPEND:
		return sigsuspend(set);
	case EPOLL_PWAIT:
		return epoll_pwait(epoll_create1(0), &event, 1, -1, set);
	default:
		return 0;
	}
}

/*
 * Two signals that wait for the mask of a call: both handlers run before it returns, the second
 * one within the first, whose mask is the call's.
 */
static void masks_of_calls(void)
{
	static const char * const names[WAITING] = {
		"pselect", "pselect, own mask", "ppoll", "ppoll, own mask", "sigsuspend",
		"epoll_pwait",
	};
	enum waiting how;
	sigset_t two, none;
	int i, result;

	handle(SIGUSR1, see_mask, 0);
	handle(SIGUSR2, see_mask, 0);
	sigemptyset(&none);
	sigemptyset(&two);
	sigaddset(&two, SIGUSR1);
	sigaddset(&two, SIGUSR2);
	for (how = 0; how < WAITING; how++) {
		sigprocmask(SIG_BLOCK, &two, NULL);
		count = 0;
		raise(SIGUSR1);
		raise(SIGUSR2);
		result = wait_with(how, &none);
		printf("two signals, %s: %d %d, %d run", names[how], result,
		       result < 0 && errno == EINTR, count);
		sigprocmask(SIG_UNBLOCK, &two, NULL);
		printf(", then %d:", count);
		for (i = 0; i < count; i++)
			printf(" %d masks %d%d", seen[i].signal, seen[i].usr1, seen[i].usr2);
		printf("\n");
	}
}

static void timers(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1 };
	struct itimerspec it = { { 0, 5000000 }, { 0, 5000000 } };
	struct signalfd_siginfo si;
	struct epoll_event e;
	volatile unsigned long spin = 0;
	uint64_t n;
	timer_t t;
	sigset_t set;
	int fd, ep;

	count = 0;
	ev.sigev_value.sival_int = 5;
	handle(SIGRTMIN + 1, with_info, SA_SIGINFO);
	timer_create(CLOCK_MONOTONIC, &ev, &t);
	timer_settime(t, 0, &it, NULL);
	while (count < 5)
		spin++;
	timer_delete(t);
	printf("timer_create: value %d code %d\n", value, code);

	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(fd, 0, &it, NULL);
	ep = epoll_create1(0);
	e.events = EPOLLIN;
	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	printf("epoll: %d", epoll_wait(ep, &e, 1, 100000));
	printf(", timerfd: %d\n", read(fd, &n, 8) == 8 && n >= 1);

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, 0);
	kill(getpid(), SIGUSR2);
	printf("signalfd: %d", read(fd, &si, sizeof(si)) == sizeof(si));
	printf(" signal %d\n", si.ssi_signo);
	fd = eventfd(3, 0);
	printf("eventfd: %d", (int)read(fd, &n, 8));
	printf(" %d\n", (int)n);
}

static void context(int sig, siginfo_t *info, void *p)
{
	ucontext_t *uc = p;

	/* the handler changes the registers with which the program continues */
	uc->uc_mcontext.gregs[REG_RBX] = 4711;
	uc->uc_mcontext.gregs[REG_RIP] += 2;
	sigaddset(&uc->uc_sigmask, SIGUSR2);
}

static void contexts(void)
{
	unsigned long rbx;
	sigset_t now;

	handle(SIGILL, context, SA_SIGINFO);
	__asm__ volatile("ud2; mov %%rbx, %0" : "=r" (rbx) : : "rbx", "memory");
	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("registers from the handler: %lu, mask %d %d\n", rbx, sigismember(&now, SIGUSR2),
	       sigismember(&now, SIGILL));
	signal(SIGILL, SIG_DFL);
}

static void children(void)
{
	static char *argv[] = { "sh", "-c", "exit 9", NULL };
	struct rusage ru;
	siginfo_t info;
	int status, i;
	pid_t p;

	count = 0;
	handle(SIGCHLD, with_info, SA_SIGINFO | SA_RESTART);
	p = fork();
	if (!p)
		_exit(3);
	i = waitpid(p, &status, 0) == p;
	printf("waitpid: %d status %d, SIGCHLD %d code %d\n", i, WEXITSTATUS(status), count, code);
	p = vfork();
	if (!p)
		_exit(4);
	i = wait4(p, &status, 0, &ru) == p;
	printf("vfork: %d status %d\n", i, WEXITSTATUS(status));
	posix_spawn(&p, "/bin/sh", NULL, NULL, argv, environ);
	waitpid(p, &status, 0);
	printf("posix_spawn: %d\n", WEXITSTATUS(status));
	printf("system: %d\n", WEXITSTATUS(system("exit 6")));
	p = fork();
	if (!p) {
		raise(SIGSTOP);
		_exit(8);
	}
	waitpid(p, &status, WUNTRACED);
	printf("stopped: %d", WIFSTOPPED(status));
	kill(p, SIGCONT);
	waitid(P_PID, p, &info, WEXITED);
	printf(", exited: %d %d\n", info.si_code == CLD_EXITED, info.si_status);
	p = fork();
	if (!p)
		for (;;)
			;
	usleep(20000);
	kill(p, SIGTERM);
	waitpid(p, &status, 0);
	printf("a child that spins is ended by %d\n", WTERMSIG(status));
	signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1) {		/* die of a signal, by oneself or by a fault */
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		if (!strcmp(argv[1], "fault"))
			*nowhere = 1;
		if (!strcmp(argv[1], "overflow"))
			deep(1 << 30);
		if (argc > 2)		/* from here on it only spins or sleeps */
			close(open(argv[2], O_CREAT | O_WRONLY, 0600));
		if (!strcmp(argv[1], "spin"))
			for (;;)
				;
		if (!strcmp(argv[1], "sleep"))
			for (;;)
				pause();
		if (!strcmp(argv[1], "abort"))
			abort();
		raise(atoi(argv[1]));
		return EXIT_FAILURE;	/* the signal has not ended the process */
	}
	faults();
	stacks();
	masks();
	interrupted();
	masks_of_calls();
	timers();
	contexts();
	children();
	return 0;
}

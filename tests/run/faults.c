// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Page faults that a program expects: the same one again and again, with a
 * handler that makes progress; faults while their signal is blocked; and what
 * becomes of a program that unmaps itself. Prints what happened. faults.bash fails
 * when that differs between the native run and the one in the sandbox: a signal is
 * lost, delivered twice or has another cause, or the program does not end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <sched.h>
#include <unistd.h>

#define TIMES	3000

static char *page;
static volatile long count;
static sigjmp_buf back;

static void make_writable(int sig, siginfo_t *info, void *uc)
{
	count++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void jump_back(int sig, siginfo_t *info, void *uc)
{
	count++;
	siglongjmp(back, 1);
}

static void note(int sig, siginfo_t *info, void *uc)
{
	count++;
	printf("signal %d, code %d, value %d\n", sig, info->si_code, info->si_value.sival_int);
}

static void handle(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	count = 0;
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
}

static void write_barriers(void)
{
	handle(make_writable, 0);
	for (int i = 0; i < TIMES; i++) {
		mprotect(page, 4096, PROT_READ);
		*(volatile int *)page = i;
	}
	printf("write barriers: %ld faults, last value %d\n", count, *(int *)page);
}

static void null_checks(void)
{
	int *volatile null = NULL;
	volatile int i = 0;

	handle(jump_back, SA_NODEFER);
	for (; i < TIMES; i++)
		if (!sigsetjmp(back, 0))
			*(volatile int *)null = i;
	printf("null checks: %ld\n", count);
}

/* The runtime itself looks at names, so it meets the same fault. */
static void refused_copies(void)
{
	long efaults = 0;
	struct stat st;

	signal(SIGSEGV, SIG_DFL);
	mprotect(page, 4096, PROT_NONE);
	for (int i = 0; i < TIMES; i++)
		efaults += syscall(SYS_newfstatat, AT_FDCWD, page, &st, 0) < 0 && errno == EFAULT;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	printf("EFAULT %ld times\n", efaults);
}

/* A stack that grows, and is cut off again: the same instruction, the same address. */
static void cut_stack(void)
{
	char *mapping = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	char *low = mapping + (4 << 20);
	long sum = 0;

	for (int i = 0; i < TIMES; i++) {
		munmap(mapping, 5 << 20);
		*(volatile char *)low = 1;
		sum += *low;
	}
	printf("stack cut off %ld times\n", sum);
}

static void pending(int sig)
{
	union sigval value = { .sival_int = 77 };
	struct stat st;
	sigset_t set, now;

	handle(note, 0);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigqueue(getpid(), sig, value);
	mprotect(page, 4096, PROT_NONE);
	for (int i = 0; i < 3; i++) {
		long ret = syscall(SYS_newfstatat, AT_FDCWD, page, &st, 0);

		printf("%d blocked and pending, stat: %s\n", sig, ret < 0 ? strerror(errno) : "0");
	}
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	sigpending(&now);
	printf("still pending: %d, handled %ld\n", sigismember(&now, sig), count);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("after unblocking: %ld\n", count);
	/* the same without a handler */
	signal(sig, SIG_DFL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(sig);
	syscall(SYS_newfstatat, AT_FDCWD, (char *)NULL, &st, 0);
	signal(sig, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("%d with its default action: lived\n", sig);
}

/* The function's return, or the next use of the stack, leads to what is unmapped here. */
__attribute__((noinline, aligned(4096))) static void unmap_code(void)
{
	syscall(SYS_munmap, (long)unmap_code & -4096L, 4096);
}

__attribute__((noinline)) static void unmap_stack(void)
{
	long here = (long)__builtin_frame_address(0) & -4096L;

	syscall(SYS_munmap, here - 4096, 8192);
}

/* The range meets the runtime, too. Nothing is left to return to. */
__attribute__((noinline)) static void unmap_all(void)
{
	syscall(SYS_munmap, 0, 0x7ffffffff000);
}

static void unmap(void)
{
	static void (*const ways[])(void) = { unmap_code, unmap_stack, unmap_all };
	static const char *const names[] = { "code", "stack", "everything" };
	static const char *const hows[] = { "default", "blocked", "ignored" };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	for (int i = 0; i < 9; i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid) {
			if (i / 3 == 1)
				sigprocmask(SIG_BLOCK, &set, NULL);
			if (i / 3 == 2)
				signal(SIGSEGV, SIG_IGN);
			ways[i % 3]();
			_exit(7);
		}
		waitpid(pid, &status, 0);
		printf("%s unmapped, SIGSEGV %s: %#x\n", names[i % 3], hows[i / 3], status);
	}
}

static void vdso(void)
{
	struct timespec t;
	unsigned int cpu;

	printf("clock_gettime: %d\n", clock_gettime(CLOCK_MONOTONIC, &t));
	printf("getcpu: %d\n", getcpu(&cpu, NULL));
	printf("time: %d\n", time(NULL) > 0);
}

static volatile unsigned long alarms;

static void on_alarm(int sig)
{
	alarms++;
}

#define ALARMS	3000
#define STACK	(4UL << 20)

/*
 * Calls whose vector the runtime must touch before the kernel does: on a stack
 * that has not grown so far, which succeeds, and where nothing may be read. All
 * the while signals come, whose handler blocks @mask.
 */
static void under_timer(const sigset_t *mask)
{
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART, .sa_mask = *mask };
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, off = { 0 };
	unsigned long failed = 0, read = 0, at;
	int null = open("/dev/null", O_RDWR);

	alarms = 0;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (alarms < ALARMS) {
		char *low = mmap(NULL, 2 * STACK, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		volatile char *top = low + 2 * STACK - 4096;

		/* a stack needs room to grow, and a gap below */
		munmap(low, 2 * STACK);
		if (mmap((void *)top, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN,
			 -1, 0) == MAP_FAILED) {
			perror("mmap");
			break;
		}
		*top = 0;
		for (at = 4096; at < STACK && alarms < ALARMS; at += 4096) {
			failed += writev(null, (void *)(top - at), 1) != 0;
			read += writev(null, (void *)4096, 1) != -1 || errno != EFAULT;
		}
		munmap(low, 2 * STACK);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	close(null);
	printf("vectors on a growing stack: %lu failed; where nothing is: %lu read\n", failed,
	       read);
}

static volatile long odd;
static volatile long *sent, *lost;	/* SIGSEGV and SIGBUS: shared with their senders */

static void of_others(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const unsigned char *at = (void *)uc->uc_mcontext.gregs[REG_RIP];

	if (sig == SIGILL) {
		count++;
		odd += info->si_code <= 0 || at[0] != 0x0f || at[1] != 0x0b;
		uc->uc_mcontext.gregs[REG_RIP] += 2;
	} else {
		sent[sig == SIGBUS]++;
		odd += info->si_code != SI_USER;
	}
}

/* One at a time: the next when the handler has run, or after five seconds. */
static void send(pid_t to, int bus)
{
	int i;

	for (;;) {
		long before = sent[bus];

		if (kill(to, bus ? SIGBUS : SIGSEGV))
			_exit(0);
		for (i = 0; i < 100000 && sent[bus] == before; i++)
			usleep(50);
		lost[bus] += sent[bus] == before;
	}
}

/*
 * Two processes send SIGSEGV and SIGBUS, whose handlers let both in again, to
 * one that has faults of its own: none is lost, and no signal looks like another.
 */
static void under_signals(void)
{
	struct sigaction sa = { .sa_sigaction = of_others, .sa_flags = SA_SIGINFO | SA_NODEFER };
	pid_t me = getpid(), sender[2];
	long i;

	sent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	lost = sent + 2;
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	for (i = 0; i < 2; i++) {
		sender[i] = fork();
		if (!sender[i])
			send(me, i);
	}
	for (i = 0; i < 20000 || sent[0] + lost[0] < 50 || sent[1] + lost[1] < 50; i++)
		__asm__ volatile("ud2");
	for (i = 0; i < 2; i++) {
		kill(sender[i], SIGKILL);
		waitpid(sender[i], NULL, 0);
	}
	printf("faults while signals are sent: all %s, %ld odd, %ld lost\n",
	       count >= 20000 ? "came" : "did not come", odd, lost[0] + lost[1]);
}

static int runs_true(void *unused)
{
	execl("/bin/true", "true", NULL);
	_exit(127);
}

/*
 * A child that shares its parent's handlers executes a program, for which an
 * ignored SIGSEGV stays ignored; a bad address of the parent's is EFAULT then.
 */
static void shared_handlers(void)
{
	static char stack[65536];
	int child, status = -1;
	long ret;

	signal(SIGSEGV, SIG_IGN);
	child = clone(runs_true, stack + sizeof(stack),
		      CLONE_VM | CLONE_VFORK | CLONE_SIGHAND | SIGCHLD, NULL);
	waitpid(child, &status, 0);
	ret = writev(1, (void *)0x1000, 1);
	printf("a child with the same handlers ends with %d, writev() then gives %ld, %s\n",
	       status, ret, strerror(errno));
	signal(SIGSEGV, SIG_DFL);
}

/* How a child dies: by SIGSEGV or SIGILL, with all signals blocked or not. */
struct death {
	const char *name;
	int sig;
	bool blocks;
	void (*handler)(int sig);
};

static int dies(void *arg)
{
	const struct death *death = arg;
	sigset_t set;

	sigfillset(&set);
	if (death->blocks)
		sigprocmask(SIG_BLOCK, &set, NULL);
	if (death->sig == SIGILL)
		__asm__ volatile("ud2");
	else
		*(volatile int *)8 = 1;
	return 0;
}

/*
 * A child that shares its parent's handlers dies by a fault: where the signal was
 * blocked or ignored, the parent has its default action afterwards, too. A
 * bad address of the parent's is EFAULT as before.
 */
static void shared_death(struct death death)
{
	static char stack[65536];
	struct sigaction now;
	int child, status = -1;
	long ret;

	signal(death.sig, death.handler);
	child = clone(dies, stack + sizeof(stack),
		      CLONE_VM | CLONE_VFORK | CLONE_SIGHAND | SIGCHLD, &death);
	waitpid(child, &status, 0);
	sigaction(death.sig, NULL, &now);
	ret = writev(1, (void *)0x1000, 1);
	printf("%s: a child with these handlers: ends with %d, then %d has %s, writev() %ld, %s\n",
	       death.name, status, death.sig,
	       now.sa_handler == SIG_DFL ? "its default action" :
	       now.sa_handler == death.handler ? "the same action" : "another action",
	       ret, strerror(errno));
	signal(death.sig, SIG_DFL);
}

static void count_signal(int sig)
{
	count++;
}

static void shared_deaths(void)
{
	shared_death((struct death){ "default", SIGSEGV, false, SIG_DFL });
	shared_death((struct death){ "blocked", SIGSEGV, true, count_signal });
	shared_death((struct death){ "ignored", SIGSEGV, false, SIG_IGN });
	shared_death((struct death){ "default", SIGILL, false, SIG_DFL });
	shared_death((struct death){ "blocked", SIGILL, true, count_signal });
}

/* A system on which all memory that can be read can be executed. */
static void read_implies_exec(void)
{
	int status = -1;

	fflush(stdout);
	if (!fork()) {
		personality(READ_IMPLIES_EXEC);
		if (!fork())
			_exit(7);
		wait(&status);
		printf("a child of one that may execute all ends with %x\n", status);
		_exit(0);
	}
	wait(&status);
}

int main(int argc, char **argv)
{
	sigset_t mask;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "vdso")) {
		vdso();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "timer")) {
		sigemptyset(&mask);
		under_timer(&mask);
		sigfillset(&mask);
		under_timer(&mask);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "sent")) {
		under_signals();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "unmap")) {
		unmap();
		return 0;
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	write_barriers();
	null_checks();
	refused_copies();
	cut_stack();
	pending(SIGSEGV);
	pending(SIGBUS);
	shared_handlers();
	shared_deaths();
	read_implies_exec();
	return 0;
}

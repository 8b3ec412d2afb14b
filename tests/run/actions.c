// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a program sees of the actions of its signals, which the sandbox's runtime keeps in a record
 * of its own, for signals.bash. Prints the same natively and in the sandbox.
 *
 * Executes itself once more, to print what a program finds that is executed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct action {
	unsigned long handler, flags, restorer, mask;
};

static void handle(int sig)
{
}

static long change(int sig, const struct action *to, struct action *old)
{
	return syscall(SYS_rt_sigaction, sig, to, old, 8) ? -errno : 0;
}

static void print(const char *when, int sig)
{
	struct action a = { 99, 99, 99, 99 };
	long ret = change(sig, NULL, &a);

	printf("%s %d: %ld, %lx %lx %lx %lx\n", when, sig, ret, a.handler > 1 ? 2 : a.handler,
	       a.flags, a.restorer, a.mask);
}

static void print_all(const char *when)
{
	int sig;

	for (sig = 0; sig <= 65; sig++)
		print(when, sig);
}

static void set(int sig, unsigned long handler, unsigned long flags, unsigned long mask)
{
	struct action to = { handler, flags, 0x1234, mask }, old = { 0 };
	long ret = change(sig, &to, &old);

	printf("set %d: %ld, old %lx %lx %lx %lx\n", sig, ret, old.handler > 1 ? 2 : old.handler,
	       old.flags, old.restorer, old.mask);
	print("now", sig);
}

/* A signal that waits is discarded by each call that ignores it, also if it was ignored before. */
static void pending(int sig, unsigned long handler)
{
	struct action to = { .handler = handler };
	sigset_t all, old, now;

	change(sig, &to, NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	raise(sig);
	sigpending(&now);
	printf("signal %d waits: %d", sig, sigismember(&now, sig));
	change(sig, &to, NULL);
	sigpending(&now);
	printf(", then %d\n", sigismember(&now, sig));
	sigtimedwait(&all, NULL, &(struct timespec){ 0 });
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/*
 * What the kernel ignores, as /proc has it, but for SIGSEGV and SIGBUS, for which it always has a
 * handler in the sandbox.
 */
static void print_ignored(void)
{
	unsigned long ignored;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigIgn: %lx", &ignored) == 1)
			printf("ignored: %lx\n", ignored & ~(1UL << 10 | 1UL << 6));
	if (f)
		fclose(f);
}

static char stack[65536] __attribute__((aligned(16)));

/* What becomes of a parent's actions when a child that shares memory has changed them. */
static int change_in_child(void *arg)
{
	struct action dfl = { .handler = 0 }, ign = { .handler = (unsigned long)SIG_IGN };

	change(SIGUSR1, &dfl, NULL);
	change(SIGHUP, &ign, NULL);
	change(SIGCHLD, &ign, NULL);
	if (arg)
		raise(SIGKILL);
	return 0;
}

static void share(const char *when, int flags, void *arg)
{
	struct action dfl = { .handler = 0 };
	struct action handler = { .handler = (unsigned long)handle, .flags = SA_NODEFER };
	pid_t pid;

	change(SIGUSR1, &handler, NULL);
	change(SIGHUP, &dfl, NULL);
	change(SIGCHLD, &dfl, NULL);
	pid = clone(change_in_child, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD | flags, arg);
	printf("%s: %d\n", when, pid > 0);
	waitpid(pid, NULL, 0);
	print("after", SIGUSR1);
	print("after", SIGHUP);
	print("after", SIGCHLD);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_all("begin");
	print_ignored();
	if (argc > 1)
		return 0;
	set(SIGUSR1, (unsigned long)handle, SA_RESTART | 0x04000000, ~0UL);
	set(SIGUSR1, (unsigned long)handle, SA_NODEFER, 1);
	set(SIGUSR2, (unsigned long)SIG_DFL, ~0UL, ~0UL);
	set(SIGUSR2, (unsigned long)SIG_DFL, 0, 0);
	/* The old action is complete also if the kernel never got its flags and mask. */
	set(SIGUSR2, (unsigned long)SIG_DFL, SA_RESTART, 8);
	set(SIGUSR2, (unsigned long)handle, 0, 0);
	set(SIGUSR2, (unsigned long)SIG_DFL, SA_NODEFER, 4);
	set(SIGUSR2, (unsigned long)SIG_IGN, 0, 0);
	set(SIGUSR2, (unsigned long)SIG_DFL, 0, 0);
	set(SIGHUP, (unsigned long)SIG_IGN, SA_SIGINFO, 2);
	set(SIGHUP, (unsigned long)SIG_IGN, 0, 4);
	set(SIGSEGV, (unsigned long)SIG_IGN, 0, 4);
	set(SIGBUS, (unsigned long)SIG_DFL, SA_RESTART, 0);
	set(SIGCHLD, (unsigned long)SIG_DFL, SA_NOCLDSTOP, 0);
	set(SIGCHLD, (unsigned long)SIG_DFL, 0, 0);
	set(SIGKILL, (unsigned long)SIG_DFL, 0, 0);
	set(64, (unsigned long)SIG_IGN, 0, 0);
	print_all("all");
	print_ignored();
	pending(SIGCHLD, (unsigned long)SIG_DFL);
	pending(SIGUSR2, (unsigned long)SIG_IGN);
	pending(SIGUSR2, (unsigned long)SIG_DFL);
	set(SIGTERM, (unsigned long)handle, SA_RESETHAND | 0x04000000, 0);
	share("shared memory", 0, NULL);
	share("shared handlers", CLONE_SIGHAND, NULL);
	share("shared handlers, killed", CLONE_SIGHAND, stack);
	fflush(stdout);
	execl("/proc/self/exe", "actions", "again", NULL);
	return 1;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Children that share their parent's handlers of signals (CLONE_SIGHAND), and execute a program
 * or die by a fault. Prints what the parent's handlers are then. faults.bash fails when that
 * differs between the native run and the one in the sandbox.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

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

static volatile int *volatile nowhere = (volatile int *)8;

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
		*nowhere = 1;
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

static void do_nothing(int sig)
{
}

static void shared_deaths(void)
{
	shared_death((struct death){ "default", SIGSEGV, false, SIG_DFL });
	shared_death((struct death){ "blocked", SIGSEGV, true, do_nothing });
	shared_death((struct death){ "ignored", SIGSEGV, false, SIG_IGN });
	shared_death((struct death){ "default", SIGILL, false, SIG_DFL });
	shared_death((struct death){ "blocked", SIGILL, true, do_nothing });
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	shared_handlers();
	shared_deaths();
	return 0;
}

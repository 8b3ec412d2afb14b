// SPDX-License-Identifier: MIT OR Apache-2.0
/* Processes that share memory or descriptors, their start and their end. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *own_path;

/*
 * A child by clone() itself, with a stack of its own where it shares memory.
 * It calls @fn and exits.
 */
static long spawn(u64 flags, void (*fn)(void *), void *arg)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 *top = (u64 *)(stack + 65536) - 4;
	long ret = SYS_clone;

	if (stack == MAP_FAILED)
		return -ENOMEM;
	top[0] = (u64)fn;
	top[1] = (u64)arg;
	__asm__ volatile("xor %%r10d, %%r10d\n"
			 "xor %%r8d, %%r8d\n"
			 "syscall\n"
			 "test %%rax, %%rax\n"
			 "jnz 1f\n"
			 "xor %%ebp, %%ebp\n"
			 "pop %%rax\n"
			 "pop %%rdi\n"
			 "and $-16, %%rsp\n"
			 "call *%%rax\n"
			 "xor %%edi, %%edi\n"
			 "mov $60, %%eax\n"
			 "syscall\n"
			 "hlt\n"
			 "1:"
			 : "+a" (ret)
			 : "D" (flags), "S" (top), "d" (0UL)
			 : "rcx", "r8", "r10", "r11", "memory");
	return ret;
}

void nap(u64 microseconds)
{
	struct timespec t = { 0, microseconds * 1000 };

	RAW(SYS_nanosleep, &t, 0, 0);
}

/* The work of a child that shares what the flags of its clone() name. */
struct child {
	u64 state;
	u64 steps;
	u64 robust[3];	/* struct robust_list_head */
	u64 entry[2];
	int own;	/* this program's file */
};

/* A number near those of hidden descriptors, which have numbers from 60 on (DUNE_HIGH_FD). */
static u64 hidden_number(u64 x)
{
	return 50 + x % 20;
}

static void other_numbers(struct child *c)
{
	u64 n = hidden_number(c->state >> 40);

	switch (c->state >> 61) {
	case 0 ... 2:
		RAW(SYS_dup2, c->own, n, 0);
		break;
	case 3:
		RAW(SYS_dup3, c->own, n, O_CLOEXEC);
		break;
	case 4:
		RAW(SYS_close_range, n, n + 3, 0);
		break;
	case 5:
		RAW(SYS_close, n, 0, 0);
		break;
	default:
		RAW(SYS_fcntl, c->own, F_DUPFD, n);
	}
}

static void child(void *arg)
{
	struct child *c = arg;
	u64 i;

	for (i = 0; i < c->steps; i++) {
		c->state = c->state * 6364136223846793005UL + 1442695040888963407UL;
		switch (c->state >> 33 & 15) {
		case 0:
			scan_descriptors();
			break;
		case 1:
			RAW(SYS_set_robust_list, c->robust, 24, 0);
			break;
		case 2:
			RAW(SYS_set_tid_address, in_decoy(), 0, 0);
			break;
		case 3:
		case 4:
			nap(500);
			break;
		case 5:
			RAW(SYS_munmap, LOW_BASE, PAGE, 0);
			break;
		case 6:
			RAW(SYS_getppid, 0, 0, 0);
			break;
		default:
			other_numbers(c);
		}
	}
	scan_descriptors();
}

static struct child *new_child(void)
{
	struct child *c = take(sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->state = any();
	c->steps = below(16);
	c->own = open(own_path, O_PATH | O_CLOEXEC);
	c->entry[0] = one_in(2) ? in_decoy() : (u64)c->robust;
	c->robust[0] = one_in(2) ? in_decoy() : (u64)c->entry;
	c->robust[1] = one_in(2) ? 0 : in_decoy() - (u64)c->entry;
	c->robust[2] = one_in(2) ? 0 : in_decoy();
	return c;
}

static u64 clone_flags(void)
{
	static const u64 known[] = {
		CLONE_VM, CLONE_VM, CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_FILES, CLONE_SIGHAND,
		CLONE_VFORK, CLONE_VFORK, CLONE_PARENT, CLONE_THREAD, CLONE_NEWNS, CLONE_SYSVSEM,
		CLONE_SETTLS, CLONE_PARENT_SETTID, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID,
		CLONE_NEWIPC, CLONE_NEWUSER, CLONE_IO, CLONE_PIDFD, CLONE_UNTRACED, CLONE_PTRACE,
	};
	u64 flags = SIGCHLD, n = below(5);

	while (n--)
		flags |= PICK(known);
	return flags;
}

void do_clone(void)
{
	spawn(clone_flags(), child, new_child());
	scan_descriptors();
}

/* Become this program again: in the sandbox, after anything that the child did. */
void do_exec(void)
{
	char * const argv[] = { "attack", "--marker", NULL };
	char * const envp[] = { NULL };
	struct child *c = new_child();
	u64 n = 30;

	c->steps = 1 + below(8);
	spawn(CLONE_VM | CLONE_VFORK | SIGCHLD, child, c);
	while (n-- && one_in(10) == false)
		fcntl(c->own, one_in(2) ? F_DUPFD : F_DUPFD_CLOEXEC,
		      hidden_number(any()));
	if (one_in(2))
		dup2(c->own, hidden_number(any()));
	if (!fork())
		execve(own_path, argv, envp);
	wait(NULL);
}

/*
 * A process is killed while a child still uses its memory: the kernel's work at the
 * end of the process is done to that memory.
 */
static void survivor(void *arg)
{
	u64 i;

	for (i = 0; i < 40; i++)
		nap(1000);
}

void do_end(void)
{
	u64 vfork = one_in(3) ? 0 : CLONE_VFORK, when = below(6000), before = below(3);
	struct child *c = new_child();
	pid_t pid = fork();

	if (pid == 0) {
		if (before)
			syscall(SYS_set_robust_list, c->robust, 24);
		if (one_in(3))
			syscall(SYS_set_tid_address, in_decoy());
		spawn(CLONE_VM | vfork | SIGCHLD, survivor, NULL);
		if (!before)
			syscall(SYS_set_robust_list, c->robust, 24);
		_exit(0);
	}
	nap(4000 + when);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* the survivor looks at its memory while it naps */
	nap(15000);
}

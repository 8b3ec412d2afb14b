// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Children that unmap their own code, their stack, or everything, with SIGSEGV at its default,
 * blocked and ignored. Prints how each ends. faults.bash fails when that differs between the
 * native run and the one in the sandbox, or when a child does not end.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
	static void (*const ways[])(void) = { unmap_code, unmap_stack, unmap_all };
	static const char *const names[] = { "code", "stack", "everything" };
	static const char *const hows[] = { "default", "blocked", "ignored" };
	sigset_t set;

	setvbuf(stdout, NULL, _IOLBF, 0);
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
	return 0;
}

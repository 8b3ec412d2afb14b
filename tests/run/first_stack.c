// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * first_stack DUNE_RUN ARGS...: starts dune-run, and overwrites the number of arguments on its
 * first stack when the native start has counted them. Ends as dune-run does.
 *
 * A helper of start.bash, not a test.
 */
#include <linux/dune.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct user_regs_struct regs;
	unsigned long stack;
	int pid = fork(), status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[1], argv + 1);
		_exit(126);
	}
	/* The first stop is after execve. */
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 2;
	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	stack = regs.rsp;
	while (regs.orig_rax != SYS_ioctl || (unsigned int)regs.rsi != DUNE_SET_STUB) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			return 2;
		ptrace(PTRACE_GETREGS, pid, 0, &regs);
	}
	ptrace(PTRACE_POKEDATA, pid, stack, 1UL << 40);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

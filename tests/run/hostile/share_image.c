// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A vfork child in the sandbox replaces the descriptor of dune-run's own file, which its parent
 * needs for execve. Fails when the parent then executes another file natively, or when a number
 * that the child uses makes the parent's execve fail.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NATIVE	77		/* exit status of a program outside of the sandbox */

static char *self;

static int execute_at(int number)
{
	char *argv[] = { "x", "executed", NULL };
	int fd = open(self, O_RDONLY);

	if (number >= 0)
		fcntl(fd, F_DUPFD, number);
	execv(self, argv);
	return 1;
}

/*
 * Returns the exit status of a process that calls execve after its vfork child has put
 * another file at the number of the descriptor that execve needs. @ours: whether the process
 * has a file of its own at the next number.
 */
static int executed(int ours)
{
	int status, fds[4];
	pid_t child = fork();

	if (child) {
		waitpid(child, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	if (find_descriptors("dune-run", fds, 4) != 1)
		child_fails("the descriptor of dune-run's file was not found");
	child = vfork();
	if (!child) {
		dup2(0, fds[0]);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	_exit(execute_at(ours ? fds[0] + 1 : -1));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "--tree=", 7))
		return NATIVE;
	if (argc > 1 && !strcmp(argv[1], "executed"))
		return 0;
	self = realpath(argv[0], NULL);

	ok(executed(1) == 0, "a vfork child cannot make its parent execute another file natively");
	ok(executed(0) == 0,
	   "a number that a vfork child uses does not matter to its parent's execve");
	return done();
}

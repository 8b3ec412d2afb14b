// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Executes a file by its descriptor, once with a descriptor that closes on
 * execve and, should that fail, once with one that stays.
 * A helper of start.bash, which fails when the output differs in the sandbox.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC | O_NONBLOCK);	/* it may be a FIFO */

	execveat(fd, "", argv + 1, environ, AT_EMPTY_PATH);
	printf("close-on-exec: %d\n", errno);
	fflush(stdout);
	fcntl(fd, F_SETFD, 0);
	dup2(fd, 20);
	execveat(20, "", argv + 1, environ, AT_EMPTY_PATH);
	printf("open: %d\n", errno);
	return 1;
}

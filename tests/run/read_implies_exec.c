// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process whose memory can be executed wherever it can be read forks. Prints how the child
 * ends. faults.bash fails when that differs between the native run and the one in the sandbox.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int status = -1;

	personality(READ_IMPLIES_EXEC);
	if (!fork())
		_exit(7);
	wait(&status);
	printf("the child: %#x\n", status);
	return 0;
}

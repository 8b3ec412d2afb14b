// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the watcher has to find with dune-run-unchecked-control. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void control(enum control what, u64 argument)
{
	syscall(CONTROL_BIT, what, argument, 0, 0, 0, 0);
}

void row_control_native(void)
{
	struct action act = { (u64)sled, SA_RESTORER | SA_SIGINFO | SA_ONSTACK, (u64)sled, 0 };

	syscall(PRIVILEGED_BIT | SYS_rt_sigaction, SIGURG, &act, NULL, 8, 0, 0);
	kill(getpid(), SIGURG);
}

void row_control_read(void) { control(CONTROL_READ, (u64)buffer); }
void row_control_write(void) { control(CONTROL_WRITE, 0); }

void row_control_code(void)
{
	int i;

	control(CONTROL_CODE, 0);
	for (i = 0; i < 100; i++)
		getppid();
}

void row_control_jump(void) { control(CONTROL_JUMP, (u64)sled); }

void row_control_file(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0666);

	control(CONTROL_READ, (u64)buffer);
	write(fd, buffer, 4096);
	_exit(0);
}

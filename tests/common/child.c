// SPDX-License-Identifier: MIT OR Apache-2.0
/* Children with a time limit: see child.h. */
#define _GNU_SOURCE
#include "child.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const char *outcome_text(struct outcome o)
{
	static char text[32];

	if (o.hung)
		return "killed after its time limit";
	if (o.signal)
		snprintf(text, sizeof(text), "signal %d", o.signal);
	else
		snprintf(text, sizeof(text), "exit status %d", o.code);
	return text;
}

bool outcome_is(struct outcome o, int signal)
{
	if (o.hung)
		return false;
	return signal ? o.signal == signal : o.code == 0;
}

bool outcome_has(struct outcome o, int bits)
{
	return o.code >= 0 && o.code < 0x80 && (o.code & bits) == bits;
}

struct outcome wait_child(int pid, unsigned int seconds)
{
	struct outcome o = { .code = -1 };
	struct pollfd pfd = { .events = POLLIN };
	int status;

	pfd.fd = syscall(SYS_pidfd_open, pid, 0);
	if (pfd.fd < 0)
		bail("pidfd_open: %s", strerror(errno));
	unsigned long end = now_us() + time_limit(seconds) * 1000000UL;

	for (;;) {
		long left = (long)(end - now_us()) / 1000;
		int n = poll(&pfd, 1, left < 0 ? 0 : left);

		if (n > 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (o.hung)
			bail("process %d survives SIGKILL", pid);
		o.hung = true;
		kill(pid, SIGKILL);
		end = now_us() + time_limit(20) * 1000000UL;
	}
	close(pfd.fd);
	if (waitpid(pid, &status, 0) != pid)
		bail("waitpid: %s", strerror(errno));
	if (WIFEXITED(status))
		o.code = WEXITSTATUS(status);
	else if (!o.hung)
		o.signal = WTERMSIG(status);
	return o;
}

int checked_fork(void)
{
	int pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		bail("fork: %s", strerror(errno));
	return pid;
}

struct outcome in_child(void (*fn)(void *arg), void *arg, unsigned int seconds)
{
	int pid = checked_fork();

	if (!pid) {
		fn(arg);
		_exit(0);
	}
	return wait_child(pid, seconds);
}

void *shared_alloc(unsigned long size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	return p;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * late_page CGROUP: in the sandbox, a vfork child is alone in the memory cgroup CGROUP and uses a
 * gigabyte for which the runtime needs a page of its own. Another process sets the limit to 0, and
 * takes it back while the kernel reports that there is no memory: the first attempt to add the page
 * fails, and a later one does not. (The OOM killer chooses no vfork child.) Prints how the child
 * ends, unless it goes on or ends by SIGBUS.
 *
 * A helper of late_page.bash, not a test.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS		6
#define FIRST		16384UL		/* gigabytes from here on are used before */
#define USED		20		/* so many: the runtime then needs tables of them */
#define GIGABYTE(n)	((void *)((unsigned long)(n) << 30))
#define REPORT_TIME	30000		/* iterations of a loop */
#define WENT_ON		5

enum { START, LIMITED, FAILURES, WORDS };

static volatile unsigned long *words;

static void *map(unsigned long gigabyte)
{
	return mmap(GIGABYTE(gigabyte), 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static int open_in(const char *cgroup, const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", cgroup, name);
	fd = open(path, flags);
	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

/* How often memory was lacking in the cgroup. */
static unsigned long failures(int events)
{
	char text[512];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);
	const char *line;

	text[n > 0 ? n : 0] = 0;
	line = strstr(text, "\noom ");
	return line ? strtoul(line + 5, NULL, 10) : 0;
}

static void limit_for_a_moment(int max, int events)
{
	unsigned long before = failures(events);

	while (!words[START])
		sched_yield();
	pwrite(max, "0", 1, 0);
	words[LIMITED] = 1;
	for (int i = 0; i < 2000000 && failures(events) == before; i++)
		;
	for (volatile int i = 0; i < REPORT_TIME; i++)
		;
	pwrite(max, "max", 3, 0);
	words[FAILURES] = failures(events) - before;
}

/* Returns how the vfork child ends. */
static int use_one_more(int round, int procs)
{
	int status;
	char *page;

	for (int i = 0; i < USED; i++)
		*(volatile char *)map(FIRST + i) = 1;
	if (round & 1)
		*(volatile char *)map(FIRST + 512) = 1;
	page = map(0x11000 + 2048 * (round / 2) + 0x123);
	if (!vfork()) {
		if (write(procs, "0", 1) != 1)
			_exit(7);
		words[START] = 1;
		while (!words[LIMITED])
			;
		*(volatile char *)page = 1;
		_exit(WENT_ON);
	}
	wait(&status);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	int procs = open_in(argv[1], "cgroup.procs", O_WRONLY);
	int max = open_in(argv[1], "memory.max", O_WRONLY);
	int events = open_in(argv[1], "memory.events", O_RDONLY), status;
	unsigned long failed = 0;

	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t limiter, user;

		memset((void *)words, 0, WORDS * sizeof(*words));
		limiter = fork();
		if (!limiter) {
			limit_for_a_moment(max, events);
			_exit(0);
		}
		user = fork();
		if (!user)
			_exit(use_one_more(round, procs));
		waitpid(user, &status, 0);
		waitpid(limiter, NULL, 0);
		failed += words[FAILURES];
		if (!WIFEXITED(status) || (WEXITSTATUS(status) != WENT_ON &&
					   WEXITSTATUS(status) != 128 + SIGBUS))
			printf("round %d: the child has the status %d\n", round, status);
	}
	printf("memory was %s\n", failed ? "lacking" : "always there");
	return 0;
}

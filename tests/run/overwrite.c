// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * overwrite SECONDS DUNE_RUN: start victims in the sandbox one after another, and write random
 * bytes to all of their writable memory, from this process, which is outside. Whatever a victim
 * does then, its thread is in user mode nowhere but in the stub.
 *
 * overwrite victim: a program with system calls, signals, page faults and children.
 *
 * A helper of hostile/overwritten.bash, not a test.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRITES		400	/* to one victim */
#define RANGES		256
#define PAGE		4096

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms++;
}

static int recurse(int depth)
{
	volatile char frame[3000];

	frame[0] = depth;
	return depth ? recurse(depth - 1) + frame[0] : 0;
}

static int victim(void)
{
	struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	int i, null = open("/dev/null", O_WRONLY);
	const void *volatile nowhere = NULL;
	char *p;

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	dprintf(1, "ready\n");
	for (i = 0;; i++) {
		struct timespec short_time = { 0, 100000 };

		getppid();
		nanosleep(&short_time, NULL);
		if (write(null, &i, sizeof(i)) != sizeof(i))
			return 3;
		if (access(nowhere, F_OK) != -1)
			return 4;
		p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 5;
		p[i % 64 * PAGE] = i;
		munmap(p, 64 * PAGE);
		recurse(i % 100);
		if (i % 50 == 0 && !fork())
			_exit(0);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

struct range {
	unsigned long start, end;
};

/*
 * Finds the writable memory of @pid, and its stub, which is the only memory of a file that is
 * shared and executable. Returns the number of ranges.
 */
static int find_memory(pid_t pid, struct range *ranges, unsigned long *stub)
{
	char name[64], line[512], rights[8];
	unsigned long start, end;
	int n = 0;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "r");
	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3)
			continue;
		if (!strcmp(rights, "r-xs"))
			*stub = start;
		if (rights[1] == 'w' && n < RANGES)
			ranges[n++] = (struct range){ start, end };
	}
	fclose(maps);
	return n;
}

static void overwrite(pid_t pid, const struct range *r)
{
	unsigned char bytes[64];
	size_t n = 1 + rand() % sizeof(bytes), i;
	unsigned long pages = (r->end - r->start) / PAGE;
	unsigned long at = r->start + (unsigned long)rand() % pages * PAGE + rand() % (PAGE - n);
	struct iovec from = { bytes, n }, to = { (void *)at, n };

	for (i = 0; i < n; i++)
		bytes[i] = rand();
	process_vm_writev(pid, &from, 1, &to, 1, 0);
}

enum place { UNKNOWN, IN_STUB, OUTSIDE };

/*
 * Returns where the thread is in user mode, if it is in a system call or stopped. While it
 * executes, the kernel does not report that.
 */
static enum place place_of(pid_t pid, unsigned long stub)
{
	char name[64], line[512] = "", *ip;
	unsigned long address;
	FILE *call;

	snprintf(name, sizeof(name), "/proc/%d/syscall", pid);
	call = fopen(name, "r");
	if (!call)
		return UNKNOWN;
	if (!fgets(line, sizeof(line), call))
		line[0] = 0;
	fclose(call);
	ip = strrchr(line, ' ');
	if (!ip)
		return UNKNOWN;		/* "running", or dead */
	address = strtoul(ip, NULL, 16);
	if (!address)
		return UNKNOWN;
	if (address - stub < PAGE)
		return IN_STUB;
	printf("# %d is at %#lx: %s", pid, address, line);
	return OUTSIDE;
}

static pid_t start(const char *run, const char *self)
{
	char text[8];
	int out[2];
	pid_t pid;

	if (pipe(out))
		exit(2);
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(out[1], 1);
		dup2(null, 2);
		close(out[0]);
		execl(run, "dune-run", "--", self, "victim", NULL);
		_exit(126);
	}
	close(out[1]);
	if (read(out[0], text, sizeof(text)) <= 0)
		exit(2);
	close(out[0]);
	return pid;
}

int main(int argc, char **argv)
{
	unsigned long stub, rounds = 0, died = 0, written = 0, seen = 0, outside = 0;
	struct range ranges[RANGES];
	time_t end;

	if (argc > 1 && !strcmp(argv[1], "victim"))
		return victim();
	if (argc < 3)
		return 2;
	srand(getpid());
	for (end = time(NULL) + atoi(argv[1]); time(NULL) < end; rounds++) {
		pid_t pid = start(argv[2], argv[0]);
		enum place place;
		bool gone = false;
		int i;

		stub = 0;
		for (i = 0; i < WRITES && !gone; i++) {
			int n = find_memory(pid, ranges, &stub);

			if (!n || !stub)
				break;
			overwrite(pid, &ranges[rand() % n]);
			written++;
			usleep(rand() % 2000);
			place = place_of(pid, stub);
			seen += place != UNKNOWN;
			outside += place == OUTSIDE;
			gone = waitpid(pid, NULL, WNOHANG) == pid;
		}
		died += gone;
		if (!gone) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	}
	printf("# %lu victims, of which %lu died by it; %lu writes\n", rounds, died, written);
	printf("%s\n", !rounds || !seen ? "no victim" : outside ? "outside" : "in the stub");
	return 0;
}

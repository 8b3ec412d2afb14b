// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * For unchecked.bash: while a process executes a program, another one overwrites the number of
 * arguments on its stack, or the tables of its vDSO, before the runtime could read them. Prints a
 * line for each program that finds another descriptor table than usual, or no vDSO. The runtime
 * prints one when it takes the number for its own. Fails with a runtime that reads either from the
 * process's memory, and when too few programs are attacked.
 *
 * Addresses are not random here. The argument is the address of the structure in which ring 0 has
 * the descriptor table.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RAW_BIT		(1 << 16)
#define DESCRIPTORS	16
#define WORDS		64	/* of the structure in which the descriptors are */
#define ATTACKS		40	/* the attacks after which this ends, or after SECONDS */
#define ATTACKS_MIN	4
#define SECONDS		240
#define LIMIT		5000	/* ms for one program */

/* What a program finds. */
struct found {
	uint64_t stack;		/* address of the number of arguments */
	uint64_t vdso;
	uint32_t segments;	/* those of the 16 descriptors that ring 3 can use */
};

/* What the process that attacks shares with the one that has programs executed. */
static volatile struct {
	int pid;		/* of the process that executes one, or 0 */
	unsigned int attacks;
} *shared;

static uint32_t usable_segments(void)
{
	uint32_t usable = 0;

	for (uint32_t i = 1; i < DESCRIPTORS; i++) {
		uint64_t limit;
		bool valid;

		__asm__("lsl %2, %0" : "=r" (limit), "=@ccz" (valid) : "r" (i * 8UL | 3));
		usable |= (uint32_t)valid << i;
	}
	return usable;
}

/* In the program that is executed. */
static void report(char **argv)
{
	struct found found = {
		(uint64_t)(argv - 1), getauxval(AT_SYSINFO_EHDR), usable_segments(),
	};

	if (write(1, &found, sizeof(found)) != sizeof(found))
		_exit(1);
	_exit(0);
}

/*
 * Has a child execute the program. Returns false if there is no child, or if it has reported
 * nothing within LIMIT: its memory was attacked, so it may have ended or may run for ever.
 */
static bool execute(const char *self, struct found *found)
{
	static char *argv[] = { "report", NULL }, *envp[] = { "A=1", NULL };
	struct pollfd reported = { .events = POLLIN };
	int ends[2], pid;
	bool got;

	if (pipe(ends))
		return false;
	pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	if (!pid) {
		dup2(ends[1], 1);
		execve(self, argv, envp);
		_exit(1);
	}
	close(ends[1]);
	shared->pid = pid;
	reported.fd = ends[0];
	got = poll(&reported, 1, LIMIT) == 1 &&
	      read(ends[0], found, sizeof(*found)) == sizeof(*found);
	close(ends[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	shared->pid = 0;
	return got;
}

static long copy(long nr, int pid, uint64_t at, uint64_t *value)
{
	struct iovec mine = { value, 8 }, its = { (void *)at, 8 };

	return syscall(RAW_BIT | nr, pid, &mine, 1, &its, 1, 0);
}

/*
 * Writes the child's memory as soon as its runtime has stored the number of arguments, of which
 * dune-run has four. The vectors are then in ring 0's structure, or the vDSO has no tables.
 */
static void attack(const struct found *usual, uint64_t block)
{
	const uint64_t at = usual->stack - 32, four = 4;
	int last = 0, round = 0;

	for (;;) {
		uint64_t found, value = (block + 8 * (round / 2 % WORDS) - at - 8) / 8 - 1;
		int pid = shared->pid;

		if (!pid || pid == last ||
		    copy(SYS_process_vm_readv, pid, at, &found) != 8 || found != four)
			continue;
		last = pid;
		if (round++ & 1) {
			copy(SYS_process_vm_writev, pid, at, &value);
		} else {
			char name[32], zero[64] = "";
			int fd;

			snprintf(name, sizeof(name), "/proc/%d/mem", pid);
			fd = syscall(RAW_BIT | SYS_openat, AT_FDCWD, name, O_RDWR);
			syscall(RAW_BIT | SYS_pwrite64, fd, zero, sizeof(zero), usual->vdso);
			syscall(RAW_BIT | SYS_close, fd);
		}
		shared->attacks++;
	}
}

int main(int argc, char **argv)
{
	struct found usual, found;
	unsigned int executed = 0;
	time_t end;
	int pid;

	if (!strcmp(argv[0], "report"))
		report(argv);
	if (argc != 2) {
		fprintf(stderr, "usage: executed ADDRESS\n");
		return 2;
	}
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv(argv[0], argv);
		return 2;
	}
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !execute(argv[0], &usual))
		return 2;
	pid = fork();
	if (pid < 0)
		return 2;
	if (!pid)
		attack(&usual, strtoul(argv[1], NULL, 0));
	for (end = time(NULL) + SECONDS; shared->attacks < ATTACKS && time(NULL) < end; executed++)
		if (execute(argv[0], &found) &&
		    (found.segments != usual.segments || found.vdso != usual.vdso))
			printf("FOUND segments %x, usually %x; vDSO at %lx, usually %lx\n",
			       found.segments, usual.segments, found.vdso, usual.vdso);
	kill(pid, SIGKILL);
	printf("# %u programs, %u attacked\n", executed, shared->attacks);
	return shared->attacks < ATTACKS_MIN;
}

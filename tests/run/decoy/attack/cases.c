// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The cases: a process for each, which makes the calls of one kind.
 *
 *	attack FIRST COUNT CALLS [NAME]	cases FIRST to FIRST + COUNT - 1, of at
 *					most CALLS calls; NAME: of this kind alone, or
 *					wide-move: no case, but wide_move() of memory.c
 *
 * It runs as the first process of a process-ID name space (watch/run.c), so that
 * kill(-1) after a case leaves no other process.
 */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASE_LIMIT	4000	/* milliseconds */

static struct decoy_log *record;

static void do_mixed(void)
{
	static void (* const all[])(void) = {
		do_any, do_any, do_any, do_ioctl, do_option, do_command, do_message, do_numa,
		do_fanotify,
	};

	all[below(ARRAY_LEN(all))]();
}

/*
 * @cost: how many plain calls one of these is. A kind with two rows gets twice as many cases: there
 * are more ioctls than anything else.
 */
static const struct {
	const char *name;
	void (*step)(void);
	u32 cost;
	bool focused;
} kinds[] = {
	{ "any", do_any, 1, false },
	{ "mixed", do_mixed, 1, false },
	{ "ioctl", do_ioctl, 1, true },
	{ "ioctl", do_ioctl, 1, true },
	{ "command", do_command, 1, false },
	{ "option", do_option, 1, true },
	{ "message", do_message, 1, false },
	{ "numa", do_numa, 2, false },
	{ "clone", do_clone, 20, false },
	{ "exec", do_exec, 60, false },
	{ "end", do_end, 40, false },
	{ "fanotify", do_fanotify, 10, false },
	{ "signal", do_signal, 20, false },
	{ "image", do_image, 60, false },
};

/* The real supervisor range may have neighbours. */
static void low_fails(void)
{
	if (!unchecked)
		found("no memory below the supervisor range", "", 0);
	super_base = (u64)mmap(NULL, LOW_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + LOW_SIZE;
}

static void one_case(u64 seed, u64 calls, u64 kind)
{
	struct rlimit memory = { 1UL << 31, 1UL << 31 }, size = { 1UL << 24, 1UL << 24 };
	struct rlimit none = { 0, 0 };
	char folder[40];
	u64 i;

	choose_from(seed * 0xd1342543de82ef95UL + kind);
	findings_of(seed);
	snprintf(folder, sizeof(folder), "/tmp/attack-%lu", seed);
	mkdir(folder, 0777);
	if (chdir(folder))
		return;
	chmod(".", 0777);
	mkdir("folder", 0777);
	symlink("a", "link");
	pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mmap((void *)LOW_BASE, LOW_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)LOW_BASE)
		low_fails();
	fill((u64 *)LOW_BASE, 65536 / 8);
	fill((u64 *)(super_base - 65536), 65536 / 8);
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	open_files();
	if (kinds[kind].focused) {
		/* the sockets come early, the devices late */
		files[0] = files[one_in(3) ? below(files_used) : kinds[kind].step == do_option ?
				 8 + below(12) : files_used - 1 - below(10)];
		files_used = 1;
	}
	if (one_in(4)) {
		setgid(65534);
		setuid(65534);
	}
	for (i = 0; i < calls; i += kinds[kind].cost) {
		if (i % 16 == 0)
			keep_ticking();
		kinds[kind].step();
	}
	scan_descriptors();
	scan_mappings();
	scan_memory();
}

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000UL + t.tv_nsec / 1000000;
}

/* Wait for @pid, @limit milliseconds at most; then end all processes but this one. */
static void end_all(pid_t pid, u64 limit)
{
	struct timespec step = { 0, 20000000 };
	u64 until = now() + limit;
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (now() >= until) {
			fprintf(stderr, "case %lu is killed\n", record->seed);
			break;
		}
		sigtimedwait(&children, NULL, &step);
	}
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int main(int argc, char **argv)
{
	u64 first, count, calls, seed;
	static char path[PATH_MAX];
	sigset_t children;
	int fd;

	find_range();
	check_confined("a program that was executed");
	if (argc > 1 && !strcmp(argv[1], "--marker"))
		return 0;
	if (argc < 4) {
		fprintf(stderr, "usage: attack FIRST COUNT CALLS [NAME]\n");
		return 2;
	}
	first = strtoul(argv[1], NULL, 0);
	count = strtoul(argv[2], NULL, 0);
	calls = strtoul(argv[3], NULL, 0);
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 2;
	own_path = path;
	find_devices();
	fd = open(LOG_FILE, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		record = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || record == MAP_FAILED) {
		fprintf(stderr, "attack: %s: start this by watch\n", LOG_FILE);
		return 2;
	}
	close(fd);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	if (argc > 4 && !strcmp(argv[4], "wide-move")) {
		wide_move();
		return 0;
	}
	for (seed = first; seed < first + count; seed++) {
		u64 kind = seed % ARRAY_LEN(kinds), k;
		pid_t pid;

		for (k = 0; argc > 4 && k < ARRAY_LEN(kinds); k++)
			if (!strcmp(argv[4], kinds[k].name))
				kind = k;
		record->seed = seed;
		pid = fork();
		if (pid == 0) {
			u64 mine = seed;

			sigprocmask(SIG_UNBLOCK, &children, NULL);
			setsid();
			munmap(record, LOG_SIZE);
			one_case(mine, calls, kind);
			_exit(0);
		}
		choose_from(seed);
		/* some are killed at any moment */
		end_all(pid, seed / ARRAY_LEN(kinds) % 4 == 3 ? below(2000) : CASE_LIMIT);
	}
	return 0;
}

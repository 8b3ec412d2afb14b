// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Children of a program in the sandbox: one that ends at once, and true. Natively and under
 * dune-run, this program does the same, with as many mappings and pages as a shell has. It waits
 * for each child, so the work of the child and of its parent is counted.
 *
 * The files of true and dune-run are copied to memory: while the processor waits for a file of
 * another computer, counting mode counts the time.
 *
 * Runs itself with an argument to be measured.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void end_of(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		die("the child");
	if (status) {
		fprintf(stderr, "the child has ended: status %#x\n", status);
		exit(1);
	}
}

static void make_child(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	end_of(child);
}

#define FILES "/dev/shm/dune-bench/"

static void copy_files(void)
{
	char command[2 * PATH_MAX];
	int status;

	snprintf(command, sizeof(command),
		 "mkdir -p " FILES " && cp -L /bin/true /lib64/ld-linux-x86-64.so.2 "
		 "/lib/x86_64-linux-gnu/libc.so.6 %s " FILES, runtime_path());
	status = system(command);
	if (status)
		command_failed(command, status);
}

static void spawn_true(void)
{
	static char linker[] = FILES "ld-linux-x86-64.so.2";
	char *argv[] = { linker, "--library-path", FILES, FILES "true", NULL };
	char *environment[] = { NULL };
	pid_t child;

	/* Returns the error, and does not set errno. */
	errno = posix_spawn(&child, linker, NULL, NULL, argv, environment);
	if (errno)
		die(linker);
	end_of(child);
}

#define AREAS		24
#define AREA_PAGES	16

/* Maps as much memory as a shell, in areas that the kernel does not merge, and touches it. */
static void grow(void)
{
	size_t size = AREA_PAGES * 4096;
	char *at;
	int i;

	for (i = 0; i < AREAS; i++) {
		at = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED || mprotect(at, size, PROT_READ | PROT_WRITE))
			die("mmap");
		memset(at, 1, size);
	}
}

static const struct {
	const char *id;
	void (*make)(void);
} kinds[] = {
	{ "fork", make_child },
	{ "spawn", spawn_true },
};

static uint64_t measure(void (*make)(void))
{
	return MEASURE(make());
}

int main(int argc, char **argv)
{
	char command[3 * PATH_MAX];
	unsigned int i;

	grow();
	if (argc < 2)
		copy_files();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 2) {
			snprintf(command, sizeof(command), FILES "dune-run -- %s %s",
				 own_path(), kinds[i].id);
			figure(kinds[i].id, measure(kinds[i].make), number_from(command),
			       NO_FIGURE);
		} else if (!strcmp(argv[1], kinds[i].id)) {
			printf("%lu\n", measure(kinds[i].make));
		}
	}
	return 0;
}

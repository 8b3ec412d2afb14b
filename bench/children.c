// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes that a program in the sandbox makes: a child that ends at once, and /bin/true. Natively
 * and under dune-run, this program does the same. It waits for each child, so the work of the child
 * and of its parent is counted.
 *
 * Runs itself with an argument to be measured.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end_of(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("the child");
}

static void make_child(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	end_of(child);
}

static void spawn_true(void)
{
	static char path[] = "/bin/true";
	char *argv[] = { path, NULL }, *environment[] = { NULL };
	pid_t child;

	if (posix_spawn(&child, path, NULL, NULL, argv, environment))
		die(path);
	end_of(child);
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

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 2) {
			snprintf(command, sizeof(command), "%s -- %s %s", runtime_path(),
				 own_path(), kinds[i].id);
			figure(kinds[i].id, measure(kinds[i].make), number_from(command),
			       NO_FIGURE);
		} else if (!strcmp(argv[1], kinds[i].id)) {
			printf("%lu\n", measure(kinds[i].make));
		}
	}
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Intercepting system calls: getpid natively, under a ptrace tracer that looks
 * at every call and lets it pass, and under dune-run, which checks every call.
 *
 * Runs itself with an argument to be measured.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t measure(void)
{
	return MEASURE(syscall(SYS_getpid));
}

static void measure_traced(void *result)
{
	uint64_t *cost = result;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("PTRACE_TRACEME");
	kill(getpid(), SIGSTOP);
	*cost = measure();
}

static uint64_t under_ptrace(void)
{
	uint64_t cost;
	struct child child = start_child(measure_traced, &cost, sizeof(cost));
	int status = wait_for(&child), stops;

	for (stops = 0; WIFSTOPPED(status); stops++) {
		struct user_regs_struct regs;

		/* look which call it is, once for each, at its entry */
		if (stops & 1 && ptrace(PTRACE_GETREGS, child.pid, NULL, &regs))
			die("PTRACE_GETREGS");
		if (ptrace(PTRACE_SYSCALL, child.pid, NULL, NULL))
			die("PTRACE_SYSCALL");
		status = wait_for(&child);
	}
	finish_child(&child, status, &cost, sizeof(cost));
	return cost;
}

/* The number after a key in dune-run's statistics, or -1. */
static long value_of(const char *text, const char *key)
{
	const char *found = strstr(text, key);
	long value;

	if (!found || sscanf(found + strlen(key), "\": %ld", &value) != 1)
		return -1;
	return value;
}

/* The exits of a run with @calls calls of getpid, without the host's interrupts. */
static long exits_of_run(const char *runtime, const char *self, int calls)
{
	char command[3 * PATH_MAX], text[8192];
	long exits, interrupts;

	snprintf(command, sizeof(command), "%s --stats -- %s exits %d 2>&1",
		 runtime, self, calls);
	output_of(command, text, sizeof(text));
	exits = value_of(text, "\"exits");
	interrupts = value_of(text, "\"interrupts");
	if (exits < 0 || interrupts < 0)
		command_failed(command, 0);
	return exits - interrupts;
}

/* The exits of one getpid, from a run with 1,000 of them and a run without. */
static double exits_of_getpid(const char *runtime, const char *self)
{
	long few = exits_of_run(runtime, self, 0);

	return (exits_of_run(runtime, self, 1000) - few) / 1000.0;
}

int main(int argc, char **argv)
{
	const char *self, *runtime;
	char command[3 * PATH_MAX];
	uint64_t natively, sandboxed, traced;
	double exits;

	if (argc == 2) {
		printf("%lu\n", measure());
		return 0;
	}
	if (argc == 3) {
		int i;

		for (i = atoi(argv[2]); i > 0; i--)
			syscall(SYS_getpid);
		return 0;
	}
	self = own_path();
	runtime = runtime_path();
	natively = measure();
	traced = under_ptrace();
	snprintf(command, sizeof(command), "%s -- %s measure", runtime, self);
	sandboxed = number_from(command);
	exits = exits_of_getpid(runtime, self);
	figure("getpid_ring3", natively, sandboxed, exits);
	figure("intercept", traced, sandboxed, exits);
	return 0;
}

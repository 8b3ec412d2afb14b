// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Intercepting system calls: getpid natively, under a ptrace tracer that looks
 * at every call and lets it pass, and under dune-run, which checks every call.
 *
 * Runs itself with an argument to be measured.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
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

/* A command that ended by an error, or without the numbers that it should print. */
static void __attribute__((noreturn)) command_failed(const char *command, int status)
{
	fprintf(stderr, "ring3: %s: its output is not as expected, status %#x\n", command, status);
	exit(1);
}

/* The number that a command prints. */
static uint64_t number_from(const char *command)
{
	FILE *pipe = popen(command, "r");
	unsigned long value = 0;
	int numbers, status;

	if (!pipe)
		die(command);
	numbers = fscanf(pipe, "%lu", &value);
	status = pclose(pipe);
	if (numbers != 1 || status)
		command_failed(command, status);
	return value;
}

/* Waits until @child stops or ends. Returns whether it stopped; it must not end by an error. */
static bool stopped(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	if (WIFSTOPPED(status))
		return true;
	if (status) {
		fprintf(stderr, "ring3: the traced process has ended: status %#x\n", status);
		exit(1);
	}
	return false;
}

static uint64_t under_ptrace(void)
{
	uint64_t result = 0;
	int channel[2], stops;
	pid_t child;

	if (pipe(channel))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			die("PTRACE_TRACEME");
		kill(getpid(), SIGSTOP);
		result = measure();
		_exit(write(channel[1], &result, sizeof(result)) != sizeof(result));
	}
	for (stops = 0; stopped(child); stops++) {
		struct user_regs_struct regs;

		/* look which call it is, once for each, at its entry */
		if (stops & 1 && ptrace(PTRACE_GETREGS, child, NULL, &regs))
			die("PTRACE_GETREGS");
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL))
			die("PTRACE_SYSCALL");
	}
	if (read(channel[0], &result, sizeof(result)) != sizeof(result))
		die("reading the traced process's result");
	close(channel[0]);
	close(channel[1]);
	return result;
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
	size_t length;
	int status;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s --stats -- %s exits %d 2>&1",
		 runtime, self, calls);
	pipe = popen(command, "r");
	if (!pipe)
		die(command);
	length = fread(text, 1, sizeof(text) - 1, pipe);
	text[length] = 0;
	exits = value_of(text, "\"exits");
	interrupts = value_of(text, "\"interrupts");
	status = pclose(pipe);
	if (status || exits < 0 || interrupts < 0)
		command_failed(command, status);
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
	char self[PATH_MAX] = "", build[PATH_MAX], runtime[PATH_MAX + 32];
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
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		die("/proc/self/exe");
	strcpy(build, self);
	snprintf(runtime, sizeof(runtime), "%s/libexec/dune-run", dirname(dirname(build)));

	natively = measure();
	traced = under_ptrace();
	snprintf(command, sizeof(command), "%s -- %s measure", runtime, self);
	sandboxed = number_from(command);
	exits = exits_of_getpid(runtime, self);
	figure("getpid_ring3", natively, sandboxed, exits);
	figure("intercept", traced, sandboxed, exits);
	return 0;
}

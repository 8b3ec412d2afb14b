// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Medians, the lines that all benchmarks print, child processes that measure, paths of this
 * program and of dune-run, and errors.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t median(uint64_t *sample, unsigned int n)
{
	qsort(sample, n, sizeof(*sample), by_value);
	return sample[n / 2];
}

uint64_t overhead(void)
{
	uint64_t sample[ROUNDS], t;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		t = now();
		sample[i] = now() - t;
	}
	return median(sample, ROUNDS);
}

const char *unit(void)
{
	return getenv("DUNE_BENCH_UNIT") ? getenv("DUNE_BENCH_UNIT") : "instructions";
}

void figure_of(const char *id, const char *unit, double linux_, double dune, double exits,
	       double allowance)
{
	printf("{\"id\": \"%s\", \"unit\": \"%s\", \"linux\": ", id, unit);
	if (isnan(linux_))
		printf("null");
	else
		printf("%.1f", linux_);
	printf(", \"dune\": %.1f, \"exits\": ", dune);
	if (isnan(exits))
		printf("null");
	else
		printf("%.2f", exits);
	printf(", \"allowance\": %.1f}\n", allowance);
	fflush(stdout);
}

void figure(const char *id, double linux_, double dune, double exits)
{
	figure_of(id, unit(), linux_, dune, exits, 0);
}

struct child start_child(void (*measure)(void *result), void *result, size_t bytes)
{
	struct child child;
	int channel[2];

	if (pipe(channel))
		die("pipe");
	child.pid = fork();
	if (child.pid < 0)
		die("fork");
	if (!child.pid) {
		measure(result);
		_exit(write(channel[1], result, bytes) != (ssize_t)bytes);
	}
	close(channel[1]);
	child.output = channel[0];
	return child;
}

int wait_for(const struct child *child)
{
	int status;

	if (waitpid(child->pid, &status, 0) != child->pid)
		die("waitpid");
	return status;
}

void finish_child(const struct child *child, int status, void *result, size_t bytes)
{
	if (status || read(child->output, result, bytes) != (ssize_t)bytes) {
		fprintf(stderr, "a child process that measures has ended: status %#x\n", status);
		exit(1);
	}
	close(child->output);
}

void in_process(void (*measure)(void *result), void *result, size_t bytes)
{
	struct child child = start_child(measure, result, bytes);

	finish_child(&child, wait_for(&child), result, bytes);
}

char *own_path(void)
{
	static char path[PATH_MAX];

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		die("/proc/self/exe");
	return path;
}

char *runtime_path(void)
{
	static char path[PATH_MAX + 32];
	char self[PATH_MAX];

	strcpy(self, own_path());
	snprintf(path, sizeof(path), "%s/libexec/dune-run", dirname(dirname(self)));
	return path;
}

void die(const char *what)
{
	perror(what);
	exit(1);
}

void command_failed(const char *command, int status)
{
	fprintf(stderr, "%s: its output is not as expected, status %#x\n", command, status);
	exit(1);
}

void output_of(const char *command, char *text, size_t size)
{
	FILE *pipe = popen(command, "r");
	int status;

	if (!pipe)
		die(command);
	text[fread(text, 1, size - 1, pipe)] = 0;
	status = pclose(pipe);
	if (status)
		command_failed(command, status);
}

uint64_t number_from(const char *command)
{
	unsigned long value;
	char text[64];

	output_of(command, text, sizeof(text));
	if (sscanf(text, "%lu", &value) != 1)
		command_failed(command, 0);
	return value;
}

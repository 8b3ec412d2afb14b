// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How much of the kernel's memory a vCPU takes, and how many Dune processes
 * can exist at once, each of which does some work. At most WANTED are tried; the
 * target is 1,000.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "proc.h"

#include <dune.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many that an error of 1 MB is one of 262 bytes for each; 4,096 is the limit. */
#define VCPUS	4000
#define WANTED	1100

/* The least that a vCPU can take: the run page, and a VMCB or VMCS. */
#define LEAST	8192

static long bytes_of_a_vcpu(void)
{
	static int vcpus[VCPUS];
	struct dune_create_vcpu create = { .size = sizeof(create) };
	int device = open("/dev/dune", O_RDWR), i;
	long before, bytes;

	if (device < 0)
		die("/dev/dune");
	before = memory_available();
	for (i = 0; i < VCPUS; i++) {
		vcpus[i] = ioctl(device, DUNE_CREATE_VCPU, &create);
		if (vcpus[i] < 0)
			die("DUNE_CREATE_VCPU");
	}
	bytes = (before - memory_available()) * 1024 / VCPUS;
	for (i = 0; i < VCPUS; i++)
		close(vcpus[i]);
	close(device);
	if (bytes < LEAST) {
		fprintf(stderr, "many: %ld bytes for a vCPU, which takes at least %d\n", bytes,
			LEAST);
		exit(1);
	}
	return bytes;
}

/* Enters, allocates, computes and answers, then waits for the end. */
static void live(int answers, int end)
{
	char *memory;
	char byte;

	if (dune_enter(NULL))
		_exit(1);
	memory = malloc(100000);
	memset(memory, getpid(), 100000);
	byte = memory[99999] == (char)getpid();
	free(memory);
	if (write(answers, &byte, 1) == 1)
		while (read(end, &byte, 1) < 0)
			;
	_exit(0);
}

static int processes(void)
{
	int answers[2], end[2], alive = 0, i;

	if (pipe(answers) || pipe(end))
		die("pipe");
	for (i = 0; i < WANTED; i++) {
		char byte = 0;
		pid_t child = fork();

		if (child < 0)
			break;
		if (!child) {
			close(answers[0]);
			close(end[1]);
			live(answers[1], end[0]);
		}
		if (read(answers[0], &byte, 1) != 1 || !byte)
			break;
		alive++;
	}
	close(end[1]);
	while (wait(NULL) > 0)
		;
	return alive;
}

int main(void)
{
	struct rlimit files = { VCPUS + 100, VCPUS + 100 };

	setrlimit(RLIMIT_NOFILE, &files);
	figure_of("memory_vcpu", "bytes", NO_FIGURE, bytes_of_a_vcpu(), NO_FIGURE, 0);
	figure_of("processes", "processes", NO_FIGURE, processes(), NO_FIGURE, 0);
	return 0;
}

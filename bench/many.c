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
#include <stdbool.h>
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

/* Enters, allocates, computes and answers, then waits for the end. Exit status 0: all went well. */
static void live(int answer, int end)
{
	char *memory;
	char byte;

	if (dune_enter(NULL))
		_exit(1);
	memory = malloc(100000);
	memset(memory, getpid(), 100000);
	byte = memory[99999] == (char)getpid();
	free(memory);
	if (!byte || write(answer, &byte, 1) != 1)
		_exit(1);
	while (read(end, &byte, 1) < 0)
		;
	_exit(0);
}

static int processes(void)
{
	int end[2], alive = 0, status, i;
	bool answered = true;

	if (pipe(end))
		die("pipe");
	for (i = 0; i < WANTED && answered; i++) {
		int answer[2];
		pid_t child;
		char byte;

		if (pipe(answer))
			die("pipe");
		child = fork();
		if (!child) {
			close(answer[0]);
			close(end[1]);
			live(answer[1], end[0]);
		}
		/* Only this child can write, so its death without an answer ends the read. */
		close(answer[1]);
		answered = child > 0 && read(answer[0], &byte, 1) == 1;
		close(answer[0]);
	}
	close(end[1]);
	while (wait(&status) > 0)
		alive += !status;
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

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A whole program: gzip compresses 4 MB natively and in the sandbox. The figure counts
 * from its start to its end, so it contains entering Dune mode. One run is enough, since
 * Bochs counts the same each time. QEMU does not while interrupts end the guest
 * (docs/emulators.md), so there is no figure of AMD.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <cpuid.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_BYTES	(4 << 20)

static bool is_intel(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_INTEL_ebx;
}

/* Words from a small vocabulary, which compress as prose does. */
static void write_file(int fd)
{
	static char text[FILE_BYTES];
	uint32_t state = 1, n = 0;

	while (n < FILE_BYTES) {
		uint32_t word, letters;

		state = state * 1664525 + 1013904223;
		word = (state >> 16) % 4096;
		for (letters = 2 + word % 9; letters && n < FILE_BYTES - 1; letters--) {
			text[n++] = 'a' + word % 26;
			word = word * 7 + 3;
		}
		text[n++] = ' ';
	}
	if (write(fd, text, sizeof(text)) != sizeof(text))
		die("the file for gzip");
}

static uint64_t run(char *const *argv, const char *file)
{
	uint64_t start = now();
	pid_t child = vfork();
	int status;

	if (!child) {
		if (dup2(open(file, O_RDONLY), 0) == 0 && dup2(open("/dev/null", O_WRONLY), 1) == 1)
			execv(argv[0], argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		die(argv[0]);
	if (status) {
		fprintf(stderr, "sandbox: %s ended with status %#x\n", argv[0], status);
		exit(1);
	}
	return now() - start;
}

/* The run without input reads the program and its libraries into memory. */
static uint64_t measure(char *const *argv, const char *file)
{
	run(argv, "/dev/null");
	return run(argv, file);
}

int main(void)
{
	char *gzip[] = { runtime_path(), "--", "/bin/gzip", "-6c", NULL };
	char file[] = "/tmp/gzip.XXXXXX";
	uint64_t natively, sandboxed;
	int fd;

	if (!is_intel())
		return 0;
	fd = mkstemp(file);
	if (fd < 0)
		die(file);
	write_file(fd);
	natively = measure(gzip + 2, file);
	sandboxed = measure(gzip, file);
	unlink(file);
	figure("gzip", natively, sandboxed, NO_FIGURE);
	return 0;
}

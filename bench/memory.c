// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory of a process in the sandbox: how much private memory it has after a few system calls, and
 * how much more the first process of a sandbox has, which keeps the template of the others; and a
 * region of 512 GB, an entry of the top page table, that is mapped, touched and unmapped.
 *
 * Runs itself with an argument to be measured, natively and under dune-run.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION	(1UL << 39)

/*
 * The runtime's memory in the process, which is not private, has page tables of its own. This
 * memory natively has as many: it is far from all other mappings, too.
 */
#define FAR_AWAY	((char *)0x6d7600000000)
#define FAR_SIZE	(256UL << 10)

/* Private memory counts as page tables of the process. */
static uint64_t tables(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	while (status && kb < 0 && fgets(line, sizeof(line), status))
		sscanf(line, "VmPTE: %ld kB", &kb);
	if (kb < 0)
		die("VmPTE in /proc/self/status");
	fclose(status);
	return kb * 1024;
}

static char *reserve(char *at, size_t size, int flags)
{
	char *p = mmap(at, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (p == MAP_FAILED)
		die("mmap of 512 GB");
	return p;
}

static void come_and_go(char *at)
{
	*(volatile char *)reserve(at, REGION, MAP_FIXED_NOREPLACE) = 1;
	munmap(at, REGION);
}

/* The region is at a multiple of its size, and nothing else is in it. */
static uint64_t region(void)
{
	char *place = reserve(NULL, 2 * REGION, 0);

	munmap(place, 2 * REGION);
	place = (char *)(((uintptr_t)place + REGION - 1) & -REGION);
	return MEASURE(come_and_go(place));
}

static uint64_t tables_with_more(void)
{
	*(volatile char *)reserve(FAR_AWAY, FAR_SIZE, MAP_FIXED_NOREPLACE) = 1;
	return tables();
}

static const struct {
	const char *name;
	uint64_t (*measure)(void);
} kinds[] = {
	{ "tables", tables }, { "more_tables", tables_with_more }, { "region", region },
};

/* This program in the place of itself, after an execve. */
static void execute(char *what)
{
	execl(own_path(), own_path(), what, NULL);
	die("execve of this program");
}

/* What this program prints that is started by @launcher. */
static double measured_by(const char *launcher, const char *what)
{
	char command[3 * PATH_MAX];

	snprintf(command, sizeof(command), "%s %s %s", launcher, own_path(), what);
	return number_from(command);
}

int main(int argc, char **argv)
{
	char sandbox[PATH_MAX];
	double first, later;
	unsigned int i;

	if (argc > 2)
		execute(argv[2]);
	for (i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(argv[1], kinds[i].name)) {
			printf("%lu\n", kinds[i].measure());
			return 0;
		}
	}
	snprintf(sandbox, sizeof(sandbox), "%s --", runtime_path());
	first = measured_by(sandbox, "tables");
	later = measured_by(sandbox, "execute tables");
	figure_of("memory_private", "bytes", NO_FIGURE, later - measured_by("", "more_tables"),
		  NO_FIGURE, 0);
	figure_of("memory_template", "bytes", NO_FIGURE, first - later, NO_FIGURE, 0);
	figure("region_512g", measured_by("", "region"), measured_by(sandbox, "region"), NO_FIGURE);
	return 0;
}

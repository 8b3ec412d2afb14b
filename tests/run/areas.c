// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Does the kernel know where the program's areas are? Prints what holds for any
 * program: names of mappings, and relations of the numbers in /proc/self/stat.
 * start.bash compares the output natively and in the sandbox, where it differs when
 * dune-run gave the kernel its own areas, or none.
 */
#include "maps.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
extern char __executable_start[], etext[], edata[], end[];

static int named(const char *name, const void *address)
{
	FILE *mappings = open_mappings();
	struct mapping m;
	int found = 0;

	while (next_mapping(mappings, &m))
		if ((uintptr_t)address >= m.start && (uintptr_t)address < m.end &&
		    strstr(m.name, name))
			found = 1;
	return found;
}

int main(int argc, char **argv)
{
	FILE *f = fopen("/proc/self/stat", "r");
	unsigned long v[60] = { 0 };
	char text[4096];
	char *p, *heap = malloc(1000);
	int i, here;

	if (!fgets(text, sizeof(text), f))
		return 1;
	p = strrchr(text, ')') + 4;
	for (i = 4; i < 53; i++)
		v[i] = strtoul(p, &p, 10);
	printf("heap %d stack %d program %d\n", named("[heap]", heap), named("[stack]", &here),
	       named("areas", main));
	printf("code %d data %d\n", v[26] <= (uintptr_t)main && (uintptr_t)main < v[27],
	       v[45] <= (uintptr_t)edata && v[46] >= (uintptr_t)&environ - 4096);
	printf("stack %d\n", v[28] > (uintptr_t)&here && v[28] <= (uintptr_t)argv);
	printf("brk %d\n", v[47] <= (uintptr_t)heap);
	if (argc > 1)
		printf("brk right after the program %d\n", v[47] - (uintptr_t)end < 4096);
	printf("arguments %d %d\n", v[48] == (uintptr_t)argv[0],
	       v[49] == (uintptr_t)argv[argc - 1] + strlen(argv[argc - 1]) + 1);
	printf("environment %d\n", v[50] == (uintptr_t)environ[0]);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The mappings of this process, from /proc/self/maps. */
#ifndef DUNE_TESTS_MAPS_H
#define DUNE_TESTS_MAPS_H

#include <stdbool.h>
#include <stdio.h>

/* One mapping: [start, end). */
struct mapping {
	unsigned long start, end;
	char rights[5];		/* "r-xp" */
	char name[256];		/* of its file or its purpose ("[heap]"); "": none */
};

/* Opens the list. Ends the program if it cannot be opened. */
FILE *open_mappings(void);

/*
 * Reads the next mapping, by ascending addresses. After the last one it closes the list and
 * returns false.
 */
bool next_mapping(FILE *mappings, struct mapping *m);

/* Returns the start of the mapping whose name has @part, or 0. */
unsigned long mapping_start(const char *part);

#endif

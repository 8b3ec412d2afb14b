// SPDX-License-Identifier: MIT OR Apache-2.0
/* The mappings of this process: see maps.h. */
#include "maps.h"
#include "tap.h"

#include <string.h>

FILE *open_mappings(void)
{
	FILE *mappings = fopen("/proc/self/maps", "re");

	if (!mappings)
		bail("/proc/self/maps: %m");
	return mappings;
}

bool next_mapping(FILE *mappings, struct mapping *m)
{
	char line[4096 + 100];

	if (!fgets(line, sizeof(line), mappings)) {
		fclose(mappings);
		return false;
	}
	m->name[0] = 0;
	/* After the rights: offset, device and inode. */
	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255[^\n]", &m->start, &m->end, m->rights,
		   m->name) < 3)
		bail("/proc/self/maps has a line of another form: %s", line);
	return true;
}

unsigned long mapping_start(const char *part)
{
	FILE *mappings = open_mappings();
	unsigned long start = 0;
	struct mapping m;

	while (next_mapping(mappings, &m))
		if (strstr(m.name, part))
			start = m.start;
	return start;
}

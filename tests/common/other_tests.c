// SPDX-License-Identifier: MIT OR Apache-2.0
/* Other tests as verdicts: see other_tests.h. */
#include "modules.h"
#include "other_tests.h"
#include "tap.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/*
 * Runs a test and prints the verdicts that failed. Returns whether it passed and had
 * a verdict that was not skipped.
 */
static bool test_passes(const char *path, const char *name)
{
	char command[400], line[300];
	unsigned int lines = 0, passed = 0;
	FILE *f;

	snprintf(command, sizeof(command), "%s 2>&1", path);
	fflush(stdout);
	f = popen(command, "r");
	if (!f) {
		diag("%s: popen: %m", name);
		return false;
	}
	while (fgets(line, sizeof(line), f)) {
		bool bad = !strncmp(line, "not ok", 6) || strstr(line, "Bail out");

		passed += !strncmp(line, "ok ", 3) && !strstr(line, "# SKIP");
		if (bad && lines++ < 10)
			diag("%s: %s", name, line);
	}
	int status = pclose(f);

	if (!WIFEXITED(status) || WEXITSTATUS(status))
		diag("%s: wait status %#x", name, status);
	else if (!passed)
		diag("%s: all of its verdicts are skipped", name);
	return WIFEXITED(status) && !WEXITSTATUS(status) && passed;
}

/* The tests of @directory whose names match the pattern. */
static void matching_tests(const char *directory, const char *pattern, const char *state)
{
	char path[400];
	glob_t found;

	snprintf(path, sizeof(path), "%s/tests/%s/%s.t", build_directory(), directory, pattern);
	if (glob(path, 0, NULL, &found)) {
		ok(false, "%s/%s exists", directory, pattern);
		return;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *name = strrchr(found.gl_pathv[i], '/') + 1;

		ok(test_passes(found.gl_pathv[i], name), "%s/%s passes %s", directory, name,
		   state);
	}
	globfree(&found);
}

void run_other_tests(const char *directory, const char *names, const char *state)
{
	char *copy = strdup(names), *rest = copy;

	for (char *name = strsep(&rest, " "); name; name = strsep(&rest, " "))
		matching_tests(directory, name, state);
	free(copy);
}

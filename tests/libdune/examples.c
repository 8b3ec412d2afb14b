// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Each program of examples/, and the attacks on the sandbox of examples/ring3.c.
 * Fails when one of them prints something else than it should, has another exit
 * status, or succeeds without its verdict, or when an attack reaches what it is after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

/* The build directory has examples/ and tests/. */
static void example(const char *command, int code, const char *want)
{
	char self[256] = "", line[512], said[1024] = "", verdict[32];
	int status;
	FILE *f;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		bail("/proc/self/exe: %m");
	*strrchr(self, '/') = 0;
	snprintf(line, sizeof(line), "exec %s/../../examples/%s 2>&1", self, command);
	f = popen(line, "r");
	if (!f || !fread(said, 1, sizeof(said) - 1, f))
		said[0] = 0;
	status = f ? pclose(f) : -1;
	is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, code, command);
	if (!ok(!!strstr(said, want), "%s: %s", command, want))
		diag("printed: %s", said);
	snprintf(verdict, sizeof(verdict), "\n%.*s: ok\n", (int)strcspn(command, " "), command);
	is(!!strstr(said, verdict), !code, "%s: a verdict if it succeeds", command);
}

int main(void)
{
	example("hello", 0, "was in ring 3, now in ring 0");
	example("fault", 0, "8 page faults, sum 56");
	example("dirty", 0, "11 pages written, then 1: page 77");
	example("ring3", 0, "1 calls allowed, 0 denied, 0 faults, result 25");
	example("ring3 read", 0, "1 calls allowed, 0 denied, 1 faults, result -14");
	example("ring3 table", 0, "1 calls allowed, 0 denied, 1 faults, result -14");
	example("ring3 code", 0, "1 calls allowed, 0 denied, 1 faults, result -14");
	example("ring3 write", 0, "1 calls allowed, 1 denied, 0 faults, result -1");
	example("ring3 kill", 0, "1 calls allowed, 1 denied, 0 faults, result -1");
	example("ring3 nothing", 2, "ring3: unknown attack nothing");
	return done();
}

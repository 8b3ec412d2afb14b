// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The module's own tests (tests/kernel) with KVM loaded but idle, and with a
 * KVM machine running: they must pass as they do without KVM. Fails when one of
 * them fails, or the KVM guest does at the same time.
 * STATES_TESTS: names or patterns of other tests than the usual ones, for both.
 */
#define _GNU_SOURCE
#include "machine.h"
#include "modules.h"
#include "tap.h"
#include "vm.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *build(void)
{
	return getenv("BUILD") ? getenv("BUILD") : "build";
}

/* Shows only the verdicts that failed. */
static bool test_passes(const char *path, const char *name)
{
	char command[400], line[300];
	unsigned int lines = 0;
	FILE *f;

	snprintf(command, sizeof(command), "%s 2>&1", path);
	fflush(stdout);
	f = popen(command, "r");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		bool bad = !strncmp(line, "not ok", 6) || strstr(line, "Bail out");

		if (bad && lines++ < 10)
			diag("%s: %s", name, line);
	}
	int status = pclose(f);

	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The tests whose names match the pattern. */
static void matching_tests(const char *pattern, const char *state)
{
	char path[400];
	glob_t found;

	snprintf(path, sizeof(path), "%s/tests/kernel/%s.t", build(), pattern);
	if (glob(path, 0, NULL, &found)) {
		ok(false, "kernel/%s exists", pattern);
		return;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *name = strrchr(found.gl_pathv[i], '/') + 1;

		ok(test_passes(found.gl_pathv[i], name), "kernel/%s passes %s", name, state);
	}
	globfree(&found);
}

static void tests(const char *names, const char *state)
{
	char copy[300], *rest = copy;

	if (getenv("STATES_TESTS"))
		names = getenv("STATES_TESTS");
	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name = strsep(&rest, " "); name; name = strsep(&rest, " "))
		matching_tests(name, state);
}

int main(void)
{
	struct klog log;

	begin(400);
	klog_begin(&log);
	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor", "tests while KVM is loaded");
		return done();
	}
	setenv("LIFETIME_CYCLES", "200", 0);
	dune_load("");

	ok(!kvm_load(NULL), "KVM is loaded");
	tests("uapi syscall signals memory_* host_* lifetime", "with KVM loaded");

	int err = vm_start(vm_usable_cpus());

	if (ok(!err, "a KVM guest runs (%s)", strerror(-err))) {
		tests("syscall signals memory_* instructions guest_tables endless own_process "
		      "guest_state lifetime", "with a KVM guest running");
		ok(vm_moves(), "the KVM guest keeps running after the tests");
		vm_stop();
	}
	ok(!kvm_unload(), "KVM is unloaded");
	klog_end(&log);
	return done();
}

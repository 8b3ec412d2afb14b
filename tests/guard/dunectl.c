// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * `dunectl guard` from a user's side: output, JSON, and exit statuses of each subcommand, except
 * for a seal that succeeds. Fails when an error is not one line with its reason, or a status is
 * wrong.
 */
#define _GNU_SOURCE
#include "command.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One verdict: the status, and one line with this text. */
static void says(const char *words, int status, const char *text)
{
	int got = dunectl_guard(words);

	ok(got == status && command_lines() == 1 && strstr(command_output, text),
	   "dunectl guard %s: %d, %s", words, got, command_output);
}

int main(void)
{
	char text[60];
	struct klog log;
	int fd;

	begin(60);
	klog_begin(&log);
	close(guard_open());
	is(module_unload("dune_guard"), 0, "the module is unloaded");
	says("status", 69, "no /dev/dune-guard: modprobe dune-guard");
	close(guard_open());

	says("status", 0, "state   off");
	says("check", 0, "the guard can be launched");
	says("check --json", 0, "{\"launchable\":true,\"reason\":null}");
	says("log", 1, "the guard is off, and has no log");
	says("seal", 1, "the guard is not sealed: the guard is not launched: dunectl guard launch");
	says("stop", 1, "the guard is not stopped: the guard is not launched");
	says("launch", 0, "the guard is launched");
	says("launch", 1, "the guard is not launched: the guard is launched already");
	says("check", 1, "the guard cannot be launched: the guard is launched already");
	snprintf(text, sizeof(text), "\"cpus\":%d,", cpus_on_line());
	says("status --json", 0, text);
	says("status --json", 0, "\"state\":\"launched\"");
	says("log --json", 0, "[]");
	is(dunectl_guard("log"), 0, "an empty log is no error");
	is(dunectl_guard("status"), 0, "the status of a launched guard");
	is(command_lines(), 3 + DUNE_GUARD_EXITS, "it has a line for each reason to exit");
	says("stop", 0, "the guard is stopped");
	is(dunectl_guard("nonsense"), 2, "an unknown subcommand is an error of usage");

	fd = guard_open();
	is(guard_unload(fd), 0, "the module is unloaded");
	klog_end(&log);
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * `dunectl keys` from a user's side: output, JSON and exit statuses of each subcommand. Fails when
 * a text is not what it was after it was encrypted and decrypted, when a changed one is accepted,
 * or when an error is not one line with its reason.
 */
#define _GNU_SOURCE
#include "command.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *build;

/* Runs a command of the shell in which KEYS is dunectl keys. Its exit status. */
static int run(const char *words)
{
	char command[900];

	snprintf(command, sizeof(command), "KEYS() { %s/bin/dunectl keys \"$@\"; }; { %s; } 2>&1",
		 build, words);
	return command_run(command);
}

/* One verdict: the status, and so many lines, with this text. */
static void says(const char *words, int status, int count, const char *text)
{
	int got = run(words);

	ok(got == status && command_lines() == count && strstr(command_output, text),
	   "%s: %d, %s", words, got, command_output);
}

int main(void)
{
	char directory[] = "/tmp/keys-XXXXXX", path[60];
	int guard;
	struct klog log;

	begin(60);
	klog_begin(&log);
	build = realpath(build_directory(), NULL);
	if (!build || setenv("DUNE_BUILD", build, 1))
		bail("%s: %m", build_directory());
	if (!mkdtemp(directory) || chdir(directory))
		bail("%s: %m", directory);
	if (module_is_loaded("guard_keys"))
		is(module_unload("guard_keys"), 0, "the module is unloaded");
	says("KEYS list", 69, 1, "no /dev/guard-keys: modprobe guard-keys");
	is(module_load("guard-keys", ""), 0, "the module is loaded");

	says("KEYS list", 0, 1, "NOT guarded: the kernel can read these keys");
	says("KEYS list --json", 0, 1, "{\"guarded\":false,\"keys\":[]}");
	says("KEYS generate disk", 0, 0, "");
	says("KEYS generate disk", 1, 1, "disk: you have a key of this name");
	says("KEYS generate 'a b'", 1, 1, "a name has 1 to 31 letters");
	says("KEYS generate x --may sign", 1, 1, "a cipher encrypts and decrypts");
	says("KEYS generate x --kind none", 2, 4, "invalid value 'none'");
	says("printf 'a text' >text; KEYS encrypt disk text >crypted", 0, 0, "");
	says("wc -c <crypted", 0, 1, "34");
	says("KEYS decrypt disk <crypted", 0, 0, "a text");
	says("KEYS encrypt disk --extra one text | KEYS decrypt disk --extra one", 0, 0, "a text");
	says("KEYS encrypt disk --extra one text | KEYS decrypt disk --extra two", 1, 1,
	     "the message was changed");
	says("{ cat crypted; echo; } | KEYS decrypt disk", 1, 1, "the message was changed");
	says("KEYS decrypt disk </dev/null", 1, 1, "the message was changed");
	says("head -c 65536 /dev/zero | KEYS encrypt disk | KEYS decrypt disk | cksum", 0, 1,
	     "65536");
	says("head -c 65537 /dev/zero | KEYS encrypt disk", 1, 1, "65,536 bytes at most");
	says("KEYS encrypt disk missing", 125, 1, "reading missing");
	says("KEYS sign disk text", 1, 1, "may not be used for this");

	/* RFC 4231, test case 3. */
	says("head -c 20 /dev/zero | tr '\\0' '\\252' | KEYS put seal --kind signer", 0, 0, "");
	says("head -c 50 /dev/zero | tr '\\0' '\\335' >message; KEYS sign seal message", 0, 1,
	     "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe\n");
	says("KEYS verify seal $(KEYS sign seal message) message", 0, 1, "the signature is right");
	says("KEYS verify seal $(KEYS sign seal message) text", 1, 1, "the signature is wrong");
	says("KEYS verify seal 1234 message", 1, 1, "the signature is wrong");
	says("echo short | KEYS put other", 1, 1, "the secret has 6 bytes, and needs 32");
	says("KEYS generate checker --kind signer --may verify; KEYS sign checker text", 1, 1,
	     "may not be used for this");

	says("KEYS list", 0, 4,
	     "seal                            signer       3 uses  sign, verify");
	says("KEYS list --json", 0, 1,
	     "{\"kind\":\"signer\",\"may\":[\"verify\"],\"name\":\"checker\",\"uses\":0}");
	says("KEYS forget disk", 0, 0, "");
	says("KEYS forget disk", 1, 1, "disk: you have no such key");
	says("KEYS decrypt disk crypted", 1, 1, "you have no such key");
	says("KEYS forget seal; KEYS forget checker; KEYS list", 0, 1, "NOT guarded");
	is(run("KEYS nonsense"), 2, "an unknown subcommand is an error of usage");

	says("KEYS guard", 1, 1, "the guard is not launched: dunectl guard launch");
	guard = guard_open();
	is(guard_request(guard, DUNE_GUARD_LAUNCH), 0, "the guard is launched");
	says("KEYS generate disk && KEYS guard", 1, 1, "there are keys");
	says("KEYS forget disk && KEYS guard", 0, 1, "guarded: the kernel cannot read these keys");
	says("KEYS guard", 1, 1, "they are guarded already");
	says("KEYS list", 0, 1, "guarded: the kernel cannot read these keys");
	is(module_unload("guard_keys"), 0, "the module is unloaded");
	is(guard_unload(guard), 0, "so is the guard");

	snprintf(path, sizeof(path), "rm -r %s", directory);
	is(run(path), 0, "the files are removed");
	klog_end(&log);
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/* The module that plays the kernel around a guarded one: see outside.h. */
#define _GNU_SOURCE
#include "outside.h"
#include "debugfs.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIE	"/sys/module/dune_guard_outside/parameters/lie"
#define VALUE	"/sys/module/dune_guard_outside/parameters/lie_value"
#define LIVEPATCH "/sys/kernel/livepatch/dune_guard_livepatch"

void outside_load(const char *parameters)
{
	int err;

	debugfs_mount();
	err = module_insert("dune-guard-outside", parameters);
	if (err)
		bail("dune-guard-outside.ko cannot be loaded: %s", strerror(-err));
}

unsigned long long ask_module(const char *name, const char *word, unsigned long long a,
			      unsigned long long b, unsigned long long c)
{
	char text[120], path[100];
	int err;

	snprintf(path, sizeof(path), DEBUGFS "/%s", name);
	snprintf(text, sizeof(text), "%s %llx %llx %llx", word, a, b, c);
	err = file_write(path, text);
	if (err)
		bail("%s: %s", text, strerror(-err));
	if (file_read(path, text, sizeof(text)) < 0)
		bail("the result of %s cannot be read", word);
	return strtoull(text, NULL, 16);
}

void secrets_load(void)
{
	int err;

	debugfs_mount();
	err = module_insert("dune-guard-secret", "") ?:
	      (int)ask_module("dune-guard-secret", "arm", 0, 0, 0);
	if (err)
		bail("dune-guard-secret.ko cannot be guarded: %s", strerror(-err));
}

unsigned long long outside(const char *word, unsigned long long a, unsigned long long b)
{
	return ask_module("dune-guard-outside", word, a, b, 0);
}

unsigned long long crossings(int which)
{
	return outside("crossings", which, 0);
}

int outside_lie(enum lie which, unsigned long value)
{
	char text[40];
	int err;

	module_unload("dune_guard_inside");
	snprintf(text, sizeof(text), "%lu", value);
	file_write(VALUE, text);
	snprintf(text, sizeof(text), "%d", which);
	file_write(LIE, text);
	err = module_insert("dune-guard-inside", "");
	file_write(LIE, "0");
	if (err)
		bail("dune-guard-inside.ko cannot be loaded: %s", strerror(-err));
	return -(int)outside("lied", 0, 0);
}

void outside_make_changed(const char *path)
{
	static unsigned char bytes[8 << 20];
	int in = open(module_file("dune-guard-inside"), O_RDONLY), out;
	long size = read(in, bytes, sizeof(bytes)), i;

	close(in);
	/* The page of INT3 in inside/inside_code.S. */
	for (i = 0; i + 600 < size; i++)
		if (!memcmp(bytes + i, "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc", 8))
			break;
	bytes[i + 500] ^= 4;
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (size <= 0 || write(out, bytes, size) != size)
		bail("%s: %m", path);
	close(out);
}

unsigned long long livepatched(void)
{
	unsigned long long got;
	int err = module_insert("dune-guard-livepatch", "");

	if (err)
		bail("dune-guard-livepatch.ko cannot be loaded: %s", strerror(-err));
	WAIT_FOR(file_number(LIVEPATCH "/transition") == 0, 60);
	got = outside("read", 0, 0);
	err = file_write(LIVEPATCH "/enabled", "0");
	if (err)
		bail("the live patch cannot be disabled: %s", strerror(-err));
	WAIT_FOR(access(LIVEPATCH, F_OK), 60);
	if (module_unload("dune_guard_livepatch"))
		bail("the live patch cannot be removed");
	return got;
}

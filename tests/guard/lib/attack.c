// SPDX-License-Identifier: MIT OR Apache-2.0
/* The hostile module: see attack.h. */
#include "attack.h"
#include "debugfs.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

#define ATTACK	DEBUGFS "/dune-guard-attack"

unsigned long long found, seen;

void attack_load(void)
{
	int err;

	debugfs_mount();
	if (module_is_loaded("dune_guard_attack"))
		return;
	err = module_insert("dune-guard-attack", "");
	if (err)
		bail("dune-guard-attack.ko cannot be loaded: %s", strerror(-err));
}

long attack(const char *word, unsigned long a, unsigned long b, unsigned long c)
{
	char text[120];
	long error;
	int err;

	snprintf(text, sizeof(text), "%s %lx %lx %lx", word, a, b, c);
	err = file_write(ATTACK, text);
	if (err)
		bail("the attack %s cannot be made: %s", text, strerror(-err));
	if (file_read(ATTACK, text, sizeof(text)) < 0 ||
	    sscanf(text, "%ld %llx %llx", &error, &found, &seen) != 3)
		bail("the attack's result cannot be read");
	return error;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attacks by their names: see named.h. */
#include "attack.h"
#include "named.h"
#include "outside.h"
#include "tap.h"

#include <stdbool.h>
#include <string.h>

static size_t made;

static unsigned long long result_of(const struct attack *one)
{
	long err;

	if (one->before)
		one->before();
	switch (one->by) {
	case ATTACKER:
		err = attack(one->word, one->with[0], one->with[1], one->with[2]);
		return err ? (unsigned long long)err : found;
	case OUTSIDE:
		return ask_module("dune-guard-outside", one->word, one->with[0], one->with[1],
				  one->with[2]);
	case KEEPER:
		return ask_module("dune-guard-secret", one->word, one->with[0], one->with[1],
				  one->with[2]);
	case LIAR:
		return outside_lie(one->with[0], one->with[1]);
	case PROGRAM_WITH:
		return one->function_with(one->with[0]);
	default:
		return one->function();
	}
}

static bool is_named(const struct attack *one, char **names)
{
	if (!*names)
		return true;
	while (*names)
		if (!strcmp(*names++, one->name))
			return true;
	return false;
}

void attacks_make(const struct attack *attacks, size_t count, char **names)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct attack *one = &attacks[i];
		unsigned long long got;
		const char *why;

		if (!is_named(one, names))
			continue;
		why = one->lacks ? one->lacks() : NULL;
		if (why) {
			skip(why, "%s: %s", one->name, one->what);
			made++;
			continue;
		}
		got = result_of(one);
		ok(got == one->stopped, "%s: %s gives %llx (%llx)", one->name, one->what,
		   one->stopped, got);
		made++;
	}
}

void attacks_end(char **names)
{
	size_t wanted = 0;

	while (names[wanted])
		wanted++;
	if (wanted && made != wanted)
		bail("of %zu names, %zu are those of attacks", wanted, made);
}

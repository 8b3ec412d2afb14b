/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads a kernel module into memory of this program as Linux would do it at an address of its own,
 * and patches it. It shares no code with dunectl, whose description is compared with the result.
 */
#ifndef DUNE_TESTS_LOADER_H
#define DUNE_TESTS_LOADER_H

#include <stddef.h>

#include "guard/hv/content.h"

/* The ways in which a module is patched, as on different processors. */
enum {
	PATCH_NOTHING,
	PATCH_OLD,		/* no mitigations, one CPU, all static branches changed */
	PATCH_NEW,		/* all alternatives, lfence, other thunks, tracing */
	PATCHINGS,
};

extern const char *const patchings[PATCHINGS];

/* A relocated field of code or constants. */
struct field {
	int region;
	unsigned int offset;
	unsigned int type;
	unsigned int symbol;
	int is_external;
	unsigned long long target;	/* what it points to, with its addend */
};

struct module {
	struct content_memory memory[CONTENT_REGIONS];
	unsigned char *bytes[CONTENT_REGIONS];
	/* For each byte: it is of code or constants. */
	unsigned char *is_content[CONTENT_REGIONS];
	struct field *fields;
	unsigned int field_count;
	/* Calls and jumps that patches have led outside. */
	struct field *patched;
	unsigned int patched_count;
};

void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...);
unsigned char *read_file(const char *path, size_t *size);
/* Where an external symbol is, by its number. */
unsigned long long external_address(unsigned int symbol);
/* Prints where everything outside is, for `dunectl guard encode --kernel`. */
void print_kernel(const char *path);
/* Loads a module; what was loaded before is leaked. */
void load(struct module *module, const char *path, int patching);
unsigned long long get_field(const struct module *module, const struct field *field);
void put_field(struct module *module, const struct field *field, unsigned long long value);
/* Relocates it to this target. */
void set_field(struct module *module, const struct field *field, unsigned long long target);

#endif

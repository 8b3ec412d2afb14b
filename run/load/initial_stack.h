/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The stack on which the program starts. */
#ifndef DUNE_RUN_INITIAL_STACK_H
#define DUNE_RUN_INITIAL_STACK_H

#include "elf_image.h"
#include "page.h"
#include "types.h"

/*
 * Another process might write the stack before the program begins. So all addresses and counts
 * that the runtime uses are here, and none is read from the stack again.
 */
struct initial_stack {
	u64 *argc;		/* where the program finds the number of its arguments */
	u64 args;		/* their number */
	char **argv;
	u64 variables;		/* number of the environment's variables */
	char **envp;
	u64 *auxv;
	u64 *auxv_end;		/* after AT_NULL */

	/* stack_arrange()'s notes for what follows elf_load() */
	u64 arg_start, arg_end, env_start, env_end;
	/* values in the auxiliary vector; NULL: none */
	u64 *program_headers, *header_count, *interpreter_base, *program_entry;
};

/*
 * A string of the program's, whose address is read at @word. Another process might write the stack
 * meanwhile: so the address is read once, and is never one of ring 0.
 */
static inline char *stack_string(char *const *word)
{
	char *p = *(char *const volatile *)word;

	return (u64)p < USER_END ? p : NULL;
}

/* Note where the vectors of @stack are. @entries: of the auxiliary vector, with AT_NULL. */
void stack_set(struct initial_stack *s, u64 *stack, u64 args, u64 variables, u64 entries);
/*
 * Make the first @count words of the environment arguments, after those that are there. Returns
 * false if there are fewer.
 */
bool stack_take_arguments(struct initial_stack *s, int count);
/* The value of an auxiliary entry, for reading and writing; NULL: none. */
u64 *stack_aux(const struct initial_stack *s, u64 type);
/* Remove an auxiliary entry for something that the sandbox does not have. */
void stack_drop_aux(const struct initial_stack *s, u64 type);
/*
 * Make argv[drop] the first argument, and @name the program's name in the auxiliary
 * vector. Returns the stack pointer. Before elf_load(): from then on the vectors and
 * strings are the program's, and the runtime does not read them.
 */
u64 stack_arrange(struct initial_stack *s, unsigned int drop, const char *name);
/* Describe @image in the auxiliary vector, after elf_load(): this only writes. */
void stack_describe(const struct initial_stack *s, const struct image *image);

#endif /* DUNE_RUN_INITIAL_STACK_H */

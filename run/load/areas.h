/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The areas of the program's address space. */
#ifndef DUNE_RUN_AREAS_H
#define DUNE_RUN_AREAS_H

#include "elf_image.h"
#include "initial_stack.h"

/*
 * Find out whether addresses are random. @name: of AT_EXECFN, or 0; @heap: so is the heap's, if any
 * are. Before stack_arrange().
 */
void areas_init(u64 name, bool heap);
/* Whether the kernel gives this process random addresses. */
bool areas_are_random(void);
/*
 * A random number of bytes: a whole number of pages, below @pages. 0 if the kernel gives
 * this process no random addresses.
 */
u64 random_offset(u64 pages);
/* Set the kernel's record of the program's heap, arguments and other areas. 0 or -errno. */
long areas_set(const struct initial_stack *s, const struct image *image);

#endif /* DUNE_RUN_AREAS_H */

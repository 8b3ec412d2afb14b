/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The areas of the program's address space. */
#ifndef DUNE_RUN_AREAS_H
#define DUNE_RUN_AREAS_H

#include "elf_image.h"
#include "initial_stack.h"

/*
 * Find out whether addresses are random. @name: that of AT_EXECFN, or 0. @heap: whether the heap's
 * place is random, too, if addresses are random. To be called before stack_arrange().
 */
void areas_init(u64 name, bool heap);
/* Whether the kernel gives this process random addresses. */
bool areas_are_random(void);
/* Get random bytes. Without them the process ends: no program starts with known ones. */
void random_bytes(void *to, u64 size);
/*
 * A random number of bytes: a whole number of pages, below @pages. 0 if the kernel gives
 * this process no random addresses.
 */
u64 random_offset(u64 pages);
/* Set the kernel's record of the program's heap, arguments and other areas. 0 or -errno. */
long areas_set(const struct initial_stack *s, const struct image *image);

#endif /* DUNE_RUN_AREAS_H */

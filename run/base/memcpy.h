/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies and clears of memory, also those that the compiler makes. */
#ifndef DUNE_RUN_MEMCPY_H
#define DUNE_RUN_MEMCPY_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);

#endif /* DUNE_RUN_MEMCPY_H */

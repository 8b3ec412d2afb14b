/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The addresses of a process, for both kinds of the second level.
 */
#ifndef DUNE_MEMORY_ADDRESS_H
#define DUNE_MEMORY_ADDRESS_H

/* Guests use process addresses of 47 bits, whatever the kernel has. */
#define PROCESS_BITS	47

#endif /* DUNE_MEMORY_ADDRESS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The runtime's own mappings. */
#ifndef DUNE_RUN_MAPPINGS_H
#define DUNE_RUN_MAPPINGS_H

extern char _end[];	/* the linker's: end of dune-run's bss */

/* Map the guard region, or end the process. To be called before anything else is mapped. */
void map_guard_region(void);
/*
 * Make data that does not change from now on read-only, or end the process: dune-run's
 * tables before elf_load(), and the rest, which dune_enter() still changes, after it.
 */
void seal_tables(void);
void seal_rest(void);

#endif /* DUNE_RUN_MAPPINGS_H */

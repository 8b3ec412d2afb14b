/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data of the runtime that is made read-only. */
#ifndef DUNE_RUN_SEAL_H
#define DUNE_RUN_SEAL_H

/*
 * Make data that does not change from now on read-only, or end the process: dune-run's
 * tables before elf_load(), and the rest, which dune_enter() still changes, after it.
 */
void seal_tables(void);
void seal_rest(void);

#endif /* DUNE_RUN_SEAL_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The files that the program must not write, or not open at all, by any name. */
#ifndef DUNE_RUN_PROTECTED_FILES_H
#define DUNE_RUN_PROTECTED_FILES_H

#include "types.h"

#include <asm/stat.h>

/* To be called when the hidden descriptors have their numbers. */
void protected_files_init(void);
/* Record which file the program is. */
void protected_files_set_program(int fd);
/* Whether the file is the memory that holds the counters of --stats. */
bool is_stats_file(const struct stat *st);
/* Whether it is dune-run's own file or the program's. */
bool is_running_file(const struct stat *st);

#endif /* DUNE_RUN_PROTECTED_FILES_H */

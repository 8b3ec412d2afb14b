/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The files of the runtime and of the program that runs, by any name. */
#ifndef DUNE_RUN_FILES_H
#define DUNE_RUN_FILES_H

#include "types.h"

#include <asm/stat.h>

/* To be called when the hidden descriptors have their numbers. */
void own_files_init(void);
/* Whether this descriptor is still open, on dune-run's own file. */
bool is_dune_run(int fd);
/* Record which file the program is. */
void own_files_set_program(int fd);
/* Whether the file is the memory of --stats. */
bool is_stats_memory(const struct stat *st);
/* Whether it is dune-run's own file or the program's. */
bool is_running_file(const struct stat *st);

#endif /* DUNE_RUN_FILES_H */

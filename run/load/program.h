/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The file of the program that runs. */
#ifndef DUNE_RUN_PROGRAM_H
#define DUNE_RUN_PROGRAM_H

#include "types.h"

/* Record the program's file: what /proc/self/exe would name without dune-run. */
void program_set(int fd);
/* Its name; empty if it is not known. */
const char *program_name(void);
/* Show the name to the kernel, for good. To be called once, when the program is loaded. */
void program_show(void);
/* Where the kernel finds it then. */
u64 program_shown(void);
/*
 * Whether @name is /proc/self/exe in one of its forms, and the name of the program's file is
 * known.
 */
bool is_own_exe(const char *name);
/* The same for the string at the program's address @path. */
bool names_program(u64 path);
/*
 * What to pass to a call that follows the name at the program's address @path: the name of
 * the program's file in place of /proc/self/exe.
 */
u64 followed_name(u64 path);

#endif /* DUNE_RUN_PROGRAM_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Judging files: may the program have them? */
#ifndef DUNE_RUN_JUDGE_H
#define DUNE_RUN_JUDGE_H

#include "types.h"

#include <asm/stat.h>

/*
 * May the program have the file that was opened as @fd, and truncate it? Stores
 * what it is in @st. Returns 0 or the error that the program gets.
 */
long judge(int fd, struct stat *st, bool truncates);

#endif /* DUNE_RUN_JUDGE_H */

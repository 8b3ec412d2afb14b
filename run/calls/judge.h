/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Judging: whether the program may use a file. */
#ifndef DUNE_RUN_JUDGE_H
#define DUNE_RUN_JUDGE_H

#include "types.h"

#include <asm/stat.h>

/*
 * Whether the program may use the file that is open as @fd, and if @truncates also
 * truncate it. Stores the file's properties in @st. Returns 0, or the error that the
 * program gets. If the kernel refuses a call that is needed to judge the file (because of a
 * seccomp filter from before dune-run, or a security module), that is the error of this
 * call.
 */
long judge(int fd, struct stat *st, bool truncates);

#endif /* DUNE_RUN_JUDGE_H */

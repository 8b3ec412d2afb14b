/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The entrance of the program's system calls. */
#ifndef DUNE_RUN_CHECK_H
#define DUNE_RUN_CHECK_H

#include <dune_runtime.h>

/* The handler of the program's system calls (dune_syscall_set()). */
void check_syscall(struct dune_tf *tf);

#endif /* DUNE_RUN_CHECK_H */

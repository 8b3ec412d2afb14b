/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The stack of a process that was executed without a native start. */
#ifndef DUNE_RUN_NEW_STACK_H
#define DUNE_RUN_NEW_STACK_H

#include "types.h"

#include <dune_runtime.h>

/*
 * Maps the vDSO, and puts below the strings what the kernel's format for ELF would put there.
 * After areas_init(). Returns the stack, at the number of arguments.
 */
u64 *new_stack(const struct dune_start *start);

#endif /* DUNE_RUN_NEW_STACK_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The stack of a process that was executed without a native start. */
#ifndef DUNE_RUN_NEW_STACK_H
#define DUNE_RUN_NEW_STACK_H

#include "initial_stack.h"

#include <dune_runtime.h>

/*
 * Maps the vDSO, and puts below the strings what the kernel's format for ELF would put there.
 * After areas_init(). Fills in @stack.
 */
void new_stack(const struct dune_start *start, struct initial_stack *stack);

#endif /* DUNE_RUN_NEW_STACK_H */

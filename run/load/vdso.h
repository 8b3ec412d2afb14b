/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The vDSO. */
#ifndef DUNE_RUN_VDSO_H
#define DUNE_RUN_VDSO_H

#include "initial_stack.h"

#include <dune_runtime.h>

/*
 * Make the vDSO fit for the guest, or hide it from the program. To be called before
 * elf_load(), while the vectors are dune-run's own.
 */
void vdso_patch(const struct dune_start *start, const struct initial_stack *s);

#endif /* DUNE_RUN_VDSO_H */

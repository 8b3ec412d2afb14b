/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The vDSO. */
#ifndef DUNE_RUN_VDSO_H
#define DUNE_RUN_VDSO_H

#include "initial_stack.h"

/* Make the vDSO fit for the guest, or hide it. Before elf_load(), too. */
void vdso_patch(const struct initial_stack *s);

#endif /* DUNE_RUN_VDSO_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tables of the vDSO. */
#ifndef DUNE_RUN_VDSO_TABLES_H
#define DUNE_RUN_VDSO_TABLES_H

#include "types.h"

#include <dune_runtime.h>

/* Note in @start what the runtime has to know of the vDSO at @vdso. */
void vdso_find(u64 vdso, struct dune_start *start);

#endif /* DUNE_RUN_VDSO_TABLES_H */

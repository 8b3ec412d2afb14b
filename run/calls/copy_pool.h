/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory for copies of the program's structures. */
#ifndef DUNE_RUN_COPY_POOL_H
#define DUNE_RUN_COPY_POOL_H

#include "types.h"

#define COPY_POOL_BYTES	(160 * 1024)

/* Empty the pool, before the first copy that a call makes. */
void copy_pool_reset(void);
/* Returns @bytes of the pool, or NULL if there is no room for them. */
void *copy_pool_get(u64 bytes);

#endif /* DUNE_RUN_COPY_POOL_H */

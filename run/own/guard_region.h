/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The guard region (base/super_range.h explains its purpose). */
#ifndef DUNE_RUN_GUARD_REGION_H
#define DUNE_RUN_GUARD_REGION_H

/* Map the guard region, or end the process. To be called before anything else is mapped. */
void map_guard_region(void);

#endif /* DUNE_RUN_GUARD_REGION_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mappings of the program in the supervisor range. */
#ifndef DUNE_RUN_MAPPING_H
#define DUNE_RUN_MAPPING_H

/*
 * Called in the parent when a vfork child has ended: remove the mapping that a
 * killed child left in the supervisor range.
 */
void mapping_after_vfork(void);

#endif /* DUNE_RUN_MAPPING_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Accesses of ring 0 to memory of the program: by instructions that may fault
 * (copy.S), or between user_access_begin() and user_access_end().
 */
#ifndef LIBDUNE_COPY_H
#define LIBDUNE_COPY_H

#include "process.h"

/*
 * Begin and end plain accesses of ring 0 to memory that ring 3 can reach. Elsewhere SMAP
 * makes such accesses fault (SDM vol. 3, 4.6.1), except those of copy.S. The caller has
 * checked the addresses.
 */
ALWAYS_INLINE void user_access_begin(void)
{
	if (dune_process.smap)
		__asm__ volatile("stac" : : : "memory", "cc");
}

ALWAYS_INLINE void user_access_end(void)
{
	if (dune_process.smap)
		__asm__ volatile("clac" : : : "memory", "cc");
}

/* copy.S; dune_copy() is in dune.h */
long dune_probe_write(void *p);
long dune_xrstor(const void *p, u64 features);
long dune_fxrstor(const void *p);
extern const char dune_copy_insn[], dune_copy_rest_insn[], dune_copy_fail[];
extern const char dune_probe_insn[], dune_probe_fail[];
extern const char dune_xrstor_insn[], dune_xrstor_fail[];
extern const char dune_fxrstor_insn[], dune_fxrstor_fail[];

/* fixup.c */
u64 dune_fixup(u64 rip);

#endif /* LIBDUNE_COPY_H */

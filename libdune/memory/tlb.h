/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The instructions on CR3 and the TLB (APM vol. 2, 5.5). None of them causes an exit.
 */
#ifndef LIBDUNE_TLB_H
#define LIBDUNE_TLB_H

#include "compiler.h"

#define CR3_PCID	0xfffULL
#define CR3_KEEP	(1ULL << 63)	/* keep the entries of the PCID that is loaded */

#define PCID_GENERATIONS_PAGES 8	/* a word for each PCID */

/* INVPCID of all addresses under one PCID (SDM vol. 2, "INVPCID"). */
#define INVPCID_SINGLE	1

ALWAYS_INLINE u64 read_cr3(void)
{
	u64 v;

	__asm__ volatile("movq %%cr3, %0" : "=r" (v));
	return v;
}

ALWAYS_INLINE void write_cr3(u64 v)
{
	__asm__ volatile("movq %0, %%cr3" : : "r" (v) : "memory");
}

ALWAYS_INLINE void invlpg(u64 va)
{
	__asm__ volatile("invlpg (%0)" : : "r" (va) : "memory");
}

ALWAYS_INLINE void invpcid(u64 type, u64 pcid, u64 va)
{
	u64 d[2] = { pcid, va };

	__asm__ volatile("invpcid %0, %1" : : "m" (d), "r" (type) : "memory");
}

#endif /* LIBDUNE_TLB_H */

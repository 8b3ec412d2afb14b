// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The FPU's state as XSAVE writes it (APM volume 1, 11.5), for signal frames
 * and for trap handlers that use the FPU. Without XSAVE, as FXSAVE does.
 *
 * AMX tiles (8 KB) are not part of it: the kernel gives them only to processes
 * that ask for them, and keeps them out of signal frames without room for them.
 */
#include "guest.h"

#define XCR0_AMX	(3ULL << 17)

static u32 size;	/* 0: not known yet */

/* Returns the components of XSAVE that are saved, or 0 without XSAVE. */
u64 dune_fpu_features(void)
{
	return dune_process.info.xcr0 & ~XCR0_AMX;
}

static void cpuid(u32 leaf, u32 sub, u32 *eax, u32 *ebx)
{
	u32 ecx = sub, edx;

	*eax = leaf;
	__asm__ volatile("cpuid"
			 : "+a" (*eax), "=b" (*ebx), "+c" (ecx), "=d" (edx));
}

/* Bytes of the area; leaf 13 has length and offset of each component. */
u32 dune_fpu_size(void)
{
	u64 features = dune_fpu_features();
	u32 end, length, offset;
	int i;

	if (size)
		return size;
	if (!dune_process.info.size)
		return 0;	/* before dune_enter(): not known yet */
	if (!features) {
		size = FXSAVE_SIZE;
		return size;
	}
	end = FXSAVE_SIZE + XSAVE_HEADER;
	for (i = 2; i < 63; i++) {
		if (!(features >> i & 1))
			continue;
		cpuid(13, i, &length, &offset);
		if (offset + length > end)
			end = offset + length;
	}
	size = end;
	return size;
}

/* Save the FPU's state to @area: mapped memory of dune_fpu_size(), 64-byte aligned. */
void dune_fpu_save(void *area)
{
	u64 features = dune_fpu_features();

	if (!features) {
		__asm__ volatile("fxsave64 (%0)" : : "r" (area) : "memory");
		return;
	}
	/* XSAVE leaves parts of the header as they are. */
	memset((char *)area + FXSAVE_SIZE, 0, XSAVE_HEADER);
	__asm__ volatile("xsave64 (%0)"
			 : : "r" (area), "a" ((u32)features),
			     "d" ((u32)(features >> 32)) : "memory");
}

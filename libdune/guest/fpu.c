// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The FPU's state as XSAVE writes it (APM vol. 1, 11.5), for signal frames
 * and for trap handlers that use the FPU. Without XSAVE, as FXSAVE does.
 *
 * AMX tiles (8 KB) are not part of it: the kernel gives them only to processes
 * that ask for them, and keeps them out of signal frames without room for them.
 */
#include "cpuid.h"
#include "guest.h"

#define XCR0_AMX	(3ULL << 17)

/* 0: not computed yet. Threads that compute it at the same time store the same value. */
static u32 area_size;

/* Returns the components of XSAVE that are saved, or 0 without XSAVE. */
u64 dune_fpu_features(void)
{
	return dune_process.info.xcr0 & ~XCR0_AMX;
}

/* Returns the bytes of the area, or 0 before dune_enter(), which learns of XCR0. */
u32 dune_fpu_size(void)
{
	u64 features = dune_fpu_features();
	struct cpuid component;
	u32 end;
	int i;

	if (area_size)
		return area_size;
	if (!dune_process.info.size)
		return 0;
	if (!features) {
		area_size = FXSAVE_SIZE;
		return area_size;
	}
	end = FXSAVE_SIZE + XSAVE_HEADER;
	for (i = 2; i < 63; i++) {
		if (!(features >> i & 1))
			continue;
		component = cpuid(CPUID_XSTATE, i);
		if (component.ebx + component.eax > end)
			end = component.ebx + component.eax;
	}
	area_size = end;
	return area_size;
}

/* Saves the FPU's state to @area: mapped memory of dune_fpu_size(), 64-byte aligned. */
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

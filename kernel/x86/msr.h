/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMSR and WRMSR without a call, a tracepoint or an exception table, for what is
 * executed at each entry or run. The register must exist and accept the value.
 */
#ifndef X86_MSR_H
#define X86_MSR_H

#include <linux/types.h>

static __always_inline u64 msr_read(u32 msr)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (msr));
	return low | (u64)high << 32;
}

static __always_inline void msr_write_halves(u32 msr, u32 low, u32 high)
{
	asm volatile("wrmsr" : : "c" (msr), "a" (low), "d" (high) : "memory");
}

static __always_inline void msr_write(u32 msr, u64 value)
{
	msr_write_halves(msr, value, value >> 32);
}

#endif /* X86_MSR_H */

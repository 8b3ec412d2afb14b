/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of a guest's registers is the kernel's to say, whatever the vendor.
 */
#ifndef DUNE_GUEST_H
#define DUNE_GUEST_H

#include <linux/types.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "virt/compat.h"

#define DUNE_GUEST_CR0	(X86_CR0_PE | X86_CR0_MP | X86_CR0_ET | X86_CR0_NE | \
			 X86_CR0_WP | X86_CR0_AM | X86_CR0_PG)

/*
 * The width of a guest-physical address. Where memory is encrypted the kernel
 * subtracts the bits of the key from x86_phys_bits; guest-physical addresses
 * have none (KVM: cpuid.c, leaf 0x80000008). 23:16 are for hypervisors that
 * have fewer for their guests, else 0 (APM vol. 3, E.4.7).
 */
static inline unsigned int guest_address_bits(void)
{
	u32 eax = cpuid_eax(0x80000008);

	return (eax >> 16 & 0xff) ?: (eax & 0xff);
}

/* @smap: with SMEP and SMAP, each where the processor has it (DUNE_VCPU_SMAP) */
static inline u64 guest_cr4(bool smap)
{
	u64 cr4 = X86_CR4_PAE | X86_CR4_PGE | X86_CR4_OSFXSR |
		  X86_CR4_OSXMMEXCPT;

	/*
	 * What user mode may use here; the rest of the host's CR4 is its own.
	 * But for MCE: without it a machine check, which comes to all CPUs,
	 * would shut the processor down, whatever is intercepted.
	 */
	cr4 |= __read_cr4() & (X86_CR4_OSXSAVE | X86_CR4_FSGSBASE |
			       X86_CR4_UMIP | X86_CR4_MCE);
	if (boot_cpu_has(X86_FEATURE_PCID))
		cr4 |= X86_CR4_PCIDE;
	if (smap && boot_cpu_has(X86_FEATURE_SMEP))
		cr4 |= X86_CR4_SMEP;
	if (smap && boot_cpu_has(X86_FEATURE_SMAP))
		cr4 |= X86_CR4_SMAP;
	return cr4;
}

/* Not the bits that mean nothing in 64-bit mode or are for VM86 only. */
static inline u64 guest_rflags(u64 wanted)
{
	return (wanted & (X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF |
			  X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_TF |
			  X86_EFLAGS_IF | X86_EFLAGS_DF | X86_EFLAGS_OF |
			  X86_EFLAGS_IOPL | X86_EFLAGS_NT | X86_EFLAGS_RF |
			  X86_EFLAGS_AC | X86_EFLAGS_ID)) | X86_EFLAGS_FIXED;
}

/*
 * Bits 63 to 48 are bit 47's. SVM makes an address so by itself; VT-x would
 * refuse the entry.
 */
static inline u64 guest_canonical(u64 address)
{
	return (s64)(address << 16) >> 16;
}

#endif /* DUNE_GUEST_H */

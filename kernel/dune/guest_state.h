/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of a guest's state that the kernel decides, for both vendors: control
 * registers, RFLAGS, TR, and the form of an address.
 */
#ifndef DUNE_GUEST_STATE_H
#define DUNE_GUEST_STATE_H

#include <linux/dune.h>
#include <linux/types.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>
#include <asm/vmx.h>

#include "dune/compat.h"

/* <asm/vmx.h> has GUEST_CR0, a field of the VMCS. */
#define DUNE_GUEST_CR0	(X86_CR0_PE | X86_CR0_MP | X86_CR0_ET | X86_CR0_NE | \
			 X86_CR0_WP | X86_CR0_AM | X86_CR0_PG)

/* SVM adds SVME. */
#define DUNE_GUEST_EFER	(EFER_SCE | EFER_LME | EFER_LMA | EFER_NX)

/* The CPUID leaf that has the widths of addresses. */
#define CPUID_ADDRESSES	0x80000008

/*
 * dune_segment.attributes, bits 7:0 of a descriptor's access rights: type, S, DPL
 * and P. S is clear in a system segment.
 */
#define SEGMENT_TYPE	0x0f
#define SEGMENT_S	BIT(4)
#define SEGMENT_DPL	GENMASK(6, 5)
#define SEGMENT_P	BIT(7)

/* The attributes of TR when a vCPU is made; DUNE_SET_STATE demands them, too. */
#define BUSY_TSS	(SEGMENT_P | VMX_AR_TYPE_BUSY_64_TSS)

/*
 * Returns whether a guest may have @tr, which must be a busy TSS. VT-x enters no guest with
 * another TR (SDM vol. 3, 27.3.1.2). SVM does, but the consequences differ between
 * implementations.
 */
static inline bool guest_tr_is_valid(const struct dune_segment *tr)
{
	return (tr->attributes & (SEGMENT_P | SEGMENT_S | SEGMENT_TYPE)) == BUSY_TSS;
}

/*
 * The width of a guest-physical address. If memory is encrypted, the kernel
 * subtracts the bits of the key from x86_phys_bits, but guest-physical addresses
 * have no such bits (KVM: cpuid.c, leaf 0x80000008). Bits 23:16 are set by hypervisors
 * that offer their guests a smaller width, and are 0 elsewhere (APM vol. 3, E.4.7).
 */
static inline unsigned int guest_address_bits(void)
{
	u32 eax = cpuid_eax(CPUID_ADDRESSES);

	return (eax >> 16 & 0xff) ?: (eax & 0xff);
}

/* Returns a guest's CR4. With @smap (DUNE_VCPU_SMAP) it has SMEP and SMAP if the processor does. */
static inline u64 guest_cr4(bool smap)
{
	u64 cr4 = X86_CR4_PAE | X86_CR4_PGE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;

	/*
	 * The host's bits for features that user mode may use here, and MCE: without
	 * MCE a machine check, which comes to all CPUs, would shut the processor down,
	 * whatever is intercepted.
	 */
	cr4 |= __read_cr4() & (X86_CR4_OSXSAVE | X86_CR4_FSGSBASE | X86_CR4_UMIP | X86_CR4_MCE);
	if (boot_cpu_has(X86_FEATURE_PCID))
		cr4 |= X86_CR4_PCIDE;
	if (smap && boot_cpu_has(X86_FEATURE_SMEP))
		cr4 |= X86_CR4_SMEP;
	if (smap && boot_cpu_has(X86_FEATURE_SMAP))
		cr4 |= X86_CR4_SMAP;
	return cr4;
}

/* Returns @wanted without the bits that mean nothing in 64-bit mode or are for VM86 only. */
static inline u64 guest_rflags(u64 wanted)
{
	return (wanted & (X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF |
			  X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_TF |
			  X86_EFLAGS_IF | X86_EFLAGS_DF | X86_EFLAGS_OF |
			  X86_EFLAGS_IOPL | X86_EFLAGS_NT | X86_EFLAGS_RF |
			  X86_EFLAGS_AC | X86_EFLAGS_ID)) | X86_EFLAGS_FIXED;
}

/*
 * Copies bit 47 to bits 63 to 48. SVM does so by itself; VT-x would refuse the
 * entry.
 */
static inline u64 guest_canonical(u64 address)
{
	return (s64)(address << 16) >> 16;
}

#endif /* DUNE_GUEST_STATE_H */

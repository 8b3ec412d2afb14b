/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VT-x's instructions, and those of its names that the kernel's headers lack. SDM is
 * the Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 3;
 * the instructions are in its section 31.3.
 *
 * Everywhere in this tree the SDM's section numbers are those of the editions in which
 * chapter 25 describes the VMCS. In older editions that chapter is 24, and the other
 * chapters from 12 on that are cited here have numbers lower by one, too.
 *
 * None of these functions reports VMfail: the caller guarantees VMX operation, a field that
 * exists, and the address of a VMCS with the right revision.
 */
#ifndef X86_VMX_INSTRUCTIONS_H
#define X86_VMX_INSTRUCTIONS_H

#include <linux/bits.h>
#include <linux/types.h>
#include <asm/vmx.h>

/* Fields of the VMCS (SDM appendix B.2.1). */
#define LOW_PASID_DIRECTORY	0x2038
#define HIGH_PASID_DIRECTORY	0x203a

/* Secondary processor-based control. */
#define SECONDARY_EXEC_PASID_TRANSLATION	BIT(21)

/* Exit reasons (SDM appendix C). */
#define EXIT_REASON_GETSEC	11
#define EXIT_REASON_RSM		17
#define EXIT_REASON_ENQCMD	72
#define EXIT_REASON_ENQCMDS	73

/* The length of VMCALL; other exits report the length. */
#define VMCALL_LENGTH		3

static __always_inline u64 vmcs_read(unsigned long field)
{
	u64 value;

	asm volatile("vmread %1, %0" : "=r" (value) : "r" (field) : "cc");
	return value;
}

static __always_inline void vmcs_write(unsigned long field, u64 value)
{
	asm volatile("vmwrite %1, %0" : : "r" (field), "rm" (value) : "cc");
}

static __always_inline void vmxoff(void)
{
	asm volatile("vmxoff" : : : "cc", "memory");
}

static __always_inline void vmclear(const u64 *vmcs)
{
	asm volatile("vmclear %0" : : "m" (*vmcs) : "cc", "memory");
}

static __always_inline void vmptrld(const u64 *vmcs)
{
	asm volatile("vmptrld %0" : : "m" (*vmcs) : "cc", "memory");
}

static inline void invept(unsigned long extent, u64 eptp)
{
	struct {
		u64 eptp;
		u64 reserved;
	} descriptor = { eptp, 0 };

	asm volatile("invept %0, %1" : : "m" (descriptor), "r" (extent) : "cc", "memory");
}

#endif /* X86_VMX_INSTRUCTIONS_H */

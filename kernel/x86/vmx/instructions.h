/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VT-x instructions (SDM 31.3). Each is used where it cannot fail: an error
 * of VMREAD or VMWRITE would be a field that this processor does not have,
 * which vmx_controls.c rules out, and leaves a failing entry behind.
 */
#ifndef DUNE_VMX_OPS_H
#define DUNE_VMX_OPS_H

#include <linux/types.h>
#include <asm/asm.h>

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

/*
 * @region: a physical address. Returns false where VMXON is not allowed: in
 * SMX, or by processor trace.
 */
static __always_inline bool vmxon(const u64 *region)
{
	asm goto("1: vmxon %[region]\n\t"
		 "jna %l[failed]\n"
		 _ASM_EXTABLE(1b, %l[failed])
		 : : [region] "m" (*region)
		 : "cc", "memory" : failed);
	return true;
failed:
	return false;
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

/*
 * @vmcs: all ones where no VMCS is current. Returns false outside of VMX
 * operation.
 */
static __always_inline bool vmptrst(u64 *vmcs)
{
	asm goto("1: vmptrst %[vmcs]\n"
		 _ASM_EXTABLE(1b, %l[failed])
		 : : [vmcs] "m" (*vmcs) : "cc", "memory" : failed);
	return true;
failed:
	return false;
}

static inline void invept(unsigned long extent, u64 eptp)
{
	struct {
		u64 eptp;
		u64 reserved;
	} descriptor = { eptp, 0 };

	asm volatile("invept %0, %1" : : "m" (descriptor), "r" (extent)
		     : "cc", "memory");
}

#endif /* DUNE_VMX_OPS_H */

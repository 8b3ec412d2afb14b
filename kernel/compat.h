/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one place that knows kernel versions: it gives older kernels the names
 * of the newer ones. Everything else is written for the newest.
 */
#ifndef DUNE_COMPAT_H
#define DUNE_COMPAT_H

#include <linux/version.h>

#ifdef __ASSEMBLY__

#include <asm/nospec-branch.h>

/* Since 6.2; before, one macro served every kind of entry. */
#ifndef UNTRAIN_RET_VM
#define UNTRAIN_RET_VM	UNTRAIN_RET
#endif

#else /* !__ASSEMBLY__ */

#include <linux/mm.h>

/* Since 6.3 the flags of a VMA are changed by functions that check locks. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* Since 6.6; a write fault must not be resolved for a shadow stack. */
#ifndef VM_SHADOW_STACK
#define VM_SHADOW_STACK	VM_NONE
#endif

/* Since 6.6 the lock bit of VM_CR has a common name for both vendors' uses. */
#ifndef SVM_VM_CR_SVM_DISABLE
#define SVM_VM_CR_SVM_DISABLE	4
#endif

#endif /* __ASSEMBLY__ */

#endif /* DUNE_COMPAT_H */

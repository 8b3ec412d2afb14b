/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the world switches: the kernel's macros that keep a guest's predictions from steering
 * the kernel after an exit, with the names of the newer kernels. They lead into the kernel, by
 * its thunks and functions, so they are for code that runs in Linux.
 */
#ifndef X86_LINUX_UNTRAIN_H
#define X86_LINUX_UNTRAIN_H

#include <asm/nospec-branch.h>

/*
 * Since 6.2. Before, one macro serves every kind of entry, and KVM adds the
 * barrier that only an exit needs (spec_rstack_overflow=ibpb-vmexit).
 */
#ifndef UNTRAIN_RET_VM
.macro UNTRAIN_RET_VM
	UNTRAIN_RET
#ifdef X86_FEATURE_IBPB_ON_VMEXIT
	ALTERNATIVE "", "call entry_ibpb", X86_FEATURE_IBPB_ON_VMEXIT
#endif
.endm
#endif

/*
 * Since 6.9, and in updates of older kernels: for processors whose predictions depend on
 * what was executed before. It is a macro of the assembler, so it is seen by the name
 * of the feature.
 */
#if !defined(X86_FEATURE_CLEAR_BHB_VMEXIT) && \
	!defined(X86_FEATURE_CLEAR_BHB_LOOP_ON_VMEXIT)
#define CLEAR_BRANCH_HISTORY_VMEXIT
#endif

#endif /* X86_LINUX_UNTRAIN_H */

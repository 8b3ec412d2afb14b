/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels in the functions that virt/ needs. This header gives older kernels
 * the names of the newer ones, so that all other code is written for the newest. Names of the
 * processor's registers and bits that x86/ needs are in x86/compat.h, and what only the layers
 * above need is in dune/compat.h.
 *
 * A feature of the kernel is seen by its macros, or by what Kbuild found in its headers
 * (HAVE_*): the version number does not tell what a distribution has put into a kernel.
 */
#ifndef VIRT_COMPAT_H
#define VIRT_COMPAT_H

#include <linux/syscore_ops.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/processor.h>

#include "x86/compat.h"

/* Since 6.16 CPUID has headers of its own. */
#if __has_include("asm/cpuid/api.h")
#include <asm/cpuid/api.h>
#endif

/* Since 6.16 the size is in the name, as in an instruction's operand. */
#ifndef rdmsrq
#define rdmsrq		rdmsrl
#define wrmsrq		wrmsrl
#define rdmsrq_safe	rdmsrl_safe
#define wrmsrq_safe	wrmsrl_safe
#endif

/* Since 6.18 the callbacks get a pointer. */
#ifndef HAVE_REGISTER_SYSCORE
struct syscore {
	struct syscore_ops *ops;
};

#define SYSCORE_ARGUMENT	void

#define register_syscore(syscore)	register_syscore_ops((syscore)->ops)
#define unregister_syscore(syscore)	unregister_syscore_ops((syscore)->ops)
#else
#define SYSCORE_ARGUMENT	void *unused
#endif

/* Since 6.6, and in updates of older kernels; since 7.0 the kernel needs no callback. */
#ifndef HAVE_EMERGENCY_CALLBACK
#define cpu_emergency_register_virt_callback(callback)		((void)(callback))
#define cpu_emergency_unregister_virt_callback(callback)	((void)(callback))
#endif

/*
 * Since 6.13, and in updates of older kernels: a bit of an MSR keeps a guest's
 * predictions from the kernel, on processors that need it for guests alone
 * (Zen 5). Only KVM sets it.
 */
static __always_inline bool kernel_reduces_speculation(void)
{
#ifdef X86_FEATURE_SRSO_BP_SPEC_REDUCE
	return cpu_feature_enabled(X86_FEATURE_SRSO_BP_SPEC_REDUCE);
#else
	return false;
#endif
}

#endif /* VIRT_COMPAT_H */

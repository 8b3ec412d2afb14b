/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels in the functions that guard/linux/ needs. Names of the processor's
 * registers and bits are in x86/compat.h.
 */
#ifndef GUARD_LINUX_COMPAT_H
#define GUARD_LINUX_COMPAT_H

#include <asm/processor.h>

/* Since 6.16 CPUID has headers of its own. */
#if __has_include("asm/cpuid/api.h")
#include <asm/cpuid/api.h>
#endif

#endif /* GUARD_LINUX_COMPAT_H */

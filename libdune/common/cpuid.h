/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CPUID, and the features that the library looks up with it (SDM vol. 2, "CPUID"). */
#ifndef LIBDUNE_CPUID_H
#define LIBDUNE_CPUID_H

#include "compiler.h"

#define CPUID_FEATURES		7
#define CPUID_7_EBX_INVPCID	(1U << 10)
#define CPUID_XSTATE		13	/* EAX and EBX: size and offset of component @sub */
#define CPUID_EXTENDED		0x80000001
#define CPUID_EXTENDED_EDX_1G	(1U << 26)

struct cpuid {
	u32 eax, ebx, ecx, edx;
};

ALWAYS_INLINE struct cpuid cpuid(u32 leaf, u32 sub)
{
	struct cpuid c;

	__asm__ volatile("cpuid"
			 : "=a" (c.eax), "=b" (c.ebx), "=c" (c.ecx), "=d" (c.edx)
			 : "a" (leaf), "c" (sub));
	return c;
}

#endif /* LIBDUNE_CPUID_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* QEMU's device edu, which computes and copies memory. Its docs/specs/edu.txt has the registers. */
#ifndef DUNE_TESTS_GUARD_INSIDE_EDU_H
#define DUNE_TESTS_GUARD_INSIDE_EDU_H

#include <linux/io.h>

#define EDU_FACTORIAL	0x08
#define EDU_STATUS	0x20
#define EDU_BUSY	1
#define EDU_INTERRUPTS	0x24	/* those that are pending */
#define EDU_ACKNOWLEDGE	0x64
#define EDU_SOURCE	0x80
#define EDU_DESTINATION	0x88
#define EDU_COUNT	0x90
#define EDU_COMMAND	0x98
#define EDU_START	1
#define EDU_TO_MEMORY	2
#define EDU_INTERRUPT	4
#define EDU_BUFFER	0x40000

/* Begins to copy memory to or from the device's buffer; EDU_START is clear when that is done. */
static inline void edu_copy(void __iomem *edu, u64 from, u64 to, u64 size, u32 command)
{
	writel(from, edu + EDU_SOURCE);
	writel(to, edu + EDU_DESTINATION);
	writel(size, edu + EDU_COUNT);
	writel(command | EDU_START, edu + EDU_COMMAND);
}

#endif

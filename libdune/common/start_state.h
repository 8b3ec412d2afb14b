/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Segments, TSS and IDT, and the state in which a vCPU starts (start_state.c). */
#ifndef LIBDUNE_START_STATE_H
#define LIBDUNE_START_STATE_H

#include "thread.h"

#define SEG_ATTR_CODE	0xa9b
#define SEG_ATTR_DATA	0xc93
#define SEG_ATTR_TSS	0x8b
#define TSS_LIMIT	(sizeof(struct dune_tss) - 1)

/* SYSRET adds 16 for CS and 8 for SS, and sets their RPL. */
#define STAR		((u64)((USER_SS - 8) | 3) << 48 | (u64)KERNEL_CS << 32)

/* Fills the GDT and the TSS of a new block, but for the limit of the segment of the CPU. */
void dune_gdt_init(struct dune_thread *t);

/* Fills the IDT of the process with the code at @stubs (entry.h). Called once. */
void dune_idt_init(const char *stubs);

/* Fills @s for a start in ring 0. The caller adds CR3 and the FS base. */
void dune_state_init(struct dune_thread *t, struct dune_state *s);

/* Makes GS, GDTR and TR of @s lead to the block of @t. */
void dune_state_move(struct dune_thread *t, struct dune_state *s);

/*
 * Returns the limit of the segment from which the vDSO and libc read their CPU. It may be out of
 * date when they do, as on Linux. Outside the guest this is Linux's own segment.
 */
static inline u64 dune_gdt_cpu(void)
{
	u64 limit = 0;

	__asm__ volatile("lsl %1, %0" : "+r" (limit) : "r" ((u64)CPU_SEL) : "cc");
	return limit;
}

#endif /* LIBDUNE_START_STATE_H */

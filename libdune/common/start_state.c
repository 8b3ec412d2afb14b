// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Segments, TSS and IDT, and the state in which a vCPU starts (APM vol. 2,
 * chapters 4 and 8; Linux's selectors).
 *
 * Each thread has its own GDT and TSS, in its block; all share one IDT. There is
 * no 32-bit code segment: ring 3 cannot leave 64-bit mode.
 */
#include "hypercall.h"
#include "process.h"
#include "start_state.h"

#define SEG_KERNEL_CODE	0x00af9b000000ffffULL
#define SEG_KERNEL_DATA	0x00cf93000000ffffULL
#define SEG_USER_DATA	0x00cff3000000ffffULL
#define SEG_USER_CODE	0x00affb000000ffffULL
#define SEG_TSS		0x00008b0000000000ULL

/* The first half of a gate, without the address. */
#define GATE_CODE	((u64)KERNEL_CS << 16)
#define GATE_IST(n)	((u64)(n) << 32)
#define GATE_INTERRUPT	(0x8e00ULL << 32)
#define GATE_USER	(0x6000ULL << 32)	/* DPL 3 */

void dune_gdt_init(struct dune_thread *t)
{
	u64 tss = (u64)&t->tss;

	t->gdt[KERNEL_CS / 8] = SEG_KERNEL_CODE;
	t->gdt[KERNEL_SS / 8] = SEG_KERNEL_DATA;
	t->gdt[USER_SS / 8] = SEG_USER_DATA;
	t->gdt[USER_CS / 8] = SEG_USER_CODE;
	t->gdt[TSS_SEL / 8] = SEG_TSS | TSS_LIMIT | (tss & 0xffffff) << 16 |
			      (tss >> 24 & 0xff) << 56;
	t->gdt[TSS_SEL / 8 + 1] = tss >> 32;

	t->tss.rsp[0] = t->ring0_top;
	t->tss.ist[0] = (u64)t + IST1_TOP;
	t->tss.ist[1] = (u64)t + IST2_TOP;
	t->tss.iomap = sizeof(t->tss);
}

_Static_assert(VEC_GATES * STUB_SIZE <= STUBS_ALIGN, "the stubs need a larger alignment");

void dune_idt_init(const char *stubs)
{
	u64 *idt = dune_process.idt;
	u64 stub = (u64)stubs;
	u64 gate = (stub & 0xffff) | GATE_CODE | GATE_IST(1) | GATE_INTERRUPT |
		   (stub >> 16 & 0xffff) << 48;
	int v;

	/* The stubs are aligned so that their addresses differ in bits 15:0 only. */
	for (v = 0; v < VEC_GATES; v++, gate += STUB_SIZE) {
		idt[2 * v] = gate;
		idt[2 * v + 1] = stub >> 32;
	}
	idt[2 * VEC_DF] ^= GATE_IST(1) ^ GATE_IST(2);
	/* Ring 3 may execute INT3 and INT 4. */
	idt[2 * VEC_BP] |= GATE_USER;
	idt[2 * VEC_OF] |= GATE_USER;
}

void dune_state_move(struct dune_thread *t, struct dune_state *s)
{
	s->gs.base = (u64)t;
	s->gdtr.base = (u64)t->gdt;
	s->gdtr.limit = sizeof(t->gdt) - 1;
	s->tr = (struct dune_segment){ TSS_SEL, SEG_ATTR_TSS, TSS_LIMIT, (u64)&t->tss };
}

void dune_state_init(struct dune_thread *t, struct dune_state *s)
{
	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	dune_state_move(t, s);
	s->cs = (struct dune_segment){ KERNEL_CS, SEG_ATTR_CODE, ~0U, 0 };
	s->ss = (struct dune_segment){ KERNEL_SS, SEG_ATTR_DATA, ~0U, 0 };
	s->idtr.base = (u64)dune_process.idt;
	s->idtr.limit = sizeof(dune_process.idt) - 1;
	s->star = STAR;
	s->lstar = (u64)dune_calls.lstar;
	s->sfmask = SFMASK;
}

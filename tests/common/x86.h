/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Numbers of the x86 architecture, by Linux's names where Linux has one. Flags and
 * the bits of control registers are in <asm/processor-flags.h>, debug registers in
 * <asm/debugreg.h>. "SDM" is Intel's manual, "APM" AMD's.
 */
#ifndef DUNE_TESTS_X86_H
#define DUNE_TESTS_X86_H

/* Exceptions (SDM vol. 3, 6.3.1, table 6-1; APM vol. 2, 8.2). */
#define X86_TRAP_DE	0	/* division */
#define X86_TRAP_DB	1	/* debug */
#define X86_TRAP_NMI	2
#define X86_TRAP_BP	3	/* INT3 */
#define X86_TRAP_OF	4	/* INTO */
#define X86_TRAP_UD	6	/* invalid instruction */
#define X86_TRAP_DF	8	/* double fault */
#define X86_TRAP_TS	10	/* invalid TSS */
#define X86_TRAP_SS	12	/* stack segment */
#define X86_TRAP_GP	13	/* general protection */
#define X86_TRAP_PF	14	/* page fault */
#define X86_TRAP_AC	17	/* alignment check */
#define X86_TRAP_MC	18	/* machine check */
#define X86_TRAP_CP	21	/* control protection */
#define X86_TRAP_VC	29	/* VMM communication (APM) */
#define X86_TRAP_SX	30	/* security (APM) */

/* Vectors of interrupts: the first one, and Linux's for 32-bit system calls. */
#define FIRST_EXTERNAL_VECTOR	32
#define IA32_SYSCALL_VECTOR	0x80

/* MSRs that both manuals define (SDM vol. 4, table 2-2; APM vol. 2, appendix A). */
#define MSR_IA32_TSC		0x10
#define MSR_IA32_APICBASE	0x1b
#define MSR_IA32_SPEC_CTRL	0x48
#define MSR_IA32_PRED_CMD	0x49
#define MSR_IA32_SYSENTER_CS	0x174
#define MSR_IA32_SYSENTER_ESP	0x175
#define MSR_IA32_SYSENTER_EIP	0x176
#define MSR_IA32_MISC_ENABLE	0x1a0	/* Intel only */
#define MSR_IA32_DEBUGCTLMSR	0x1d9
#define MSR_IA32_CR_PAT		0x277
#define MSR_IA32_XSS		0xda0
#define MSR_EFER		0xc0000080
#define MSR_STAR		0xc0000081
#define MSR_LSTAR		0xc0000082
#define MSR_CSTAR		0xc0000083
#define MSR_SYSCALL_MASK	0xc0000084	/* the manuals: FMASK, SFMASK */
#define MSR_FS_BASE		0xc0000100
#define MSR_GS_BASE		0xc0000101
#define MSR_KERNEL_GS_BASE	0xc0000102
#define MSR_TSC_AUX		0xc0000103

/* AMD's MSRs (APM vol. 2, 13.2.1 and 15.30.4). */
#define MSR_K7_EVNTSEL0		0xc0010000
#define MSR_VM_HSAVE_PA		0xc0010117

/* Bits of EFER (SDM vol. 3, 2.2.1; APM vol. 2, 3.1.7). */
#define EFER_SCE	(1UL << 0)
#define EFER_LME	(1UL << 8)
#define EFER_LMA	(1UL << 10)
#define EFER_NX		(1UL << 11)
#define EFER_SVME	(1UL << 12)	/* APM */

/* The sizes of pages. */
#define PAGE	4096UL
#define MB2	(512 * PAGE)
#define GB	(512 * MB2)

/* Bits of a page-table entry (SDM vol. 3, 4.5; APM vol. 2, 5.4). */
#define PTE_P		(1UL << 0)
#define PTE_W		(1UL << 1)
#define PTE_U		(1UL << 2)
#define PTE_A		(1UL << 5)
#define PTE_D		(1UL << 6)
#define PTE_PS		(1UL << 7)
#define PTE_NX		(1UL << 63)
#define PTE_ADDRESS	0xffffffffff000UL

/* Bits of a page fault's error code (SDM vol. 3, 4.7; APM vol. 2, 8.4.2). */
#define X86_PF_PROT	(1UL << 0)	/* the page is present */
#define X86_PF_WRITE	(1UL << 1)
#define X86_PF_USER	(1UL << 2)
#define X86_PF_RSVD	(1UL << 3)	/* a reserved bit is set in a page table */
#define X86_PF_INSTR	(1UL << 4)

/* The byte of a system descriptor with its type (SDM vol. 3, 3.5; APM vol. 2, 4.8.3). */
#define DESC_P		0x80UL	/* present */
#define DESC_DPL(ring)	((ring) << 5)
#define DESC_LDT	0x2UL
#define DESC_TSS	0x9UL	/* available */
#define DESC_TSS_BUSY	0xbUL
#define GATE_TASK	0x5UL
#define GATE_INTERRUPT	0xeUL

/* Ports of a PC that a program must not reach. */
#define PORT_POST		0x80	/* the firmware's progress; Linux delays by it */
#define PORT_PCI_ADDRESS	0xcf8	/* PCI local bus specification, 3.2.2.3.2 */
#define PORT_RESET		0xcf9	/* reset control register of PC chipsets */

/* A number or the bit of that number, for assembly in strings. */
#define ASM_NUMBER(n)	ASM_NUMBER_(n)
#define ASM_NUMBER_(n)	#n
#define ASM_BIT(n)	"(1 << " ASM_NUMBER(n) ")"

#ifndef __ASSEMBLER__

#include <stdint.h>

static inline uint64_t rdmsr(uint32_t number)
{
	uint32_t low, high;

	asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
	return low | (uint64_t)high << 32;
}

static inline void wrmsr(uint32_t number, uint64_t value)
{
	asm volatile("wrmsr" : : "c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

/* For functions without a red zone (-mno-red-zone): it uses the stack. */
static inline uint64_t read_flags(void)
{
	uint64_t f;

	asm volatile("pushfq; popq %0" : "=r"(f));
	return f;
}

static inline void write_cr3(uint64_t v)
{
	asm volatile("mov %0, %%cr3" : : "r"(v) : "memory");
}

static inline void invlpg(const void *p)
{
	asm volatile("invlpg (%0)" : : "r"(p) : "memory");
}

#endif

#endif

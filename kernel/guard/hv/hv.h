/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The resident part of the guard: a hypervisor with one guest, the Linux that launched it.
 *
 * It is an image of its own (hv.lds), not a part of the module's text: the loader
 * (guard/linux/load.c) copies it into the guard's memory, one physically contiguous block, and
 * makes all tables. From then on no code of Linux runs with the guard's rights, and the image
 * calls nothing outside of itself. It is compiled for any address, has no relocations, uses
 * neither the FPU nor FS and GS, and is never interrupted: GIF is clear from each exit to the next
 * VMRUN, which holds interrupts, NMIs and SMIs back (APM 15.17).
 *
 * The story: head.S enters, leaves, and has the loop around VMRUN; exit.c has one switch over the
 * reasons for an exit; msr.c decides on MSRs, and io.c on ports; call.c answers the guest's
 * VMMCALLs; memory.c hides the guard's memory. Modules that are guarded begin in views.h. What all
 * have in common is in guest.c (injecting, skipping), fetch.c (the length of an instruction),
 * walk.c (the guest's page table), stack.c, pool.c, log.c, reset.c and fault.S. APM is the AMD64
 * Architecture Programmer's Manual, vol. 2 unless another is named.
 *
 * The loader includes this header, too: it is the contract between the two, for all but modules.
 * That part is in views.h, for linux/views.c, secret.c and register.c.
 */
#ifndef GUARD_HV_HV_H
#define GUARD_HV_HV_H

/* Offsets in struct hv_cpu, for head.S. */
#define HV_CPU_LEAVE_RIP	0x80
#define HV_CPU_LEAVE_RSP	0x88
#define HV_CPU_LEAVE_CR0	0x90
#define HV_CPU_LEAVE_CR3	0x98
#define HV_CPU_LEAVE_CR4	0xa0
#define HV_CPU_LEAVE_DR6	0xa8
#define HV_CPU_LEAVE_DR7	0xb0
#define HV_CPU_LEAVE_GDT	0xb8
#define HV_CPU_LEAVE_IDT	0xc8
#define HV_CPU_LEAVE_RESULT	0xd8
#define HV_CPU_LEAVE_CROSS	0xe0

/* The pages of a CPU: K's VMCB, the host save area, M's VMCB, and two for stack and hv_cpu. */
#define HV_CPU_PAGES		5
#define HV_CPU_SIZE		(HV_CPU_PAGES << 12)
#define HV_VMCB_OF_M		0x2000

/*
 * VMMCALL, from ring 0: RAX is HV_CALL plus the number of a call, RBX and RCX are its arguments.
 * RAX returns 0 or a negative errno, RBX, RCX, RDX and RSI return results. Any other RAX raises
 * #UD, as VMMCALL does without a hypervisor.
 */
#define HV_CALL			0x64756e6500000000	/* "dune" */
#define HV_CALL_NOTHING		0	/* for measurements */
#define HV_CALL_STOP		1	/* this CPU, which then has no guard; not once sealed */
#define HV_CALL_SEAL		2	/* on each CPU: the guard is sealed when all have called */
#define HV_CALL_COUNT		3	/* RBX: CPU, RCX: enum hv_count; RBX returns the number */
/*
 * RBX: an entry; RBX returns the oldest one from there on, RCX its time, RDX the CPU, << 32 the
 * kind and << 56 enum border_choice, or 0, and RSI the value.
 */
#define HV_CALL_LOG		4
/*
 * Registrations (views.h). RBX: the number of one. REGISTER freezes the module's text, every CPU
 * calls FLUSH, and ARM lets it be entered. To end it: REVOKE, FLUSH on every CPU, THAW, FLUSH on
 * every CPU. If REGISTER fails, the guard has its memory back after a FLUSH on every CPU, too. The
 * caller of REGISTER is trusted, so it is refused once sealed.
 */
#define HV_CALL_REGISTER	5	/* RCX: physical address of a struct hv_registration */
#define HV_CALL_FLUSH		6	/* for all registrations; no arguments */
#define HV_CALL_ARM		7
#define HV_CALL_REVOKE		8
#define HV_CALL_THAW		9
/* RBX returns enum registration_state, perhaps with HV_STATE_STOPPED; -1: it is unused. */
#define HV_CALL_STATE		10
#define HV_CALL_CROSSINGS	11	/* RBX: CPU, RCX: enum hv_crossing; RBX: the number */
/*
 * Modules that are known by their content. RBX: the number of a registration. DESCRIBE and
 * UNDESCRIBE are refused once sealed. LOAD takes the place of REGISTER, and like ARM it is allowed
 * at any time: ARM compares the content, and with -ENOEXEC RBX returns what differs: enum
 * content_verdict, the region << 8, the offset << 32. RELEASE gives init back, and every CPU then
 * calls FLUSH twice.
 */
/* RCX: physical address of a struct hv_description; -ENOEXEC: RBX returns which leaf differs. */
#define HV_CALL_DESCRIBE	12
#define HV_CALL_UNDESCRIBE	13
#define HV_CALL_LOAD		14	/* RCX: physical address of a struct hv_load */
#define HV_CALL_RELEASE		15
/*
 * RBX: the number of a registration; RCX: a row of its tally, and << 32 the word of it
 * (struct hv_tally_row) that RBX returns; -ENODATA: it has no tally, -ENOENT: it has no such row.
 */
#define HV_CALL_TALLY		16
#define HV_CALL_LEFT		17	/* RBX returns how many pages are left for modules */
/* From M with the privilege "monitor" alone (privilege/monitor.c); -EPERM in K. */
#define HV_CALL_RANDOM		0x40	/* RBX, RCX, RDX and RSI return random bits */
#define HV_CALL_COUNTER		0x41	/* RBX returns a number, larger than all before */

#ifndef __ASSEMBLER__

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>
#include <asm/trapnr.h>

#include "guard/hv/border/cpu.h"
#include "x86/svm/instructions.h"
#include "x86/svm/vmcb.h"

/* Why a CPU left the guest. DUNE_GUARD_EXIT_* of the interface has the same numbers. */
enum hv_count {
	HV_COUNT_CALL,		/* VMMCALL */
	HV_COUNT_MSR_READ,
	HV_COUNT_MSR_WRITE,
	HV_COUNT_SVM,		/* an instruction of SVM's, or SKINIT */
	HV_COUNT_INVD,
	HV_COUNT_MEMORY,	/* a nested page fault */
	HV_COUNT_STEP,		/* the end of a single step (memory.c) */
	HV_COUNT_INIT,
	HV_COUNT_PORT,		/* of sleep or reset, once sealed; or a module's, or PCI's */
	HV_COUNTS,
};

/* What the log records. DUNE_GUARD_LOG_* of the interface has the same numbers. */
enum hv_log_kind {
	HV_LOG_MSR_READ,	/* a read was refused; the value is the MSR */
	HV_LOG_MSR_WRITE,	/* a write was refused; the value is the MSR */
	HV_LOG_SVM,		/* an instruction was refused; the value is the exit code */
	/*
	 * A write to the guard's memory, or to a module's memory or device, was dropped; the value
	 * is the address.
	 */
	HV_LOG_WRITE,
	/*
	 * An access was refused: neither memory nor a device is there, or a page table is in the
	 * guard's memory; the value is the address.
	 */
	HV_LOG_NO_MEMORY,
	HV_LOG_CALL,		/* a VMMCALL was refused; the value is the number of the call */
	HV_LOG_INIT,		/* the CPU is parked */
	/* An access was refused, or SLP_EN was cleared; the value is the port. */
	HV_LOG_PORT,
	HV_LOG_ENTER,		/* a guarded module was entered at no entry; the value is RIP */
	HV_LOG_EXIT,		/* it was left, and not by a call or return; the value is RIP */
	/* A write to configuration space was refused; the value is that of port CF8h. */
	HV_LOG_PCI,
	HV_LOG_CONTENT,		/* a loaded module is not the described one; an address in it */
	/* A patch is not allowed, and stays in the shadow; the value is the physical address. */
	HV_LOG_PATCH,
};

/*
 * The crossings that a CPU counts, by enum border_crossing; 0 counts fetches and exits that are no
 * crossing.
 */
enum hv_crossing {
	HV_CROSSING_REFUSED,
	HV_CROSSING_FIRST,
	HV_CROSSINGS = HV_CROSSING_FIRST + 6,
};

#define HV_LOG_ENTRIES	64

/* Of HV_CALL_STATE: the module was stopped for good. */
#define HV_STATE_STOPPED	0x100

/* Entries of M's page table that are the kernel's, and only for one stay in M (space.c). */
#define HV_COPIED	16

/* The part of a GDTR or an IDTR that LGDT and LIDT read begins at @limit. */
struct hv_table {
	u16 unused[3];
	u16 limit;
	u64 base;
};

/* The levels of a page table. */
#define HV_WALKED	4

/**
 * struct hv_walk - the last walk to a stack (stack.c)
 * @page:	the linear address; HV_NOWHERE: there was none, or a view has changed since, or
 *		another module may have been entered
 * @places:	where it read an entry of each level: of the top level of M's page table, and below
 *		that of the kernel's tables; the last one repeated if there were fewer
 * @entries:	what it read there
 * @distance:	from @page to what it found
 */
struct hv_walk {
	u64 page;
	const u64 *places[HV_WALKED];
	u64 entries[HV_WALKED];
	u64 distance;
};

#define HV_NOWHERE	(~0ULL)
#define HV_NO_BASE	BIT_ULL(63)	/* not canonical */

/**
 * struct hv_cpu - a CPU's, at the end of its pages; its stack grows down from it
 * @regs:	the guest's, in the order of the instruction encoding (x86/registers.h); RAX and RSP
 *		are in the VMCB
 * @leave:	what the CPU continues with without the guard, @result in RAX; also in head.S
 * @vmcb_pa:	the VMCB of K, the first of the CPU's pages
 * @vmcb:	of the view in which the CPU is
 * @number:	of the CPU, as Linux has it; @who: the same, as the word of an activation has it
 * @border:	the automaton of the CPU
 * @views_seen:	hv_views_changed when both tags were last known to owe a flush
 * @gs_base:	the kernel's GS base on this CPU; nothing else enters M of class D. Without @space
 *		it is HV_NO_BASE, which no register can have
 * @code_segment: the beginning of CS in the VMCB of M
 * @space:	the top level of M's page table; NULL: there was no memory, and M is not entered
 * @space_cr3:	CR3 of M in class D
 * @walk:	of the kernel's page table, to read a stack
 * @copied:	entries of M's page table that are copies of the kernel's
 * @unmapped:	M's page table has lost a page of a module since it was last pruned
 * @guarded:	the module that M has, while the CPU is there; in K, the one that it entered last,
 *		or NULL: the CPU has just started, or has stepped, or has executed L since then
 * @lowered:	the registration whose text K executes without its privileges; NULL: none
 * @raised:	the module whose privileges M's VMCB has; NULL: none. K does not use that VMCB
 * @crossings:	how often each occurred; other CPUs read them
 * @written:	the physical address whose write has begun the last step
 * @step_flags:	TF and IF of the guest, while @steps
 * @step_branches: DEBUGCTL.BTF of the guest, while @steps
 * @steps:	the guest executes one instruction that may write to the guard's memory, or to a
 *		shadow
 * @counts:	exits by reason; other CPUs read them
 * @panics:	hv_panic() is due as soon as this CPU has released the lock
 *
 * Used by that CPU alone, except for @counts and @crossings, and with hv_views_lock for M's page
 * table and @unmapped. The loader makes it, and clears it.
 */
struct hv_cpu {
	u64 regs[16];
	struct {
		u64 rip, rsp, cr0, cr3, cr4, dr6, dr7;
		struct hv_table gdt, idt;
		s64 result;
		u64 cross;
	} leave;
	u64 vmcb_pa;
	struct vmcb *vmcb;
	struct border_cpu border;
	u32 number;
	u32 who;
	u32 views_seen;
	u64 gs_base;
	u64 code_segment;
	u64 *space;
	u64 space_cr3;
	struct hv_walk walk;
	u64 *copied[HV_COPIED];
	u32 copied_count;
	bool unmapped;
	struct hv_guarded *guarded;		/* views.h */
	const struct hv_guarded *lowered;
	const struct hv_guarded *raised;
	u64 crossings[HV_CROSSINGS];
	u64 written;
	u64 step_flags;
	bool step_branches;
	bool steps;
	u64 counts[HV_COUNTS];
	bool panics;
} __aligned(64);

static_assert(offsetof(struct hv_cpu, leave.rip) == HV_CPU_LEAVE_RIP);
static_assert(offsetof(struct hv_cpu, leave.rsp) == HV_CPU_LEAVE_RSP);
static_assert(offsetof(struct hv_cpu, leave.cr0) == HV_CPU_LEAVE_CR0);
static_assert(offsetof(struct hv_cpu, leave.cr3) == HV_CPU_LEAVE_CR3);
static_assert(offsetof(struct hv_cpu, leave.cr4) == HV_CPU_LEAVE_CR4);
static_assert(offsetof(struct hv_cpu, leave.dr6) == HV_CPU_LEAVE_DR6);
static_assert(offsetof(struct hv_cpu, leave.dr7) == HV_CPU_LEAVE_DR7);
static_assert(offsetof(struct hv_cpu, leave.gdt.limit) == HV_CPU_LEAVE_GDT + 6);
static_assert(offsetof(struct hv_cpu, leave.idt.limit) == HV_CPU_LEAVE_IDT + 6);
static_assert(offsetof(struct hv_cpu, leave.result) == HV_CPU_LEAVE_RESULT);
static_assert(offsetof(struct hv_cpu, leave.cross) == HV_CPU_LEAVE_CROSS);

/* Ports of reset: the chipset's, the system's (PS/2's port A), the keyboard controller's. */
#define HV_PORT_RESET		0xcf9
#define HV_PORT_CONTROL		0x92
#define HV_PORT_KEYBOARD	0x64
/*
 * PCI's configuration space: the address, of four bytes, which include HV_PORT_RESET; the data;
 * their end.
 */
#define HV_PORT_PCI_ADDRESS	0xcf8
#define HV_PORT_PCI_DATA	0xcfc
#define HV_PORT_PCI_END		0xd00

/* The most registers of sleep that a computer has. */
#define HV_SLEEP_PORTS		3

/* The most parts of memory that the image knows: it guards no module that is elsewhere. */
#define HV_MEMORY_PARTS		16

/**
 * struct hv_config - what the loader tells the image, before the first CPU enters it. The image's
 * own address space has the block at the address at which Linux's direct map has it.
 * @block:	the block, in the address space of the image
 * @end:	of what the nested page table maps
 * @pool:	pages of the block that are left
 * @pool_pages:	their number
 * @window:	where M's page tables are in M's physical memory, which nobody can know (space.c);
 *		0: there is no room for that
 * @flush_tag:	TLB_CONTROL that flushes a guest's tag
 * @efer:	EFER of the guest at launch: it cannot set other bits
 * @cross:	guard_cross_out(), where the image goes to leave
 * @cpus:	how many struct hv_cpu there are
 * @cpu_areas:	the first CPU's pages
 * @msrpm:	the MSR permission map, two pages; hv_msr_init() completes it
 * @iopm:	the I/O permission map of K: zeros
 * @sleep:	the ports with SLP_TYP and SLP_EN, and the SLP_TYP of off (S5); a @port is 0 if the
 *		computer has fewer
 * @parts:	what is memory, and no device; an @end is 0 if there are fewer
 * @memory:	physical address of the block
 * @memory_size: a multiple of 2 MB, as @memory is
 * @memory_pdes: the entries of the nested page directory that lead to the block
 * @zero_table:	a nested page table that leads to a page of zeros, read-only
 * @sink_table:	the same for @sink, writable, and not dirty
 * @zero_entry: an entry of @zero_table
 * @sink_entry:	an entry of @sink_table
 * @nested_cr3:	the guest's nested page table
 * @step_cr3:	the same, but for the block: there it leads to @sink, and is writable. A CPU has it
 *		only while it @steps, so that no other CPU's TLB gets such an entry; made here
 * @sink:	the page to which dropped writes go
 * @low_memory:	memory ends there below 4 GB,
 * @high_memory: and there above that, or at 4 GB
 * @ecam:	the window of PCI's configuration space; @ecam_size: 0 if there is none
 * @kernel:	linear addresses: Linux's own image is somewhere from there on,
 * @modules:	and modules begin there
 * @seed:	random, and cleared here
 */
struct hv_config {
	u64 block;
	u64 end;
	void *pool;
	u64 pool_pages;
	u64 window;
	u64 flush_tag;
	u64 efer;
	u64 cross;
	u64 cpus;
	u64 cpu_areas;
	u8 *msrpm;
	u8 *iopm;
	struct {
		u16 port;
		u8 off;
	} sleep[HV_SLEEP_PORTS];
	struct {
		u64 start;
		u64 end;
	} parts[HV_MEMORY_PARTS];
	u64 memory;
	u64 memory_size;
	u64 *memory_pdes;
	u64 zero_table;
	u64 sink_table;
	u64 zero_entry;
	u64 sink_entry;
	u64 nested_cr3;
	u64 step_cr3;
	u64 *sink;
	u64 low_memory;
	u64 high_memory;
	u64 ecam;
	u64 ecam_size;
	u64 kernel;
	u64 modules;
	u64 seed[4];
};

/**
 * struct hv_header - the beginning of the image; all offsets are from there
 * @code_size:	whole pages: code and constants, which the image does not write
 * @size:	whole pages: also data
 * @entry:	where a CPU enters: hv_entry()
 * @config:	struct hv_config
 */
struct hv_header {
	u32 code_size;
	u32 size;
	u32 entry;
	u32 config;
};

/* Of misc_ctl in the VMCB: INVLPGB and TLBSYNC are the guest's (APM appendix B). */
#define HV_INVLPGB_ENABLE	BIT_ULL(7)

/* The sizes of pages, in bytes, and the entries of a page table. */
#define HV_PAGE		4096ULL
#define HV_LARGE_PAGE	0x200000ULL
#define HV_ENTRIES	512

/* A table of each level takes 9 bits of an address, from these on. */
#define HV_SHIFT_TOP	39
#define HV_SHIFT_GB	30
#define HV_SHIFT_LARGE	21
#define HV_SHIFT_PAGE	12
#define HV_SHIFT_STEP	9

/* The permission maps of ports and of MSRs (APM 15.10 and 15.11). */
#define HV_IOPM_PAGES	3
#define HV_MSRPM_PAGES	2

/* Entries of the guest's page tables, and of M's. */
#define HV_PTE_PRESENT	BIT_ULL(0)
#define HV_PTE_LARGE	BIT_ULL(7)
#define HV_PTE_TEXT	(HV_PTE_PRESENT | BIT_ULL(5))			/* accessed */
#define HV_PTE_TABLE	(HV_PTE_TEXT | BIT_ULL(1))			/* and R/W */
#define HV_PTE_NO_EXECUTE	BIT_ULL(63)
#define HV_PTE_CONSTANT	(HV_PTE_TEXT | HV_PTE_NO_EXECUTE)
#define HV_PTE_DATA	(HV_PTE_CONSTANT | BIT_ULL(1) | BIT_ULL(6))	/* and R/W, dirty */

/* Entries of the nested page tables. The processor treats accesses as those of ring 3 there. */
#define HV_NPT_PRESENT	BIT_ULL(0)
#define HV_NPT_READ	(HV_NPT_PRESENT | BIT_ULL(2) | BIT_ULL(5))	/* and U/S, accessed */
#define HV_NPT_WRITE	(HV_NPT_READ | BIT_ULL(1) | HV_NPT_DIRTY)	/* and R/W */
#define HV_NPT_DIRTY	BIT_ULL(6)
#define HV_NPT_LARGE	BIT_ULL(7)
#define HV_NPT_NO_EXECUTE	BIT_ULL(63)
/* A bit that the processor ignores: the table belongs to another view, or to all. */
#define HV_NPT_SHARED	BIT_ULL(9)

/* The exceptions. #DF, #TS, #NP, #SS, #GP, #PF, #AC and #CP have an error code (APM 8.2). */
#define HV_VECTORS	32
#define HV_HAVE_ERROR	(0x7d00 | BIT(17) | BIT(21))

/* A physical address in an entry of any page table. */
#define HV_ADDRESS	0x000ffffffffff000ULL

/*
 * The rest is the image's alone. All functions run with GIF clear, on the CPU of @cpu.
 */
extern struct hv_config hv_config;
/* The guest has given up the right to stop the guard; never cleared. */
extern bool hv_sealed;

/* The VMCB of the view in which the CPU is. */
static inline struct vmcb *hv_vmcb(struct hv_cpu *cpu)
{
	return cpu->vmcb;
}

static inline struct vmcb *hv_vmcb_of_k(struct hv_cpu *cpu)
{
	return (struct vmcb *)((u64)(cpu + 1) - HV_CPU_SIZE);
}

static inline bool hv_is_guards(u64 physical)
{
	return physical - hv_config.memory < hv_config.memory_size;
}

static inline struct vmcb *hv_vmcb_of_m(struct hv_cpu *cpu)
{
	return (struct vmcb *)((u64)(cpu + 1) - HV_CPU_SIZE + HV_VMCB_OF_M);
}

/**
 * struct hv_next - with what a CPU continues, for head.S
 * @vmcb:	physical address, for VMRUN; 0: it leaves the guard
 * @regs:	the guest's, as hv_cpu has them
 */
struct hv_next {
	u64 vmcb;
	const u64 *regs;
};

static inline struct hv_next hv_next_in_k(const struct hv_cpu *cpu)
{
	return (struct hv_next){ cpu->vmcb_pa, cpu->regs };
}

static inline struct hv_next hv_next_in_m(const struct hv_cpu *cpu, const u64 *regs)
{
	return (struct hv_next){ cpu->vmcb_pa + HV_VMCB_OF_M, regs };
}

static inline struct hv_cpu *hv_cpu_of(u32 number)
{
	return (struct hv_cpu *)(hv_config.cpu_areas + (number + 1) * HV_CPU_SIZE) - 1;
}

/* The physical address of something in the block. */
static inline u64 hv_physical(const void *pointer)
{
	return (u64)pointer - hv_config.block + hv_config.memory;
}

static inline void *hv_pointer(u64 physical)
{
	return (void *)(physical - hv_config.memory + hv_config.block);
}

/* Not a device, nor page 0, which the image does not have: what page tables and stacks are in. */
static inline bool hv_is_memory(u64 physical)
{
	return (physical >= HV_PAGE && physical < hv_config.low_memory) ||
	       (physical >= 1ULL << 32 && physical < hv_config.high_memory);
}

/* All other memory but page 0, which the image has at its physical address. */
static inline void *hv_guest_memory(u64 physical)
{
	return (void *)physical;
}

static inline void hv_copy_page(u64 *to, const u64 *from)
{
	u32 word;

	for (word = 0; word < HV_ENTRIES; word++)
		to[word] = from[word];
}

static inline void hv_clear_page(u64 *page)
{
	u32 word;

	for (word = 0; word < HV_ENTRIES; word++)
		page[word] = 0;
}

static inline u32 hv_index(u64 address, u32 shift)
{
	return address >> shift & (HV_ENTRIES - 1);
}

/* Whether a linear address may be one of Linux's own image. No module is there. */
static inline bool hv_is_image(u64 address)
{
	return address - hv_config.kernel < hv_config.modules - hv_config.kernel;
}

/* pool.c: for hv_views_lock, or while no other CPU is in the guard */
/* Returns zeroed pages, or NULL. */
void *hv_pool_take(u32 pages);
void hv_pool_give(void *first, u32 pages);
/* The same for a page that these CPUs may still walk as a table, when each has flushed. */
void hv_pool_give_after(void *page, u64 cpus);
/* A CPU has flushed: at its next VMRUN it knows no table any more that was given before. */
void hv_pool_flushed(u64 cpu);
u32 hv_pool_left(void);
/* Whether a page is of the pool, or else the loader's or the image's. */
bool hv_pool_has(const void *page);

/* Whether the guest is about to get a double fault. */
static inline bool hv_panics(const struct vmcb_control_area *control)
{
	return (control->event_inj & (SVM_EVTINJ_VALID | SVM_EVTINJ_VEC_MASK)) ==
	       (SVM_EVTINJ_VALID | X86_TRAP_DF);
}

/* guest.c */
void hv_inject(struct hv_cpu *cpu, unsigned int vector, bool has_error);
void hv_skip(struct hv_cpu *cpu, unsigned int length);
void hv_skip_to(struct hv_cpu *cpu, u64 rip);

/* reset.c */
void hv_before_reset(void);
/* All secrets are cleared. The lock is not held. */
void hv_before_panic(void);
void __noreturn hv_reset(void);
void __noreturn hv_fault(void);

/* log.c */
void hv_log(struct hv_cpu *cpu, enum hv_log_kind kind, u64 value);
/* The same of suspicious activity around a module, with what was chosen for that. */
void hv_log_suspicion(struct hv_cpu *cpu, enum hv_log_kind kind, u8 choice, u64 value);
/* An entry of the log: see HV_CALL_LOG. Returns whether there is one. */
bool hv_log_read(u64 *index, u64 *time, u64 *cpu_and_kind, u64 *value);

/* msr.c */
void hv_msr_init(void);
void hv_msr_read(struct hv_cpu *cpu);
void hv_msr_write(struct hv_cpu *cpu);
/* Whether the guest may write it without an exit. */
bool hv_msr_is_allowed(u32 msr);
/* Whether reads and writes exit, by a permission map. @msr is in its ranges. */
void hv_msr_set_map(u8 *map, u32 msr, bool read_exits, bool write_exits);

/* io.c */
void hv_io(struct hv_cpu *cpu);

/* call.c */
/* Lets the CPU continue without the guard where the guest is, with @result in RAX. */
void hv_leave(struct hv_cpu *cpu, s64 result);
/* Returns whether the CPU stays in the guard. */
bool hv_call(struct hv_cpu *cpu);

/* walk.c */
/*
 * Reads an entry of a page table of the guest's, or another 8 bytes. Once the guard is sealed, the
 * resident part reads memory at an address that the kernel chose in no other way, except for the
 * page of a LOAD and the frames that this names, which register.c has verified. Returns false if
 * the guest has no memory there, or if what it has is hidden from it.
 */
bool hv_walk_entry(u64 physical, u64 *value);
/*
 * Finds the physical address of a linear one of the guest, by the page table of @cr3. Returns false
 * if it has none, or its page tables are hidden from the guest.
 */
bool hv_walk(u64 cr3, u64 address, u64 *physical);
/*
 * Reads the 8 bytes at a linear address of the guest, a multiple of 8, by the page table of @cr3.
 * Returns false if the guest has nothing there, or something that is hidden from it.
 */
bool hv_walk_read(u64 cr3, u64 address, u64 *value);
/*
 * From the table to which an entry leads, whose entries are of 2^@shift bytes. @view: if it is not
 * 0, the tables have to be where that view has them. @remember: where to put the places and entries
 * of the levels below the top, or NULL.
 */
bool hv_walk_from(u64 entry, u32 shift, u64 address, u64 *physical, u64 view,
		  struct hv_walk *remember);

/* stack.c */
/*
 * Walks to the 8 bytes at an address of the kernel's half as M would (space.c), whose nested page
 * table is @view, and remembers the walk. Returns false as hv_walk_read() does, and if M has other
 * bytes at a physical address than are there.
 */
bool hv_stack_walk(struct hv_cpu *cpu, u64 view, u64 address);

static inline bool hv_walk_is_same(const struct hv_walk *walk, u32 level)
{
	return __atomic_load_n(walk->places[level], __ATOMIC_RELAXED) == walk->entries[level];
}

/*
 * Reads the 8 bytes at a linear address, where a stack of the kernel's is. Mostly the page is that
 * of the last time, and then the entries are read where they were, and compared. What may be read
 * was decided when the walk was remembered. That can change with a view only: the caller has
 * compared hv_views_changed. In cross.c another module ends what is remembered, too.
 */
static inline bool hv_stack_read(struct hv_cpu *cpu, u64 view, u64 address, u64 *value)
{
	const struct hv_walk *walk = &cpu->walk;

	/* Also a multiple of 8. */
	if (unlikely((address & ~0xff8ULL) != walk->page || !hv_walk_is_same(walk, 0) ||
		     !hv_walk_is_same(walk, 1) || !hv_walk_is_same(walk, 2) ||
		     !hv_walk_is_same(walk, 3)) &&
	    !hv_stack_walk(cpu, view, address))
		return false;
	*value = *(u64 *)hv_guest_memory(address + walk->distance);
	return true;
}

/* fetch.c */
u32 hv_prefixes(struct hv_cpu *cpu);

/* memory.c */
void hv_memory_hide(struct hv_cpu *cpu);
void hv_memory_fault(struct hv_cpu *cpu);
void hv_memory_stepped(struct hv_cpu *cpu);
void hv_memory_step_failed(struct hv_cpu *cpu, u32 code);

/* fault.S */
/* Access an MSR that may not exist. Returns whether it does, and accepts the value. */
bool hv_rdmsr(u32 msr, u64 *value);
bool hv_wrmsr(u32 msr, u64 value);
void hv_gp(void);

#endif /* !__ASSEMBLER__ */

#endif /* GUARD_HV_HV_H */

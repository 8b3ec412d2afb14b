// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests whose page tables, descriptor tables or stacks are wrong: unmapped, in
 * the kernel, read-only, or not present yet. Each runs in a child (isolated.h).
 * Fails when an address of the kernel can be reached (no signal), when memory of
 * the process that is not present yet is not made present, or when an exception
 * is lost.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "tap.h"
#include "x86.h"

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL_PML4	272	/* a slot of the guest's top-level table for wild entries */

static u64 jump(void *arg)
{
	((void (*)(void))arg)();
	return 0;
}

static void triple_fault(void)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, ud2, NULL);
	s.idtr.limit = 0;
	guest_set_state(&g, &s);
	enum guest_end end = guest_resume(&g);
	bool dead = end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN;

	/* Further runs change nothing. */
	for (int i = 0; i < 100; i++)
		guest_run(&g);
	expect(end, dead);
}

static void shutdown_in_ring3(void)
{
	struct dune_state s;

	guest_prepare(&g, 3, ud2, NULL);
	guest_get_state(&g, &s);
	s.idtr.base = 0x1000;		/* unmapped */
	s.idtr.limit = 0;
	guest_set_state(&g, &s);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

/* Set the state. A refusal with EINVAL is as good as the signal SIGSEGV. */
static void set_or_segv(struct dune_state *s)
{
	g.error = guest_set_state(&g, s);
	if (g.error == -EINVAL)
		raise(SIGSEGV);
	if (g.error)
		expect(GUEST_ERROR, false);
}

/* SIGSEGV, or a triple fault where the guest's own tables lack the address: both are right. */
static void __attribute__((noreturn)) fault_or_shutdown(enum guest_end end)
{
	if (end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN)
		raise(SIGSEGV);
	expect(end, false);
}

/* CPUID: the width of physical addresses. */
static unsigned int physical_bits(void)
{
	u32 eax, ebx, ecx, edx;

	__cpuid(0x80000008, eax, ebx, ecx, edx);
	return eax & 0xff;
}

static void with_cr3(u64 cr3)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, guest_return, NULL);
	s.cr3 = cr3;
	must_end_within(2000);
	set_or_segv(&s);
	enum guest_end end = guest_resume(&g);

	/* The processor refuses addresses that are wider than its own. */
	if (end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_INVALID &&
	    cr3 >> physical_bits())
		raise(SIGSEGV);
	fault_or_shutdown(end);
}

/*
 * An address as a page-table entry holds it: for memory of the process the
 * guest-physical address that leads there; otherwise the address itself, or the
 * part of it that the processor does not reserve.
 */
static u64 named(u64 address)
{
	if (address < 1UL << 47)
		return guest_gpa(&g, address);
	if (g.info.granules)
		return address % ((u64)g.info.granules << 30);
	return address;
}

static void cr3_not_canonical(void) { with_cr3(0x8000000000001000); }
static void cr3_kernel(void) { with_cr3(0xffff888000001000); }
static void cr3_kernel_48(void) { with_cr3(0x0000888000001000); }
static void cr3_unmapped(void) { with_cr3(named(0x1000)); }
static void cr3_top(void) { with_cr3(named(0x7ffffffff000)); }
static void cr3_hole(void) { with_cr3(0x800000000000); }
static void cr3_readonly(void) { with_cr3(named((u64)with_cr3 & -4096UL)); }
static void cr3_null_page(void) { with_cr3(named(0)); }
static void cr3_run_page(void) { with_cr3(named((u64)g.run)); }
/* Without granules these are addresses like others, where nothing is mapped. */
static void cr3_granule_0(void) { with_cr3(0x2000); }
static void cr3_no_granule(void) { with_cr3(0xffffff000); }
static void cr3_far(void) { with_cr3(1UL << 46); }

static u64 load_cr3(void *arg)
{
	write_cr3((u64)arg);
	return 0;
}

static void mov_cr3_kernel(void) { go(load_cr3, (void *)named(0x0000888000001000)); }
static void mov_cr3_unmapped(void) { go(load_cr3, (void *)named(0x1000)); }

/* A 2 MB page of the guest that names a guest-physical address. */
static void *wild_named(u64 address)
{
	u64 *pdpt = map_page(PROT_READ | PROT_WRITE), *pd = map_page(PROT_READ | PROT_WRITE);

	g.mem->pml4[KERNEL_PML4] = guest_gpa(&g, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
	pdpt[0] = guest_gpa(&g, (u64)pd) | PTE_P | PTE_W | PTE_U;
	pd[0] = (address & 0xfffffffe00000) | PTE_P | PTE_W | PTE_U | PTE_PS;
	return (void *)(0xffff000000000000 | (u64)KERNEL_PML4 << 39 | (address & 0x1fffff));
}

static void *wild(u64 address) { return wild_named(named(address)); }
static void read_granule_0(void) { go(read_byte, wild_named(0x2000)); }
static void write_no_granule(void) { go(write_byte, wild_named(0xffffff000)); }
static void read_direct_map(void) { go(read_byte, wild(0x0000888000001000)); }
static void write_direct_map(void) { go(write_byte, wild(0x0000888000001000)); }
static void read_kernel_text(void) { go(read_byte, wild(0x0000ffff81000000)); }
static void jump_kernel_text(void) { go(jump, wild(0x0000ffff81000000)); }
static void read_47(void) { go(read_byte, wild(1UL << 47)); }
static void write_entry_area(void) { go(write_byte, wild(0x0000fe0000001000)); }
static void read_vmalloc(void) { go(read_byte, wild(0x0000c90000000000)); }
static void read_hole(void) { go(read_byte, wild(0x0000800000000000)); }
static void read_null(void) { go(read_byte, wild(0)); }

/* The vsyscall page may be readable, emulated or gone; it may not be written. */
static void write_vsyscall(void) { go(write_byte, wild(0x0000ffffff600000)); }
static void jump_vsyscall(void) { go(jump, wild(0x0000ffffff600000)); }

/* Bits of an address above the processor's width: a reserved-bit fault in the guest. */
static void reserved_bits(void)
{
	void *p = wild_named(1UL << 51 | 0x1000);
	enum guest_end end;

	must_end_within(2000);
	end = guest_call(&g, read_byte, p);
	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_PF &&
	       (g.frame->error & X86_PF_RSVD));
}

/* A table whose next level is in the kernel. */
static void table_in_kernel(void)
{
	g.mem->pml4[KERNEL_PML4] = named(0x0000888000001000) | PTE_P | PTE_W | PTE_U;
	go(read_byte, (void *)(0xffff000000000000 | (u64)KERNEL_PML4 << 39));
}

/* A table that is its own next level, four times. */
static void recursive_table(void)
{
	g.mem->pml4[KERNEL_PML4] = guest_gpa(&g, (u64)g.mem->pml4) | PTE_P | PTE_W | PTE_U;
	u64 base = 0xffff000000000000 | (u64)KERNEL_PML4 * 0x8040201000;
	enum guest_end end = guest_call(&g, read_byte, (void *)base);

	expect(end, end == GUEST_DONE);
}

static void table_in_file(void)
{
	int fd = memfd_create("table", 0);
	u64 *p;

	if (ftruncate(fd, 4096))
		child_fails("a file of one page cannot be made");
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(p, g.mem->pml4, 4096);
	if (ftruncate(fd, 0))
		child_fails("the file cannot be made empty");
	with_cr3(named((u64)p));
}

enum table { IDT, GDT, TSS };

static void tables(struct dune_segment table, enum table which)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, which == GDT ? jump : ud2, (void *)page);
	if (which == IDT)
		s.idtr = table;
	else if (which == GDT)
		s.gdtr = table;
	else
		s.tr.base = table.base;
	must_end_within(2000);
	set_or_segv(&s);
	fault_or_shutdown(guest_resume(&g));
}

static struct dune_segment at(u64 base)
{
	return (struct dune_segment){ .base = base, .limit = 4095 };
}

static void idt_unmapped(void) { tables(at(0x1000), IDT); }
static void idt_kernel(void) { tables(at(0xffff888000000000), IDT); }
static void idt_wild(void) { tables(at((u64)wild(0x0000888000001000)), IDT); }
static void idt_top(void) { tables(at(0xfffffffffffff800), IDT); }

/* The load of DS reads the table. */
static void gdt(u64 base)
{
	CODE("\xb8\x10\x00\x00\x00\x8e\xd8\x0f\x0b");	/* mov $0x10, %eax; mov %eax, %ds; ud2 */
	tables(at(base), GDT);
}

static void gdt_unmapped(void) { gdt(0x1000); }
static void gdt_wild(void) { gdt((u64)wild(0x0000888000001000)); }
/* The accessed bit must be written. */
static void gdt_readonly(void)
{
	u64 *p = map_page(PROT_READ | PROT_WRITE);

	memcpy(p, g.mem->gdt, sizeof(g.mem->gdt));
	p[GUEST_SS0 >> 3] &= ~(1UL << 40);
	mprotect(p, 4096, PROT_READ);
	gdt((u64)p);
}

static void tss_unmapped(void) { tables(at(0x1000), TSS); }
static void tss_wild(void) { tables(at((u64)wild(0x0000888000001000)), TSS); }

static void stack(u64 rsp)
{
	must_end_within(2000);
	guest_prepare(&g, 0, guest_return, NULL);
	g.run->regs.rsp = rsp;
	enum guest_end end = guest_resume(&g);

	if (end == GUEST_TRAP && g.frame->vector >= X86_TRAP_SS && g.frame->vector <= X86_TRAP_PF)
		raise(SIGSEGV);
	expect(end, false);
}

static void stack_unmapped(void) { stack(0x2000); }
static void stack_not_canonical(void) { stack(0x8000000000000000); }
static void stack_kernel(void) { stack(0xffff888000001000); }
static void stack_wild(void) { stack((u64)wild(0x0000888000001000) + 512); }
static void stack_readonly(void) { stack(((u64)stack & -4096UL) + 4096); }

/* The stack of the exception entry itself. */
static void trap_stack(u64 rsp)
{
	g.mem->tss.ist[0] = rsp;
	must_end_within(2000);
	fault_or_shutdown(guest_call(&g, ud2, NULL));
}

static void trap_stack_unmapped(void) { trap_stack(0x2000); }
static void trap_stack_kernel(void) { trap_stack(0xffff888000001000); }
static void trap_stack_wild(void) { trap_stack((u64)wild(0x0000888000001000) + 512); }
static void trap_stack_not_canonical(void) { trap_stack(0x8000000000000000); }

/* Memory that is mapped but not yet present, at each point of delivering an exception. */
static void trap_stack_absent(void)
{
	u8 *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	g.mem->tss.ist[0] = (u64)p + 65536;
	enum guest_end end = guest_call(&g, ud2, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_UD &&
	       g.frame->rip - (u64)ud2 < 64);
}

static void tables_absent(void)
{
	struct guest_memory *m = g.mem;
	int fd = memfd_create("tables", 0);

	/* The same bytes in a file: nothing of it is present in the new mapping. */
	if (write(fd, m, sizeof(*m)) != sizeof(*m))
		child_fails("the tables cannot be written to a file");
	mmap(m, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
	enum guest_end end = guest_call(&g, ud2, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_UD && g.frame->error == 0);
}

/* A handler that faults at once, on the same stack, further down each time. */
static void falling_handler(void)
{
	guest_cover(&g, CODE_AT);
	u8 *p = mmap((void *)CODE_AT, 1 << 20, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	for (int v = 0; v < FIRST_EXTERNAL_VECTOR; v++)
		guest_set_gate(&g, v, ud2, 0, 0);
	guest_prepare(&g, 0, ud2, NULL);
	g.run->regs.rsp = (u64)p + (1 << 20);
	must_end_within(5000);
	fault_or_shutdown(guest_resume(&g));
}

static const struct isolated guests[] = {
	{ "triple fault", triple_fault, 0 },
	{ "triple fault from ring 3", shutdown_in_ring3, 0 },
	{ "CR3 not canonical", cr3_not_canonical, SIGSEGV },
	{ "CR3 in the kernel", cr3_kernel, SIGSEGV },
	{ "CR3 in the kernel's half, 48 bits", cr3_kernel_48, SIGSEGV },
	{ "CR3 unmapped", cr3_unmapped, SIGSEGV },
	{ "CR3 on the last page", cr3_top, SIGSEGV },
	{ "CR3 after the last page", cr3_hole, SIGSEGV },
	{ "CR3 in read-only memory", cr3_readonly, SIGSEGV },
	{ "CR3 0", cr3_null_page, SIGSEGV },
	{ "CR3 on the run page", cr3_run_page, SIGSEGV },
	{ "CR3 in the granule that is never mapped", cr3_granule_0, SIGSEGV },
	{ "CR3 in the last granule", cr3_no_granule, SIGSEGV },
	{ "CR3 beyond the processor's addresses", cr3_far, SIGSEGV },
	{ "MOV CR3 into the kernel's half", mov_cr3_kernel, SIGSEGV },
	{ "MOV CR3 to nowhere", mov_cr3_unmapped, SIGSEGV },
	{ "page table: read the granule that is never mapped", read_granule_0, SIGSEGV },
	{ "page table: write the last granule", write_no_granule, SIGSEGV },
	{ "page table: read the direct map", read_direct_map, SIGSEGV },
	{ "page table: write the direct map", write_direct_map, SIGSEGV },
	{ "page table: read the kernel's text", read_kernel_text, SIGSEGV },
	{ "page table: execute the kernel's text", jump_kernel_text, SIGSEGV },
	{ "page table: read at 2^47", read_47, SIGSEGV },
	{ "page table: write the entry area", write_entry_area, SIGSEGV },
	{ "page table: read vmalloc memory", read_vmalloc, SIGSEGV },
	{ "page table: read the hole", read_hole, SIGSEGV },
	{ "page table: read page 0", read_null, SIGSEGV },
	{ "page table: write the vsyscall page", write_vsyscall, SIGSEGV },
	{ "page table: execute the vsyscall page", jump_vsyscall, SIGSEGV },
	{ "page table: reserved bits", reserved_bits, 0 },
	{ "page table: a table in the kernel", table_in_kernel, SIGSEGV },
	{ "page table: a table in itself", recursive_table, 0 },
	{ "page table: in a truncated file", table_in_file, SIGBUS },
	{ "IDT unmapped", idt_unmapped, SIGSEGV },
	{ "IDT in the kernel", idt_kernel, SIGSEGV },
	{ "IDT on a page that names the kernel", idt_wild, SIGSEGV },
	{ "IDT over the end of memory", idt_top, SIGSEGV },
	{ "GDT unmapped", gdt_unmapped, SIGSEGV },
	{ "GDT on a page that names the kernel", gdt_wild, SIGSEGV },
	{ "GDT read-only, accessed bit clear", gdt_readonly, SIGSEGV },
	{ "TSS unmapped", tss_unmapped, SIGSEGV },
	{ "TSS on a page that names the kernel", tss_wild, SIGSEGV },
	{ "stack unmapped", stack_unmapped, SIGSEGV },
	{ "stack not canonical", stack_not_canonical, SIGSEGV },
	{ "stack in the kernel", stack_kernel, SIGSEGV },
	{ "stack on a page that names the kernel", stack_wild, SIGSEGV },
	{ "stack in read-only memory", stack_readonly, SIGSEGV },
	{ "exception stack unmapped", trap_stack_unmapped, SIGSEGV },
	{ "exception stack in the kernel", trap_stack_kernel, SIGSEGV },
	{ "exception stack on a page that names the kernel", trap_stack_wild, SIGSEGV },
	{ "exception stack not canonical", trap_stack_not_canonical, SIGSEGV },
	{ "exception stack not present yet", trap_stack_absent, 0 },
	{ "all tables not present yet", tables_absent, 0 },
	{ "handlers that fault, down the stack", falling_handler, SIGSEGV },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}

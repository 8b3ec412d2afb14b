// SPDX-License-Identifier: GPL-2.0-only
/*
 * M's address space: a page table for each CPU. Its top level is the guard's; the entries of the
 * kernel's half are the kernel's own, as they were at launch, when Linux had made all of them; they
 * lead to the kernel's tables, so that M has the kernel's data, now and later. M executes nothing
 * by them: else the kernel could map the text in another place, or its pages in another order, and
 * M would run it there.
 *
 * The path to the text of a guarded module is the guard's own, down to the last level. In its last
 * two levels, the module's own pages are constant, and all else is empty: what M touches of it is
 * copied from the kernel's tables for one stay in M, like the lower half. Linux's invalidations do
 * not reach a copy, but the interrupt by which another CPU demands one ends the stay. INVLPGB sends
 * none, and reaches no tag but K's, so there is no M where Linux has it.
 *
 * The path to a page with leaves (leaf.c) is the guard's own, too. Such a page is in the kernel's
 * image, which every module uses, so all else there is copied at once, and the copies stay. That
 * needs no invalidation: Linux never moves its image once it has booted, nor does it free a table
 * of it. It may divide a large page later, or change rights. Then M has the old rights to the same
 * memory, and as all of that is data, they matter to the kernel alone.
 *
 * The kernel can direct M's writes to any physical address, by its own tables and by the pointers
 * that it hands to a module. So M has its page tables at physical addresses that nobody can know:
 * the window, which the loader chose at random.
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <uapi/asm/processor-flags.h>

#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

/* A bit that the processor ignores: the table is the guard's, or the page a guarded module's. */
#define OWN		BIT_ULL(11)
#define OWN_TABLE	(HV_PTE_TABLE | OWN)

/* PAT in an entry of a large page, and in one of 4 KB, where it has the place of HV_PTE_LARGE. */
#define PAT_OF_LARGE	BIT_ULL(12)
#define PAT_OF_SMALL	BIT_ULL(7)

/* DR7 without a breakpoint (APM 13.1.1.4). */
#define FIXED_BIT_OF_DR7	BIT_ULL(10)

/*
 * As large as the largest block, and at a multiple of that. A table's offset in the block is XORed
 * with the lower bits of hv_config.window, which permutes the pages of the window.
 */
#define WINDOW_SIZE	0x400000ULL

/* Of the nested page table: the window's part. */
static u64 *window_directory, *window_pages;

/* The top level of the kernel's half, as it was at launch. */
static u64 kernel_half[HV_ENTRIES - HV_KERNEL_HALF];
u64 hv_space_upper = ~0ULL;

static u64 in_window(const void *table)
{
	return ((u64)table - hv_config.block) ^ hv_config.window;
}

static u64 *own_table(u64 entry)
{
	return (u64 *)(((entry & HV_ADDRESS) ^ hv_config.window) + hv_config.block);
}

static u64 *window_entry(const void *table)
{
	return &window_pages[in_window(table) % WINDOW_SIZE >> HV_SHIFT_PAGE];
}

static u64 *take(void)
{
	u64 *table = hv_pool_take(1);

	if (table)
		*window_entry(table) = hv_physical(table) | HV_NPT_WRITE | HV_NPT_NO_EXECUTE;
	return table;
}

static void give(u64 *table)
{
	*window_entry(table) = 0;
	hv_pool_give(table, 1);
}

static bool is_own(u64 entry)
{
	return entry & HV_PTE_PRESENT && entry & OWN;
}

void hv_space_init(void)
{
	u64 *directory = hv_pool_take(1), first = hv_config.window & ~(WINDOW_SIZE - 1);

	/* The window is in the upper half of all addresses, where nothing else is. */
	if (hv_config.window)
		hv_space_upper = BIT_ULL(63 - __builtin_clzll(hv_config.window));
	window_directory = hv_pool_take(1);
	window_pages = hv_pool_take(2);
	if (!directory || !window_directory || !window_pages)
		hv_reset();
	directory[hv_index(first, HV_SHIFT_LARGE)] = hv_physical(window_pages) | HV_NPT_WRITE;
	directory[hv_index(first, HV_SHIFT_LARGE) + 1] =
		(hv_physical(window_pages) + HV_PAGE) | HV_NPT_WRITE;
	window_directory[hv_index(hv_config.window, HV_SHIFT_GB)] =
		hv_physical(directory) | HV_NPT_WRITE;
}

void hv_space_reveal(u64 root)
{
	u64 *top = hv_pointer(root);

	top[hv_index(hv_config.window, HV_SHIFT_TOP)] =
		hv_physical(window_directory) | HV_NPT_WRITE | HV_NPT_SHARED;
}

/* An entry of the kernel's, as M has it. */
static u64 as_data(u64 entry)
{
	return entry & HV_PTE_PRESENT ? (entry & ~OWN) | HV_PTE_NO_EXECUTE : 0;
}

/*
 * VMCB and address space are those of the launch: Linux is trusted then. M exits for whatever the
 * kernel would handle, and for what would change its constants.
 */
void hv_space_start(struct hv_cpu *cpu)
{
	static const u8 intercepts[] = {
		INTERCEPT_INTR, INTERCEPT_NMI, INTERCEPT_INTn, INTERCEPT_CR0_WRITE,
		INTERCEPT_CR3_READ, INTERCEPT_CR3_WRITE, INTERCEPT_CR4_WRITE, INTERCEPT_DR7_WRITE,
		INTERCEPT_LOAD_IDTR, INTERCEPT_LOAD_GDTR, INTERCEPT_LOAD_LDTR, INTERCEPT_LOAD_TR,
	};
	struct vmcb *m = hv_vmcb_of_m(cpu);
	u64 *kernel = hv_guest_memory(hv_vmcb_of_k(cpu)->save.cr3 & HV_ADDRESS);
	u32 i;

	cpu->copied_count = 0;
	cpu->unmapped = false;
	cpu->walk.page = HV_NOWHERE;
	cpu->space = NULL;
	cpu->raised = NULL;
	cpu->gs_base = HV_NO_BASE;
	if (hv_config.window && !(hv_vmcb_of_k(cpu)->control.misc_ctl & HV_INVLPGB_ENABLE))
		cpu->space = take();
	if (!cpu->space)
		return;
	for (i = HV_KERNEL_HALF; i < HV_ENTRIES; i++) {
		kernel_half[i - HV_KERNEL_HALF] = as_data(kernel[i]);
		cpu->space[i] = kernel_half[i - HV_KERNEL_HALF];
	}
	hv_copy_page((u64 *)m, (const u64 *)hv_vmcb_of_k(cpu));
	for (i = 0; i < sizeof(intercepts); i++)
		m->control.intercepts[intercepts[i] / 32] |= BIT(intercepts[i] % 32);
	m->control.intercepts[INTERCEPT_EXCEPTION] = ~0u;
	m->control.asid++;
	cpu->space_cr3 = in_window(cpu->space);
	m->save.cr3 = cpu->space_cr3;
	m->save.cr4 &= ~X86_CR4_PCIDE;
	m->save.dr7 = FIXED_BIT_OF_DR7;
	m->save.ds.selector = 0;
	m->save.es.selector = 0;
	cpu->code_segment = *(u64 *)&m->save.cs;
	hv_rdmsr(MSR_GS_BASE, &cpu->gs_base);
}

static void free_table(u64 *table, u32 shift)
{
	u32 i;

	for (i = 0; i < HV_ENTRIES && shift > HV_SHIFT_PAGE; i++)
		if (is_own(table[i]))
			free_table(own_table(table[i]), shift - HV_SHIFT_STEP);
	give(table);
}

void hv_space_stop(struct hv_cpu *cpu)
{
	u32 i;

	for (i = 0; cpu->space && i < HV_ENTRIES; i++)
		if (is_own(cpu->space[i]))
			free_table(own_table(cpu->space[i]), HV_SHIFT_GB);
	if (cpu->space)
		give(cpu->space);
	cpu->space = NULL;
	cpu->gs_base = HV_NO_BASE;
}

/*
 * What the entry of a large page becomes when that is divided. The kernel chooses all bits but the
 * one that keeps M from executing: nothing may be carried into that.
 */
static u64 divided(u64 entry, u32 index, u32 shift)
{
	u64 pat = entry & PAT_OF_LARGE;

	if (shift == HV_SHIFT_PAGE) {
		entry &= ~(HV_PTE_LARGE | PAT_OF_LARGE);
		entry |= pat ? PAT_OF_SMALL : 0;
	}
	return entry | (u64)index << shift;
}

/* The kernel's entry for 2^@shift bytes, below its @entry; 0: there is none. */
static u64 kernel_entry(u64 entry, u64 address, u32 shift)
{
	u32 index = hv_index(address, shift);
	u64 found;

	if (!(entry & HV_PTE_PRESENT))
		return 0;
	if (entry & HV_PTE_LARGE)
		return divided(entry, index, shift);
	return hv_walk_entry((entry & HV_ADDRESS) + index * 8, &found) ? as_data(found) : 0;
}

/*
 * What a table of the guard's has for 2^@shift bytes while no page of a module's is there: the
 * kernel's entry, below its @entry, or nothing until M touches it. Linux never frees the tables to
 * which the entries of the first table below the top level lead, nor those of its image.
 */
static u64 lasting_entry(u64 entry, u64 address, u32 shift)
{
	return shift == HV_SHIFT_GB || hv_is_image(address) ?
	       kernel_entry(entry, address, shift) : 0;
}

/* @entry: the kernel's, which leads to its own table for the 2^(@shift + HV_SHIFT_STEP) bytes. */
static void fill_table(u64 *table, u64 entry, u64 address, u32 shift)
{
	u64 at = address & ~(BIT_ULL(shift + HV_SHIFT_STEP) - 1);
	u32 i;

	for (i = 0; i < HV_ENTRIES; i++, at += BIT_ULL(shift))
		table[i] = lasting_entry(entry, at, shift);
}

bool hv_space_map(struct hv_cpu *cpu, u64 cr3, u64 address, u64 new)
{
	u64 *entry = &cpu->space[hv_index(address, HV_SHIFT_TOP)], *table;
	u64 kernel = (cr3 & HV_ADDRESS) | HV_PTE_PRESENT;
	u32 shift;

	cpu->unmapped |= !new;
	for (shift = HV_SHIFT_TOP; shift > HV_SHIFT_PAGE; shift -= HV_SHIFT_STEP) {
		kernel = kernel_entry(kernel, address, shift);
		if (!is_own(*entry)) {
			if (!new)
				return true;
			table = take();
			if (!table)
				return false;
			fill_table(table, kernel, address, shift - HV_SHIFT_STEP);
			__atomic_store_n(entry, in_window(table) | OWN_TABLE, __ATOMIC_RELEASE);
		}
		entry = &own_table(*entry)[hv_index(address, shift - HV_SHIFT_STEP)];
	}
	__atomic_store_n(entry, new ? new | OWN : lasting_entry(kernel, address, HV_SHIFT_PAGE),
			 __ATOMIC_RELEASE);
	return true;
}

/*
 * Whether an entry of the guard's, which leads to a table of its own for the 2^@shift bytes from
 * @address on, leads to a page of a module. If it does not, it is from now on what the kernel has
 * there, @kernel, and its tables are given back.
 */
static bool keeps(u64 *entry, u64 kernel, u64 address, u32 shift)
{
	u64 *table = own_table(*entry), at = address;
	bool keep = false;
	u32 i;

	for (i = 0, shift -= HV_SHIFT_STEP; i < HV_ENTRIES; i++, at += BIT_ULL(shift))
		if (is_own(table[i]))
			keep |= shift == HV_SHIFT_PAGE ||
				keeps(&table[i], lasting_entry(kernel, at, shift), at, shift);
	if (!keep) {
		__atomic_store_n(entry, kernel, __ATOMIC_RELAXED);
		give(table);
	}
	return keep;
}

/*
 * The pool may make a shadow of such a table, whose contents the kernel chooses, so nobody may
 * still use it as a table. Other CPUs change it with the lock, and find it by @space; their own
 * page tables have others, and they cannot know where M has this one. This CPU has no pointer to an
 * entry of it any more. Its processor walks it in M only, and has cached it only for M's tag: the
 * CPU is in K, and before its next VMRUN, which flushes all tags, it walks nothing of the guest's.
 */
void hv_space_prune(struct hv_cpu *cpu)
{
	u32 i;

	if (!cpu->space || !cpu->unmapped)
		return;
	cpu->unmapped = false;
	hv_space_clear_copies(cpu);
	for (i = HV_KERNEL_HALF; i < HV_ENTRIES; i++)
		if (is_own(cpu->space[i]))
			keeps(&cpu->space[i], kernel_half[i - HV_KERNEL_HALF],
			      ~0ULL << 48 | (u64)i << HV_SHIFT_TOP, HV_SHIFT_TOP);
}

bool hv_space_entry(struct hv_cpu *cpu, u64 address, u64 *entry, u32 *shift)
{
	u64 kernel = (hv_vmcb_of_k(cpu)->save.cr3 & HV_ADDRESS) | HV_PTE_PRESENT;
	u64 found = cpu->space[hv_index(address, HV_SHIFT_TOP)];

	for (*shift = HV_SHIFT_TOP;; *shift -= HV_SHIFT_STEP) {
		kernel = kernel_entry(kernel, address, *shift);
		if (!is_own(found))
			break;
		if (*shift == HV_SHIFT_PAGE)
			return false;
		found = own_table(found)[hv_index(address, *shift - HV_SHIFT_STEP)];
	}
	*entry = found & HV_PTE_PRESENT ? found : kernel;
	return *entry & HV_PTE_PRESENT;
}

bool hv_space_owns(const struct hv_cpu *cpu, u64 address)
{
	u64 entry = cpu->space[hv_index(address, HV_SHIFT_TOP)];
	u32 shift;

	for (shift = HV_SHIFT_GB; is_own(entry); shift -= HV_SHIFT_STEP) {
		entry = own_table(entry)[hv_index(address, shift)];
		if (shift == HV_SHIFT_PAGE)
			return entry & OWN;
	}
	return false;
}

/* Another CPU may have made an entry a guarded module's meanwhile (hv_space_map()). */
void hv_space_clear_copies(struct hv_cpu *cpu)
{
	u64 *entry, was;

	while (cpu->copied_count) {
		entry = cpu->copied[--cpu->copied_count];
		was = __atomic_load_n(entry, __ATOMIC_RELAXED);
		if (!(was & OWN))
			__atomic_compare_exchange_n(entry, &was, 0, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
	}
}

bool hv_space_copy_entry(struct hv_cpu *cpu, u64 address)
{
	u64 kernel = (hv_vmcb_of_k(cpu)->save.cr3 & HV_ADDRESS) | HV_PTE_PRESENT;
	u64 *table = cpu->space, *entry, was;
	u32 shift;

	for (shift = HV_SHIFT_TOP; shift >= HV_SHIFT_PAGE; shift -= HV_SHIFT_STEP) {
		entry = &table[hv_index(address, shift)];
		kernel = kernel_entry(kernel, address, shift);
		if (!(kernel & HV_PTE_PRESENT))
			return false;
		was = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
		if (!(was & HV_PTE_PRESENT))
			break;
		if (shift == HV_SHIFT_PAGE || !(was & OWN))
			return false;
		table = own_table(was);
	}
	if (cpu->copied_count == HV_COPIED) {
		hv_space_clear_copies(cpu);
		cpu->vmcb->control.tlb_ctl = hv_config.flush_tag;
	}
	/* Another CPU may have put a guarded module there meanwhile: then M faults again. */
	if (__atomic_compare_exchange_n(entry, &was, kernel, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		cpu->copied[cpu->copied_count++] = entry;
	return true;
}

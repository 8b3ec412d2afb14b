// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lies of the kernel about where a described module is, and what it does between the steps of its
 * registration: lies.h has them. Each is told once, and dune-guard.ko then tells the truth.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <asm/pgtable.h>

#include "guard/linux/views.h"
#include "lies.h"
#include "outside.h"

/* Blocks of 2 MB, so that pages of two blocks have no page table in common. */
#define MOST_BLOCKS	16
#define BLOCK_ORDER	(PMD_SHIFT - PAGE_SHIFT)
static struct page *blocks[MOST_BLOCKS];
static unsigned int block_count;

/* No two addresses have a page table of any level in common. */
#define FAR_AWAY	(PGDIR_SIZE + PUD_SIZE + PMD_SIZE)

static ulong lie, lie_value;
module_param(lie, ulong, 0600);
module_param(lie_value, ulong, 0600);
static int lied = -ENOENT;

/* What the kernel does between the freeze and the arming, on this CPU. */
static s64 arm_after(u64 number, const struct hv_load *load, void *other)
{
	unsigned long text = load->regions[CONTENT_TEXT].address;
	pte_t *entry = outside_entry_of(text), was = *entry;
	const u8 *byte = (void *)text;
	u8 old = 0;
	s64 err;

	err = outside_guard_call(HV_CALL_LOAD, number, virt_to_phys((void *)load));
	if (err)
		return err;
	if (lie != NO_FLUSH)
		on_each_cpu(outside_flush_guard, NULL, 1);
	if (lie == RELEASED_EARLY) {
		err = outside_guard_call(HV_CALL_RELEASE, number, 0);
		guard_views_disarm(number);
		return err;
	}
	if (lie == EXCHANGED) {
		set_pte(entry, pfn_pte(page_to_pfn(virt_to_page(other)), PAGE_KERNEL_EXEC));
		on_each_cpu(outside_flush, NULL, 1);
	}
	if (lie == WRITTEN)
		old = outside_write_byte(byte, *byte ^ 4);
	err = outside_guard_call(HV_CALL_ARM, number, 0);
	if (lie == WRITTEN) {
		/* It reads what it has written, and the module was not changed. */
		if (*byte != (old ^ 4))
			err = -EIO;
		outside_write_byte(byte, old);
	}
	if (lie == EXCHANGED) {
		set_pte(entry, was);
		on_each_cpu(outside_flush, NULL, 1);
	}
	guard_views_disarm(number);
	return err;
}

/* Returns how many blocks there are. */
static unsigned int take_blocks(void)
{
	struct page *block;

	while (block_count < MOST_BLOCKS) {
		block = alloc_pages(GFP_KERNEL | __GFP_NOWARN, BLOCK_ORDER);
		if (!block)
			break;
		blocks[block_count++] = block;
	}
	return block_count;
}

void outside_give_blocks(void)
{
	while (block_count)
		__free_pages(blocks[--block_count], BLOCK_ORDER);
}

/* The text has as many pages as the guard may be told of. */
static void grow_text(struct hv_load *load)
{
	unsigned int text = load->regions[CONTENT_TEXT].size / PAGE_SIZE, all = 0, more, i;

	for (i = 0; i < HV_LOAD_REGIONS; i++)
		all += load->regions[i].size / PAGE_SIZE;
	more = HV_LOAD_FRAMES - all;
	memmove(&load->frames[text + more], &load->frames[text], (all - text) * sizeof(u64));
	for (i = 0; i < more; i++)
		load->frames[text + i] = page_to_phys(blocks[i % block_count] + i / block_count);
	load->regions[CONTENT_TEXT].size += more * PAGE_SIZE;
}

/* An address of the kernel's half that nobody uses, with a page table at a physical address. */
static u64 *use_top_entry(unsigned long *address, u64 table)
{
	u64 *top = __va(read_cr3_pa());
	unsigned int i = PTRS_PER_PGD / 2;

	while (top[i])
		i++;
	*address = ~0UL << 47 | (unsigned long)i << PGDIR_SHIFT;
	WRITE_ONCE(top[i], table | _PAGE_TABLE);
	return &top[i];
}

/* Lets the calls of a function lead to another one. */
static void lead_calls(const struct hv_load *load, u64 from, u64 to)
{
	u64 text = load->regions[CONTENT_TEXT].address, size = load->regions[CONTENT_TEXT].size;
	u64 at;
	s32 distance;
	int i;

	for (at = text; at + 5 <= text + size; at++) {
		memcpy(&distance, (void *)(unsigned long)at + 1, sizeof(distance));
		if (*(u8 *)(unsigned long)at != 0xe8 || at + 5 + distance != from)
			continue;
		distance = to - at - 5;
		for (i = 0; i < sizeof(distance); i++)
			outside_write_byte((void *)(unsigned long)at + 1 + i, distance >> 8 * i);
	}
}

static unsigned long address_of(const struct module *module, const char *name)
{
	const struct mod_kallsyms *symbols = rcu_dereference_raw(module->kallsyms);
	u32 i;

	for (i = 0; i < symbols->num_symtab; i++)
		if (!strcmp(symbols->strtab + symbols->symtab[i].st_name, name))
			return symbols->symtab[i].st_value;
	return 0;
}

/* On another CPU, the module is called all the time. Returns how often it did not work. */
static u64 entered;

static int enter_often(void *function)
{
	u64 (*read)(const u64 *from) = function;
	int bad = 0;

	while (!kthread_should_stop()) {
		bad += read(outside_private()) != SECRET;
		WRITE_ONCE(entered, entered + 1);
		cond_resched();
	}
	return bad;
}

/*
 * Has it guarded and ends that, by the calls of Linux's, for which no other CPU is stopped here: it
 * may be in the guard at each of them. 0 or -errno.
 */
static s64 end_entered(u64 number, const struct hv_load *load)
{
	u64 before;
	s64 err;

	err = outside_guard_call(HV_CALL_LOAD, number, virt_to_phys((void *)load));
	if (err)
		return err;
	on_each_cpu(outside_flush_guard, NULL, 1);
	err = outside_guard_call(HV_CALL_ARM, number, 0);
	before = READ_ONCE(entered);
	while (!err && READ_ONCE(entered) < before + 3)
		cond_resched();
	err = outside_guard_call(HV_CALL_REVOKE, number, 0) ?: err;
	on_each_cpu(outside_flush_guard, NULL, 1);
	err = outside_guard_call(HV_CALL_THAW, number, 0) ?: err;
	outside_flush_guard(NULL);
	on_each_cpu(outside_flush_guard, NULL, 1);
	return err;
}

/* The same so often while another CPU enters it. 0 or -errno. */
static int forget_often(u64 number, const struct hv_load *load, const struct module *module)
{
	void *function = (void *)address_of(module, "enter_read");
	struct task_struct *task = kthread_create(enter_often, function, "inside/forget");
	u64 calls = guard_views_crossings((enum hv_crossing)BORDER_IN_CALL), i;
	int err = 0;

	if (IS_ERR(task))
		return PTR_ERR(task);
	migrate_disable();
	kthread_bind(task, cpumask_any_but(cpu_online_mask, smp_processor_id()));
	get_task_struct(task);
	wake_up_process(task);
	for (i = 0; i < lie_value && !err; i++)
		err = end_entered(number, load);
	migrate_enable();
	if (kthread_stop(task))
		err = err ?: -EIO;
	put_task_struct(task);
	if (guard_views_crossings((enum hv_crossing)BORDER_IN_CALL) < calls + i)
		err = err ?: -ENOENT;
	return err;
}

/* Writes a call of @to to a site of ftrace's; or a NOP, if that is 0. */
static void patch_call(const struct module *module, u64 to)
{
	static const u8 nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	unsigned long at = module->ftrace_callsites[0];
	s32 distance = to - at - 5;
	int i;

	for (i = 0; i < sizeof(nop); i++)
		outside_write_byte((void *)at + i,
				   !to ? nop[i] : !i ? 0xe8 : distance >> 8 * (i - 1));
}

static int tell_lie(const struct module *module)
{
	struct hv_load *load = (void *)get_zeroed_page(GFP_KERNEL);
	u8 *other = (void *)get_zeroed_page(GFP_KERNEL);
	u64 number = 0, finding, frame, *top_entry = NULL;
	unsigned long load_data;
	int err = -ENOMEM, i;

	if (!load || !other)
		goto out;
	err = guard_views_find(module, true, load);
	if (err)
		goto out;
	memcpy(other, (void *)(unsigned long)load->regions[CONTENT_TEXT].address, PAGE_SIZE);
	frame = load->frames[0];
	switch (lie) {
	case OTHER_PAGE:
		/* So many that some of them are no address of another module. */
		for (i = 100; i < 200; i++)
			other[i] ^= 4;
		fallthrough;
	case SAME_PAGE:
		load->frames[0] = virt_to_phys(other);
		break;
	case SWAPPED_PAGES:
		load->frames[0] = load->frames[1];
		load->frames[1] = frame;
		break;
	case TWICE:
		load->frames[1] = frame;
		break;
	case PAGE_AT:
		load->frames[0] = lie_value;
		break;
	case LEAF_FRAME:
		load->frames[0] = slow_virt_to_phys((void *)lie_value) & PAGE_MASK;
		break;
	case DEVICE:
		load->frames[0] = 0xa0000;
		break;
	case TOO_HIGH:
		load->frames[0] = ~0xfffULL;
		break;
	case NO_INIT:
		load->regions[CONTENT_INIT_TEXT].size = 0;
		load->regions[CONTENT_INIT_RODATA].size = 0;
		load->regions[CONTENT_INIT_DATA].size = 0;
		break;
	case IS_LIVE:
		load->is_live = 1;
		break;
	case OTHER_ADDRESS:
		load->regions[CONTENT_TEXT].address -= MODULES_VADDR - __START_KERNEL_map + SZ_1G;
		break;
	case IMAGE_ADDRESS:
		load->regions[CONTENT_TEXT].address -= MODULES_VADDR - __START_KERNEL_map;
		break;
	case OTHER_RODATA:
		load->regions[CONTENT_RODATA].address = load->regions[CONTENT_DATA].address;
		break;
	case ELSEWHERE:
		load->regions[CONTENT_TEXT].address -= (lie_value + 1) * FAR_AWAY;
		load->frames[0] = page_to_phys(blocks[lie_value]);
		break;
	case TOO_MUCH:
		load->regions[CONTENT_TEXT].address -= FAR_AWAY;
		grow_text(load);
		break;
	case DATA_AT:
		load->regions[CONTENT_DATA].address = lie_value;
		break;
	case TABLE_AT:
		top_entry = use_top_entry(&load_data, lie_value);
		load->regions[CONTENT_DATA].address = load_data;
		break;
	case USER_ADDRESS:
		load->regions[CONTENT_TEXT].address = 0x10000000;
		break;
	case TOO_LARGE:
		load->regions[CONTENT_DATA].size = -PAGE_SIZE;
		break;
	case OTHER_NUMBER:
	case LOADED_TWICE:
		number = lie_value;
		break;
	case OTHER_SYMBOL:
		lead_calls(load, (unsigned long)outside_deeper, lie_value);
		break;
	case OTHER_PATCH:
		patch_call(module, lie_value);
		break;
	case FORGOTTEN:
		load->is_live = 1;
		err = forget_often(number, load, module);
		goto out;
	case BESIDE_LEAF:
		frame = outside_frame_of(address_of(module, "inner_store"));
		err = outside_load_beside(number, load, frame, lie_value);
		goto out;
	case EXCHANGED:
	case WRITTEN:
	case NO_FLUSH:
	case RELEASED_EARLY:
		err = arm_after(number, load, other);
		goto out;
	}
	err = guard_views_load(number, load, &finding);
	if (!err)
		guard_views_disarm(number);
	if (lie == OTHER_SYMBOL)
		lead_calls(load, lie_value, (unsigned long)outside_deeper);
	if (lie == OTHER_PATCH)
		patch_call(module, 0);
	if (top_entry) {
		WRITE_ONCE(*top_entry, 0);
		on_each_cpu(outside_flush, NULL, 1);
	}
out:
	free_page((unsigned long)load);
	free_page((unsigned long)other);
	return err;
}

void outside_lie(const struct module *module, unsigned long event)
{
	/* That one is told when the guard's own module has told the truth. */
	unsigned long told_at = lie == LOADED_TWICE ? MODULE_STATE_LIVE : MODULE_STATE_COMING;

	if (lie && event == told_at)
		lied = tell_lie(module);
}

bool outside_lies(const char *word, u64 *result)
{
	if (!strcmp(word, "lied"))
		*result = lied;
	else if (!strcmp(word, "blocks"))
		*result = take_blocks();
	else
		return false;
	return true;
}

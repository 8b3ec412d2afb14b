// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux's part of a registration: the resident part (guard/hv/register.c) freezes a module's text,
 * all CPUs flush, and then it is armed; and back. Once the guard is sealed, the resident part
 * believes nothing of this: any code in ring 0 can make the same calls.
 *
 * A test's module contains this file, too. So this file has a VMMCALL of its own; the one in cpu.c,
 * which a CPU without a guard may execute, is not in that module.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <linux/vmalloc.h>

#include "guard/linux/views.h"

static s64 call(u64 number, u64 *b, u64 c)
{
	s64 result;

	asm volatile("vmmcall"
		     : "=a" (result), "+b" (*b) : "a" (HV_CALL + number), "c" (c) : "memory");
	return result;
}

static void flush(void *unused)
{
	u64 b = 0;

	call(HV_CALL_FLUSH, &b, 0);
}

struct change {
	u64 call, number, argument;
	atomic_t taken;
	int done;
	s64 result;
};

static int change_and_flush(void *data)
{
	struct change *change = data;
	u64 b = change->number;

	if (!atomic_xchg(&change->taken, 1)) {
		change->result = call(change->call, &b, change->argument);
		/* The result is complete. */
		smp_store_release(&change->done, 1);
	}
	/* The flush comes after the change. */
	while (!smp_load_acquire(&change->done))
		cpu_relax();
	flush(NULL);
	return 0;
}

/*
 * No CPU patches text meanwhile, which is copied: a patch in one of the two copies alone would stop
 * the kernel at the next one.
 */
static s64 change_while_stopped(u64 call, u64 number, u64 argument)
{
	struct change change = { .call = call, .number = number, .argument = argument };
	int err = stop_machine(change_and_flush, &change, cpu_online_mask);

	return err ?: change.result;
}

/* REGISTER or LOAD, and ARM; @finding: what RBX returns of that, or NULL. */
static int add_and_arm(u64 add, unsigned int number, const void *argument, u64 *finding)
{
	u64 b = number;
	s64 err;

	err = change_while_stopped(add, number, virt_to_phys((void *)argument));
	if (err)
		return err;
	err = call(HV_CALL_ARM, &b, 0);
	if (finding)
		*finding = b;
	if (err && guard_views_disarm(number))
		pr_err("registration %u is not armed, and its module stays frozen, since a CPU has not acknowledged: reboot\n",
		       number);
	return err;
}

int guard_views_arm(unsigned int number, const struct hv_registration *registration)
{
	return add_and_arm(HV_CALL_REGISTER, number, registration, NULL);
}

int guard_views_disarm(unsigned int number)
{
	u64 b = number;

	/* The module's exit function has done this already, if it was entered. */
	call(HV_CALL_REVOKE, &b, 0);
	on_each_cpu(flush, NULL, 1);
	return change_while_stopped(HV_CALL_THAW, number, 0);
}

int guard_views_describe(unsigned int number, const void *description, unsigned int size,
			 const struct hv_privilege *privileges, unsigned int count, bool has_tally,
			 enum border_choice choice, const struct hv_leaf_list *leaves, u64 *which)
{
	struct hv_description *list = (void *)get_zeroed_page(GFP_KERNEL);
	unsigned int i;
	u64 b = number;
	s64 err;

	if (!list)
		return -ENOMEM;
	list->size = size;
	list->privileges = count ? virt_to_phys((void *)privileges) : 0;
	list->privilege_count = count;
	list->has_tally = has_tally;
	list->choice = choice;
	list->leaves = leaves->count ? virt_to_phys((void *)leaves) : 0;
	for (i = 0; i < DIV_ROUND_UP(size, PAGE_SIZE) && i < ARRAY_SIZE(list->frames); i++)
		list->frames[i] = page_to_phys(vmalloc_to_page(description + i * PAGE_SIZE));
	err = call(HV_CALL_DESCRIBE, &b, virt_to_phys(list));
	*which = b;
	free_page((unsigned long)list);
	return err;
}

int guard_views_undescribe(unsigned int number)
{
	u64 b = number;

	return call(HV_CALL_UNDESCRIBE, &b, 0);
}

static void set_region(struct hv_load *load, enum content_region region, const void *base,
		       unsigned long size)
{
	load->regions[region].address = (unsigned long)base;
	load->regions[region].size = base ? PAGE_ALIGN(size) : 0;
}

#ifdef mod_mem_type_is_init
static void find_regions(const struct module *mod, struct hv_load *load, bool has_init)
{
	static const enum content_region regions[MOD_MEM_NUM_TYPES] = {
		[MOD_TEXT] = CONTENT_TEXT,
		[MOD_DATA] = CONTENT_DATA,
		[MOD_RODATA] = CONTENT_RODATA,
		[MOD_RO_AFTER_INIT] = CONTENT_RO_AFTER_INIT,
		[MOD_INIT_TEXT] = CONTENT_INIT_TEXT,
		[MOD_INIT_DATA] = CONTENT_INIT_DATA,
		[MOD_INIT_RODATA] = CONTENT_INIT_RODATA,
	};
	int type;

	for (type = 0; type < MOD_MEM_NUM_TYPES; type++)
		if (has_init || !mod_mem_type_is_init(type))
			set_region(load, regions[type], mod->mem[type].base,
				   mod->mem[type].size);
}
#else
/* Code, constants, data that is constant after init, and data; each size includes those before. */
static void find_layout(const struct module_layout *layout, struct hv_load *load,
			enum content_region text, enum content_region rodata,
			enum content_region ro_after_init, enum content_region data)
{
	set_region(load, text, layout->base, layout->text_size);
	set_region(load, rodata, layout->base + layout->text_size,
		   layout->ro_size - layout->text_size);
	if (ro_after_init != data)
		set_region(load, ro_after_init, layout->base + layout->ro_size,
			   layout->ro_after_init_size - layout->ro_size);
	set_region(load, data, layout->base + layout->ro_after_init_size,
		   layout->size - layout->ro_after_init_size);
}

static void find_regions(const struct module *mod, struct hv_load *load, bool has_init)
{
	find_layout(&mod->core_layout, load, CONTENT_TEXT, CONTENT_RODATA, CONTENT_RO_AFTER_INIT,
		    CONTENT_DATA);
	if (has_init && mod->init_layout.base)
		find_layout(&mod->init_layout, load, CONTENT_INIT_TEXT, CONTENT_INIT_RODATA,
			    CONTENT_INIT_DATA, CONTENT_INIT_DATA);
}
#endif

int guard_views_find(const struct module *mod, bool has_init, struct hv_load *load)
{
	unsigned long at, count = 0;
	unsigned int region;

	load->is_live = !has_init;
	find_regions(mod, load, has_init);
	/* Other variables follow in the same page. */
	load->regions[CONTENT_PER_CPU].address = (unsigned long)mod->percpu;
	load->regions[CONTENT_PER_CPU].size = mod->percpu_size;
	for (region = 0; region < HV_LOAD_REGIONS; region++) {
		for (at = 0; at < load->regions[region].size; at += PAGE_SIZE) {
			void *address = (void *)(unsigned long)load->regions[region].address + at;

			if (count == HV_LOAD_FRAMES)
				return -E2BIG;
			load->frames[count++] = page_to_phys(vmalloc_to_page(address));
		}
	}
	return 0;
}

int guard_views_load(unsigned int number, const struct hv_load *load, u64 *finding)
{
	return add_and_arm(HV_CALL_LOAD, number, load, finding);
}

int guard_views_release(unsigned int number)
{
	s64 err = change_while_stopped(HV_CALL_RELEASE, number, 0);

	/* The shadows are still in use until then. */
	on_each_cpu(flush, NULL, 1);
	return err;
}

s64 guard_views_state(unsigned int number)
{
	u64 b = number;
	s64 err = call(HV_CALL_STATE, &b, 0);

	return err ?: (s64)b;
}

s64 guard_views_tally(unsigned int number, unsigned int row, u64 words[HV_TALLY_WORDS])
{
	unsigned int word;
	s64 err = 0;
	u64 b;

	for (word = 0; !err && word < HV_TALLY_WORDS; word++) {
		b = number;
		err = call(HV_CALL_TALLY, &b, row | (u64)word << 32);
		words[word] = b;
	}
	return err;
}

/* How often a crossing has happened, on all CPUs. */
u64 guard_views_crossings(enum hv_crossing crossing)
{
	unsigned int cpu;
	u64 sum = 0, b;

	for_each_possible_cpu(cpu) {
		b = cpu;
		if (!call(HV_CALL_CROSSINGS, &b, crossing))
			sum += b;
	}
	return sum;
}

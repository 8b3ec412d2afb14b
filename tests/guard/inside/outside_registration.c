// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel that loads the guarded module: with the parameter "arm", it registers the module
 * before its init is called, and has it armed. Otherwise dune-guard.ko may have it guarded by its
 * description, and we may lie about it (outside_lies.c).
 */
#include <linux/bug.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sort.h>
#include <asm/extable.h>
#include <asm/pgtable.h>

#include "guard/linux/views.h"
#include "outside.h"

#define NUMBER	3	/* of the registration */

#define BLOB_ORDER	4

static bool arm = true;
module_param(arm, bool, 0600);
/* What happens on suspicious activity: enum border_choice. */
static uint choice = CHOICE_LOG;
module_param(choice, uint, 0600);

static int armed = -ENOENT;
static struct module *inside;

struct module *outside_module(void)
{
	return inside;
}

int outside_armed(void)
{
	return armed;
}

s64 outside_guard_call(u64 number, u64 b, u64 c)
{
	s64 result;

	asm volatile("vmmcall" : "=a" (result), "+b" (b) : "a" (HV_CALL + number), "c" (c) :
		     "memory", "rdx", "rsi");
	return result;
}

void outside_flush_guard(void *unused)
{
	outside_guard_call(HV_CALL_FLUSH, 0, 0);
}

struct part {
	unsigned long base, size;
};

/* The parts of a module's memory: the text first. */
static unsigned int parts_of(const struct module *module, struct part parts[])
{
#ifdef mod_mem_type_is_core
	unsigned int count = 1, type;

	parts[0] = (struct part){ (unsigned long)module->mem[MOD_TEXT].base,
				  PAGE_ALIGN(module->mem[MOD_TEXT].size) };
	for (type = MOD_DATA; type <= MOD_RO_AFTER_INIT; type++)
		if (module->mem[type].size)
			parts[count++] = (struct part){
				(unsigned long)module->mem[type].base,
				PAGE_ALIGN(module->mem[type].size) };
	return count;
#else
	unsigned long text = PAGE_ALIGN(module->core_layout.text_size);

	parts[0] = (struct part){ (unsigned long)module->core_layout.base, text };
	parts[1] = (struct part){ (unsigned long)module->core_layout.base + text,
				  PAGE_ALIGN(module->core_layout.size) - text };
	return 2;
#endif
}

void outside_text_of(const struct module *module, u64 *text, u64 *size)
{
	struct part parts[8];

	parts_of(module, parts);
	*text = parts[0].base;
	*size = parts[0].size;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 fixup_register(const struct exception_table_entry *entry)
{
	return entry->data & 0xff ? entry->data >> 8 & 0xf : BORDER_NO_REGISTER;
}

/* The functions whose names begin with "enter_". */
static u32 add_entries(const struct module *module, const struct part *text, u64 *words)
{
	const struct mod_kallsyms *symbols = rcu_dereference_raw(module->kallsyms);
	u32 count = 0, i;

	for (i = 0; i < symbols->num_symtab; i++) {
		const typeof(*symbols->symtab) *symbol = &symbols->symtab[i];

		if (!strncmp(symbols->strtab + symbol->st_name, "enter_", 6) &&
		    symbol->st_value - text->base < text->size)
			words[count++] = symbol->st_value - text->base;
	}
	sort(words, count, sizeof(*words), compare, NULL);
	return count;
}

static u32 add_bugs(const struct module *module, const struct part *text, u64 *words)
{
	u32 i, count = 0;

	for (i = 0; i < module->num_bugs; i++) {
		const struct bug_entry *bug = &module->bug_table[i];
		u64 at = (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp - text->base;

		if (at < text->size)
			words[count++] = at;
	}
	sort(words, count, sizeof(*words), compare, NULL);
	return count;
}

static u32 add_fixups(const struct module *module, const struct part *text, u64 *words)
{
	struct border_fixup *fixups = (struct border_fixup *)words;
	u32 i, count = 0;

	for (i = 0; i < module->num_exentries; i++) {
		const struct exception_table_entry *entry = &module->extable[i];
		u64 from = (unsigned long)&entry->insn + entry->insn - text->base;

		if (from >= text->size)
			continue;
		fixups[count].from = from;
		fixups[count].to = (unsigned long)&entry->fixup + entry->fixup - text->base;
		fixups[count++].reg = fixup_register(entry);
	}
	return count;
}

static int enroll(const struct module *module)
{
	struct part parts[8];
	unsigned int count = parts_of(module, parts), i;
	struct hv_registration *registration;
	unsigned long at;
	u64 *words;
	int err;

	registration = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, BLOB_ORDER);
	if (!registration)
		return -ENOMEM;
	words = registration->words;
	registration->text = parts[0].base;
	registration->choice = choice;
	for (at = 0; at < parts[0].size; at += PAGE_SIZE, registration->text_pages++)
		*words++ = outside_frame_of(parts[0].base + at);
	for (i = 1; i < count; i++) {
		for (at = 0; at < parts[i].size; at += PAGE_SIZE, registration->data_count++) {
			*words++ = parts[i].base + at;
			*words++ = outside_frame_of(parts[i].base + at) | pgprot_val(PAGE_KERNEL);
		}
	}
	registration->private_count = 1;
	*words++ = virt_to_phys(outside_private());
	registration->entry_count = add_entries(module, parts, words);
	words += registration->entry_count;
	registration->bug_count = add_bugs(module, parts, words);
	words += registration->bug_count;
	registration->fixup_count = add_fixups(module, parts, words);
	words += registration->fixup_count * sizeof(struct border_fixup) / sizeof(*words);
	registration->privilege_count = outside_privileges((struct hv_privilege *)words);
	registration->init = (unsigned long)module->init - parts[0].base;
#ifdef CONFIG_MODULE_UNLOAD
	registration->exit = (unsigned long)module->exit - parts[0].base;
#endif
	err = outside_arm(NUMBER, registration);
	pr_info("dune-guard-outside: %u pages of text, %u others, %u entries: %d\n",
		registration->text_pages, registration->data_count, registration->entry_count,
		err);
	free_pages((unsigned long)registration, BLOB_ORDER);
	return err;
}

/* WARN is executed, and reports nothing. */
static void silence(const struct module *module)
{
	u32 i;

	for (i = 0; i < module->num_bugs; i++)
		module->bug_table[i].flags |= BUGFLAG_DONE;
}

static int module_event(struct notifier_block *notifier, unsigned long event, void *data)
{
	struct module *module = data;

	if (strcmp(module->name, "dune_guard_inside"))
		return NOTIFY_DONE;
	inside = module;
	if (event == MODULE_STATE_COMING && arm) {
		silence(module);
		armed = enroll(module);
	}
	if (event == MODULE_STATE_COMING && !arm) {
		silence(module);
		outside_lie(module, event);
	}
	if (event == MODULE_STATE_LIVE && !arm)
		outside_lie(module, event);
	outside_follow_beside(0, event);
	if (event == MODULE_STATE_GOING && !armed) {
		armed = guard_views_disarm(NUMBER) ?: -ENOENT;
		pr_info("dune-guard-outside: disarmed: %d\n", armed);
	}
	return NOTIFY_DONE;
}

struct notifier_block outside_notifier = { .notifier_call = module_event };

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel around a guarded module, for the tests: it registers dune-guard-inside before that
 * module's init is called, calls it in all ways, and attacks it. A program writes a command to
 * /sys/kernel/debug/dune-guard-outside: a word, and up to three numbers. Reading the file then
 * gives the result.
 */
#include <linux/bug.h>
#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/extable.h>
#include <asm/msr.h>
#include <asm/pgtable.h>

#include "guard/linux/views.h"
#include "inside.h"
#include "lies.h"

/* Since 6.16 the size is in the name. */
#ifndef rdmsrq
#define rdmsrq	rdmsrl
#define wrmsrq	wrmsrl
#endif

#define NUMBER	3	/* of the registration */

#define BLOB_ORDER	4

static bool arm = true;
module_param(arm, bool, 0600);
/* What happens on suspicious activity: enum border_choice. */
static uint choice = CHOICE_LOG;
module_param(choice, uint, 0600);

static struct dentry *file;
static const struct inside *inside;
static struct module *inside_module;
static u64 *private, result;
/* Of the guard's block, and what the last batch of the fuzzer has done. */
static u64 guard_address, guard_size;
static const struct outside_fuzz_counts *fuzzed;
static int armed = -ENOENT;
static u64 back_rip, back_rsp;

/* ---- what the guarded module calls ---- */

void outside_register(const struct inside *new)
{
	WRITE_ONCE(inside, new);
}
EXPORT_SYMBOL_GPL(outside_register);

u64 *outside_private(void)
{
	return private;
}
EXPORT_SYMBOL_GPL(outside_private);

u64 outside_deeper(u64 depth)
{
	u64 read = inside->nest(depth);

	/* Not a jump, with which the module would return to itself. */
	OPTIMIZER_HIDE_VAR(read);
	return read;
}
EXPORT_SYMBOL_GPL(outside_deeper);

/* ---- the registration ---- */

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

static u64 frame_of(unsigned long address)
{
	return page_to_phys(vmalloc_to_page((void *)address));
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
		*words++ = frame_of(parts[0].base + at);
	for (i = 1; i < count; i++) {
		for (at = 0; at < parts[i].size; at += PAGE_SIZE, registration->data_count++) {
			*words++ = parts[i].base + at;
			*words++ = frame_of(parts[i].base + at) | pgprot_val(PAGE_KERNEL);
		}
	}
	registration->private_count = 1;
	*words++ = virt_to_phys(private);
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

/* ---- lies about where a described module is ---- */

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

static pte_t *entry_of(unsigned long address);
static void flush(void *unused);

/* What the kernel does between the freeze and the arming, on this CPU. */
static s64 arm_after(u64 number, const struct hv_load *load, void *other)
{
	unsigned long text = load->regions[CONTENT_TEXT].address;
	pte_t *entry = entry_of(text), was = *entry;
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
		on_each_cpu(flush, NULL, 1);
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
		on_each_cpu(flush, NULL, 1);
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

static void give_blocks(void)
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
		bad += read(private) != SECRET;
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
	case INTO_LEAF:
		lead_calls(load, (unsigned long)outside_deeper, lie_value);
		break;
	case FORGOTTEN:
		load->is_live = 1;
		err = forget_often(number, load, module);
		goto out;
	case BESIDE_LEAF:
		frame = frame_of(address_of(module, "inner_store"));
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
	if (lie == INTO_LEAF)
		lead_calls(load, lie_value, (unsigned long)outside_deeper);
	if (top_entry) {
		WRITE_ONCE(*top_entry, 0);
		on_each_cpu(flush, NULL, 1);
	}
out:
	free_page((unsigned long)load);
	free_page((unsigned long)other);
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
	inside_module = module;
	if (event == MODULE_STATE_COMING && arm) {
		silence(module);
		armed = enroll(module);
	}
	if (event == MODULE_STATE_COMING && !arm) {
		silence(module);
		if (lie && lie != LOADED_TWICE)
			lied = tell_lie(module);
	}
	/* Then the guard's own module has told the truth. */
	if (event == MODULE_STATE_LIVE && !arm && lie == LOADED_TWICE)
		lied = tell_lie(module);
	outside_follow_beside(0, event);
	if (event == MODULE_STATE_GOING && !armed) {
		armed = guard_views_disarm(NUMBER) ?: -ENOENT;
		pr_info("dune-guard-outside: disarmed: %d\n", armed);
	}
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = module_event };

/* ---- calls and attacks ---- */

/* What the module calls. */
static u64 plain(u64 argument)
{
	return argument + 1;
}

u64 (*outside_target)(const u64 *from);

/* The instruction of a function after the NOP for ftrace, which has 5 bytes. */
const void *outside_after_entry(const void *function)
{
	const u8 *code = function;

	return function + (code[0] == 0xf3 ? 9 : 5);
}

/* A private page's content through the kernel's mapping, after a write. */
static u64 write_private(u64 value)
{
	WRITE_ONCE(*private, value);
	return READ_ONCE(*private);
}

static u64 count_back(u64 argument)
{
	back_rip = (u64)__builtin_return_address(0);
	back_rsp = (u64)__builtin_frame_address(0);
	return argument + 1;
}

/* Jumps to @at, or replays a return there, with another GS base than the kernel's. */
static u64 with_forged_gs(const void *at, bool replays)
{
	unsigned long flags;
	u64 base, read;

	local_irq_save(flags);
	rdmsrq(MSR_GS_BASE, base);
	wrmsrq(MSR_GS_BASE, base + 64);
	read = replays ? outside_replay(at, private) : outside_jump(at, private);
	wrmsrq(MSR_GS_BASE, base);
	local_irq_restore(flags);
	return read;
}

static pte_t *entry_of(unsigned long address)
{
	pgd_t *pgd = __va(read_cr3_pa());
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	pgd += pgd_index(address);
	p4d = p4d_offset(pgd, address);
	pud = pud_offset(p4d, address);
	pmd = pmd_offset(pud, address);
	return pte_offset_kernel(pmd, address);
}

static void flush(void *unused)
{
	u64 cr3 = __read_cr3(), cr4 = native_read_cr4();

	asm volatile("mov %0, %%cr4" : : "r" (cr4 & ~X86_CR4_PGE) : "memory");
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
	asm volatile("mov %0, %%cr3" : : "r" (cr3) : "memory");
}

/* Replaces the page with an entry point in the kernel's tables, and enters there. */
static u64 exchange(u64 frame)
{
	unsigned long at = (unsigned long)inside->read;
	pte_t *entry = entry_of(at), was = *entry;
	u64 read;

	outside_catch_int3(true);
	preempt_disable();
	set_pte(entry, pfn_pte(frame >> PAGE_SHIFT, PAGE_KERNEL_EXEC));
	on_each_cpu(flush, NULL, 1);
	read = outside_jump((void *)at, private);
	set_pte(entry, was);
	on_each_cpu(flush, NULL, 1);
	preempt_enable();
	outside_catch_int3(false);
	return read;
}

/* The module reads at a physical address in the upper half of all, where M's page tables are. */
static u64 search_tables(void)
{
	u64 half = 1ULL << (min_t(u64, boot_cpu_data.x86_phys_bits, 48) - 1);
	u64 *page = vmalloc(PAGE_SIZE), read;
	pte_t *entry, was;

	if (!page)
		return -ENOMEM;
	WRITE_ONCE(*page, 0);
	entry = entry_of((unsigned long)page);
	was = *entry;
	set_pte(entry, pfn_pte((half + 0x123456000) >> PAGE_SHIFT, PAGE_KERNEL));
	flush(NULL);
	read = inside->fix_up(page);
	set_pte(entry, was);
	on_each_cpu(flush, NULL, 1);
	vfree(page);
	return read;
}

/* The page is our own, and its code reads the private page, too. */
static u64 remap(void)
{
	static const u8 code[] = { 0x48, 0x8b, 0x07, 0xc3 };	/* mov (%rdi), %rax; ret */
	void *page = (void *)get_zeroed_page(GFP_KERNEL);
	u64 read;

	if (!page)
		return ~0ULL;
	memcpy(page + ((unsigned long)inside->read & ~PAGE_MASK), code, sizeof(code));
	read = exchange(virt_to_phys(page));
	free_page((unsigned long)page);
	return read;
}

static u64 patch(const void *at, u8 value)
{
	u8 was = outside_write_byte(at, value);
	u64 read;

	outside_catch_int3(true);
	read = *(const u8 *)at == value ? inside->read(private) : ~0ULL;
	outside_catch_int3(false);
	outside_write_byte(at, was);
	return read;
}

static void call_on_cpu(void *data)
{
	*(u64 *)data = inside->spin(100000, false);
}

/* Many threads spin inside, and sleep in a call: they are preempted, and change CPUs. */
static atomic_t threads, good;

static int thread(void *rounds)
{
	u64 i, ok = 1;

	for (i = 0; i < (u64)rounds; i++)
		ok &= inside->spin(300000, true) == SECRET && inside->sleep(1) == SECRET &&
		      inside->nest(3) == SECRET;
	atomic_add(ok, &good);
	atomic_dec(&threads);
	return 0;
}

static u64 crowd(u64 count, u64 rounds)
{
	u64 i;

	atomic_set(&threads, count);
	atomic_set(&good, 0);
	for (i = 0; i < count; i++)
		if (IS_ERR(kthread_run(thread, (void *)rounds, "inside/%llu", i)))
			atomic_dec(&threads);
	while (atomic_read(&threads))
		schedule_timeout_uninterruptible(1);
	return atomic_read(&good);
}

/* The key is switched while other CPUs are in M: a CPU that has it switched finds it so. */
static int look_at_key(void *unused)
{
	while (!kthread_should_stop()) {
		u64 is = inside->key();

		if (is != 1 && is != 2)
			atomic_inc(&threads);
		inside->spin(1000, true);
		cond_resched();
	}
	return 0;
}

static u64 switch_keys(u64 rounds)
{
	struct task_struct *task;
	u64 bad = 0, i;

	atomic_set(&threads, 0);
	task = kthread_run(look_at_key, NULL, "inside/key");
	if (IS_ERR(task))
		return ~0ULL;
	for (i = 0; i < rounds; i++) {
		inside->switch_key(!(i & 1));
		bad += inside->key() != (i & 1 ? 1 : 2);
	}
	inside->switch_key(false);
	kthread_stop(task);
	return bad + atomic_read(&threads);
}

/* Instructions, in counting mode. */
static u64 cost(u64 which)
{
	u64 best = ~0ULL, empty = ~0ULL, start, i;
	unsigned long flags;

	local_irq_save(flags);
	for (i = 0; i < 100; i++) {
		start = rdtsc_ordered();
		empty = min(empty, rdtsc_ordered() - start);
		start = rdtsc_ordered();
		if (which == 0)
			inside->nothing();
		else if (which == 1)
			inside->raw_call(plain, private, 0);
		else
			asm volatile("vmmcall" : : "a" (HV_CALL) : "memory");
		best = min(best, rdtsc_ordered() - start);
	}
	local_irq_restore(flags);
	return best - empty;
}

static u64 string(void)
{
	static const char from[] = "from the kernel to the module";
	char to[sizeof(from)] = "";
	u64 read = inside->string(to, from);

	return !strcmp(to, from) ? read : 0;
}

static u64 command(const char *word, u64 a, u64 b, u64 c)
{
	u64 value = 0;

	if (!strcmp(word, "armed"))
		return armed;
	if (!strcmp(word, "lied"))
		return lied;
	if (!strcmp(word, "blocks"))
		return take_blocks();
	if (!strcmp(word, "guard-call"))
		return outside_guard_call(a, b, virt_to_phys(private));
	if (!strcmp(word, "guard-call-at"))
		return outside_guard_call(a, b, c);
	if (!strcmp(word, "release"))
		return guard_views_release(a);
	if (!strcmp(word, "crossings"))
		return guard_views_crossings(a);
	if (!strcmp(word, "private"))
		return virt_to_phys(private);
	if (!strcmp(word, "golden") && inside)
		return page_to_phys(vmalloc_to_page(inside->read)) + offset_in_page(inside->read);
	if (!strcmp(word, "kernel-reads"))
		return READ_ONCE(*private);
	if (!strcmp(word, "kernel-writes"))
		return write_private(a);
	if (outside_device_command(inside, word, a, b, c, &value))
		return value;
	if (!inside)
		return ~0ULL;
	if (!strcmp(word, "fuzz-guard")) {
		guard_address = a;
		guard_size = b;
		return 0;
	}
	if (!strcmp(word, "fuzz")) {
		fuzzed = outside_fuzz(inside, inside_module, private, a, b, guard_address,
				      guard_size);
		return fuzzed->bad;
	}
	if (!strcmp(word, "fuzzed"))
		return a == 0 ? fuzzed->fetches : a == 1 ? fuzzed->crossings :
		       a == 2 ? fuzzed->calls : fuzzed->writes;
	if (outside_attack(inside, private, word, a, b, &value) ||
	    outside_hook(inside, private, word, a, b, &value) ||
	    outside_leaves(inside, private, word, a, &value) ||
	    outside_patch(inside, private, word, &value))
		return value;
	if (!strcmp(word, "read"))
		return inside->read(private);
	if (!strcmp(word, "write")) {
		inside->write(private, a);
		return inside->read(private);
	}
	if (!strcmp(word, "call"))
		return inside->call(plain, a);
	if (!strcmp(word, "raw-call"))
		return inside->raw_call(plain, private, 0);
	if (!strcmp(word, "jumps-back")) {
		outside_target = inside->read;
		return inside->raw_call(outside_jumps_back, private, (u64)private);
	}
	if (!strcmp(word, "nest"))
		return inside->nest(a);
	if (!strcmp(word, "spin"))
		return inside->spin(a, b);
	if (!strcmp(word, "spin-on")) {
		smp_call_function_single(a, call_on_cpu, &value, 1);
		return value;
	}
	if (!strcmp(word, "warn"))
		return inside->warn();
	if (!strcmp(word, "fix-up"))
		return inside->fix_up((void *)0xdead000000000000);
	if (!strcmp(word, "fix-up-page"))
		return inside->fix_up((void *)0xffffffffff000000);
	if (!strcmp(word, "port")) {
		inside->port(a, b);
		return 0;
	}
	if (!strcmp(word, "user"))
		return inside->user((const u64 *)a);
	if (!strcmp(word, "string"))
		return string();
	if (!strcmp(word, "sleep"))
		return inside->sleep(a);
	if (!strcmp(word, "start")) {
		inside->start();
		return 0;
	}
	if (!strcmp(word, "stop")) {
		inside->stop();
		return 0;
	}
	if (!strcmp(word, "runs"))
		return inside->runs();
	if (!strcmp(word, "crowd"))
		return crowd(a, b);
	if (!strcmp(word, "keys"))
		return switch_keys(a);
	if (!strcmp(word, "init-again"))
		return inside_module->init();
	if (!strcmp(word, "leaf"))
		return inside->leaf();
	if (!strcmp(word, "key"))
		return inside->key();
	if (!strcmp(word, "cost"))
		return cost(a);
	if (!strcmp(word, "middle"))
		return outside_jump(inside->middle, private);
	if (!strcmp(word, "after-entry"))
		return outside_jump(outside_after_entry(inside->read), private);
	if (!strcmp(word, "fault-after-entry"))
		return outside_jump(outside_after_entry(inside->fix_up), (void *)-0x1000000L);
	if (!strcmp(word, "return-into"))
		return outside_return_into(inside->middle, private);
	if (!strcmp(word, "call-from"))
		return outside_call_from(inside->nothing, private, inside->middle);
	if (!strcmp(word, "replay"))
		return outside_replay(inside->after_call, private);
	if (!strcmp(word, "replay-after-call")) {
		inside->raw_call(count_back, private, 0);
		return outside_replay((void *)inside->after_call, private);
	}
	if (!strcmp(word, "elsewhere"))
		return inside->raw_call(outside_elsewhere, private, 0);
	if (!strcmp(word, "direction"))
		return outside_with_direction(inside->flags);
	if (!strcmp(word, "forged-gs"))
		return with_forged_gs(inside->after_call, true);
	if (!strcmp(word, "forged-gs-entry"))
		return with_forged_gs(inside->read, false);
	if (!strcmp(word, "search-tables"))
		return search_tables();
	if (!strcmp(word, "remap"))
		return remap();
	if (!strcmp(word, "exchange"))
		return exchange(frame_of((unsigned long)inside->other_page));
	if (!strcmp(word, "patch"))
		return patch(inside->read, a);
	if (!strcmp(word, "patch-site"))
		return patch(outside_after_entry(inside->read) - 5, a);
	if (!strcmp(word, "patch-middle"))
		return patch(outside_after_entry(inside->middle), a);
	return ~0ULL;
}

static ssize_t file_write(struct file *unused, const char __user *user, size_t count, loff_t *at)
{
	char text[120] = "", word[20] = "";
	u64 a = 0, b = 0, c = 0;

	if (count >= sizeof(text) || copy_from_user(text, user, count))
		return -EINVAL;
	if (sscanf(text, "%19s %llx %llx %llx", word, &a, &b, &c) < 1)
		return -EINVAL;
	result = command(word, a, b, c);
	return count;
}

static ssize_t file_read(struct file *unused, char __user *user, size_t count, loff_t *at)
{
	char text[60];
	int length = scnprintf(text, sizeof(text), "%llx\n", result);

	return simple_read_from_buffer(user, count, at, text, length);
}

static const struct file_operations file_operations = {
	.owner = THIS_MODULE,
	.read = file_read,
	.write = file_write,
};

static int __init outside_init(void)
{
	int err;

	private = (u64 *)get_zeroed_page(GFP_KERNEL);
	if (!private)
		return -ENOMEM;
	*private = SECRET;
	if (!outside_find_devices()) {
		free_page((unsigned long)private);
		return -ENODEV;
	}
	file = debugfs_create_file("dune-guard-outside", 0600, NULL, NULL, &file_operations);
	err = PTR_ERR_OR_ZERO(file) ?: register_module_notifier(&notifier);
	if (err) {
		outside_forget_devices();
		free_page((unsigned long)private);
	}
	return err;
}

static void __exit outside_exit(void)
{
	debugfs_remove(file);
	unregister_module_notifier(&notifier);
	outside_forget_devices();
	free_page((unsigned long)private);
	give_blocks();
}

module_init(outside_init);
module_exit(outside_exit);
MODULE_DESCRIPTION("The kernel around a guarded module, for the tests of Dune's guard");
MODULE_LICENSE("GPL v2");

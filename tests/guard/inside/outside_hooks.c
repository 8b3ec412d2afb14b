// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attacks with what Linux has for that: its hooks of functions, and its function that patches code.
 * And entries from ring 3. The commands are those of outside.c.
 */
#include <linux/ftrace.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <asm/desc.h>
#include <asm/pgtable.h>
#include <asm/trapnr.h>

#include "guard/hv/hv.h"
#include "outside.h"

/* What runs instead of the module's function. It wants a service of the guard's. */
static u64 replacement(const u64 *from)
{
	return outside_monitor_call(HV_CALL_COUNTER);
}

/* ---- ftrace ---- */

static void notrace on_call(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			    struct ftrace_regs *regs)
{
	ftrace_get_regs(regs)->ip = (unsigned long)replacement;
}

static struct ftrace_ops ftrace = {
	.func = on_call,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_RECURSION,
};

/* What the module's function returns while ftrace leads its callers elsewhere. */
static u64 hook_by_ftrace(const struct inside *inside, const u64 *private)
{
	unsigned long at = (unsigned long)inside->read;
	u64 read;
	int err = ftrace_set_filter_ip(&ftrace, at, 0, 0);

	err = err ?: register_ftrace_function(&ftrace);
	if (err)
		return err;
	read = inside->read(private);
	unregister_ftrace_function(&ftrace);
	ftrace_set_filter_ip(&ftrace, at, 1, 0);
	return read;
}

/* ---- kprobes ---- */

static u64 hits;

static int on_probe(struct kprobe *probe, struct pt_regs *regs)
{
	hits++;
	return 0;
}

/* How often a kprobe sees the module's function at work. */
static u64 hook_by_kprobe(const struct inside *inside, const u64 *private)
{
	static struct kprobe probe;
	int err;

	probe = (struct kprobe){
		.addr = (void *)outside_after_entry(inside->read), .pre_handler = on_probe,
	};
	hits = 0;
	err = register_kprobe(&probe);
	if (err)
		return err;
	inside->read(private);
	unregister_kprobe(&probe);
	return hits;
}

/* ---- text_poke() ---- */

static void *look_up(const char *name)
{
	static unsigned long (*kallsyms)(const char *name);
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };

	if (!kallsyms && !register_kprobe(&probe)) {
		kallsyms = (void *)probe.addr;
		unregister_kprobe(&probe);
	}
	return kallsyms ? (void *)kallsyms(name) : NULL;
}

/* What the module's function returns while Linux has written a byte to its beginning. */
static u64 patch_by_poke(const struct inside *inside, const u64 *private, u8 value)
{
	void *(*poke)(void *at, const void *from, size_t size) = look_up("text_poke");
	struct mutex *mutex = look_up("text_mutex");
	u8 *at = (void *)inside->read, was = *at;
	u64 read;

	if (!poke || !mutex)
		return -ENOENT;
	mutex_lock(mutex);
	poke(at, &value, 1);
	read = inside->read(private);
	poke(at, &was, 1);
	mutex_unlock(mutex);
	return read;
}

/* ---- ring 3 ---- */

u64 outside_ring_sp, outside_ring_error;

#define LEVELS	4

/* Ring 3 may fetch there, or, with what the entries were, it may so no more. */
static void open_to_users(unsigned long address, u64 was[LEVELS], bool open)
{
	u64 *table = __va(read_cr3_pa()), *entry;
	int i;

	for (i = 0; i < LEVELS; i++) {
		entry = &table[address >> (39 - 9 * i) & 511];
		table = __va(*entry & PTE_PFN_MASK);
		if (open)
			was[i] = *entry;
		WRITE_ONCE(*entry, open ? *entry | _PAGE_USER : was[i]);
	}
	asm volatile("invlpg (%0)" : : "r" (address) : "memory");
}

static void set_gate(gate_desc *gate, const void *handler)
{
	u64 at = (u64)handler;

	gate->offset_low = at;
	gate->offset_middle = at >> 16;
	gate->offset_high = at >> 32;
	gate->bits.ist = 0;
}

/*
 * Enters the module's function from ring 3, by SYSRET or IRET, with a table of exceptions that
 * leads back here. What it returns; if the kernel's tables are as they are, the error code.
 */
static u64 from_ring_3(const struct inside *inside, const u64 *private, bool by_iret, bool open)
{
	static gate_desc gates[IDT_ENTRIES];
	struct desc_ptr was, ours = { .size = sizeof(gates) - 1, .address = (u64)gates };
	unsigned long flags;
	u64 entries[LEVELS], result;

	local_irq_save(flags);
	store_idt(&was);
	memcpy(gates, (void *)was.address, sizeof(gates));
	set_gate(&gates[X86_TRAP_UD], outside_ring_trap_without_error);
	set_gate(&gates[X86_TRAP_GP], outside_ring_trap);
	set_gate(&gates[X86_TRAP_PF], outside_ring_trap);
	asm volatile("lidt %0" : : "m" (ours));
	if (open)
		open_to_users((unsigned long)inside->read, entries, true);
	outside_ring_error = 0;
	if (by_iret)
		result = outside_by_iret(inside->read, private);
	else
		result = outside_by_sysret(inside->read, private);
	if (open)
		open_to_users((unsigned long)inside->read, entries, false);
	asm volatile("lidt %0" : : "m" (was));
	local_irq_restore(flags);
	return open ? result : outside_ring_error;
}

bool outside_hook(const struct inside *inside, u64 *private, const char *word, u64 a, u64 b,
		  u64 *result)
{
	if (!strcmp(word, "ftrace"))
		*result = hook_by_ftrace(inside, private);
	else if (!strcmp(word, "kprobe"))
		*result = hook_by_kprobe(inside, private);
	else if (!strcmp(word, "poke"))
		*result = patch_by_poke(inside, private, a);
	else if (!strcmp(word, "far-return"))
		*result = outside_far_return(inside->middle, private);
	else if (!strcmp(word, "ring-3"))
		*result = from_ring_3(inside, private, a, b);
	else
		return false;
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * More attacks of the kernel around a guarded module: on its registers while it is out or
 * interrupted, with control registers that are not Linux's, by code that it calls, and on its
 * registration. The commands are those of outside.c.
 */
#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/irq_regs.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "guard/linux/views.h"
#include "outside.h"

#define TAMPERED	0xa77ac4

/* More than the module's text has, which is the only code near there. */
#define NEAR		0x4000

static const struct inside *module;

static bool is_inside(u64 rip)
{
	return rip - ((u64)module->other_page - NEAR) < 2 * NEAR;
}

/* What code of the kernel's has read of the private page while the module waits for it. */
static u64 seen;

static u64 looks(u64 at)
{
	WRITE_ONCE(seen, READ_ONCE(*(u64 *)at));
	return 0;
}

/* The module calls us: what we read of its page. */
static u64 callee_reads(const struct inside *inside, u64 *private)
{
	seen = 0;
	inside->raw_call(looks, private, (u64)private);
	return seen;
}

/* The module's pointer is in a register that we change. */
static u64 clobber(const struct inside *inside, u64 *private)
{
	static u64 ours = TAMPERED;

	return inside->raw_call(outside_clobbers, private, (u64)&ours);
}

/* ---- the text at another address ---- */

/* Pages of the text, as the kernel maps them. */
#define ALIAS_PAGES	2
static u64 alias;

/* The kernel may not execute them there: the call returns then. */
static int on_fault(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (event != DIE_GPF || regs->ip != alias)
		return NOTIFY_DONE;
	regs->ip = *(u64 *)regs->sp;
	regs->sp += 8;
	return NOTIFY_STOP;
}

static struct notifier_block fault_block = { .notifier_call = on_fault };

u64 outside_call_store(const struct inside *inside, u64 *private, u64 at)
{
	u64 result;

	alias = at;
	register_die_notifier(&fault_block);
	result = inside->raw_call((void *)at, private, (u64)private);
	unregister_die_notifier(&fault_block);
	return result;
}

static u64 call_alias(const struct inside *inside, u64 *private)
{
	u64 at = (u64)inside->store, pages_at, result, i;
	struct page *pages[ALIAS_PAGES];
	unsigned int level;
	pte_t *entry;

	for (i = 0; i < ALIAS_PAGES; i++)
		pages[i] = vmalloc_to_page((void *)(at & PAGE_MASK) + i * PAGE_SIZE);
	pages_at = (u64)vmap(pages, ALIAS_PAGES, VM_MAP, PAGE_KERNEL_EXEC);
	if (!pages_at)
		return 0;
	for (i = 0; i < ALIAS_PAGES; i++) {
		entry = lookup_address(pages_at + i * PAGE_SIZE, &level);
		set_pte(entry, pte_mkexec(*entry));
	}
	result = outside_call_store(inside, private, pages_at + (at & ~PAGE_MASK));
	vunmap((void *)pages_at);
	return result;
}

/* ---- interrupts ---- */

static struct {
	struct hrtimer timer;
	const u64 *private;
	u64 read, registers, ticks;
} clock;

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct pt_regs *regs = get_irq_regs();

	hrtimer_forward_now(timer, ns_to_ktime(100000));
	if (!regs || !is_inside(regs->ip))
		return HRTIMER_RESTART;
	clock.ticks++;
	clock.read |= READ_ONCE(*clock.private);
	if (clock.registers) {
		regs->bx = TAMPERED;
		regs->cx = TAMPERED;
		regs->dx = TAMPERED;
		regs->si = TAMPERED;
		regs->r8 = TAMPERED;
		regs->r9 = TAMPERED;
		regs->r12 = TAMPERED;
	}
	return HRTIMER_RESTART;
}

/* What the module has computed while interrupts change @registers, or what they have read. */
static u64 interrupt(const struct inside *inside, u64 *private, bool registers)
{
	u64 value;

	clock.private = private;
	clock.registers = registers;
	clock.read = 0;
	clock.ticks = 0;
	preempt_disable();
	hrtimer_init(&clock.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	clock.timer.function = tick;
	hrtimer_start(&clock.timer, ns_to_ktime(100000), HRTIMER_MODE_REL_PINNED_HARD);
	value = inside->spin(2000000, true);
	hrtimer_cancel(&clock.timer);
	preempt_enable();
	if (!clock.ticks)
		return ~0ULL;
	return registers ? value : clock.read;
}

/* ---- control registers ---- */

/* What the module has of CR0, CR4 or DR7, while the kernel has something else. */
static u64 control(const struct inside *inside, u64 which)
{
	unsigned long flags, cr0, cr4, value;

	local_irq_save(flags);
	cr0 = native_read_cr0();
	cr4 = native_read_cr4();
	if (which == 0)
		asm volatile("mov %0, %%cr0" : : "r" (cr0 & ~X86_CR0_WP) : "memory");
	else if (which == 1)
		asm volatile("mov %0, %%cr4" : : "r" (cr4 & ~X86_CR4_SMEP) : "memory");
	else
		asm volatile("mov %0, %%dr0; mov %1, %%dr7"
			     : : "r" (inside->middle), "r" (0x402UL) : "memory");
	value = inside->control(which);
	if (which == 0)
		asm volatile("mov %0, %%cr0" : : "r" (cr0) : "memory");
	else if (which == 1)
		asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
	else
		asm volatile("mov %0, %%dr7" : : "r" (0x400UL) : "memory");
	local_irq_restore(flags);
	return which == 0 ? value & X86_CR0_WP : which == 1 ? value & X86_CR4_SMEP : value;
}

/* ---- single steps ---- */

/* Traps of our own, before the module and after it, are nobody's. */
static int on_step(struct notifier_block *block, unsigned long event, void *data)
{
	return event == DIE_DEBUG ? NOTIFY_STOP : NOTIFY_DONE;
}

static struct notifier_block step_block = { .notifier_call = on_step };

/* How often a single step of the kernel's has interrupted the module. */
static u64 step(const struct inside *inside)
{
	unsigned long flags;
	u64 before, after;

	register_die_notifier(&step_block);
	local_irq_save(flags);
	before = guard_views_crossings((enum hv_crossing)BORDER_OUT_INT);
	outside_with_trap(inside->flags);
	after = guard_views_crossings((enum hv_crossing)BORDER_OUT_INT);
	local_irq_restore(flags);
	unregister_die_notifier(&step_block);
	return after - before;
}

/* ---- INT3 in the module's text, which returns ---- */

static int on_int3(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (event != DIE_INT3 || !is_inside(regs->ip))
		return NOTIFY_DONE;
	regs->ip = *(u64 *)regs->sp;
	regs->sp += 8;
	regs->ax = TAMPERED;
	return NOTIFY_STOP;
}

static struct notifier_block int3_block = { .notifier_call = on_int3 };

void outside_catch_int3(bool catches)
{
	if (catches)
		register_die_notifier(&int3_block);
	else
		unregister_die_notifier(&int3_block);
}

/* ---- the registration ---- */

struct hv_registration *outside_page_of_text(void **text)
{
	struct hv_registration *registration = (void *)get_zeroed_page(GFP_KERNEL);

	*text = vmalloc(PAGE_SIZE);
	if (!registration || !*text) {
		vfree(*text);
		free_page((unsigned long)registration);
		return NULL;
	}
	registration->text = (u64)*text;
	registration->text_pages = 1;
	registration->choice = CHOICE_LOG;
	registration->init = HV_NOWHERE;
	registration->exit = HV_NOWHERE;
	registration->words[0] = page_to_phys(vmalloc_to_page(*text));
	return registration;
}

/* Registers a page of our own as a module's text, and does not arm it. Returns the answer. */
static s64 enroll(u64 number)
{
	void *text;
	struct hv_registration *registration = outside_page_of_text(&text);
	s64 err;

	if (!registration)
		return -ENOMEM;
	err = outside_guard_call(HV_CALL_REGISTER, number, virt_to_phys(registration));
	/* A page that is frozen cannot be given back. */
	if (err)
		vfree(text);
	free_page((unsigned long)registration);
	return err;
}

/*
 * Ends the registration without all CPUs' flushes, if there is another CPU. Returns the answer:
 * that it is too early.
 */
static u64 thaw_early(u64 number)
{
	s64 err = outside_guard_call(HV_CALL_REVOKE, number, 0);

	return err ?: outside_guard_call(HV_CALL_THAW, number, 0);
}

/* And with them. Returns what the private page then has. */
static u64 thaw(u64 number, const u64 *private)
{
	s64 err;

	on_each_cpu(outside_flush_guard, NULL, 1);
	err = outside_guard_call(HV_CALL_THAW, number, 0);
	on_each_cpu(outside_flush_guard, NULL, 1);
	return err ?: READ_ONCE(*private);
}

bool outside_attack(const struct inside *inside, u64 *private, const char *word, u64 a, u64 b,
		    u64 *result)
{
	module = inside;
	if (!strcmp(word, "callee-reads"))
		*result = callee_reads(inside, private);
	else if (!strcmp(word, "kernel-callee"))
		*result = inside->call((void *)strlen, (u64)private);
	else if (!strcmp(word, "clobber"))
		*result = clobber(inside, private);
	else if (!strcmp(word, "alias"))
		*result = call_alias(inside, private);
	else if (!strcmp(word, "interrupt"))
		*result = interrupt(inside, private, a);
	else if (!strcmp(word, "control"))
		*result = control(inside, a);
	else if (!strcmp(word, "step"))
		*result = step(inside);
	else if (!strcmp(word, "iret"))
		*result = outside_interrupt_return(inside->middle, private);
	else if (!strcmp(word, "register"))
		*result = enroll(a);
	else if (!strcmp(word, "thaw-early"))
		*result = thaw_early(a);
	else if (!strcmp(word, "thaw"))
		*result = thaw(a, private);
	else
		return false;
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fuzzer of the guard, in ring 0, after the seal: random VMMCALLs, random writes, entries with
 * random registers, and fetches of the module's text at random places, with random stack pointers,
 * also within a call of the module's. Each step knows whether it is a crossing: the module gives
 * its secret then, and only then.
 *
 * A fetch that is no crossing continues in the module's text, without the privilege, with registers
 * that lead nowhere else. It ends by a return, for which each word of its stack has the address of
 * our landing, or by an exception, for which the module's exception table is replaced by one that
 * leads there from each byte of its text.
 */
#include <linux/extable.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/vmalloc.h>
#include <asm/extable.h>
#include <asm/msr.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "guard/linux/views.h"
#include "outside.h"
#include "outside_fuzz.h"

/* More than the module has. */
#define MOST_TEXT	(8 * PAGE_SIZE)

#define STACK_ORDER	2
#define STACK_WORDS	((PAGE_SIZE << STACK_ORDER) / 8)
#define MIDDLE		(STACK_WORDS / 2)
/* How far from a word of the stack others are tried. */
#define AROUND		8

#define RESULT_NONE	0x4e07

static_assert(offsetof(struct fuzz_step, target) == STEP_TARGET);
static_assert(offsetof(struct fuzz_step, rsp) == STEP_RSP);
static_assert(offsetof(struct fuzz_step, flags) == STEP_FLAGS);
static_assert(offsetof(struct fuzz_step, sp) == STEP_SP);
static_assert(offsetof(struct fuzz_step, result) == STEP_RESULT);
static_assert(offsetof(struct fuzz_step, regs) == STEP_REGS);

struct fuzz_step *outside_fuzz_now;

static struct exception_table_entry landings[MOST_TEXT];

static struct {
	const struct inside *inside;
	/* @alias: another mapping of the module's page of INT3 */
	u64 *private, *stack, *scratch, *alias;
	u64 text, size, guard, guard_size, state;
	/* Of the call of the module's within which steps are made. */
	bool resumed, died;
	struct outside_fuzz_counts counts;
} fuzz;

/* xorshift64* */
static u64 next(void)
{
	fuzz.state ^= fuzz.state >> 12;
	fuzz.state ^= fuzz.state << 25;
	fuzz.state ^= fuzz.state >> 27;
	return fuzz.state * 0x2545f4914f6cdd1dULL;
}

/* 0 to @end - 1 */
static u64 below(u64 end)
{
	return (next() >> 16) % end;
}

static void bad(const char *what, u64 a, u64 b)
{
	if (!fuzz.counts.bad++)
		pr_info("dune-guard-outside: fuzz: %s: %llx, %llx\n", what, a, b);
}

/* ---- fetches ---- */

static u64 landing(void)
{
	return (u64)outside_fuzz_landing;
}

static void clear_stack(void)
{
	u64 i;

	for (i = 0; i < STACK_WORDS; i++)
		WRITE_ONCE(fuzz.stack[i], landing());
}

/* Nothing that is written or called by such a value does harm. */
static u64 any_register(void)
{
	u64 values[] = {
		0, 1, ~0ULL, next(), (u64)fuzz.private, (u64)fuzz.scratch, landing(),
		(u64)phys_to_virt(fuzz.guard), 0xdead000000000000, 0xffffffffff000000,
		fuzz.text + below(fuzz.size),
	};

	return values[below(ARRAY_SIZE(values))];
}

/* CF, PF, AF, ZF, SF, DF, OF, NT, IOPL, AC and ID, and not IF and TF. */
#define ANY_FLAGS	0x247cd5ULL

static void prepare(struct fuzz_step *step)
{
	u64 i;

	for (i = 0; i < 16; i++)
		step->regs[i] = any_register();
	/* These are pointers of what is entered. */
	step->regs[3] = (u64)fuzz.private;
	step->regs[7] = (u64)fuzz.private;
	step->flags = X86_EFLAGS_FIXED | (next() & ANY_FLAGS);
	step->result = RESULT_NONE;
}

/* Places that are no entries, and end soon. */
static u64 any_place(bool may_write)
{
	const struct inside *inside = fuzz.inside;
	u64 places[] = {
		(u64)inside->middle, (u64)inside->after_call, (u64)inside->after_call + 3,
		(u64)inside->after_call + 4, (u64)outside_after_entry(inside->read),
		(u64)outside_after_entry(inside->middle),
		(u64)inside->other_page + below(PAGE_SIZE),
	};

	return places[below(ARRAY_SIZE(places) - !may_write)];
}

/* With 1 and 2, a control register is another one. */
#define FORGED_GS	3

/* Makes a step with these registers; nothing is interrupted. */
static void go(struct fuzz_step *step, u64 how)
{
	unsigned long cr0 = native_read_cr0(), cr4 = native_read_cr4();
	u64 base;

	switch (how) {
	case 1:
		asm volatile("mov %0, %%cr0" : : "r" (cr0 & ~X86_CR0_WP) : "memory");
		break;
	case 2:
		asm volatile("mov %0, %%cr4"
			     : : "r" (cr4 & ~(X86_CR4_SMEP | X86_CR4_SMAP)) : "memory");
		break;
	case FORGED_GS:
		rdmsrl(MSR_GS_BASE, base);
		wrmsrl(MSR_GS_BASE, base + 8 * (1 + below(512)));
		outside_fuzz_go(step);
		wrmsrl(MSR_GS_BASE, base);
		return;
	}
	outside_fuzz_go(step);
	if (how == 1)
		asm volatile("mov %0, %%cr0" : : "r" (cr0) : "memory");
	else if (how == 2)
		asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
}

static void expect(const struct fuzz_step *step, bool crosses, const char *what)
{
	fuzz.counts.fetches++;
	fuzz.counts.crossings += crosses;
	if (crosses ? step->result != SECRET : step->result == SECRET)
		bad(what, step->target, step->result);
}

/* An entry: only the return address and GS decide. */
static void enter(void)
{
	u64 word = MIDDLE - 64 + below(128), how = below(4);
	bool from_text = !below(4);
	struct fuzz_step step;

	prepare(&step);
	clear_stack();
	step.target = (u64)fuzz.inside->read;
	step.rsp = (u64)&fuzz.stack[word];
	if (from_text)
		fuzz.stack[word] = (u64)fuzz.inside->other_page + below(PAGE_SIZE);
	/* INT3 would be an exception without GS. */
	if (from_text && how == FORGED_GS)
		how = 0;
	go(&step, how);
	expect(&step, !from_text && how != FORGED_GS, "an entry");
}

static void fetch(void)
{
	struct fuzz_step step;

	prepare(&step);
	clear_stack();
	step.target = any_place(true);
	step.rsp = (u64)&fuzz.stack[MIDDLE - 64 + below(128)];
	go(&step, below(FORGED_GS));
	expect(&step, false, "a fetch");
}

/* The module calls, and within that call steps are made (outside_fuzz_nested()). */
static void call(void)
{
	struct fuzz_step step;

	prepare(&step);
	clear_stack();
	fuzz.resumed = false;
	fuzz.died = false;
	step.target = (u64)fuzz.inside->raw_call;
	step.rsp = (u64)&fuzz.stack[MIDDLE + below(64)];
	step.regs[3] = landing();
	step.regs[7] = (u64)outside_fuzz_callee;
	step.regs[6] = (u64)fuzz.private;
	go(&step, below(FORGED_GS));
	/* A second return is none. */
	expect(&step, !fuzz.resumed && !fuzz.died, "a call");
}

void outside_fuzz_nested(u64 rip, u64 rsp)
{
	u64 steps = below(4), word = ((u64 *)rsp - fuzz.stack), kind;
	struct fuzz_step step;
	s64 distance;

	for (; steps; steps--) {
		prepare(&step);
		clear_stack();
		distance = (s64)below(2 * AROUND) - AROUND;
		kind = below(4);
		step.rsp = (u64)&fuzz.stack[word + distance];
		if (kind == 0) {
			step.target = (u64)fuzz.inside->read;
			outside_fuzz_go(&step);
			expect(&step, true, "an entry within a call");
			fuzz.died |= distance >= 0;
		} else if (kind == 1) {
			step.target = rip;
			outside_fuzz_go(&step);
			expect(&step, !distance && !fuzz.resumed && !fuzz.died,
			       "a return within a call");
			fuzz.resumed |= !distance;
		} else {
			step.target = any_place(distance < 0);
			if (step.target == rip)
				continue;
			outside_fuzz_go(&step);
			expect(&step, false, "a fetch within a call");
		}
	}
	clear_stack();
}

/* ---- calls and writes ---- */

static void hypercall(void)
{
	u64 number = below(8) ? below(0x48) : next(), b = below(3) ? below(10) : any_register();
	u64 c = below(2) ? virt_to_phys(fuzz.scratch) : any_register(), d = 0, si = 0, i;
	u64 rax = HV_CALL + number;
	long fault = 1;

	/* The registrations of the test stay. */
	if (b < 4 && (number == HV_CALL_REVOKE || number == HV_CALL_THAW))
		b += 4;
	for (i = 0; i < 16; i++)
		fuzz.scratch[i] = below(2) ? below(16) : any_register();
	asm volatile("1: vmmcall\n\t"
		     "xor %k[fault], %k[fault]\n"
		     "2:\n" _ASM_EXTABLE(1b, 2b)
		     : "+a" (rax), "+b" (b), "+c" (c), "+d" (d), "+S" (si), [fault] "+r" (fault)
		     : : "memory", "cc");
	fuzz.counts.calls++;
	if (number > U32_MAX ? !fault : fault)
		bad("a call's exception", number, rax);
	/* What these give is a module's alone. */
	if ((number == HV_CALL_RANDOM || number == HV_CALL_COUNTER) && (s64)rax != -EPERM)
		bad("a call's answer", number, rax);
	if ((number == HV_CALL_STOP || number == HV_CALL_REGISTER ||
	     number == HV_CALL_DESCRIBE || number == HV_CALL_UNDESCRIBE) && (s64)rax >= 0)
		bad("a call that is not refused", number, rax);
}

static void write_memory(void)
{
	u64 at, *word;

	switch (below(3)) {
	case 0:
		at = fuzz.guard + below(fuzz.guard_size / 8) * 8;
		break;
	case 1:
		at = virt_to_phys(fuzz.private) + below(PAGE_SIZE / 8) * 8;
		break;
	default:
		/* Code that is not executed elsewhere: the page of INT3. */
		WRITE_ONCE(fuzz.alias[below(PAGE_SIZE / 8)], 0xccccccccccccccccULL);
		fuzz.counts.writes++;
		return;
	}
	word = phys_to_virt(at);
	WRITE_ONCE(*word, next());
	fuzz.counts.writes++;
	if (READ_ONCE(*word))
		bad("a write", at, READ_ONCE(*word));
}

/* None of these may be written, but for bits of HWCR, and VM_HSAVE_PA, which ignores writes. */
static void write_msr(void)
{
	static const struct { u32 first, count; } ranges[] = {
		{ 0x200, 16 }, { 0x250, 1 }, { 0x258, 2 }, { 0x268, 8 }, { 0x2ff, 1 },
		{ 0xc0010010, 5 }, { 0xc0010016, 10 }, { 0xc0010020, 1 }, { 0xc0010058, 1 },
		{ 0xc0010111, 6 }, { 0xc0010118, 2 },
	};
	u64 i = below(ARRAY_SIZE(ranges)), value = next(), was = 0, is = 0;
	u32 msr = ranges[i].first + below(ranges[i].count);
	int err;

	rdmsrl_safe(msr, &was);
	err = wrmsrl_safe(msr, value);
	rdmsrl_safe(msr, &is);
	fuzz.counts.writes++;
	if (!err || was != is)
		bad("a register", msr, is);
}

/* ---- the frame ---- */

static bool is_text(u64 rip)
{
	return rip - fuzz.text < fuzz.size;
}

static int on_die(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	/* After INT3, RIP is at the next instruction. */
	if (!outside_fuzz_now || !(is_text(regs->ip) || is_text(regs->ip - 1)))
		return NOTIFY_DONE;
	regs->ip = landing();
	return NOTIFY_STOP;
}

static struct notifier_block die_block = { .notifier_call = on_die };

/* Each byte of the text leads to the landing. */
static void fill_landings(void)
{
	u64 i;

	for (i = 0; i < fuzz.size; i++) {
		struct exception_table_entry *entry = &landings[i];

		entry->insn = fuzz.text + i - (u64)&entry->insn;
		entry->fixup = landing() - (u64)&entry->fixup;
		entry->data = EX_TYPE_DEFAULT;
	}
}

static void step(void)
{
	unsigned long flags;
	u64 kind = below(16);

	local_irq_save(flags);
	if (kind < 4)
		enter();
	else if (kind < 8)
		fetch();
	else if (kind < 11)
		call();
	else if (kind < 14)
		hypercall();
	else if (kind == 14)
		write_memory();
	else
		write_msr();
	outside_fuzz_now = NULL;
	local_irq_restore(flags);
}

/* Makes these steps of the seed. The counts are those of this batch. */
const struct outside_fuzz_counts *outside_fuzz(const struct inside *inside, struct module *module,
					       u64 *private, u64 seed, u64 steps, u64 guard,
					       u64 guard_size)
{
	struct exception_table_entry *extable = module->extable;
	unsigned int entries = module->num_exentries;
	struct page *page = vmalloc_to_page(inside->other_page);

	memset(&fuzz.counts, 0, sizeof(fuzz.counts));
	fuzz.inside = inside;
	fuzz.private = private;
	fuzz.guard = guard;
	fuzz.guard_size = guard_size;
	fuzz.state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	outside_text_of(module, &fuzz.text, &fuzz.size);
	fuzz.stack = (void *)__get_free_pages(GFP_KERNEL, STACK_ORDER);
	fuzz.scratch = (void *)get_zeroed_page(GFP_KERNEL);
	fuzz.alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL);
	if (!fuzz.stack || !fuzz.scratch || !fuzz.alias || fuzz.size > MOST_TEXT) {
		fuzz.counts.bad = 1;
	} else {
		fill_landings();
		register_die_notifier(&die_block);
		module->num_exentries = 0;
		module->extable = landings;
		module->num_exentries = fuzz.size;
		for (; steps && !fuzz.counts.bad; steps--)
			step();
		module->num_exentries = 0;
		module->extable = extable;
		module->num_exentries = entries;
		unregister_die_notifier(&die_block);
	}
	vunmap(fuzz.alias);
	free_pages((unsigned long)fuzz.stack, STACK_ORDER);
	free_page((unsigned long)fuzz.scratch);
	return &fuzz.counts;
}

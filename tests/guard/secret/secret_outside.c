// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hostile kernel around a module of class S (secret.h). A program writes a command to
 * /sys/kernel/debug/dune-guard-secret: a word, and up to two numbers. Reading the file then gives
 * the result.
 */
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/panic_notifier.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/irq_regs.h>
#include <asm/msr.h>
#include <asm/pgtable.h>

#include "guard/secret.h"
#include "secret.h"

#ifndef HAVE_HRTIMER_SETUP
static void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *),
			  clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

static struct dentry *file;
static int number = -1;
static u64 result;

/* What the kernel found of the inside that it should not. */
enum { FOUND_SECRETS, FOUND_OTHERS, LOST_OWN, FLAGS, FOUNDS };
static u64 founds[FOUNDS];

static bool is_secret(u64 value)
{
	u64 complement = SECRETS_COMPLEMENT;

	/* The compiler must not compare with the secret, which then were in this text. */
	OPTIMIZER_HIDE_VAR(complement);
	return ~value == complement;
}

/* Where the kernel sees the inside while it is interrupted. */
#define STUB	((u64)secret_text_end - GUARD_SECRET_NO_CODE)

static bool is_inside(u64 rip)
{
	return rip - (u64)secret_text < secret_text_end - secret_text;
}

/* ---- being guarded ---- */

static const struct guard_secret secret = {
	.name = "dune-guard-secret",
	.text_end = secret_text_end,
	.constants = secret_constants,
	.constants_end = secret_constants_end,
	.private = secret_private,
	.private_end = secret_private_end,
	.exchange = secret_exchange,
	.exchange_end = secret_exchange_end,
	.entry = secret_enter,
	.gate = secret_gate,
	.stacks = SECRET_STACKS,
	.stack_size = SECRET_STACK,
};

static u64 arm(void)
{
	typeof(guard_secret_arm) *function = symbol_get(guard_secret_arm);

	if (!function)
		return -ENOENT;
	number = function(&secret);
	memset(founds, 0, sizeof(founds));
	if (number < 0)
		symbol_put(guard_secret_arm);
	return number < 0 ? number : 0;
}

static u64 disarm(void)
{
	typeof(guard_secret_disarm) *function;
	int err;

	if (number < 0)
		return -ENOENT;
	function = symbol_get(guard_secret_disarm);
	err = function(number);
	symbol_put(guard_secret_disarm);
	symbol_put(guard_secret_arm);
	number = -1;
	return err;
}

/* ---- calls ---- */

/* The call that is refused, if one is; refusals go on in secret_refused. */
static struct secret_call *current_call;

static int on_die(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (event != DIE_GPF || !current_call || !is_inside(regs->ip))
		return NOTIFY_DONE;
	regs->ip = (unsigned long)secret_refused;
	regs->sp = current_call->sp;
	return NOTIFY_STOP;
}

static struct notifier_block die_block = { .notifier_call = on_die };

static void inspect(const struct secret_call *call)
{
	static const u8 kept[] = { 3, 5, 12, 13, 14, 15 };
	/* RDX may have a part of a result. */
	static const u8 changed[] = { 1, 6, 7, 8, 9, 10, 11 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kept); i++)
		founds[LOST_OWN] += call->out[kept[i]] != kept[i] * CALLERS;
	for (i = 0; i < ARRAY_SIZE(changed); i++)
		founds[FOUND_OTHERS] += call->out[changed[i]] != 0;
	for (i = 0; i < 16; i++)
		founds[FOUND_SECRETS] += i != 4 && is_secret(call->out[i]);
	founds[FLAGS] += !!(call->flags & ~(X86_EFLAGS_IF | X86_EFLAGS_FIXED));
}

#define REFUSED	0xbad

/* RAX of the call, or REFUSED. */
static u64 make(struct secret_call *call)
{
	WRITE_ONCE(current_call, call);
	if (secret_make_call(call)) {
		WRITE_ONCE(current_call, NULL);
		return REFUSED;
	}
	WRITE_ONCE(current_call, NULL);
	inspect(call);
	return call->out[0];
}

static noinline u64 enter(u64 what, u64 argument)
{
	struct secret_call call = {
		.target = (u64)secret_enter, .rdi = what, .rsi = argument,
	};

	return make(&call);
}

/* ---- interrupts ---- */

enum {
	TAMPER_NOTHING, TAMPER_REGISTERS, TAMPER_FLAGS, TAMPER_RIP, TAMPER_LEAVE, TAMPER_HOLDING,
};

static struct {
	struct hrtimer timer;
	u64 tampers, own_ip, interrupted, sp, ip, registers, flags;
} clock;

#define TAMPERED	0xa77ac4

static void tamper(struct pt_regs *regs)
{
	unsigned long *reg;

	switch (clock.tampers) {
	case TAMPER_REGISTERS:
		for (reg = &regs->r15; reg <= &regs->di; reg++)
			*reg = TAMPERED;
		return;
	case TAMPER_FLAGS:
		regs->flags |= X86_EFLAGS_DF | X86_EFLAGS_ZF | X86_EFLAGS_CF | X86_EFLAGS_AC |
			       X86_EFLAGS_TF;
		return;
	case TAMPER_RIP:
		regs->ip = (unsigned long)secret_middle;
		clock.own_ip = regs->ip;
		break;
	case TAMPER_HOLDING:
		/* The inside has told that all its registers are secrets. */
		if (!READ_ONCE(secret_exchange[0]))
			return;
		fallthrough;
	case TAMPER_LEAVE:
		regs->ip = (unsigned long)secret_refused;
		regs->sp = current_call->sp;
		break;
	default:
		return;
	}
	clock.tampers = TAMPER_NOTHING;
}

/* The next interrupt may come before the first fetch, and then sees what we have changed. */
static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct pt_regs *regs = get_irq_regs();
	unsigned long *reg;

	hrtimer_forward_now(timer, ns_to_ktime(100000));
	if (!regs || !is_inside(regs->ip))
		return HRTIMER_RESTART;
	clock.interrupted++;
	clock.ip += regs->ip != STUB && regs->ip != clock.own_ip;
	clock.sp += !current_call || regs->sp != current_call->sp - 8;
	if (clock.tampers != TAMPER_FLAGS)
		clock.flags += !!(regs->flags & ~(X86_EFLAGS_IF | X86_EFLAGS_FIXED |
						  X86_EFLAGS_RF));
	for (reg = &regs->r15; reg <= &regs->di; reg++)
		clock.registers += *reg && *reg != TAMPERED;
	tamper(regs);
	return HRTIMER_RESTART;
}

/*
 * Is inside for long, and looks at what interrupts see there. Returns the result of the inside. On
 * a busy computer the emulated timer may be late: then it enters again, until it was interrupted.
 */
static u64 interrupt(u64 what, u64 argument, u64 tampers)
{
	u64 before = clock.interrupted, value;
	int tries = 100;

	clock.tampers = tampers;
	preempt_disable();
	hrtimer_setup(&clock.timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&clock.timer, ns_to_ktime(100000), HRTIMER_MODE_REL_PINNED_HARD);
	do
		value = enter(what, argument);
	while (clock.interrupted == before && --tries);
	hrtimer_cancel(&clock.timer);
	preempt_enable();
	return value;
}

static u64 spin(u64 rounds, u64 tampers)
{
	return interrupt(SECRET_SPIN, rounds, tampers);
}

/* Never returns from an interrupt of the inside, which waits with secrets in all registers. */
static u64 leave_holding(void)
{
	WRITE_ONCE(secret_exchange[0], 0);
	WRITE_ONCE(secret_exchange[1], 0);
	return interrupt(SECRET_HOLD, 0, TAMPER_HOLDING);
}

/* ---- wrong ways ---- */

/* A second return to where the kernel sees an interrupted inside, with the same stack pointer. */
static noinline u64 replay(void)
{
	struct secret_call call = {
		.target = (u64)secret_enter, .rdi = SECRET_SPIN, .rsi = 3000000,
	};
	u64 value;

	clock.tampers = TAMPER_NOTHING;
	hrtimer_setup(&clock.timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&clock.timer, ns_to_ktime(100000), HRTIMER_MODE_REL_PINNED_HARD);
	value = make(&call);
	hrtimer_cancel(&clock.timer);
	if (value != 1)
		return value;
	call.target = STUB;
	return make(&call);
}

static u64 jump(u64 target)
{
	struct secret_call call = { .target = target, .rdi = SECRET_CHECK };

	return make(&call);
}

/* How many of all other places of the text let us in. */
static u64 jump_everywhere(void)
{
	u64 at, count = 0;

	for (at = (u64)secret_text; at < (u64)secret_text_end; at++)
		count += at != (u64)secret_enter && jump(at) != REFUSED;
	return count;
}

/* Enters with a stack pointer in the exchange, which the inside has, too. */
static u64 forge(u64 what)
{
	struct secret_call call = {
		.target = (u64)secret_enter, .rdi = what, .rsp = (u64)secret_exchange + 2048,
	};
	unsigned long flags;
	u64 value;

	local_irq_save(flags);
	value = make(&call);
	local_irq_restore(flags);
	return value;
}

static int hold(void *unused)
{
	struct secret_call call = { .target = (u64)secret_enter, .rdi = SECRET_HOLD };

	secret_make_call(&call);
	return call.out[0];
}

/* While another CPU is inside, this one enters, too. Returns how far apart their stacks are. */
static u64 enter_twice(void)
{
	u64 alone = enter(SECRET_RSP, 0), together;
	struct task_struct *task;

	WRITE_ONCE(secret_exchange[0], 0);
	WRITE_ONCE(secret_exchange[1], 0);
	task = kthread_create(hold, NULL, "secret");
	if (IS_ERR(task))
		return 0;
	kthread_bind(task, raw_smp_processor_id() ? 0 : 1);
	get_task_struct(task);
	wake_up_process(task);
	while (!READ_ONCE(secret_exchange[0]))
		cpu_relax();
	together = enter(SECRET_RSP, 0);
	WRITE_ONCE(secret_exchange[1], 1);
	kthread_stop(task);
	put_task_struct(task);
	return together - alone;
}

/* Changes a byte of the text by a mapping of our own, as the kernel does, and enters. */
static u64 patch(u64 value)
{
	struct page *page = vmalloc_to_page((void *)secret_enter);
	u8 *alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL), *byte, was;
	u64 result;

	if (!alias)
		return ~0ULL;
	byte = alias + offset_in_page((void *)secret_enter);
	was = *byte;
	WRITE_ONCE(*byte, value);
	result = *(u8 *)secret_enter == value ? enter(SECRET_CHECK, 0) : ~0ULL;
	WRITE_ONCE(*byte, was);
	vunmap(alias);
	return result;
}

/* The same with a constant. */
static u64 patch_constant(void)
{
	struct page *page = vmalloc_to_page((void *)secret_constants);
	u64 *alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL), was, value;

	if (!alias)
		return ~0ULL;
	was = *alias;
	WRITE_ONCE(*alias, 0x666);
	value = enter(SECRET_CONSTANT, 0);
	WRITE_ONCE(*alias, was);
	vunmap(alias);
	return value;
}

static u64 probes;

static int on_probe(struct kprobe *probe, struct pt_regs *regs)
{
	probes++;
	return 0;
}

/* How often a kprobe in the inside is hit. */
static u64 probe(void)
{
	struct kprobe probe = { .addr = (void *)secret_middle, .pre_handler = on_probe };
	int err = register_kprobe(&probe);

	if (err)
		return err;
	probes = 0;
	enter(SECRET_STORE, 0);
	unregister_kprobe(&probe);
	return probes;
}

/* ---- memory ---- */

static u64 or_of_page(const u64 *page)
{
	u64 all = 0;
	u32 i;

	for (i = 0; i < PAGE_SIZE / sizeof(u64); i++)
		all |= READ_ONCE(page[i]);
	return all;
}

/* All that can be read of the private pages, by all mappings that there may be. */
static u64 read_private(bool write)
{
	u8 *at;
	u64 all = 0, *alias;
	struct page *page;

	for (at = secret_private; at < secret_private_end; at += PAGE_SIZE) {
		page = vmalloc_to_page(at);
		if (write)
			WRITE_ONCE(*(u64 *)(at + 64), ~0ULL);
		all |= or_of_page((u64 *)at) | or_of_page(page_address(page));
		alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL_NOCACHE);
		if (!alias)
			return ~0ULL;
		if (write)
			WRITE_ONCE(alias[9], ~0ULL);
		all |= or_of_page(alias);
		vunmap(alias);
	}
	return all;
}

/* KASAN knows pages that nobody has; they are read, too. */
static u64 __no_sanitize_address count_in(const u64 *page)
{
	u64 count = 0, i;

	for (i = 0; i < PAGE_SIZE / sizeof(u64); i++)
		count += is_secret(READ_ONCE(page[i]));
	return count;
}

/* How often the secret is in memory, except for these bytes at a physical address. */
static u64 search(u64 except, u64 size)
{
	struct resource *resource;
	u64 count = 0, at;

	for (resource = iomem_resource.child; resource; resource = resource->sibling) {
		if (!resource->name || strcmp(resource->name, "System RAM"))
			continue;
		for (at = PAGE_ALIGN(resource->start); at + PAGE_SIZE <= resource->end + 1;
		     at += PAGE_SIZE) {
			if (at - except < size || !pfn_valid(at >> PAGE_SHIFT))
				continue;
			count += count_in(phys_to_virt(at));
			if (!(at & 0xffffff))
				cond_resched();
		}
	}
	return count;
}

/* As search() must find it. */
static u64 planted;

static u64 plant(u64 plants)
{
	u64 complement = SECRETS_COMPLEMENT;

	OPTIMIZER_HIDE_VAR(complement);
	WRITE_ONCE(planted, plants ? ~complement : 0);
	return 0;
}

/* Instructions, in counting mode. */
static u64 cost(void)
{
	u64 best = ~0ULL, empty = ~0ULL, start, i;
	unsigned long flags;

	local_irq_save(flags);
	for (i = 0; i < 100; i++) {
		start = rdtsc_ordered();
		empty = min(empty, rdtsc_ordered() - start);
		start = rdtsc_ordered();
		secret_enter(SECRET_NOTHING, 0);
		best = min(best, rdtsc_ordered() - start);
	}
	local_irq_restore(flags);
	return best - empty;
}

/* A panic may be that of an exception, in which nothing can be mapped. */
static int on_panic(struct notifier_block *block, unsigned long event, void *data)
{
	u64 all = 0;
	u8 *at;

	for (at = secret_private; at < secret_private_end; at += PAGE_SIZE)
		all |= or_of_page((u64 *)at);
	pr_emerg("dune-guard-secret: %llu secrets in all memory, %llx in private pages\n",
		 search(0, 0), all);
	return NOTIFY_DONE;
}

static struct notifier_block panic_block = { .notifier_call = on_panic };

static u64 command(const char *word, u64 a, u64 b)
{
	if (!strcmp(word, "arm"))
		return arm();
	if (!strcmp(word, "disarm"))
		return disarm();
	if (!strcmp(word, "enter"))
		return enter(a, b);
	/* An address that the inside must not reach: our own stack. */
	if (!strcmp(word, "reach"))
		return enter(a, (u64)&a);
	if (!strcmp(word, "reach-other"))
		return enter(a, (u64)page_address(vmalloc_to_page(secret_private)));
	if (!strcmp(word, "spin"))
		return spin(a, b);
	if (!strcmp(word, "leave-holding"))
		return leave_holding();
	if (!strcmp(word, "found"))
		return founds[a];
	if (!strcmp(word, "interrupted"))
		return clock.interrupted;
	if (!strcmp(word, "interrupts-saw"))
		return a == 0 ? clock.registers : a == 1 ? clock.flags :
		       a == 2 ? clock.ip : clock.sp;
	if (!strcmp(word, "replay"))
		return replay();
	if (!strcmp(word, "jump"))
		return jump((u64)secret_middle);
	if (!strcmp(word, "jump-everywhere"))
		return jump_everywhere();
	if (!strcmp(word, "jump-stub"))
		return jump(STUB);
	if (!strcmp(word, "jump-private"))
		return jump((u64)secret_private);
	if (!strcmp(word, "forge"))
		return forge(a);
	if (!strcmp(word, "twice"))
		return enter_twice();
	if (!strcmp(word, "patch"))
		return patch(a);
	if (!strcmp(word, "patch-constant"))
		return patch_constant();
	if (!strcmp(word, "probe"))
		return probe();
	if (!strcmp(word, "private"))
		return read_private(a);
	if (!strcmp(word, "search"))
		return search(a, b);
	/* The physical address of a page that it shares; where its private pages are. */
	if (!strcmp(word, "exchange"))
		return page_to_phys(vmalloc_to_page(secret_exchange));
	if (!strcmp(word, "private-at"))
		return (u64)secret_private;
	if (!strcmp(word, "plant"))
		return plant(a);
	if (!strcmp(word, "cost"))
		return cost();
	/* The port of a reset is the second byte. A write of four bytes is PCI's address. */
	if (!strcmp(word, "port-4")) {
		outl(a, 0xcf8);
		return 0;
	}
	if (!strcmp(word, "port-2")) {
		outw(a, 0xcf8);
		return 0;
	}
	/*
	 * With what a search has found. What a program prints may not have left the machine when
	 * the kernel panics; the console is written at once.
	 */
	if (!strcmp(word, "watch-panic")) {
		pr_emerg("dune-guard-secret: %llu secrets in all memory before the panic\n", a);
		return atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
	}
	if (!strcmp(word, "panic")) {
		atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
		panic("dune-guard-secret");
	}
	return ~0ULL;
}

static ssize_t file_write(struct file *unused, const char __user *user, size_t count, loff_t *at)
{
	char text[120] = "", word[20] = "";
	u64 a = 0, b = 0;

	if (count >= sizeof(text) || copy_from_user(text, user, count))
		return -EINVAL;
	if (sscanf(text, "%19s %llx %llx", word, &a, &b) < 1)
		return -EINVAL;
	result = command(word, a, b);
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

	file = debugfs_create_file("dune-guard-secret", 0600, NULL, NULL, &file_operations);
	err = PTR_ERR_OR_ZERO(file) ?: register_die_notifier(&die_block);
	if (err)
		debugfs_remove(file);
	return err;
}

static void __exit outside_exit(void)
{
	unregister_die_notifier(&die_block);
	debugfs_remove(file);
	disarm();
}

module_init(outside_init);
module_exit(outside_exit);
MODULE_DESCRIPTION("A module with secrets, and the hostile kernel around it, for Dune's tests");
MODULE_LICENSE("GPL v2");

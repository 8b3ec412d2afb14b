// SPDX-License-Identifier: GPL-2.0-only
/* The guarded module of the tests: see inside.h. */
#include <linux/bug.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <asm/asm.h>

#include "inside.h"

static u64 *private;

/* Not inlined, and no entry: the kernel finds it by the symbol. */
noinline u64 inner_read(const u64 *from)
{
	return READ_ONCE(*from);
}

u64 enter_read(const u64 *from)
{
	return inner_read(from);
}

void enter_write(u64 *to, u64 value)
{
	WRITE_ONCE(*to, value);
}

u64 enter_call(u64 (*function)(u64 argument), u64 argument)
{
	u64 before = READ_ONCE(*private), result = function(argument);

	return before == READ_ONCE(*private) ? result : 0;
}

u64 enter_nest(u64 depth)
{
	u64 deeper = depth ? outside_deeper(depth - 1) : READ_ONCE(*private);

	return deeper == READ_ONCE(*private) ? deeper : 0;
}

/* Interrupts come while each of these registers has a value that is still needed. */
u64 enter_spin(u64 rounds, bool interrupts)
{
	unsigned long flags = 0;
	u64 a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, i;

	if (!interrupts)
		local_irq_save(flags);
	for (i = 0; i < rounds; i++) {
		asm volatile("" : "+r" (a), "+r" (b), "+r" (c), "+r" (d), "+r" (e), "+r" (f));
		a += 1;
		b += 2;
		c += 3;
		d += 4;
		e += 5;
		f += 6;
	}
	if (!interrupts)
		local_irq_restore(flags);
	if (b != 2 * a || c != 3 * a || d != 4 * a || e != 5 * a || f != 6 * a)
		return 0;
	return READ_ONCE(*private);
}

u64 enter_warn(void)
{
	/* The other module has marked it as done: it is silent, but UD2 is executed. */
	WARN_ON_ONCE(READ_ONCE(*private));
	return READ_ONCE(*private);
}

u64 enter_fix_up(const u64 *nowhere)
{
	u64 value = 1;

	asm volatile("1: mov (%[nowhere]), %[value]\n"
		     "2:\n" _ASM_EXTABLE(1b, 2b)
		     : [value] "+r" (value) : [nowhere] "r" (nowhere) : "memory");
	return value == 1 ? READ_ONCE(*private) : 0;
}

void enter_port(u64 port, u64 value)
{
	outb(value, port);
}

u64 enter_user(const u64 *user)
{
	u64 value;

	asm volatile("stac\n\t"
		     "mov (%[user]), %[value]\n\t"
		     "clac" : [value] "=r" (value) : [user] "r" (user) : "memory");
	return value;
}

u64 enter_string(char *destination, const char *source)
{
	while ((*destination++ = *source++))
		;
	return READ_ONCE(*private);
}

u64 enter_sleep(u64 milliseconds)
{
	msleep(milliseconds);
	return READ_ONCE(*private);
}

static u64 timer_runs, work_runs;
static bool ends;
static struct timer_list timer;
static struct work_struct work;

void enter_timer(struct timer_list *unused)
{
	if (READ_ONCE(*private))
		timer_runs++;
	schedule_work(&work);
}

void enter_work(struct work_struct *unused)
{
	msleep(20);
	if (READ_ONCE(*private))
		work_runs++;
	if (!READ_ONCE(ends))
		mod_timer(&timer, jiffies + 1);
}

void enter_start(void)
{
	WRITE_ONCE(ends, false);
	mod_timer(&timer, jiffies + 1);
}

void enter_stop(void)
{
	WRITE_ONCE(ends, true);
	/* Each of the two starts the other one, but only the work item starts the timer. */
	cancel_work_sync(&work);
	timer_delete_sync(&timer);
	cancel_work_sync(&work);
}

u64 enter_runs(void)
{
	return min(timer_runs, work_runs);
}

static DEFINE_STATIC_KEY_FALSE(key);

/* A jump label: Linux patches it. */
u64 enter_key(void)
{
	if (static_branch_unlikely(&key))
		return 2;
	return 1;
}

void enter_switch_key(bool on)
{
	if (on)
		static_branch_enable(&key);
	else
		static_branch_disable(&key);
}

/* A function of the kernel's that no one else calls without a network card. */
u64 enter_leaf(void)
{
	static struct napi_struct napi;

	WRITE_ONCE(napi.state, 0);
	return napi_schedule_prep(&napi);
}

/* Init has a page that is frozen, too, and then given back. */
static const u64 of_init __initconst __used = SECRET;

static const struct inside inside = {
	.key = enter_key,
	.switch_key = enter_switch_key,
	.leaf = enter_leaf,
	.read = enter_read,
	.write = enter_write,
	.call = enter_call,
	.raw_call = enter_raw_call,
	.nest = enter_nest,
	.spin = enter_spin,
	.warn = enter_warn,
	.fix_up = enter_fix_up,
	.port = enter_port,
	.flags = enter_flags,
	.control = enter_control,
	.nothing = enter_nothing,
	.user = enter_user,
	.string = enter_string,
	.sleep = enter_sleep,
	.start = enter_start,
	.runs = enter_runs,
	.stop = enter_stop,
	.read_memory = enter_read_memory,
	.write_memory = enter_write_memory,
	.in = enter_in,
	.out = enter_out,
	.in_string = enter_in_string,
	.read_msr = enter_read_msr,
	.write_msr = enter_write_msr,
	.random = enter_random,
	.counter = enter_counter,
	.factorial = enter_factorial,
	.dma = enter_dma,
	.middle = inner_read,
	.after_call = inner_after_call,
	.other_page = inner_other_page,
	.store = inner_store,
	.site_call = enter_site_call,
	.site = inner_site,
};

/* Not in .init.text, which is no part of the text. */
static int inside_init(void)
{
	private = outside_private();
	timer_setup(&timer, enter_timer, 0);
	INIT_WORK(&work, enter_work);
	outside_register(&inside);
	return 0;
}

static void inside_exit(void)
{
	outside_register(NULL);
	enter_stop();
}

module_init(inside_init);
module_exit(inside_exit);
MODULE_DESCRIPTION("A guarded module, for the tests of Dune's guard");
MODULE_LICENSE("GPL v2");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux's part of a registration: the resident part (guard/hv/register.c) freezes a module's text,
 * all CPUs flush, and then it is armed; and back. Nothing here is believed once the guard is
 * sealed. A test's module contains this file, too.
 */
#include <linux/atomic.h>
#include <linux/io.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>

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

int guard_views_arm(unsigned int number, const struct hv_registration *registration)
{
	u64 b = number;
	s64 err;

	err = change_while_stopped(HV_CALL_REGISTER, number, virt_to_phys((void *)registration));
	if (err)
		return err;
	err = call(HV_CALL_ARM, &b, 0);
	if (err)
		guard_views_disarm(number);
	return err;
}

int guard_views_disarm(unsigned int number)
{
	u64 b = number;

	/* The module's exit function has done this already, if it was entered. */
	call(HV_CALL_REVOKE, &b, 0);
	on_each_cpu(flush, NULL, 1);
	return change_while_stopped(HV_CALL_THAW, number, 0);
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

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modules of class S, which tell their parts themselves (guard/secret.h). Before the seal the
 * kernel is trusted, so nothing verifies that the text is the one that was built.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/vmalloc.h>

#include "guard/linux/guard.h"
#include "guard/linux/views.h"
#include "guard/secret.h"

#define BLOB_ORDER	4

static_assert((PAGE_SIZE << BLOB_ORDER) == HV_REGISTRATION_SIZE);

/* They have no binding in which an administrator could choose: it is for those that come next. */
static const char *const choices[] = {
	[CHOICE_LOWER] = "lower", [CHOICE_LOG] = "log", [CHOICE_STOP] = "stop",
	[CHOICE_PANIC] = "panic",
};

static enum border_choice choice = CHOICE_LOG;

static int choice_set(const char *value, const struct kernel_param *parameter)
{
	int i;

	for (i = CHOICE_LOWER; i <= CHOICE_PANIC; i++) {
		if (sysfs_streq(value, choices[i])) {
			WRITE_ONCE(choice, i);
			return 0;
		}
	}
	pr_err("secrets_on_suspicion is lower, log, stop or panic\n");
	return -EINVAL;
}

static int choice_get(char *value, const struct kernel_param *parameter)
{
	return sysfs_emit(value, "%s\n", choices[READ_ONCE(choice)]);
}

static const struct kernel_param_ops choice_ops = { .set = choice_set, .get = choice_get };

module_param_cb(secrets_on_suspicion, &choice_ops, NULL, 0600);
MODULE_PARM_DESC(secrets_on_suspicion,
		 "on suspicious activity around a module of class S: lower, log, stop or panic");

/* The names of those that are guarded, by number; under the lock of state.c. */
static const char *names[HV_REGISTRATIONS];

const char *guard_secrets_name(void)
{
	unsigned int i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (names[i])
			return names[i];
	return NULL;
}

/* Adds the frames of a part; returns the number of its pages. */
static u32 add_frames(u64 **words, const void *from, const void *end)
{
	const void *page;

	for (page = from; page < end; page += PAGE_SIZE)
		*(*words)++ = page_to_phys(vmalloc_to_page(page));
	return (end - from) / PAGE_SIZE;
}

/* The compiler may have put padding before the entry. */
static const void *text_of(const struct guard_secret *secret)
{
	return (const void *)((unsigned long)secret->entry & PAGE_MASK);
}

static u64 size_of(const void *from, const void *end)
{
	return (end - from) / PAGE_SIZE * sizeof(u64);
}

static bool fits(const struct guard_secret *secret)
{
	return size_of(text_of(secret), secret->text_end) +
	       size_of(secret->constants, secret->constants_end) +
	       size_of(secret->private, secret->private_end) +
	       size_of(secret->exchange, secret->exchange_end) +
	       sizeof(u64) + sizeof(struct hv_registration) <= HV_REGISTRATION_SIZE;
}

static void fill(struct hv_registration *registration, const struct guard_secret *secret)
{
	const void *text = text_of(secret);
	u64 *words = registration->words;

	registration->class = CLASS_S;
	registration->choice = READ_ONCE(choice);
	registration->text = (unsigned long)text;
	registration->text_pages = add_frames(&words, text, secret->text_end);
	registration->ranges[HV_RODATA] = (struct hv_range){
		.address = (unsigned long)secret->constants,
		.pages = add_frames(&words, secret->constants, secret->constants_end),
	};
	registration->secret = (struct hv_secret){
		.private = (unsigned long)secret->private,
		.exchange = (unsigned long)secret->exchange,
		.gate = (unsigned long)secret->gate,
		.stub = secret->text_end - text - GUARD_SECRET_NO_CODE,
		.stacks = secret->stacks,
		.stack_pages = secret->stack_size / PAGE_SIZE,
	};
	registration->private_count = add_frames(&words, secret->private, secret->private_end);
	registration->secret.exchange_pages = add_frames(&words, secret->exchange,
							 secret->exchange_end);
	registration->init = HV_NOWHERE;
	registration->exit = HV_NOWHERE;
	registration->entry_count = 1;
	*words = secret->entry - text;
}

int guard_secrets_add(const struct guard_secret *secret)
{
	struct hv_registration *registration;
	int number, err = -EBUSY;

	if (!fits(secret))
		return -EINVAL;
	registration = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, BLOB_ORDER);
	if (!registration)
		return -ENOMEM;
	fill(registration, secret);
	for (number = 0; number < HV_REGISTRATIONS && err == -EBUSY; number++)
		err = guard_views_arm(number, registration);
	free_pages((unsigned long)registration, BLOB_ORDER);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	names[number - 1] = secret->name;
	pr_info("%s is guarded\n", secret->name);
	return number - 1;
}

/*
 * Forgets the name also on an error: the module has given up its secrets, so the guard can be
 * stopped, which gives the memory back to the kernel.
 */
int guard_secrets_remove(int number)
{
	int err;

	if (number < 0 || number >= HV_REGISTRATIONS)
		return -EINVAL;
	if (!names[number])
		return 0;
	err = guard_views_disarm(number);
	if (err)
		pr_err("%s: its memory stays hidden from the kernel, since a CPU has not acknowledged (%d): dunectl guard stop, or reboot if the guard is sealed\n",
		       names[number], err);
	names[number] = NULL;
	return err;
}

void guard_secrets_drop(void)
{
	int i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		guard_secrets_remove(i);
}

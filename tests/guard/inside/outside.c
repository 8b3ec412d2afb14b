// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel around a guarded module, for the tests: it registers dune-guard-inside before that
 * module's init is called, calls it in all ways, and attacks it. This file has the commands, and
 * what the module calls; outside_*.c have all else. A program writes a command to
 * /sys/kernel/debug/dune-guard-outside: a word, and up to three numbers. Reading the file then
 * gives the result.
 */
#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "guard/linux/views.h"
#include "outside.h"

static struct dentry *file;
static const struct inside *inside;
static u64 *private, result;
/* Of the guard's block, and what the last batch of the fuzzer has done. */
static u64 guard_address, guard_size;
static const struct outside_fuzz_counts *fuzzed;

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

/* ---- commands ---- */

/* A private page's content through the kernel's mapping, after a write. */
static u64 write_private(u64 value)
{
	WRITE_ONCE(*private, value);
	return READ_ONCE(*private);
}

static u64 command(const char *word, u64 a, u64 b, u64 c)
{
	u64 value = 0;

	if (!strcmp(word, "armed"))
		return outside_armed();
	if (outside_lies(word, &value))
		return value;
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
		return outside_frame_of((unsigned long)inside->read) +
		       offset_in_page(inside->read);
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
		fuzzed = outside_fuzz(inside, outside_module(), private, a, b, guard_address,
				      guard_size);
		return fuzzed->bad;
	}
	if (!strcmp(word, "fuzzed"))
		return a == 0 ? fuzzed->fetches : a == 1 ? fuzzed->crossings :
		       a == 2 ? fuzzed->calls : fuzzed->writes;
	if (outside_attack(inside, private, word, a, b, &value) ||
	    outside_hook(inside, private, word, a, b, &value) ||
	    outside_leaves(inside, private, word, a, &value) ||
	    outside_patch(inside, private, word, a, b, &value) ||
	    outside_return(inside, word, a, &value))
		return value;
	return outside_call(inside, private, word, a, b);
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
	err = PTR_ERR_OR_ZERO(file) ?: register_module_notifier(&outside_notifier);
	if (err) {
		outside_forget_devices();
		free_page((unsigned long)private);
	}
	return err;
}

static void __exit outside_exit(void)
{
	debugfs_remove(file);
	unregister_module_notifier(&outside_notifier);
	outside_forget_devices();
	free_page((unsigned long)private);
	outside_give_blocks();
}

module_init(outside_init);
module_exit(outside_exit);
MODULE_DESCRIPTION("The kernel around a guarded module, for the tests of Dune's guard");
MODULE_LICENSE("GPL v2");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A live patch of dune-guard-inside, as Linux's livepatch has it: one of its entry points is
 * replaced by a function that wants a service of the guard's.
 */
#include <linux/livepatch.h>
#include <linux/module.h>

#include "guard/hv/hv.h"
#include "outside.h"

static u64 replacement(const u64 *from)
{
	return outside_monitor_call(HV_CALL_COUNTER);
}

static struct klp_func functions[] = {
	{ .old_name = "enter_read", .new_func = replacement },
	{}
};

static struct klp_object objects[] = {
	{ .name = "dune_guard_inside", .funcs = functions },
	{}
};

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

static int __init livepatch_init(void)
{
	return klp_enable_patch(&patch);
}

static void __exit livepatch_exit(void)
{
}

module_init(livepatch_init);
module_exit(livepatch_exit);
MODULE_INFO(livepatch, "Y");
MODULE_DESCRIPTION("A live patch of a guarded module, for the tests of Dune's guard");
MODULE_LICENSE("GPL v2");

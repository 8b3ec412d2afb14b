// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the inside becomes guarded: this module tells dune-guard.ko the inside's parts. It works
 * without that module, too, and so looks for its functions when it needs them.
 */
#include <linux/module.h>
#include <linux/printk.h>

#include "guard/keys/inside/exchange.h"
#include "guard/keys/outside.h"
#include "guard/secret.h"

static const struct guard_secret secret = {
	.name = "guard-keys",
	.text_end = keys_text_end,
	.constants = keys_rodata,
	.constants_end = keys_rodata_end,
	.private = keys_stacks,
	.private_end = keys_private_end,
	.exchange = &keys_exchange,
	.exchange_end = &keys_exchange + 1,
	.entry = keys_enter,
	.gate = keys_return,
	.stacks = KEYS_STACKS,
	.stack_size = KEYS_STACK,
};

/* What the guard has for it, while the inside is guarded by this module's wish; else negative. */
static int number = -1;

/* dune-guard.ko stays loaded while the inside is guarded. */
long keys_guarded_begin(void)
{
	typeof(guard_secret_arm) *arm = symbol_get(guard_secret_arm);
	int ret;

	if (!arm)
		return -ENODEV;
	ret = arm(&secret);
	if (ret < 0) {
		symbol_put(guard_secret_arm);
		return ret;
	}
	number = ret;
	return 0;
}

void keys_guarded_end(void)
{
	typeof(guard_secret_disarm) *disarm;

	if (number < 0)
		return;
	disarm = symbol_get(guard_secret_disarm);
	/* A module cannot refuse to be unloaded any more when its exit function runs. */
	if (disarm(number))
		pr_emerg("guard-keys: its memory is freed while it is hidden from the kernel: reboot\n");
	symbol_put(guard_secret_disarm);
	symbol_put(guard_secret_arm);
	number = -1;
}

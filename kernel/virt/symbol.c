// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of the kernel that modules cannot link to: not exported, or since
 * 6.19 to KVM alone. None of them is indispensable.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/string.h>

#include "dune/dune.h"

/**
 * dune_find_function() - the address of a function of the kernel
 * @name:	as in /proc/kallsyms
 *
 * A kprobe on the function finds it, or the place behind its ENDBR; the
 * symbol's own offset leads back to its start. The probe is disabled: nothing
 * of the kernel's text is touched, which some CPU may be executing. To be
 * called directly (static_call), since the function may have no ENDBR.
 *
 * Return: 0 where there is no such function, or none that a kprobe may be set
 * on (or no CONFIG_KPROBES).
 */
unsigned long dune_find_function(const char *name)
{
	struct kprobe probe = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,
	};
	char symbol[KSYM_SYMBOL_LEN];
	unsigned long offset;
	size_t length = strlen(name);

	if (register_kprobe(&probe) < 0)
		return 0;
	unregister_kprobe(&probe);
	sprint_symbol(symbol, (unsigned long)probe.addr);
	if (strncmp(symbol, name, length) ||
	    sscanf(symbol + length, "+0x%lx", &offset) != 1)
		return 0;
	return (unsigned long)probe.addr - offset;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of the kernel that modules cannot link to: they are not exported, or
 * since 6.19 exported to KVM alone. SVM can do without all of them; VT-x needs
 * the one that changes CR4.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/string.h>

#include "virt/symbol.h"

/**
 * symbol_find() - the address of a function of the kernel
 * @name:	as in /proc/kallsyms
 *
 * A kprobe on the function finds its start, or the place after its ENDBR; the
 * symbol's own offset leads back to the start. The probe is disabled, so the kernel's
 * text, which another CPU may be executing, is not touched. The caller must call
 * the function directly (static_call), since it may have no ENDBR.
 *
 * Context: process, may sleep.
 * Return: the address; 0 if the kernel has no such function or no CONFIG_KPROBES, or if no
 * kprobe may be set on the function.
 */
unsigned long symbol_find(const char *name)
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
	if (strncmp(symbol, name, length) || sscanf(symbol + length, "+0x%lx", &offset) != 1)
		return 0;
	return (unsigned long)probe.addr - offset;
}

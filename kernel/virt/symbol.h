/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the kernel that modules cannot link to: symbol.c.
 */
#ifndef VIRT_SYMBOL_H
#define VIRT_SYMBOL_H

#include <linux/static_call.h>

unsigned long symbol_find(const char *name);

/*
 * Makes static_call @call lead to the kernel's function @name, if the kernel has
 * it. Returns whether it has. For process context; may sleep.
 */
#define symbol_bind(call, name) ({					\
	unsigned long address = symbol_find(name);			\
									\
	if (address)							\
		static_call_update(call, (void *)address);		\
	!!address;							\
})

#endif /* VIRT_SYMBOL_H */

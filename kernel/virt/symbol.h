/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the kernel that modules cannot link to: symbol.c. For process context; may sleep.
 */
#ifndef VIRT_SYMBOL_H
#define VIRT_SYMBOL_H

#include <linux/static_call.h>

/* Returns the address of the kernel's function @name, or 0 if symbol_find() cannot find it. */
unsigned long symbol_find(const char *name);

/*
 * Makes static_call @call lead to the kernel's function @name, and returns true; or returns false,
 * and @call stays as it was, if symbol_find() cannot find it. Called before anything calls @call.
 */
#define symbol_bind(call, name) ({					\
	unsigned long address = symbol_find(name);			\
									\
	if (address)							\
		static_call_update(call, (void *)address);		\
	!!address;							\
})

#endif /* VIRT_SYMBOL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a module of class S tells dune-guard.ko of itself, so that its secrets are kept from the
 * rest of the kernel. dune-guard.ko exports the functions; a module that also works without it
 * finds them by symbol_get().
 */
#ifndef GUARD_SECRET_H
#define GUARD_SECRET_H

/**
 * struct guard_secret - the parts of a module of class S, each of whole pages
 * @name:	of the module
 * @text:	all code that has the secrets; it uses nothing but these parts
 * @constants:	what it reads
 * @private:	what nobody else reads or writes; first @stacks of @stack_size bytes
 * @exchange:	what it shares with the kernel
 * @entry:	in @text: the only place where it is entered
 * @interrupted: in @text: where the kernel sees the module while it is interrupted
 * @gate:	not in @text: a RET, where the kernel continues after the module
 */
struct guard_secret {
	const char *name;
	const void *text, *text_end;
	const void *constants, *constants_end;
	void *private, *private_end;
	void *exchange, *exchange_end;
	const void *entry;
	const void *interrupted;
	const void *gate;
	unsigned int stacks;
	unsigned int stack_size;
};

/*
 * For process context. No thread is in the text. What is in the private part is cleared. Returns a
 * number for guard_secret_disarm(), or a negative errno: -ENODEV: the guard is not launched;
 * -EPERM: it is sealed; -ENOSPC: too many modules are guarded.
 */
int guard_secret_arm(const struct guard_secret *secret);
/* Clears the private part, and gives all to the kernel again. Returns 0 or a negative errno. */
int guard_secret_disarm(int number);

#endif /* GUARD_SECRET_H */

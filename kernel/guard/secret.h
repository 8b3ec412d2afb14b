/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a module of class S tells dune-guard.ko of itself, so that its secrets are kept from the
 * rest of the kernel. dune-guard.ko exports the functions; a module that also works without it
 * finds them by symbol_get().
 */
#ifndef GUARD_SECRET_H
#define GUARD_SECRET_H

#define GUARD_SECRET_NO_CODE	16

/**
 * struct guard_secret - the parts of a module of class S, each of whole pages
 * @name:	of the module
 * @entry:	the only place where it is entered, in the first page of the text: of all code that
 *		has the secrets, which uses nothing but these parts
 * @text_end:	the last GUARD_SECRET_NO_CODE bytes of the text are none: there the kernel sees the
 *		module while it is interrupted
 * @constants:	what it reads
 * @private:	what nobody else reads or writes; first @stacks of @stack_size bytes
 * @exchange:	what it shares with the kernel
 * @gate:	not in the text: a RET, where the kernel continues after the module
 */
struct guard_secret {
	const char *name;
	const void *entry, *text_end;
	const void *constants, *constants_end;
	void *private, *private_end;
	void *exchange, *exchange_end;
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

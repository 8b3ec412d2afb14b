/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a module of class S names its parts to dune-guard.ko, which then keeps its secrets from the
 * rest of the kernel. dune-guard.ko exports the functions; a module that also works without it
 * finds them by symbol_get().
 */
#ifndef GUARD_SECRET_H
#define GUARD_SECRET_H

#define GUARD_SECRET_NO_CODE	16

/**
 * struct guard_secret - the parts of a module of class S, each of whole pages
 * @name:	of the module
 * @entry:	the only place where the module is entered, in the first page of its text. The text
 *		is all code that handles the secrets, and it uses nothing but these parts
 * @text_end:	the end of the text, whose last GUARD_SECRET_NO_CODE bytes are not code: while the
 *		module is interrupted, the kernel sees RIP there
 * @constants:	memory that it only reads
 * @private:	memory that nobody else reads or writes; it begins with @stacks stacks of
 *		@stack_size bytes
 * @exchange:	memory that it shares with the kernel
 * @gate:	a RET outside of the text, at which the kernel continues after the module
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
 * For process context, while no thread is in the text. Clears the private part. Returns a number
 * for guard_secret_disarm(), or a negative errno: -ENODEV: the guard is not launched; -EPERM: it is
 * sealed; -ENOSPC: too many modules are guarded; -EINVAL: the parts are too large, or not allowed;
 * -ENOMEM: the kernel or the guard has not enough memory; -EOPNOTSUPP: this computer has too many
 * CPUs or too long addresses.
 */
int guard_secret_arm(const struct guard_secret *secret);
/*
 * For process context, while no thread is in the text. Clears the private part, and gives every
 * part back to the kernel. Returns 0 or a negative errno; after an error the memory must not be
 * freed, since it stays hidden from the kernel until the guard stops.
 */
int guard_secret_disarm(int number);

#endif /* GUARD_SECRET_H */

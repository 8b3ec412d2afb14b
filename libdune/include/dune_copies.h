/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Copies for the kernel. The memory of a runtime (dune_runtime.h) is private: the kernel cannot
 * read or write it. Whatever ring 0 passes to a system call by a pointer is therefore a copy, in
 * one of two places:
 *
 *	window	private memory, too, but the process can read it, at the addresses after the
 *		stub (DUNE_PRIVATE_SHOWN in <linux/dune.h>). Ring 0 alone can write it. For what
 *		the kernel reads and nobody may change before it does: all that decides what runs
 *		natively, what is opened or executed, or which memory the guest has.
 *	scratch	ordinary memory of the process. Ring 3 can write it between two system calls, and
 *		the kernel at any time, so a system call of another process could change it, too.
 *		For results of the kernel, and for arguments that change only the result of the
 *		program's own call. What the kernel has written there is a value of the program's:
 *		it is copied to ring 0's memory first, and then looked at.
 *
 * Each copy has two addresses: that at which ring 0 accesses it, which the functions return, and
 * that which the kernel gets, dune_kernel_at().
 *
 * Both places are stacks: what was taken last is given back first. A system call of the program
 * leaves both as it has found them.
 *
 * Only a runtime, and the library in it, call these functions. A thread has copies of its own. A
 * child with a copy of the memory has its own, too, at the same addresses: the window with the same
 * contents, and a scratch that the runtime may have cleared (MADV_WIPEONFORK). A vfork child has
 * its parent's, above what its parent has taken.
 */
#ifndef DUNE_COPIES_H
#define DUNE_COPIES_H

#include <stddef.h>
#include <stdint.h>

#define DUNE_WINDOW_SIZE	(4 * 4096)
#define DUNE_SCRATCH_SIZE	(48 * 4096)

/* Of each place, the library keeps this much for calls of its own. */
#define DUNE_COPIES_RESERVE	1024

/*
 * Both return @size bytes, aligned to 16, with any contents; or NULL if fewer are left.
 */
void *dune_window_get(size_t size);
void *dune_scratch_get(size_t size);

/*
 * dune_copies_release() gives back all that was taken after the dune_copies_mark(). A child with
 * memory of its own begins with what was taken before dune_runtime_close() alone.
 */
uint64_t dune_copies_mark(void);
void dune_copies_release(uint64_t mark);

/*
 * Returns the address by which the kernel finds @copy, which is anywhere in a copy. Any other
 * address is returned as it is: one of the program's, or NULL.
 */
uint64_t dune_kernel_at(const void *copy);

/*
 * Copies @size bytes at @from to the window. Returns the address that the kernel gets, or 0 if
 * fewer are left.
 */
uint64_t dune_show(const void *from, size_t size);

#endif /* DUNE_COPIES_H */

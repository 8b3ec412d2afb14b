/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hostcalls: the requests of the guest half to the host half, for services (guest/by_host.c).
 * A hostcall is a hypercall with a bit of the upper half of RAX set; host/loop.c answers it.
 * (Without a host half the module and the stub answer the numbers that <linux/dune.h> has
 * for that case.)
 *
 * DUNE_HOSTCALL | number of a system call: the host half makes that call.
 */
#ifndef LIBDUNE_HOSTCALL_H
#define LIBDUNE_HOSTCALL_H

#include <linux/dune.h>

#define HC_SYSCALL(nr)	(DUNE_HOSTCALL | (nr))

/* Run again, which raises the signal interrupt if signals are queued. */
#define HC_NOP		(2 * DUNE_HOSTCALL)
/* Die by signal rdi with its default action, core dump and all. */
#define HC_DIE		(3 * DUNE_HOSTCALL)
/* Print that a stack in ring 0 cannot be used, then die by SIGSEGV. */
#define HC_BAD_STACK	(4 * DUNE_HOSTCALL)
/* Make a process, by struct dune_clone (fork.h) in rdi; the result is that of clone(). */
#define HC_CLONE	(5 * DUNE_HOSTCALL)
/* clone() asked for a thread: print once that threads are not supported. */
#define HC_NO_THREADS	(6 * DUNE_HOSTCALL)
/*
 * No granule is left for address rdi. If memory is mapped there, print a message and
 * die by SIGBUS.
 */
#define HC_NO_GRANULE	(7 * DUNE_HOSTCALL)
/* The arena has no page left for a page table for address rdi. Do as for HC_NO_GRANULE. */
#define HC_NO_PAGES	(8 * DUNE_HOSTCALL)

#endif /* LIBDUNE_HOSTCALL_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The services: what ring 0 cannot do by one hypercall. In a program in ring 0 (libdune.a) the host
 * half does this work, and guest/by_host.c asks it. A runtime in private memory (libdune-runtime.a)
 * has no host half: ring 0 itself does the work (alone/). Each library has one of the two tables.
 *
 * @action:	rt_sigaction() of the kernel: sets @real and stores the old action in @old, if they
 *		are not NULL
 * @sets_all_actions: no code but the library's sets the kernel's actions of signals, so the
 *		library's record is what rt_sigaction() has to return
 * @mask:	rt_sigprocmask(), which stores the old mask in @old, if it is not NULL
 * @forward_mask: the same with SIG_SETMASK, as dune_syscall_forward()
 * @print:	writes to stderr, whatever file that is now
 * @special:	carries out a call of special.h that is neither guest/'s nor one hypercall.
 *		Returns its result, or DUNE_AGAIN
 * @make_child:	makes the process that the argument describes, for the call in its frame. Returns
 *		clone()'s result, 0 in a child that returns from here, or DUNE_AGAIN
 * @execute:	the same as @special, for the runtime's execveat() of itself
 * @move:	the vCPU's descriptor is @fd from now on; the old number stays open
 * @settle:	if a signal has come that is not in the queue, puts it there or, if it has no
 *		handler, carries out its action, and returns true. Afterwards the FPU registers
 *		are those of the program
 * @interrupt:	has the queued signals delivered, when the handler of the frame has returned
 * @no_threads:	prints once that threads are not supported
 * @no_granule:	no granule is left for the address. If memory is mapped there, prints a
 *		message, and dies by SIGBUS. Called by dune_pf_early() on the IST stack. There is
 *		no room there to do this without a host half: @fill does it then
 * @no_pages:	no page is left for a page table for the address; does the same
 * @fill:	for a page fault that dune_pf_early() has not resolved, on the ring-0 stack: tries
 *		again, and does the work of @no_granule and @no_pages if they have not. Returns
 *		whether the instruction can be repeated
 * @die:	ends the process by the signal's default action, core dump and all
 * @bad_stack:	prints that a stack in ring 0 cannot be used, and dies by SIGSEGV
 */
#ifndef LIBDUNE_SERVICES_H
#define LIBDUNE_SERVICES_H

#include "compiler.h"
#include "dune.h"

struct dune_clone;
struct ksigaction;
struct dune_thread;

struct dune_services {
	long (*action)(int sig, const struct ksigaction *real, struct ksigaction *old);
	bool sets_all_actions;
	long (*mask)(int how, u64 set, u64 *old);
	long (*forward_mask)(u64 set);
	void (*print)(const char *text, u64 size);
	long (*special)(struct dune_tf *tf);
	long (*make_child)(struct dune_clone *c);
	long (*execute)(long fd, long name, long argv, long envp, long flags);
	void (*move)(int fd);
	bool (*settle)(struct dune_thread *t);
	void (*interrupt)(void);
	void (*no_threads)(void);
	void (*no_granule)(u64 va);
	void (*no_pages)(u64 va);
	bool (*fill)(u64 va);
	void (*die)(int sig) __noreturn;
	void (*bad_stack)(void) __noreturn;
};

extern const struct dune_services *const dune_services;

#endif /* LIBDUNE_SERVICES_H */

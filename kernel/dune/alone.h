/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU whose thread has no host half, since it is bound to the stub: alone.c.
 */
#ifndef DUNE_ALONE_H
#define DUNE_ALONE_H

#include <linux/types.h>

#include "dune/vcpu.h"

struct dune_stub;
struct file;

void alone_init(void);
long alone_bind(struct dune_vcpu *vcpu, const struct dune_stub *argument, u64 *gpa);
loff_t alone_run(struct file *file, struct dune_vcpu *vcpu, u64 value, int whence);

/* Returns whether hypercall @nr, DUNE_PROBE_READ or more, is one that a guest may make. */
static inline bool alone_knows(unsigned long nr)
{
	return nr == DUNE_PROBE_READ || nr == DUNE_PROBE_WRITE || nr == DUNE_STUB_MOVE ||
	       nr == DUNE_MAKE_CHILD || nr == DUNE_MAKE_SHARED_CHILD || nr == DUNE_ADD_PAGES ||
	       nr == DUNE_FIND_VDSO || nr == DUNE_IGNORED_SIGNALS ||
	       nr - DUNE_HOSTCALL_NOW < DUNE_HOSTCALL;
}

/* Returns whether hypercall @nr is a system call that waits for the guest to take its interrupt. */
static inline bool alone_is_call(unsigned long nr)
{
	return nr < DUNE_PROBE_READ;
}

/* Tells the guest that the hypercall whose number is in RAX was not made, or must be made again. */
static inline void alone_call_again(struct dune_vcpu *vcpu)
{
	WRITE_ONCE(vcpu->run->signal.again, 1);
}

#endif /* DUNE_ALONE_H */

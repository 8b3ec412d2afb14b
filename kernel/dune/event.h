/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU whose thread has no host half, since it is bound to the stub: event.c.
 */
#ifndef DUNE_EVENT_H
#define DUNE_EVENT_H

#include <linux/types.h>

#include "dune/vcpu.h"

struct dune_stub;
struct file;

void event_init(void);
long event_bind(struct dune_vcpu *vcpu, const struct dune_stub *argument, u64 *gpa);
loff_t event_run(struct file *file, struct dune_vcpu *vcpu, u64 value, int whence);

/* Returns whether hypercall @nr, DUNE_PROBE_READ or more, is one that a guest may make. */
static inline bool event_knows(unsigned long nr)
{
	return nr == DUNE_PROBE_READ || nr == DUNE_PROBE_WRITE || nr == DUNE_STUB_MOVE ||
	       nr == DUNE_MAKE_CHILD || nr == DUNE_MAKE_SHARED_CHILD || nr == DUNE_ADD_PAGES ||
	       nr == DUNE_FIND_VDSO ||
	       nr - DUNE_HOSTCALL_NOW < DUNE_HOSTCALL;
}

/* Returns whether hypercall @nr is a system call that waits for the guest to take its interrupt. */
static inline bool event_is_call(unsigned long nr)
{
	return nr < DUNE_PROBE_READ;
}

/* Tells the guest that the hypercall whose number is in RAX was not made, or must be made again. */
static inline void event_call_again(struct dune_vcpu *vcpu)
{
	WRITE_ONCE(vcpu->run->signal.again, 1);
}

#endif /* DUNE_EVENT_H */

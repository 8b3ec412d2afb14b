/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU whose thread has no host half (DUNE_STUB_EVENTS): event.c.
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

/* Tells the guest that the hypercall whose number is in RAX was not made, or must be made again. */
static inline void event_call_again(struct dune_vcpu *vcpu)
{
	WRITE_ONCE(vcpu->run->signal.again, 1);
}

#endif /* DUNE_EVENT_H */

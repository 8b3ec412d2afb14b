/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hypercalls: system calls, messages to the host half, and requests to the module or the stub:
 * hypercall.c.
 */
#ifndef DUNE_HYPERCALL_H
#define DUNE_HYPERCALL_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "dune/vcpu.h"

void hypercall_init(void);
bool hypercall_is_fast(void);
int hypercall_dispatch(struct dune_vcpu *vcpu);
int hypercall_leave(struct dune_vcpu *vcpu);
void hypercall_restore_ioctl(struct dune_vcpu *vcpu);

/*
 * Carries out the guest's hypercall; context and result are those of hypercall_dispatch(). If an
 * interrupt waits for the guest, the thread has already taken a signal. A call that is dispatched
 * here could sleep although that signal should interrupt it, so the host half decides about the
 * call, or the guest if there is no host half.
 */
static __always_inline int hypercall_handle(struct dune_vcpu *vcpu, bool interrupt_waits)
{
	if (unlikely(interrupt_waits))
		return hypercall_leave(vcpu);
	return hypercall_dispatch(vcpu);
}

/* Tells the guest that the hypercall whose number is in RAX was not made, or must be made again. */
static inline void hypercall_call_again(struct dune_vcpu *vcpu)
{
	WRITE_ONCE(vcpu->run->signal.again, 1);
}

#endif /* DUNE_HYPERCALL_H */

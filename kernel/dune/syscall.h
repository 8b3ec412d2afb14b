/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hypercall is a system call: syscall.c.
 */
#ifndef DUNE_SYSCALL_H
#define DUNE_SYSCALL_H

#include <linux/compiler.h>
#include <linux/types.h>

struct dune_vcpu;

void dune_syscall_init(void);

/* Can this kernel's system calls be dispatched in the module? */
bool dune_syscall_is_fast(void);

int dune_handle_hypercall(struct dune_vcpu *vcpu);
int dune_leave_for_hypercall(struct dune_vcpu *vcpu);

/*
 * While an interrupt waits for the guest, a call that may sleep must not sleep
 * over a signal that the host half has already taken.
 */
static __always_inline int dune_hypercall(struct dune_vcpu *vcpu,
					  bool interrupt_waits)
{
	if (unlikely(interrupt_waits))
		return dune_leave_for_hypercall(vcpu);
	return dune_handle_hypercall(vcpu);
}

#endif /* DUNE_SYSCALL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nested page faults: fault.c.
 */
#ifndef DUNE_FAULT_H
#define DUNE_FAULT_H

#include <linux/types.h>

struct dune_vcpu;

int fault_handle(struct dune_vcpu *vcpu, u64 gpa, u32 flags);

#endif /* DUNE_FAULT_H */

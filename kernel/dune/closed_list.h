/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls that a guest without a host half may not make: closed_list.c.
 */
#ifndef DUNE_CLOSED_LIST_H
#define DUNE_CLOSED_LIST_H

struct dune_vcpu;
struct pt_regs;

void closed_list_add(unsigned long *calls);
long closed_list_refuses(const struct dune_vcpu *vcpu, const struct pt_regs *call);

#endif /* DUNE_CLOSED_LIST_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The thread of a vCPU that was made for a child: birth.c.
 */
#ifndef DUNE_BIRTH_H
#define DUNE_BIRTH_H

#include <linux/types.h>

struct dune_vcpu;
struct file;

int birth_finish(struct dune_vcpu *child);
loff_t birth_enter(struct file *file, struct dune_vcpu *parent);

#endif /* DUNE_BIRTH_H */

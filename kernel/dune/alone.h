/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU whose thread has no host half, since it is bound to the stub: alone.c.
 */
#ifndef DUNE_ALONE_H
#define DUNE_ALONE_H

#include <linux/types.h>

struct dune_stub;
struct dune_vcpu;
struct file;

void alone_init(void);
long alone_bind(struct dune_vcpu *vcpu, const struct dune_stub *argument, u64 *gpa);
loff_t alone_run(struct file *file, loff_t value, int whence);

#endif /* DUNE_ALONE_H */

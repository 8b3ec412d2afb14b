/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The vCPU that is made for a child process or thread: child.c.
 */
#ifndef DUNE_CHILD_H
#define DUNE_CHILD_H

#include <linux/types.h>

struct dune_vcpu;
struct dune_vm;
struct file;

void child_serve(struct dune_vcpu *vcpu);
struct file *child_take(struct dune_vcpu *parent, bool copy);
struct file *child_of_fork(unsigned long stub);
int child_make_template(struct dune_vcpu *vcpu);
struct file *child_of_template(struct dune_vm *vm);

#endif /* DUNE_CHILD_H */

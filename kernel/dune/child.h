/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The vCPU of a child process or thread: child.c.
 */
#ifndef DUNE_CHILD_H
#define DUNE_CHILD_H

#include <linux/types.h>

struct dune_vcpu;
struct dune_vm;
struct file;

void child_serve(struct dune_vcpu *vcpu);
struct file *child_of_fork(unsigned long stub);
int child_make_template(struct dune_vcpu *vcpu);
struct file *child_of_template(struct dune_vm *vm);
int child_attach(struct dune_vcpu *child);
loff_t child_enter(struct file *file, struct dune_vcpu *parent);

#endif /* DUNE_CHILD_H */

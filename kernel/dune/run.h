/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run loop of a vCPU: run.c.
 */
#ifndef DUNE_RUN_H
#define DUNE_RUN_H

struct dune_vcpu;
struct file;

void run_init(void);
void run_init_vcpu(struct dune_vcpu *vcpu);
long run_vcpu(struct file *file, struct dune_vcpu *vcpu);

#endif /* DUNE_RUN_H */

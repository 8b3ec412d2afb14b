/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run loop of a vCPU: run.c.
 */
#ifndef DUNE_RUN_H
#define DUNE_RUN_H

struct dune_vcpu;
struct file;

/* At load. */
void run_init(void);

/* Before the first run. */
void run_init_vcpu(struct dune_vcpu *vcpu);

/* DUNE_RUN, on the vCPU's file, by its thread. */
long run_vcpu(struct file *file, struct dune_vcpu *vcpu);

#endif /* DUNE_RUN_H */

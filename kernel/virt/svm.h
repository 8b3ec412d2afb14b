/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AMD SVM on the CPUs: svm.c.
 */
#ifndef VIRT_SVM_H
#define VIRT_SVM_H

#include <linux/types.h>

#include "virt/compat.h"

/* A zeroed page for VMRUN, VMLOAD and VMSAVE. */
void *svm_alloc_page(gfp_t gfp);

/* This CPU's host save area, physical; interrupts off. */
u64 svm_hsave(void);

void svm_set_reduced_speculation(void);

/* Interrupts off, before a guest runs on this CPU. */
static __always_inline void svm_reduce_speculation(void)
{
	if (kernel_reduces_speculation())
		svm_set_reduced_speculation();
}

#endif /* VIRT_SVM_H */

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

/*
 * Such a page for each possible CPU: 0 or -ENOMEM. Process context, may sleep.
 * svm_free_cpu_pages() also frees what a failed svm_alloc_cpu_pages() has allocated.
 */
int svm_alloc_cpu_pages(void *__percpu *pages);
void svm_free_cpu_pages(void *__percpu *pages);

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

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
 * svm_alloc_cpu_pages() allocates such a page for each possible CPU, and returns 0 or
 * -ENOMEM. svm_free_cpu_pages() frees them, also after svm_alloc_cpu_pages() has failed.
 * Both are for process context.
 */
int svm_alloc_cpu_pages(void *__percpu *pages);
void svm_free_cpu_pages(void *__percpu *pages);

/* Returns the physical address of this CPU's host save area. Interrupts are off. */
u64 svm_hsave(void);

/* svm.c; call svm_reduce_speculation(). */
void svm_set_reduced_speculation(void);

/* Before a guest runs on this CPU; interrupts are off. */
static __always_inline void svm_reduce_speculation(void)
{
	if (kernel_reduces_speculation())
		svm_set_reduced_speculation();
}

#endif /* VIRT_SVM_H */

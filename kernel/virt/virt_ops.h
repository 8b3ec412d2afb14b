/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One table for each vendor with the functions that the common code of virt/ calls; virt.c
 * chooses the table that fits the processor. Only virt/ includes this header.
 */
#ifndef VIRT_VIRT_OPS_H
#define VIRT_VIRT_OPS_H

#include "virt/virt.h"

/**
 * struct virt_ops - what a vendor does for the CPUs; one table each in svm.c and vmx.c
 * @vendor:	whose table this is
 *
 * In process context; may sleep:
 * @probe:	report with one pr_err() line what prevents virtualization, and
 *		return -ENODEV or -EOPNOTSUPP
 * @init:	allocate what all CPUs need; returns 0 or a negative errno
 * @cleanup:	free what @init allocated; also after @init has failed
 *
 * For this CPU, with interrupts off:
 * @cpu_turn_on: turn virtualization on; -EBUSY: another hypervisor has it on; -EIO: the
 *		processor refuses
 * @cpu_turn_off: turn virtualization off
 * @cpu_emergency: turn it off while the kernel crashes or reboots at once: works in
 *		any context, takes no lock, and leaves no address of the module's memory
 *		in the processor
 * @cpu_clear:	no entry follows on this CPU: remove what entries may have left in it
 *		while KVM was loaded. May be NULL
 */
struct virt_ops {
	enum virt_vendor vendor;

	int (*probe)(void);
	int (*init)(void);
	void (*cleanup)(void);

	int (*cpu_turn_on)(void);
	void (*cpu_turn_off)(void);
	void (*cpu_emergency)(void);
	void (*cpu_clear)(void);
};

extern const struct virt_ops svm_virt_ops;
extern const struct virt_ops vmx_virt_ops;

/* This processor's table; virt_init() sets it before anything else runs. */
extern const struct virt_ops *virt_ops;

#endif /* VIRT_VIRT_OPS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of virt/ share: the table for each vendor with the functions that the common code
 * calls, virtualization on each CPU (cpu.c), and KVM as it comes and goes (kvm.c). virt.c chooses
 * the table that fits the processor. Only virt/ includes this header.
 */
#ifndef VIRT_INTERNAL_H
#define VIRT_INTERNAL_H

#include <linux/types.h>

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

/* cpu.c */

/*
 * virt_cpus_start() turns virtualization on, on all CPUs, and virt_cpus_stop() turns it off. For
 * process context; both may sleep. @cpu_off: as for virt_start(). Returns 0 or a negative errno.
 */
int virt_cpus_start(void (*cpu_off)(void));
void virt_cpus_stop(void);

/*
 * Records in virt_kvm_loaded whether KVM is loaded, and gives virtualization to KVM or takes it
 * back on all CPUs. For process context; may sleep.
 */
void virt_cpus_set_kvm(bool loaded);

/*
 * Turns virtualization off on this CPU while the kernel crashes or reboots by force. For any
 * context, also an NMI.
 */
void virt_cpu_emergency(void);

/* kvm.c */

/*
 * virt_kvm_start() watches for KVM, and virt_kvm_stop() stops that. The former is called before
 * virt_cpus_start() turns virtualization on, the latter after it is off. For process context;
 * both may sleep. Returns 0 or a negative errno.
 */
int virt_kvm_start(void);
void virt_kvm_stop(void);

#endif /* VIRT_INTERNAL_H */

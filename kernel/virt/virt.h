/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The owner of the CPUs' virtualization: KVM while KVM is loaded, else virt/, for the
 * module above it.
 *
 * Virtualization is the processor's SVM or VT-x: the mode in which a CPU can
 * enter guests. virt.c chooses between the two vendors, cpu.c turns virtualization on
 * and off on each CPU, kvm.c watches for KVM, and tag.c hands out TLB tags. This layer
 * knows nothing about guests.
 *
 * Today virt/ is linked into dune.ko and has one user: virt_start() may be called once. A
 * second module makes virt/ a module of its own (docs/decisions/0049); until then only one
 * of the two can be loaded.
 */
#ifndef VIRT_VIRT_H
#define VIRT_VIRT_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/types.h>

/**
 * struct virt_ops - what a vendor's processors do; one table each in svm.c and vmx.c
 * @probe:	report with one pr_err() line what prevents virtualization, and
 *		return -ENODEV or -EOPNOTSUPP
 * @init:	allocate what all CPUs need
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

/*
 * virt_init() comes first and virt_cleanup() last; all four may sleep. Between virt_start() and
 * virt_stop() guests may be entered. @cpu_off is called on a CPU, with interrupts off,
 * right before virt/ turns virtualization off there, and takes back what the CPU
 * holds of guests; it may be NULL.
 */
int virt_init(void);
int virt_start(void (*cpu_off)(void));
void virt_stop(void);
void virt_cleanup(void);

/*
 * KVM is loaded (kvm.c). Then @cpu_turn_on is not called. Each entry looks, with
 * interrupts off, whether KVM has virtualization on. If so the entry uses it and
 * leaves KVM's state as it found it; if not the entry turns virtualization on, and off
 * again after the exit.
 */
DECLARE_STATIC_KEY_FALSE(virt_kvm_loaded);

/*
 * Each change of a CPU's virtualization advances the epoch, on that CPU, with
 * interrupts off. A run that the change has interrupted compares the epoch before its
 * next entry, and then saves the host's state again. The epoch advances once more, in
 * process context, after virt_kvm_loaded was switched off, since the path of an entry
 * changes then.
 */
extern atomic64_t virt_epoch;

/* Entries are allowed on this CPU (cpu.c). */
DECLARE_PER_CPU(bool, virt_enabled);

/*
 * Returns whether this CPU may enter guests. Interrupts are off. A CPU that goes off line or
 * shuts down is disabled while threads may still be on it. The run loop asks here after
 * each change of the epoch, and waits.
 */
static inline bool virt_is_enabled(void)
{
	return __this_cpu_read(virt_enabled);
}

#endif /* VIRT_VIRT_H */

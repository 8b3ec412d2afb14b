/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The owner of the CPUs' virtualization: KVM while KVM is loaded, else virt/, for the
 * module above it.
 *
 * Virtualization is the processor's SVM or VT-x: the mode in which a CPU can
 * enter guests. virt.c chooses between the two vendors, cpu.c turns virtualization on
 * and off on each CPU, kvm.c watches for KVM, tag.c hands out TLB tags, and symbol.c looks
 * up functions that modules cannot link to. This layer knows nothing about guests.
 *
 * virt/ is linked into dune.ko and has one user: virt_start() may be called once
 * (docs/decisions/0049). The guard (guard/) does not use it.
 */
#ifndef VIRT_VIRT_H
#define VIRT_VIRT_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/types.h>

enum virt_vendor { VIRT_SVM, VIRT_VMX };

/* Returns the vendor of this processor's virtualization. For any context, after virt_init(). */
enum virt_vendor virt_vendor(void);

/*
 * virt_init() comes first and virt_cleanup() last; all four are for process context, and may
 * sleep. The first two return 0 or a negative errno. virt_init() reports every error but -ENOMEM
 * by one line in the log.
 *
 * Between virt_start() and virt_stop() guests may be entered. @cpu_off is called on a CPU, with
 * interrupts off, right before virt/ turns virtualization off there, and takes back what the CPU
 * holds of guests; it may be NULL.
 */
int virt_init(void);
int virt_start(void (*cpu_off)(void));
void virt_stop(void);
void virt_cleanup(void);

/*
 * KVM is loaded (kvm.c), and virt/ does not turn virtualization on. Each entry looks, with
 * interrupts off, whether KVM has virtualization on. If so the entry uses it and
 * leaves KVM's state as it found it; if not the entry turns virtualization on, and off
 * again after the exit.
 */
DECLARE_STATIC_KEY_FALSE(virt_kvm_loaded);

/*
 * Each change of a CPU's virtualization advances the epoch, on that CPU, with interrupts off. A
 * run compares the epoch before its next entry. After a change it prepares again, as after a
 * switch to another thread: it asks virt_is_enabled(), has the host's state saved if that state
 * is not saved any more, and takes a new TLB tag if its own is not valid. The epoch advances once
 * more, in process context, after virt_kvm_loaded was switched off, since the path of an entry
 * changes then.
 */
extern atomic64_t virt_epoch;

/* Entries are allowed on this CPU (cpu.c). */
DECLARE_PER_CPU(bool, virt_enabled);

/*
 * Returns whether this CPU may enter guests. Interrupts are off. A CPU that goes offline or
 * shuts down is disabled while threads may still be on it. The run loop asks here after
 * each change of the epoch, and waits while the answer is no.
 */
static inline bool virt_is_enabled(void)
{
	return __this_cpu_read(virt_enabled);
}

#endif /* VIRT_VIRT_H */

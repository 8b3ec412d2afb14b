/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtualization on each CPU: cpu.c.
 */
#ifndef VIRT_CPU_H
#define VIRT_CPU_H

#include <linux/types.h>

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

#endif /* VIRT_CPU_H */

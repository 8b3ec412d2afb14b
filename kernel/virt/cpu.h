/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtualization on each CPU: cpu.c.
 */
#ifndef VIRT_CPU_H
#define VIRT_CPU_H

#include <linux/types.h>

/*
 * Turns virtualization on, on all CPUs, and off again. May sleep. @cpu_off: as for
 * virt_start().
 */
int virt_cpus_start(void (*cpu_off)(void));
void virt_cpus_stop(void);

/* KVM is loaded, or no longer loaded: switches virt_kvm_loaded. May sleep. */
void virt_cpus_set_kvm(bool loaded);

/* The kernel crashes or reboots at once, this CPU with it. Callable in any context, also an NMI. */
void virt_cpu_emergency(void);

#endif /* VIRT_CPU_H */

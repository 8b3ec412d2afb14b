/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM comes and goes: kvm.c.
 */
#ifndef VIRT_KVM_H
#define VIRT_KVM_H

/*
 * virt_kvm_start() watches for KVM, and virt_kvm_stop() stops that. The former is called before
 * virt_cpus_start() turns virtualization on, the latter after it is off. For process context;
 * both may sleep. Returns 0 or a negative errno.
 */
int virt_kvm_start(void);
void virt_kvm_stop(void);

#endif /* VIRT_KVM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM comes and goes: kvm.c.
 */
#ifndef VIRT_KVM_H
#define VIRT_KVM_H

/*
 * Watches for KVM, and stops watching. virt_kvm_start() is called before
 * virt_cpus_start() turns virtualization on, virt_kvm_stop() after it is off. May sleep.
 */
int virt_kvm_start(void);
void virt_kvm_stop(void);

#endif /* VIRT_KVM_H */

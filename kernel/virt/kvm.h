/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KVM comes and goes: kvm.c.
 */
#ifndef VIRT_KVM_H
#define VIRT_KVM_H

/* virt_kvm_start() before virtualization is on, virt_kvm_stop() after it is off. */
int virt_kvm_start(void);
void virt_kvm_stop(void);

#endif /* VIRT_KVM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole contract between the common code and a vendor's. A vendor
 * defines every name here; the build links the one that the module is for.
 * It knows processors, not processes: nothing behind this header looks at a
 * task, a file or a memory map.
 */
#ifndef DUNE_VENDOR_H
#define DUNE_VENDOR_H

#include <linux/types.h>

struct dune_info;
struct dune_state;
struct dune_vcpu;

/*
 * The machine. vendor_probe() says with one pr_err() line what is missing
 * and returns -ENODEV or -EOPNOTSUPP. vendor_init() allocates what all CPUs
 * need; vendor_exit() is its mirror.
 */
int vendor_probe(void);
int vendor_init(void);
void vendor_exit(void);
void vendor_info(struct dune_info *info);

/*
 * This CPU, interrupts off. vendor_cpu_enable() returns -EBUSY where somebody
 * else has virtualization enabled.
 */
int vendor_cpu_enable(void);
void vendor_cpu_disable(void);

/* A vCPU's hardware part: made and freed in process context. */
int vcpu_vendor_create(struct dune_vcpu *vcpu);
void vcpu_vendor_destroy(struct dune_vcpu *vcpu);

/* @root: physical address of the second-level page table. */
void vcpu_vendor_set_root(struct dune_vcpu *vcpu, u64 root);
void vcpu_vendor_get_state(struct dune_vcpu *vcpu, struct dune_state *state);
void vcpu_vendor_set_state(struct dune_vcpu *vcpu,
			   const struct dune_state *state);

/* Registers between dune_run.regs and the hardware: once for each DUNE_RUN. */
void vcpu_vendor_load(struct dune_vcpu *vcpu);
void vcpu_vendor_store(struct dune_vcpu *vcpu);

/*
 * vcpu_vendor_moved(), interrupts off: the thread has been off the CPU since
 * the last entry, or may be on another one (@migrated): save the host's
 * state, take a new TLB tag. vcpu_vendor_filter(): RDTSC and CPUID are
 * forbidden to the thread.
 */
void vcpu_vendor_moved(struct dune_vcpu *vcpu, bool migrated);
void vcpu_vendor_filter(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);

/*
 * Into the guest and back, interrupts off. On return every register that
 * the kernel relies on has the host's value again. Returns whether an
 * interrupt of the host, which is still pending, ended the guest.
 */
bool vcpu_vendor_enter(struct dune_vcpu *vcpu, bool flush);

/*
 * Deal with the exit, interrupts on. Returns 0 to enter the guest again, or
 * the DUNE_EXIT_* for user mode.
 */
int vcpu_vendor_handle_exit(struct dune_vcpu *vcpu);

/*
 * Overwrite the return stack buffer, which the guest may have filled, before
 * returning further up than the run loop.
 */
void vendor_fill_return_buffer(void);

#endif /* DUNE_VENDOR_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page table of a process in the format of Intel's EPT: mirror.c. One
 * mirror for each mm, shared by all its vCPUs.
 */
#ifndef DUNE_MIRROR_H
#define DUNE_MIRROR_H

#include <linux/list.h>
#include <linux/types.h>

struct mirror;
struct mm_struct;

/**
 * struct mirror_vcpu - what the mirror knows of a vCPU
 * @link:	in the mirror's list, under the mirror's lock
 * @in_guest:	CPU on which the vCPU may be in the guest, or -1. Written by
 *		its thread with interrupts off, read by who drops entries.
 * @cpu:	CPU of the last entry, its thread's own
 * @generation:	count of drops which that CPU is known to have seen, likewise
 */
struct mirror_vcpu {
	struct list_head link;
	int in_guest;
	int cpu;
	u64 generation;
};

/* The module: before the first mirror, after the last. */
void mirror_init(bool accessed_dirty, bool large_2m, bool large_1g,
		 unsigned int address_bits);
void mirror_exit(void);
unsigned int mirror_granules(void);

/* A mirror. Process context, may sleep. */
struct mirror *mirror_get(struct mm_struct *mm);
void mirror_put(struct mirror *mirror);
u64 mirror_eptp(const struct mirror *mirror);
int mirror_map_granule(struct mirror *mirror, u64 guest, u64 address);
bool mirror_address(struct mirror *mirror, u64 guest, u64 *address);
int mirror_fill(struct mirror *mirror, u64 address, u32 flags);

/* Its vCPUs. */
void mirror_add_vcpu(struct mirror *mirror, struct mirror_vcpu *vcpu);
void mirror_remove_vcpu(struct mirror *mirror, struct mirror_vcpu *vcpu);
bool mirror_enter(struct mirror *mirror, struct mirror_vcpu *vcpu);
void mirror_leave(struct mirror_vcpu *vcpu);

#endif /* DUNE_MIRROR_H */

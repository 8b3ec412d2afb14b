/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page table of a process in the format of Intel's EPT: mirror.c. One
 * mirror for each mm, shared by all its vCPUs.
 */
#ifndef DUNE_MIRROR_H
#define DUNE_MIRROR_H

#include <linux/types.h>

struct kick_vcpu;
struct mirror;
struct mm_struct;

/* The module: before the first mirror. */
void mirror_init(bool accessed_dirty, bool large_1g, unsigned int address_bits);
unsigned int mirror_granules(void);

/* A mirror. Process context, may sleep. */
struct mirror *mirror_get(struct mm_struct *mm);
void mirror_put(struct mirror *mirror);
u64 mirror_eptp(const struct mirror *mirror);
int mirror_map_granule(struct mirror *mirror, u64 guest, u64 address);
bool mirror_address(struct mirror *mirror, u64 guest, u64 *address);
int mirror_fill(struct mirror *mirror, u64 address, u32 flags, bool around);

/* Its vCPUs. */
int mirror_add_vcpu(struct mirror *mirror, struct kick_vcpu *vcpu);
void mirror_remove_vcpu(struct mirror *mirror, struct kick_vcpu *vcpu);
u64 mirror_generation(const struct mirror *mirror);

#endif /* DUNE_MIRROR_H */

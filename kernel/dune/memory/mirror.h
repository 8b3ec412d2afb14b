/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page table of a process in the format of Intel's EPT: mirror.c. Each mm has one
 * mirror, which all its vCPUs share.
 */
#ifndef DUNE_MEMORY_MIRROR_H
#define DUNE_MEMORY_MIRROR_H

#include <linux/types.h>

struct kick_vcpu;
struct mirror;
struct mm_struct;

/* Guests use process addresses of 47 bits, whatever the kernel has. */
#define PROCESS_BITS	47

/* mirror_init() is called at load, before the first mirror. */
void mirror_init(bool accessed_dirty, bool large_1g, unsigned int address_bits);
unsigned int mirror_granules(void);

/* One mirror. All are for process context and may sleep. */
struct mirror *mirror_get(struct mm_struct *mm);
void mirror_put(struct mirror *mirror);
u64 mirror_eptp(const struct mirror *mirror);
int mirror_map_granule(struct mirror *mirror, u64 gpa, u64 address);
bool mirror_address(struct mirror *mirror, u64 gpa, u64 *address);

/* mirror_fill.c; for process context, may sleep. */
int mirror_fill(struct mirror *mirror, u64 address, u32 flags, bool around);

/* The vCPUs of a mirror. */
int mirror_add_vcpu(struct mirror *mirror, struct kick_vcpu *vcpu);
void mirror_remove_vcpu(struct mirror *mirror, struct kick_vcpu *vcpu);
u64 mirror_generation(const struct mirror *mirror);

#endif /* DUNE_MEMORY_MIRROR_H */

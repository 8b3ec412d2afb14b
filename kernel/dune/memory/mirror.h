/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page table of a process in the format of Intel's EPT: mirror.c. Each mm has one
 * mirror, which has a tree of tables for each address space of /dev/dune.
 */
#ifndef DUNE_MEMORY_MIRROR_H
#define DUNE_MEMORY_MIRROR_H

#include <linux/types.h>

struct granules;
struct kick_vcpu;
struct mirror;
struct mirror_tree;
struct mm_struct;
struct page_pool;

/* mirror_init() is called at load, before the first mirror. */
void mirror_init(bool accessed_dirty, bool large_1g, unsigned int address_bits);
unsigned int mirror_granules(void);

/*
 * One mirror. mirror_address() is for any context, the others are for process context and may
 * sleep.
 */
int mirror_get(struct mm_struct *mm, struct mirror **found);
void mirror_put(struct mirror *mirror);
void mirror_use_pool(struct mirror *mirror, struct page_pool *pool);
int mirror_map_granule(struct mirror *mirror, u64 gpa, u64 address);
struct granules *mirror_clone_granules(struct mirror *mirror);
int mirror_add_granules(struct mirror *mirror, struct granules *from);
bool mirror_address(struct mirror *mirror, u64 gpa, u64 *address);

/*
 * One tree. mirror_tree_eptp() is for any context, the others are for process context and may
 * sleep.
 */
struct mirror_tree *mirror_tree_create(struct page_pool *pool);
void mirror_tree_destroy(struct mirror_tree *tree);
u64 mirror_tree_eptp(const struct mirror_tree *tree);
void mirror_link_private(struct mirror *mirror, struct mirror_tree *tree, u64 entry);

/* mirror_fill.c; for process context, may sleep. */
int mirror_fill(struct mirror *mirror, struct mirror_tree *tree, u64 gpa, u64 address, u32 flags,
		bool around);

/*
 * The vCPUs of a mirror. mirror_generation() is for any context, the others are for process
 * context.
 */
int mirror_add_vcpu(struct mirror *mirror, struct mirror_tree *tree, struct kick_vcpu *vcpu);
void mirror_remove_vcpu(struct mirror *mirror, struct mirror_tree *tree, struct kick_vcpu *vcpu);
u64 mirror_generation(const struct mirror *mirror);

#endif /* DUNE_MEMORY_MIRROR_H */

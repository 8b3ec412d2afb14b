// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leaves: functions of the kernel's that M executes without leaving, such as its return thunks and
 * memcpy(). M executes the guard's own copies. They are taken before the seal, when the module is
 * described, and hashed after they were copied, so that nobody can change them in between. Where
 * the kernel has such a page, M's view has a page of the guard's with these functions, and INT3 in
 * all other places. So nothing that the kernel patches later reaches M.
 *
 * M's own page table leads the page's linear address there (space.c), as it was when the leaf was
 * copied, and no other address to be executed: the kernel can neither lead M's call elsewhere, nor
 * another call to a leaf. All CPUs have one page table each, for all modules, so the pages that
 * several of them have stay until the last one ends. In the view of a module without leaves in that
 * page, the kernel's own frame is there, which is not executable.
 *
 * A leaf never moves the stack pointer, and preserves what any function preserves, by not using it.
 * That makes each place in it one at which the kernel can take over: RSP points to the return
 * address, as if the module had just called a function of the kernel's that begins there. So an
 * interrupt in a leaf is a border-out call. The kernel executes the rest of its own function, which
 * returns to the module. The same is true for what a leaf calls or jumps to; then the leaf's own
 * return address is above that of its callee.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"

#define INT3		0xcc

/* The most return addresses of leaves on top of each other. */
#define MOST_CALLS	2

/* The guard's copy of a page of the kernel's; made if there is none. NULL: it cannot be. */
static u8 *copy_of(struct hv_leaves *leaves, u64 address, u64 frame)
{
	struct hv_leaf_page *page = leaves->pages;
	u32 i;

	for (i = 0; i < leaves->page_count; i++, page++)
		if (page->address == address)
			return page->copy;
	if (leaves->page_count == HV_LEAF_PAGES || !hv_is_memory(frame) || hv_is_guards(frame))
		return NULL;
	page->copy = hv_pool_take(1);
	if (!page->copy)
		return NULL;
	page->address = address;
	page->frame = frame;
	leaves->page_count++;
	leaves->hashes |= hv_leaf_hash(address);
	for (i = 0; i < HV_PAGE; i++)
		page->copy[i] = INT3;
	return page->copy;
}

/* Copies a leaf, by the page table of @cr3. Returns whether the copy has the hash. */
static bool copy(struct hv_leaves *leaves, const struct hv_leaf *leaf, u64 cr3)
{
	u64 at = leaf->address, end = at + leaf->size, page, physical;
	u8 hash[SHA256_SIZE], *to = NULL;
	struct sha256 sha;
	u32 i, differs = 0;

	if (!leaf->size || leaf->size > HV_PAGE || !hv_is_image(at) || !hv_is_image(end - 1))
		return false;
	sha256_begin(&sha);
	for (; at < end; at++) {
		if (!to || !(at % HV_PAGE)) {
			page = at & ~(HV_PAGE - 1);
			if (!hv_walk(cr3, page, &physical))
				return false;
			to = copy_of(leaves, page, physical);
		}
		if (!to)
			return false;
		to[at % HV_PAGE] = ((const u8 *)hv_guest_memory(physical))[at % HV_PAGE];
		sha256_add(&sha, &to[at % HV_PAGE], 1);
	}
	sha256_end(&sha, hash);
	for (i = 0; i < SHA256_SIZE; i++)
		differs |= hash[i] ^ leaf->hash[i];
	return !differs;
}

s64 hv_leaves_take(struct hv_leaves **taken, u64 at, u64 cr3, u64 *which)
{
	const struct hv_leaf_list *from = hv_guest_memory(at);
	u64 count = from->count;
	struct hv_leaves *leaves;

	if (count > HV_LEAVES)
		return -EINVAL;
	leaves = hv_pool_take(1);
	if (!leaves)
		return -ENOMEM;
	*taken = leaves;
	for (; leaves->count < count; leaves->count++) {
		leaves->list[leaves->count] = from->leaves[leaves->count];
		*which = leaves->count;
		if (!copy(leaves, &leaves->list[leaves->count], cr3))
			return hv_pool_left() ? -ENOEXEC : -ENOMEM;
	}
	return 0;
}

void hv_leaves_give(struct hv_leaves *leaves)
{
	while (leaves->page_count)
		hv_pool_give(leaves->pages[--leaves->page_count].copy, 1);
	hv_pool_give(leaves, 1);
}

bool hv_leaves_map(const struct hv_guarded *guarded)
{
	const struct hv_leaves *leaves = guarded->leaves;
	u64 *entry;
	u32 i;

	for (i = 0; leaves && i < leaves->page_count; i++) {
		entry = hv_nested_entry(guarded->view, leaves->pages[i].frame, HV_SHIFT_PAGE);
		if (!entry)
			return false;
		*entry = hv_physical(leaves->pages[i].copy) | HV_NPT_READ;
	}
	return true;
}

bool hv_leaves_share(const struct hv_guarded *guarded, u64 page)
{
	const struct hv_leaves *leaves;
	u32 i, k;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		leaves = hv_guarded[i].leaves;
		if (!leaves || !hv_guarded[i].used || hv_guarded[i].leaving ||
		    &hv_guarded[i] == guarded)
			continue;
		for (k = 0; k < leaves->page_count; k++)
			if (leaves->pages[k].address == page)
				return true;
	}
	return false;
}

const struct hv_leaf *hv_leaf_find(const struct hv_leaves *leaves, u64 address)
{
	u32 i;

	for (i = 0; i < leaves->count; i++)
		if (address - leaves->list[i].address < leaves->list[i].size)
			return &leaves->list[i];
	return NULL;
}

struct hv_unwound hv_leaf_unwind(struct hv_cpu *cpu, const struct hv_guarded *guarded, u64 rsp,
				 u64 return_address)
{
	struct hv_unwound found = { .return_address = return_address };
	u64 value;

	/* A call may be the last instruction of a leaf. */
	while (found.above < 8 * MOST_CALLS &&
	       hv_leaf_at(guarded->leaves, found.return_address - 1) &&
	       hv_stack_read(cpu, guarded->view, rsp + found.above + 8, &value)) {
		found.above += 8;
		found.return_address = value;
	}
	return found;
}

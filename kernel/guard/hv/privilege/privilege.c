// SPDX-License-Identifier: GPL-2.0-only
/* The kinds of privileges, and the lists of registrations: see privilege.h. */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"
#include "x86/svm/instructions.h"
#include "x86/svm/vmcb.h"

/* Filled at run time: the image has no relocations, so that no constant is an address. */
static struct hv_privilege_functions kinds[HV_PRIVILEGE_KINDS];

void hv_privilege_register(enum hv_privilege_kind kind,
			   const struct hv_privilege_functions *functions)
{
	kinds[kind] = *functions;
}

void hv_privilege_use_map(struct hv_cpu *cpu, u64 *base, const u8 *map)
{
	*base = hv_physical(map);
	hv_vmcb_of_m(cpu)->control.clean &= ~SVM_CLEAN_MAPS;
}

void hv_privileges_change(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	u32 kind;

	for (kind = 0; kind < HV_PRIVILEGE_KINDS; kind++) {
		if (kinds[kind].lower)
			kinds[kind].lower(cpu);
		if (guarded->privilege_mask & BIT(kind) && kinds[kind].raise)
			kinds[kind].raise(cpu, guarded);
	}
	cpu->raised = guarded;
}

static bool overlap(const struct hv_privilege *one, u32 kind, u64 first, u64 size)
{
	return one->kind == kind && first < one->first + one->size && one->first < first + size;
}

static bool has(const struct hv_guarded *guarded, u32 count, u32 kind, u64 first, u64 size)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (overlap(&guarded->privileges[i], kind, first, size))
			return true;
	return false;
}

bool hv_privilege_taken(u32 kind, u64 first, u64 size, const struct hv_guarded *except)
{
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used && &hv_guarded[i] != except &&
		    has(&hv_guarded[i], hv_guarded[i].privilege_count, kind, first, size))
			return true;
	return false;
}

bool hv_is_taken(const struct hv_cpu *cpu, u32 kind, u64 at)
{
	const struct hv_guarded *guarded = hv_current(cpu);

	return hv_privilege_taken(kind, at, 1, guarded);
}

/* In each view: the upper levels, a directory for each GB, and tables for the two ends. */
static u64 need_of_range(u64 size)
{
	return 5 + (size >> 30);
}

/* Whether the kernel must not write all of configuration space because of an entry. */
static bool guards_pci(const struct hv_privilege *one)
{
	return one->function != HV_NO_FUNCTION || one->kind == HV_PRIVILEGE_PORTS;
}

u64 hv_privileges_need(const struct hv_guarded *guarded, u64 views)
{
	u64 pages = 3 + 2, i;
	bool has_window = false;

	if (!guarded->privilege_count)
		return 0;
	for (i = 0; i < guarded->privilege_count; i++) {
		has_window |= guards_pci(&guarded->privileges[i]);
		if (guarded->privileges[i].kind != HV_PRIVILEGE_MMIO)
			continue;
		pages += views * need_of_range(guarded->privileges[i].size);
	}
	return has_window ? pages + views * need_of_range(hv_config.ecam_size) : pages;
}

/* What all kinds have in common. */
static s64 check(struct hv_guarded *guarded, u32 i)
{
	struct hv_privilege *one = &guarded->privileges[i];
	bool has_range = one->kind >= HV_PRIVILEGE_MMIO && one->kind <= HV_PRIVILEGE_MSR;

	if (!one->kind || one->kind >= HV_PRIVILEGE_KINDS)
		return -EINVAL;
	if (one->kind > HV_PRIVILEGE_PORTS && one->function != HV_NO_FUNCTION)
		return -EINVAL;
	if (!has_range)
		return one->first || one->size ? -EINVAL : 0;
	if (!one->size || one->first + one->size < one->first)
		return -EINVAL;
	/* Nothing smaller than a page can be hidden: the rest of the page is hidden, too. */
	if (one->kind == HV_PRIVILEGE_MMIO && one->size < HV_PAGE)
		one->size = HV_PAGE;
	if (has(guarded, i, one->kind, one->first, one->size) ||
	    hv_privilege_taken(one->kind, one->first, one->size, guarded))
		return -EADDRINUSE;
	return 0;
}

static void undo(struct hv_guarded *guarded, u32 kind)
{
	while (kind--)
		if (guarded->privilege_mask & BIT(kind) && kinds[kind].deinit)
			kinds[kind].deinit(guarded);
}

s64 hv_privileges_init(struct hv_guarded *guarded)
{
	u32 i, kind;
	s64 err;

	guarded->privilege_mask = BIT(HV_PRIVILEGE_MEMORY);
	for (i = 0; i < guarded->privilege_count; i++) {
		err = check(guarded, i);
		if (err)
			return err;
		guarded->privilege_mask |= BIT(guarded->privileges[i].kind);
		if (guards_pci(&guarded->privileges[i]))
			guarded->privilege_mask |= BIT(HV_PRIVILEGE_BRIDGE);
	}
	/* The lock comes first, and goes last. */
	for (kind = 0; kind < HV_PRIVILEGE_KINDS; kind++) {
		if (!(guarded->privilege_mask & BIT(kind)) || !kinds[kind].init)
			continue;
		err = kinds[kind].init(guarded);
		if (err) {
			undo(guarded, kind);
			return err;
		}
	}
	return 0;
}

void hv_privileges_deinit(struct hv_guarded *guarded)
{
	undo(guarded, HV_PRIVILEGE_KINDS);
	guarded->privilege_count = 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each view has of a module's frames, from the freeze to the thaw. A frame changes in all
 * views at once: other modules' views have of it what K has. All functions but hv_lower() need
 * hv_views_lock.
 */
#include <linux/types.h>

#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

/* An entry of all views but those of @guarded: what K has, or what the single step has. */
static void set_others(const struct hv_guarded *guarded, u64 frame, u64 entry, u64 step_entry)
{
	u32 i;

	*hv_nested_entry(hv_config.nested_cr3, frame, HV_SHIFT_PAGE) = entry;
	*hv_nested_entry(hv_config.step_cr3, frame, HV_SHIFT_PAGE) = step_entry;
	for (i = 0; i < HV_REGISTRATIONS; i++) {
		if (!hv_guarded[i].used || &hv_guarded[i] == guarded ||
		    hv_is_secret(&hv_guarded[i]))
			continue;
		hv_nested_follow(hv_guarded[i].view, frame);
		hv_nested_follow(hv_guarded[i].lowered_view, frame);
	}
}

static u64 shadow_entry(const struct hv_guarded *guarded, u32 i)
{
	return hv_physical(guarded->shadows[i]) | HV_NPT_READ;
}

void hv_frames_freeze(struct hv_guarded *guarded)
{
	u64 zero = hv_config.zero_entry | HV_NPT_NO_EXECUTE;
	u64 sink = hv_config.sink_entry | HV_NPT_NO_EXECUTE;
	u64 frame, shadow, lowered;
	u32 i;

	for (i = 0; i < guarded->golden; i++) {
		frame = guarded->frames[i];
		hv_copy_page((u64 *)guarded->shadows[i], hv_guest_memory(frame));
		shadow = shadow_entry(guarded, i);
		lowered = !hv_is_secret(guarded) && hv_place(guarded, i).is_text ?
			  shadow : shadow | HV_NPT_NO_EXECUTE;
		/* L makes the single step, too. */
		set_others(guarded, frame, shadow | HV_NPT_NO_EXECUTE, lowered | HV_NPT_WRITE);
		if (hv_is_secret(guarded))
			continue;
		*hv_nested_entry(guarded->view, frame, HV_SHIFT_PAGE) = shadow | HV_NPT_NO_EXECUTE;
		*hv_nested_entry(guarded->lowered_view, frame, HV_SHIFT_PAGE) = lowered;
	}
	for (i = 0; i < guarded->copy->private_count; i++) {
		hv_nested_hide(guarded->privates[i]);
		set_others(guarded, guarded->privates[i], zero, sink);
		if (hv_is_secret(guarded))
			continue;
		*hv_nested_entry(guarded->view, guarded->privates[i], HV_SHIFT_PAGE) = zero;
		*hv_nested_entry(guarded->lowered_view, guarded->privates[i], HV_SHIFT_PAGE) = sink;
	}
	hv_views_changed++;
}

void hv_frames_set_golden(struct hv_guarded *guarded, u32 first, bool open)
{
	u64 entry, *at;
	u32 i;

	for (i = first; i < guarded->golden; i++) {
		entry = open ? guarded->frames[i] | HV_NPT_READ : shadow_entry(guarded, i);
		if (!open || !hv_place(guarded, i).is_text)
			entry |= HV_NPT_NO_EXECUTE;
		at = hv_nested_entry(guarded->view, guarded->frames[i], HV_SHIFT_PAGE);
		__atomic_store_n(at, entry, __ATOMIC_RELEASE);
	}
	hv_views_changed++;
}

void hv_frames_open(struct hv_guarded *guarded, bool open)
{
	u64 private, *at;
	u32 i;

	if (hv_is_secret(guarded)) {
		hv_secret_open(guarded, open);
		hv_views_changed++;
		return;
	}
	for (i = 0; i < guarded->copy->private_count; i++) {
		private = open ? guarded->privates[i] | HV_NPT_WRITE : hv_config.zero_entry;
		at = hv_nested_entry(guarded->view, guarded->privates[i], HV_SHIFT_PAGE);
		__atomic_store_n(at, private | HV_NPT_NO_EXECUTE, __ATOMIC_RELEASE);
	}
	hv_frames_set_golden(guarded, 0, open);
}

void hv_frames_thaw_golden(struct hv_guarded *guarded, u32 first)
{
	u64 frame;
	u32 i;

	for (i = first; i < guarded->golden; i++) {
		frame = guarded->frames[i];
		hv_copy_page(hv_guest_memory(frame), (u64 *)guarded->shadows[i]);
		set_others(guarded, frame, frame | HV_NPT_WRITE, frame | HV_NPT_WRITE);
		if (hv_is_secret(guarded))
			continue;
		hv_nested_follow(guarded->view, frame);
		hv_nested_follow(guarded->lowered_view, frame);
	}
	guarded->golden = first;
	hv_views_changed++;
}

void hv_frames_thaw(struct hv_guarded *guarded)
{
	u64 frame;
	u32 i;

	hv_frames_thaw_golden(guarded, 0);
	for (i = 0; i < guarded->copy->private_count; i++) {
		frame = guarded->privates[i];
		set_others(guarded, frame, frame | HV_NPT_WRITE, frame | HV_NPT_WRITE);
	}
	hv_frames_join(guarded);
}

void hv_frames_join(const struct hv_guarded *guarded)
{
	u32 i;

	for (i = 0; i < hv_registration_frames(guarded->copy); i++)
		hv_nested_join(guarded->frames[i]);
	for (i = 0; i < guarded->copy->private_count; i++)
		hv_nested_join(guarded->privates[i]);
}

void hv_lower(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	struct vmcb_control_area *k = &hv_vmcb_of_k(cpu)->control;

	cpu->lowered = guarded;
	cpu->guarded = NULL;
	k->nested_cr3 = guarded ? guarded->lowered_view : hv_config.nested_cr3;
	k->tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
	k->clean = 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The privilege "msr": registers that one module alone reads and writes. It has an MSR permission
 * map in which they do not exit; in K they do, and guard/hv/msr.c decides.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

/*
 * The registers that a module may have: no instruction but RDMSR and WRMSR accesses them, they have
 * no other number, they affect neither physical memory nor SVM, and Linux runs without them.
 */
static const struct bindable { u32 first, last; } bindable[] = {
	{ 0x1a0, 0x1a0 },		/* MISC_ENABLE, which emulators have */
	{ 0xc0010061, 0xc001006b },	/* P-states: limit, control, status, their definitions */
	{ 0xc0010073, 0xc0010073 },	/* the ports by which C-states are entered */
	{ 0xc0010290, 0xc001029b },	/* P-state and power, as measured */
	{ 0xc00102b0, 0xc00102b3 },	/* CPPC: the wanted performance */
};

static bool is_bindable(const struct hv_privilege *one)
{
	u32 i;

	for (i = 0; i < sizeof(bindable) / sizeof(struct bindable); i++)
		if (one->first >= bindable[i].first &&
		    one->first + one->size - 1 <= bindable[i].last)
			return true;
	return false;
}

/* Of K, and of every module but @except: exits for all accesses, or as without the privilege. */
static void set_all(const struct hv_privilege *one, bool exits, const struct hv_guarded *except)
{
	u32 msr, i;

	for (msr = one->first; msr < one->first + one->size; msr++) {
		bool free = !exits && hv_msr_is_allowed(msr);

		hv_msr_set_map(hv_config.msrpm, msr, exits, !free);
		for (i = 0; i < HV_REGISTRATIONS; i++)
			if (hv_guarded[i].msrpm && &hv_guarded[i] != except)
				hv_msr_set_map(hv_guarded[i].msrpm, msr, exits, !free);
	}
}

static s64 init(struct hv_guarded *guarded)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 i, msr;

	for (i = 0; i < guarded->privilege_count; i++)
		if (one[i].kind == HV_PRIVILEGE_MSR && !is_bindable(&one[i]))
			return -EINVAL;
	guarded->msrpm = hv_pool_take(HV_MSRPM_PAGES);
	if (!guarded->msrpm)
		return -ENOMEM;
	for (i = 0; i < HV_MSRPM_PAGES * HV_PAGE; i++)
		guarded->msrpm[i] = hv_config.msrpm[i];
	for (i = 0; i < guarded->privilege_count; i++) {
		if (one[i].kind != HV_PRIVILEGE_MSR)
			continue;
		set_all(&one[i], true, guarded);
		for (msr = one[i].first; msr < one[i].first + one[i].size; msr++)
			hv_msr_set_map(guarded->msrpm, msr, false, false);
	}
	return 0;
}

static void deinit(struct hv_guarded *guarded)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (one[i].kind == HV_PRIVILEGE_MSR)
			set_all(&one[i], false, guarded);
	hv_pool_give(guarded->msrpm, HV_MSRPM_PAGES);
	guarded->msrpm = NULL;
}

static void raise(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	hv_privilege_use_map(cpu, &hv_vmcb_of_m(cpu)->control.msrpm_base_pa, guarded->msrpm);
}

static void lower(struct hv_cpu *cpu)
{
	hv_privilege_use_map(cpu, &hv_vmcb_of_m(cpu)->control.msrpm_base_pa, hv_config.msrpm);
}

void hv_msr_start(void)
{
	const struct hv_privilege_functions functions = { init, deinit, raise, lower };

	hv_privilege_register(HV_PRIVILEGE_MSR, &functions);
}

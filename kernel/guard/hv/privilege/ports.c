// SPDX-License-Identifier: GPL-2.0-only
/*
 * The privilege "ports": I/O ports. M has an I/O permission map in which they do not exit; in K
 * they do, and io.c decides.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/lock.h"
#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

#define PORTS		0x10000

static void set(u8 *map, u32 first, u32 count, bool exits)
{
	u32 port;

	for (port = first; port < first + count; port++) {
		if (exits)
			map[port / 8] |= 1 << port % 8;
		else
			map[port / 8] &= ~(1 << port % 8);
	}
}

/* Of K, and of every module but @except. */
static void set_all(u32 first, u32 count, bool exits, const struct hv_guarded *except)
{
	u32 i;

	set(hv_config.iopm, first, count, exits);
	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].iopm && &hv_guarded[i] != except)
			set(hv_guarded[i].iopm, first, count, exits);
}

void hv_ports_watch(u32 first, u32 count)
{
	set_all(first, count, true, NULL);
}

/* HV_CALL_SEAL, on each CPU: from now on the ports of sleep and reset exit. */
void hv_ports_seal(struct hv_cpu *cpu)
{
	int i;

	hv_lock(&hv_views_lock);
	hv_ports_watch(HV_PORT_RESET, 1);
	hv_ports_watch(HV_PORT_CONTROL, 1);
	hv_ports_watch(HV_PORT_KEYBOARD, 1);
	for (i = 0; i < HV_SLEEP_PORTS; i++)
		if (hv_config.sleep[i].port)
			hv_ports_watch(hv_config.sleep[i].port, 1);
	hv_unlock(&hv_views_lock);
	hv_vmcb_of_k(cpu)->control.clean = 0;
	hv_vmcb_of_m(cpu)->control.clean = 0;
}

/* Those, and the ports of configuration space, are no module's. */
static bool is_guards(u32 first, u32 count)
{
	const u32 ports[] = {
		HV_PORT_CONTROL, HV_PORT_KEYBOARD, hv_config.sleep[0].port,
		hv_config.sleep[1].port, hv_config.sleep[2].port,
	};
	u32 i;

	for (i = 0; i < sizeof(ports) / sizeof(u32); i++)
		if (ports[i] - first < count)
			return true;
	return first < HV_PORT_PCI_END && HV_PORT_PCI_ADDRESS < first + count;
}

static s64 init(struct hv_guarded *guarded)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (one[i].kind == HV_PRIVILEGE_PORTS &&
		    (one[i].first + one[i].size > PORTS ||
		     is_guards(one[i].first, one[i].size)))
			return -EINVAL;
	guarded->iopm = hv_pool_take(HV_IOPM_PAGES);
	if (!guarded->iopm)
		return -ENOMEM;
	for (i = 0; i < HV_IOPM_PAGES * HV_PAGE; i++)
		guarded->iopm[i] = hv_config.iopm[i];
	for (i = 0; i < guarded->privilege_count; i++) {
		if (one[i].kind != HV_PRIVILEGE_PORTS)
			continue;
		set_all(one[i].first, one[i].size, true, guarded);
		set(guarded->iopm, one[i].first, one[i].size, false);
	}
	return 0;
}

static void deinit(struct hv_guarded *guarded)
{
	const struct hv_privilege *one = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (one[i].kind == HV_PRIVILEGE_PORTS)
			set_all(one[i].first, one[i].size, false, guarded);
	hv_pool_give(guarded->iopm, HV_IOPM_PAGES);
	guarded->iopm = NULL;
}

static void raise(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	hv_privilege_use_map(cpu, &hv_vmcb_of_m(cpu)->control.iopm_base_pa, guarded->iopm);
}

static void lower(struct hv_cpu *cpu)
{
	hv_privilege_use_map(cpu, &hv_vmcb_of_m(cpu)->control.iopm_base_pa, hv_config.iopm);
}

void hv_ports_start(void)
{
	const struct hv_privilege_functions functions = { init, deinit, raise, lower };

	hv_privilege_register(HV_PRIVILEGE_PORTS, &functions);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspicious activity around a module: what border control demands of the hypervisor when the
 * administrator has chosen to log it, to stop the module, or to make the kernel panic.
 */
#include <linux/types.h>
#include <asm/trapnr.h>

#include "guard/hv/border/crossings.h"
#include "guard/hv/views.h"

void hv_suspect_log(struct hv_cpu *cpu, const struct hv_guarded *guarded, u8 suspicion, u64 value)
{
	enum hv_log_kind kind = HV_LOG_ENTER;

	if (suspicion == SUSPECT_WRITE)
		kind = HV_LOG_PATCH;
	if (suspicion == SUSPECT_EXIT)
		kind = HV_LOG_EXIT;
	/* Where class S was is a secret. */
	if (suspicion == SUSPECT_EXIT && hv_is_secret(guarded))
		value = guarded->module.stub;
	hv_log_suspicion(cpu, kind, guarded->border.choice, value);
}

/*
 * The kernel gets a double fault at the instruction at which it is. Linux's handler has a stack of
 * its own, reports the place, and panics: with its message, its notifiers, and the kernel for a
 * crash dump if there is one. The guard stays, and hides private memory from all of them.
 *
 * Code in ring 0 can have a handler of its own, and continue. It has won nothing then. The module
 * was stopped before that, modules with secrets are revoked and have none left, and the fault
 * changes no register that decides on a right: what such code can do now, it could do before.
 * Without a usable handler the fault ends in a shutdown, and the guard resets the computer. It
 * could do so at once, but then nobody would learn why.
 */
void hv_panic(struct hv_cpu *cpu)
{
	cpu->panics = false;
	hv_before_panic();
	hv_lower(cpu, NULL);
	hv_inject(cpu, X86_TRAP_DF, true);
}

/* Suspicious activity that is no crossing. */
struct suspicion {
	struct border border;
	struct hv_cpu *cpu;
	struct hv_guarded *guarded;
	u64 value;
};

static_assert(!offsetof(struct suspicion, border));

static void border_act(struct border *border, u32 kind, u32 argument)
{
	struct suspicion *suspicion = (struct suspicion *)border;
	struct hv_cpu *cpu = suspicion->cpu;

	switch (kind) {
	case ACT_REPORT:
		if (argument != SUSPECT_WRITE)
			cpu->crossings[HV_CROSSING_REFUSED]++;
		break;
	case ACT_LOG:
		hv_suspect_log(cpu, suspicion->guarded, argument, suspicion->value);
		break;
	case ACT_CHANGE:
		hv_register_change(cpu, suspicion->guarded, argument);
		break;
	case ACT_PANIC:
		hv_panic(cpu);
		break;
	}
}

static int border_read_stack(struct border *border, struct border_exit *exit)
{
	return 0;
}

static int border_is_leaf(const struct border *border, u64 address)
{
	return 0;
}

void hv_suspect(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 kind, u64 value)
{
	struct suspicion suspicion = { .cpu = cpu, .guarded = guarded, .value = value };

	hv_border_begin(&suspicion.border, cpu, guarded);
	border_suspect(&suspicion.border, kind);
}

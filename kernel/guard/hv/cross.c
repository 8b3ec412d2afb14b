// SPDX-License-Identifier: GPL-2.0-only
/*
 * The crossings: what the processor reports becomes an event of border control's, whose actions are
 * carried out here (border/border.h).
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>
#include <uapi/asm/processor-flags.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"
#include "x86/registers.h"
#include "x86/svm/vmcb.h"

#define ATTRIBUTE_LONG	BIT(9)	/* of CS in the VMCB: 64-bit code */

/* CF, PF, AF, ZF, SF, IF, OF and ID. At an entry or a return M gets no others from the kernel. */
#define HARMLESS_FLAGS	0x200ad5ULL
#define ALWAYS_SET	2ULL

/* The kernel's stacks are as large as this, and mostly begin at a multiple. */
#define STACK_SIZE	0x4000ULL
/* With KASAN they are twice as large. */
#define LARGEST_STACK	0x8000ULL

struct hv_saved hv_saved[HV_ALL_ACTIVATIONS];

/* Of class S: what the kernel had at the entry, of the registers that a function preserves. */
static u64 kept[HV_REGISTRATIONS * HV_STACKS][16];

/* No activation from this one on was ever claimed: the search ends there. */
static u32 claimed;

/* The index of an activation in hv_saved; in kept, it is HV_ACTIVATIONS less. */
static u32 slot_of(const struct hv_guarded *guarded, u32 activation)
{
	return guarded->pool - hv_activations + activation;
}

static bool has(const struct hv_guarded *guarded, u64 rip)
{
	return rip - guarded->module.text <
		       __atomic_load_n(&guarded->size, __ATOMIC_RELAXED) ||
	       rip - guarded->module.init_text <
		       __atomic_load_n(&guarded->init_size, __ATOMIC_RELAXED);
}

static struct hv_guarded *find(u64 rip)
{
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (has(&hv_guarded[i], rip))
			return &hv_guarded[i];
	return NULL;
}

static u64 gs_base(void)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (MSR_GS_BASE));
	return low | (u64)high << 32;
}

/* Both tags owe a flush if a view has changed, on whatever CPU, since this one was here. */
static void look_at_views(struct hv_cpu *cpu, struct border *border)
{
	struct cpu_event event = { .kind = CPU_VIEWS_CHANGED };
	u32 changed = __atomic_load_n(&hv_views_changed, __ATOMIC_ACQUIRE);

	if (cpu->views_seen == changed)
		return;
	cpu->views_seen = changed;
	cpu->border = cpu_step(cpu->border, &event, &border->actions);
}

/* ---- the actions ---- */

/* The registers that a function preserves. */
static inline void copy_preserved(u64 *to, const u64 *from)
{
	to[REGS_RBX / 8] = from[REGS_RBX / 8];
	to[REGS_RBP / 8] = from[REGS_RBP / 8];
	to[12] = from[12];
	to[13] = from[13];
	to[14] = from[14];
	to[15] = from[15];
}

static void save(struct hv_cpu *cpu, u32 slot, u8 crossing)
{
	u64 *to = hv_saved[slot].regs;
	u32 i;

	if (crossing == BORDER_OUT_CALL) {
		copy_preserved(to, cpu->regs);
		return;
	}
	for (i = 1; i < 16; i++)
		to[i] = cpu->regs[i];
	to[0] = hv_vmcb_of_m(cpu)->save.rax;
	hv_saved[slot].rflags = hv_vmcb_of_m(cpu)->save.rflags;
}

/* The flags and RAX are M's at an interrupt; else they are what the kernel's function returned. */
static void restore(struct hv_cpu *cpu, u32 set, u32 slot)
{
	const u64 *from = hv_saved[slot].regs;
	struct vmcb_save_area *m = &hv_vmcb_of_m(cpu)->save;
	u32 i;

	if (set == REGISTERS_CALLEE_SAVED) {
		copy_preserved(cpu->regs, from);
		return;
	}
	for (i = 1; i < 16; i++)
		cpu->regs[i] = from[i];
	m->rax = from[0];
	m->rflags = hv_saved[slot].rflags;
}

/* Class S: M has the kernel's arguments, and nothing else of it. */
static void keep(struct hv_cpu *cpu, u32 slot)
{
	static const u64 nothing[16];

	copy_preserved(kept[slot - HV_ACTIVATIONS], cpu->regs);
	copy_preserved(cpu->regs, nothing);
	cpu->regs[10] = 0;
	cpu->regs[11] = 0;
	hv_vmcb_of_m(cpu)->save.rax = 0;
}

static void clear(struct hv_cpu *cpu, u32 set)
{
	u64 result = cpu->regs[REGS_RDX / 8];
	u32 i;

	for (i = 1; i < 16; i++)
		cpu->regs[i] = 0;
	if (set == REGISTERS_BUT_RESULT)
		cpu->regs[REGS_RDX / 8] = result;
	else
		hv_vmcb_of_m(cpu)->save.rax = 0;
}

/* The kernel's handler of the exception has set this register. */
static void fix_up(struct hv_cpu *cpu, const struct hv_guarded *guarded, u32 fixup,
		   const u64 kernels[16])
{
	u64 reg = guarded->module.fixups[fixup].reg;

	if (!reg)
		hv_vmcb_of_m(cpu)->save.rax = kernels[0];
	else if (reg < 16)
		cpu->regs[reg] = kernels[reg];
}

static void report(struct hv_cpu *cpu, enum hv_log_kind kind, u64 rip)
{
	cpu->crossings[HV_CROSSING_REFUSED]++;
	hv_log(cpu, kind, rip);
}

static void enter_m(struct hv_cpu *cpu, struct hv_guarded *guarded,
		    const struct border_activation *activation)
{
	struct vmcb *m = hv_vmcb_of_m(cpu);
	u64 cr3 = guarded->space ? hv_physical(guarded->space) : cpu->space_cr3;

	m->save.rip = activation->inside.rip;
	m->save.rsp = activation->inside.rsp;
	if (m->control.nested_cr3 != guarded->view || m->save.cr3 != cr3) {
		m->control.nested_cr3 = guarded->view;
		m->save.cr3 = cr3;
		m->control.clean = 0;
	}
	cpu->guarded = guarded;
	hv_space_clear_copies(cpu);
	while (__atomic_load_n(&guarded->carries, __ATOMIC_ACQUIRE))
		;
	cpu->vmcb = m;
	/* TCG shows no stale translation: this is the test. */
	if (!cpu_is_square(&cpu->border) || !m->control.tlb_ctl)
		hv_reset();
}

static void enter_k(struct hv_cpu *cpu, const struct hv_guarded *guarded,
		    const struct border *border)
{
	struct vmcb *k = hv_vmcb_of_k(cpu), *m = hv_vmcb_of_m(cpu);

	k->save.rip = border->go.rip;
	k->save.rsp = border->go.rsp;
	k->save.rax = m->save.rax;
	k->save.rflags = m->save.rflags;
	if (hv_is_secret(guarded))
		k->save.rflags &= X86_EFLAGS_IF | ALWAYS_SET;
	k->control.int_state = 0;
	cpu->vmcb = k;
	if (!cpu_is_square(&cpu->border))
		hv_reset();
	/* Only a module that was led astray changes these. */
	if (m->save.cpl || *(u64 *)&m->save.cs != cpu->code_segment) {
		*(u64 *)&m->save.cs = cpu->code_segment;
		m->save.cpl = 0;
		m->control.clean = 0;
	}
}

/* ---- border-in ---- */

static void carry_out_in(struct hv_cpu *cpu, struct hv_guarded *guarded, struct border *border,
			 const struct border_claim *claim, u64 rip)
{
	u64 kernels[16];
	u32 i, reg;

	for (i = 0; i < border->actions.count; i++) {
		u32 argument = border->actions.list[i].argument;

		switch (border->actions.list[i].kind) {
		case ACT_FLUSH_K:
			hv_vmcb_of_k(cpu)->control.tlb_ctl = hv_config.flush_tag;
			break;
		case ACT_FLUSH_M:
			hv_vmcb_of_m(cpu)->control.tlb_ctl = hv_config.flush_tag;
			break;
		case ACT_RESTORE:
			for (reg = 0; claim->fixup != NO_FIXUP && reg < 16; reg++)
				kernels[reg] = reg ? cpu->regs[reg] :
						     hv_vmcb_of_k(cpu)->save.rax;
			restore(cpu, argument, slot_of(guarded, claim->activation));
			break;
		case ACT_CLEAR_STACK:
			hv_secret_clear_stack(guarded, argument);
			break;
		case ACT_FRESH_STACK:
			*hv_secret_stack_end(guarded, argument) = guarded->module.gate;
			break;
		case ACT_KEEP:
			keep(cpu, slot_of(guarded, argument));
			break;
		case ACT_FIXUP:
			fix_up(cpu, guarded, argument, kernels);
			break;
		case ACT_RAISE:
			hv_privileges_raise(cpu, guarded, argument);
			break;
		case ACT_ENTER_M:
			enter_m(cpu, guarded, &guarded->pool[argument]);
			break;
		case ACT_FAULT:
			/* In class S there is no L. */
			if (!guarded->lowered_view)
				hv_inject(cpu, X86_TRAP_GP, true);
			else
				hv_lower(cpu, guarded);
			break;
		case ACT_REPORT:
			report(cpu, HV_LOG_ENTER, rip);
			break;
		default:
			hv_reset();
		}
	}
}

static void read_fetch(struct hv_cpu *cpu, const struct hv_guarded *guarded,
		       struct border_exit *exit)
{
	const struct vmcb_save_area *k = &hv_vmcb_of_k(cpu)->save;

	exit->at.rip = k->rip;
	exit->at.rsp = k->rsp;
	exit->stack = k->rsp & ~(STACK_SIZE - 1);
	exit->return_address = 0;
	exit->is_fetch = 1;
	exit->cause = 0;
	exit->is_proper = !k->cpl && k->cs.attrib & ATTRIBUTE_LONG && cpu->space;
	/* Class S uses nothing of the kernel's, neither GS nor its stack. */
	if (hv_is_secret(guarded))
		return;
	exit->is_proper &= gs_base() == cpu->gs_base;
	/* Only an entry has a return address. */
	if (module_entry(&guarded->module, k->rip) != ENTRY_NONE &&
	    !hv_walk_read(k->cr3, k->rsp, &exit->return_address))
		exit->is_proper = 0;
}

/* Gives M the kernel's RAX and flags, for a crossing that restores nothing. */
static void hand_over(struct hv_cpu *cpu, u64 flags)
{
	const struct vmcb_save_area *k = &hv_vmcb_of_k(cpu)->save;
	struct vmcb *m = hv_vmcb_of_m(cpu);

	m->save.rax = k->rax;
	m->save.rflags = (k->rflags & flags) | ALWAYS_SET;
	m->control.int_state = 0;
}

bool hv_cross_fetch(struct hv_cpu *cpu)
{
	u64 rip = hv_vmcb_of_k(cpu)->save.rip, k_has;
	struct hv_guarded *guarded = find(rip);
	struct border_exit exit;
	struct border_claim claim;
	struct border border;
	u8 crossing;
	u32 last;

	if (cpu->lowered) {
		/* The kernel fetches elsewhere, or the text is not at its address. */
		if (guarded == cpu->lowered)
			hv_inject(cpu, X86_TRAP_GP, true);
		hv_lower(cpu, NULL);
		return true;
	}
	if (!guarded) {
		k_has = hv_nested_look(hv_vmcb_of_k(cpu)->control.exit_info_2);
		if (!k_has)
			return false;
		/* The module has left, or its init, and this CPU has not yet flushed. */
		if (!(k_has & HV_NPT_NO_EXECUTE)) {
			hv_lower(cpu, NULL);
			return true;
		}
		report(cpu, HV_LOG_ENTER, rip);
		hv_inject(cpu, X86_TRAP_GP, true);
		return true;
	}
	/* The guest executes its fetch again. */
	if (guarded->pending && !hv_patch_carry(cpu, guarded))
		return true;
	hv_border_begin(&border, cpu, guarded);
	look_at_views(cpu, &border);
	read_fetch(cpu, guarded, &exit);
	last = __atomic_load_n(&claimed, __ATOMIC_ACQUIRE);
	if (guarded->pool == hv_activations)
		border.activation_count = last < HV_ACTIVATIONS ? last + 1 : last;
	claim = border_match(&border, &exit);
	/* Others have to look at this one from now on. */
	if (claim.crossing == BORDER_IN_CALL && claim.activation == last &&
	    guarded->pool == hv_activations)
		__atomic_compare_exchange_n(&claimed, &last, last + 1, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	crossing = border_in(&border, &exit, &claim);
	if (crossing != BORDER_REFUSED) {
		cpu->crossings[crossing]++;
		if (guarded->tally)
			hv_tally_add(guarded, &guarded->pool[claim.activation], crossing, rip);
		hand_over(cpu, hv_is_secret(guarded) ? X86_EFLAGS_IF : HARMLESS_FLAGS);
	}
	carry_out_in(cpu, guarded, &border, &claim, rip);
	return true;
}

/* ---- border-out ---- */

/* The event that the kernel gets for an exit of M: none, or an exception. */
struct event {
	u32 inject;
	u32 error;
	u64 address;	/* of a page fault */
	u8 cause;
};

static void set_exception(struct event *event, u32 vector, u64 error)
{
	event->inject = vector | SVM_EVTINJ_TYPE_EXEPT | SVM_EVTINJ_VALID;
	if (HV_HAVE_ERROR & BIT(vector))
		event->inject |= SVM_EVTINJ_VALID_ERR;
	event->error = error;
	event->cause = vector == X86_TRAP_UD ? CAUSE_BUG :
		       vector == X86_TRAP_MC ? CAUSE_INTERRUPT : CAUSE_FAULT;
}

static void read_event(struct hv_cpu *cpu, u32 code, struct event *event)
{
	const struct vmcb_control_area *control = &hv_vmcb_of_m(cpu)->control;
	u32 vector = code - SVM_EXIT_EXCP_BASE;

	*event = (struct event){ .cause = CAUSE_INTERRUPT };
	switch (code) {
	case SVM_EXIT_NPF:
		if (!hv_is_secret(cpu->guarded))
			hv_log(cpu, HV_LOG_NO_MEMORY, control->exit_info_2);
		set_exception(event, X86_TRAP_GP, 0);
		break;
	case SVM_EXIT_INTR:
	case SVM_EXIT_NMI:
		/* They are pending, and the kernel gets them at once. */
		break;
	case SVM_EXIT_VMMCALL:
	case SVM_EXIT_VMRUN:
	case SVM_EXIT_VMLOAD:
	case SVM_EXIT_VMSAVE:
	case SVM_EXIT_STGI:
	case SVM_EXIT_CLGI:
	case SVM_EXIT_SKINIT:
	case SVM_EXIT_INVLPGA:
		set_exception(event, X86_TRAP_UD, 0);
		break;
	default:
		if (vector < HV_VECTORS) {
			set_exception(event, vector, control->exit_info_1);
			event->address = control->exit_info_2;
		} else {
			/* Among others, registers that are constant in M. */
			set_exception(event, X86_TRAP_GP, 0);
		}
	}
}

static void deliver(struct hv_cpu *cpu, const struct event *event)
{
	struct vmcb *k = hv_vmcb_of_k(cpu);

	k->control.event_inj = event->inject;
	k->control.event_inj_err = event->error;
	if ((event->inject & SVM_EVTINJ_VEC_MASK) == X86_TRAP_PF) {
		k->save.cr2 = event->address;
		k->control.clean &= ~SVM_CLEAN_CR2;
	}
}

static void carry_out_out(struct hv_cpu *cpu, struct hv_guarded *guarded, struct border *border,
			  const struct event *event, u8 crossing, u64 rip)
{
	u32 i;

	for (i = 0; i < border->actions.count; i++) {
		u32 argument = border->actions.list[i].argument;

		switch (border->actions.list[i].kind) {
		case ACT_FLUSH_K:
			hv_vmcb_of_k(cpu)->control.tlb_ctl = hv_config.flush_tag;
			break;
		case ACT_LOWER:
			hv_privileges_lower(cpu, guarded, argument);
			break;
		case ACT_SAVE:
			save(cpu, slot_of(guarded, argument), crossing);
			break;
		case ACT_CLEAR:
			clear(cpu, argument);
			break;
		case ACT_GIVE_BACK:
			copy_preserved(cpu->regs,
				       kept[slot_of(guarded, argument) - HV_ACTIVATIONS]);
			break;
		case ACT_FAIL:
			hv_vmcb_of_m(cpu)->save.rax = -EIO;
			break;
		case ACT_CLEAR_STACK:
			hv_secret_clear_stack(guarded, argument);
			break;
		case ACT_ENTER_K:
			enter_k(cpu, guarded, border);
			break;
		case ACT_DELIVER:
			deliver(cpu, event);
			break;
		case ACT_PUBLISH:
			border_publish(border, argument);
			break;
		case ACT_REPORT:
			/* Where it was is a secret of class S. */
			report(cpu, HV_LOG_EXIT,
			       hv_is_secret(guarded) ? guarded->module.stub : rip);
			break;
		case ACT_CHANGE:
			hv_register_change(cpu, guarded, argument);
			break;
		default:
			hv_reset();
		}
	}
}

/* Exits that are not the kernel's business: M continues. @is_driver: class D, and in its text. */
static bool is_done(struct hv_cpu *cpu, u32 code, bool is_driver)
{
	struct vmcb_control_area *control = &hv_vmcb_of_m(cpu)->control;

	switch (code) {
	case SVM_EXIT_EXCP_BASE + X86_TRAP_PF:
		return is_driver && !(control->exit_info_1 & 1) &&
		       hv_space_copy_entry(cpu, control->exit_info_2);
	case SVM_EXIT_MSR:
		/* Those that may be written do not exit. */
		if (control->exit_info_1)
			return false;
		hv_msr_read(cpu);
		break;
	case SVM_EXIT_IOIO:
		if (!is_driver)
			return false;
		hv_io(cpu);
		break;
	case SVM_EXIT_VMMCALL:
		return is_driver && hv_monitor_call(cpu);
	default:
		return false;
	}
	/* The kernel handles what they raise. */
	if (!control->event_inj)
		return true;
	control->event_inj = 0;
	return false;
}

void hv_cross_exit(struct hv_cpu *cpu, u32 code)
{
	const struct vmcb *m = hv_vmcb_of_m(cpu);
	struct hv_guarded *guarded = cpu->guarded;
	const struct border_activation *activation = &guarded->pool[cpu->border.activation];
	bool is_secret = hv_is_secret(guarded);
	struct border_exit exit = { .at = { m->save.rip, m->save.rsp } };
	bool is_inside = has(guarded, exit.at.rip);
	struct border border;
	struct event event = {};
	u8 crossing;

	if (is_done(cpu, code, is_inside && !is_secret))
		return;
	/* Elsewhere, an interrupt or a page fault has preceded the fetch. */
	exit.is_fetch = !is_inside || (code == SVM_EXIT_NPF &&
				       m->control.exit_info_1 & SVM_NPF_FETCH);
	if (!exit.is_fetch)
		read_event(cpu, code, &event);
	else if (!is_secret &&
		 (exit.at.rip != activation->exit.rip || exit.at.rsp != activation->exit.rsp))
		hv_walk_read(hv_vmcb_of_k(cpu)->save.cr3, exit.at.rsp, &exit.return_address);
	exit.cause = exit.is_fetch ? CAUSE_INTERRUPT : event.cause;
	exit.stack = activation->exit.rsp - exit.at.rsp < LARGEST_STACK ?
		     activation->stack : exit.at.rsp & ~(STACK_SIZE - 1);
	hv_border_begin(&border, cpu, guarded);
	look_at_views(cpu, &border);
	crossing = border_out(&border, &exit);
	if (crossing != BORDER_REFUSED)
		cpu->crossings[crossing]++;
	if (crossing != BORDER_REFUSED && guarded->tally)
		hv_tally_add(guarded, activation, crossing, exit.at.rip);
	carry_out_out(cpu, guarded, &border, &event, crossing, exit.at.rip);
	/* Unlike an interrupt, a machine check is not pending any more. */
	if (exit.is_fetch && code == SVM_EXIT_EXCP_BASE + X86_TRAP_MC) {
		set_exception(&event, X86_TRAP_MC, 0);
		deliver(cpu, &event);
	}
}

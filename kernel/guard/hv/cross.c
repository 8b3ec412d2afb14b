// SPDX-License-Identifier: GPL-2.0-only
/*
 * The crossings: what the processor reports becomes an event of border control's (border/border.h),
 * whose functions are compiled here. Their actions are carried out by border_act(): each call has a
 * constant action, so that a crossing is one piece of code, without lists and without calls.
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>
#include <uapi/asm/processor-flags.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/border/crossings.h"
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

static bool has(const struct hv_guarded *guarded, u64 rip)
{
	return rip - guarded->module.text <
		       __atomic_load_n(&guarded->size, __ATOMIC_RELAXED) ||
	       rip - guarded->module.init_text <
		       __atomic_load_n(&guarded->init_size, __ATOMIC_RELAXED);
}

static struct hv_guarded *search(u64 rip)
{
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (has(&hv_guarded[i], rip))
			return &hv_guarded[i];
	return NULL;
}

static inline bool has_own_gs(const struct hv_cpu *cpu)
{
	const u32 *own = (const u32 *)&cpu->gs_base;
	u32 low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (MSR_GS_BASE));
	return low == own[0] && high == own[1];
}

/* Both tags owe a flush if a view has changed, on whatever CPU, since this one was here. */
static inline void look_at_views(struct hv_cpu *cpu)
{
	u32 changed = __atomic_load_n(&hv_views_changed, __ATOMIC_ACQUIRE);

	if (likely(cpu->views_seen == changed))
		return;
	cpu->views_seen = changed;
	cpu->walk.page = HV_NOWHERE;
	/* Another module may be registered where the one was whose privileges M's VMCB has. */
	cpu->raised = NULL;
	cpu_views_changed(&cpu->border);
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

/* All others but RAX. */
static inline void copy_others(u64 *to, const u64 *from)
{
	to[REGS_RCX / 8] = from[REGS_RCX / 8];
	to[REGS_RDX / 8] = from[REGS_RDX / 8];
	to[REGS_RSI / 8] = from[REGS_RSI / 8];
	to[REGS_RDI / 8] = from[REGS_RDI / 8];
	to[8] = from[8];
	to[9] = from[9];
	to[10] = from[10];
	to[11] = from[11];
}

static inline void save(struct hv_cpu *cpu, u32 slot, u8 crossing)
{
	u64 *to = hv_saved[slot].regs;

	copy_preserved(to, cpu->regs);
	if (crossing == BORDER_OUT_CALL)
		return;
	copy_others(to, cpu->regs);
	to[0] = hv_vmcb_of_m(cpu)->save.rax;
	to[HV_SAVED_RFLAGS] = hv_vmcb_of_m(cpu)->save.rflags;
}

/*
 * Returns where M's registers are. At an interrupt they stay where they were saved, and nobody else
 * changes them there while the activation is IN; the flags and RAX are M's, too. After a call these
 * are what the kernel's function returned.
 */
static inline const u64 *restore(struct hv_cpu *cpu, u32 set, u32 slot)
{
	const u64 *from = hv_saved[slot].regs;
	struct vmcb_save_area *m = &hv_vmcb_of_m(cpu)->save;

	if (set == REGISTERS_CALLEE_SAVED) {
		copy_preserved(cpu->regs, from);
		return cpu->regs;
	}
	m->rax = from[0];
	m->rflags = from[HV_SAVED_RFLAGS];
	return from;
}

/* Class S: M gets the kernel's arguments, and no other register of the kernel's. */
static void keep(struct hv_cpu *cpu, u32 slot)
{
	static const u64 nothing[16];

	copy_preserved(kept[slot - HV_ACTIVATIONS], cpu->regs);
	copy_preserved(cpu->regs, nothing);
	cpu->regs[10] = 0;
	cpu->regs[11] = 0;
}

static inline void clear(struct hv_cpu *cpu, u32 set)
{
	static const u64 nothing[16];
	u64 result = cpu->regs[REGS_RDX / 8];

	copy_preserved(cpu->regs, nothing);
	copy_others(cpu->regs, nothing);
	if (set == REGISTERS_BUT_RESULT)
		cpu->regs[REGS_RDX / 8] = result;
	else
		hv_vmcb_of_m(cpu)->save.rax = 0;
}

/* The kernel's handler of the exception has set this register: all others are M's. */
static noinline void fix_up(struct hv_cpu *cpu, u32 slot, u64 reg)
{
	u64 *own = hv_saved[slot].regs;

	if (!reg)
		own[0] = hv_vmcb_of_k(cpu)->save.rax;
	else if (reg < 16 && reg != HV_SAVED_RFLAGS)
		own[reg] = cpu->regs[reg];
	restore(cpu, REGISTERS_ALL, slot);
}

static noinline void fault(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	/* In class S there is no L. */
	if (!guarded->lowered_view)
		hv_inject(cpu, X86_TRAP_GP, true);
	else
		hv_lower(cpu, guarded);
}

static noinline void wait_for_carry(const struct hv_guarded *guarded)
{
	while (__atomic_load_n(&guarded->carries, __ATOMIC_ACQUIRE))
		;
}

/*
 * RAX and flags are the kernel's, unless they are restored; class S has one of the kernel's flags,
 * and nothing in RAX.
 */
static inline void enter_m(struct hv_cpu *cpu, struct hv_guarded *guarded,
			   const struct border *border)
{
	const struct vmcb_save_area *k = &hv_vmcb_of_k(cpu)->save;
	u64 flags = border->class == CLASS_S ? X86_EFLAGS_IF : HARMLESS_FLAGS;
	struct vmcb *m = hv_vmcb_of_m(cpu);
	u64 cr3 = border->class == CLASS_S ? hv_physical(guarded->space) : cpu->space_cr3;

	/* TCG shows no stale translation: this is the test. */
	if (unlikely(!cpu_is_square(&cpu->border) || !m->control.tlb_ctl))
		hv_reset();
	cpu->crossings[border->crossing]++;
	cpu->guarded = guarded;
	cpu->vmcb = m;
	m->save.rip = border->go.rip;
	m->save.rsp = border->go.rsp;
	if (border->crossing != BORDER_IN_RTI) {
		m->save.rax = border->class == CLASS_S ? 0 : k->rax;
		m->save.rflags = (k->rflags & flags) | ALWAYS_SET;
	}
	m->control.int_state = 0;
	if (unlikely(m->control.nested_cr3 != guarded->view || m->save.cr3 != cr3)) {
		m->control.nested_cr3 = guarded->view;
		m->save.cr3 = cr3;
		m->control.clean = 0;
	}
	if (unlikely(__atomic_load_n(&guarded->carries, __ATOMIC_ACQUIRE)))
		wait_for_carry(guarded);
}

static inline void enter_k(struct hv_cpu *cpu, const struct border *border)
{
	struct vmcb *k = hv_vmcb_of_k(cpu), *m = hv_vmcb_of_m(cpu);

	if (unlikely(!cpu_is_square(&cpu->border)))
		hv_reset();
	/* What is no crossing is counted with its report. */
	if (border->crossing != BORDER_REFUSED)
		cpu->crossings[border->crossing]++;
	cpu->vmcb = k;
	k->save.rip = border->go.rip;
	k->save.rsp = border->go.rsp;
	k->save.rax = m->save.rax;
	k->save.rflags = m->save.rflags;
	if (border->class == CLASS_S)
		k->save.rflags &= X86_EFLAGS_IF | ALWAYS_SET;
	k->control.int_state = 0;
	/* Only a module that was led astray changes these. */
	if (unlikely(m->save.cpl || *(u64 *)&m->save.cs != cpu->code_segment)) {
		*(u64 *)&m->save.cs = cpu->code_segment;
		m->save.cpl = 0;
		m->control.clean = 0;
	}
}

/* ---- events of M ---- */

/* The exception that the kernel gets for an exit of M. */
struct event {
	u32 inject;
	u32 error;
	u64 address;	/* of a page fault */
};

/* Returns the cause. */
static u8 set_exception(struct event *event, u32 vector, u64 error)
{
	event->inject = vector | SVM_EVTINJ_TYPE_EXEPT | SVM_EVTINJ_VALID;
	if (HV_HAVE_ERROR & BIT(vector))
		event->inject |= SVM_EVTINJ_VALID_ERR;
	event->error = error;
	if (vector == X86_TRAP_UD)
		return CAUSE_BUG;
	return vector == X86_TRAP_MC ? CAUSE_INTERRUPT : CAUSE_FAULT;
}

static noinline u8 read_event(struct hv_cpu *cpu, u32 code, struct event *event)
{
	const struct vmcb_control_area *control = &hv_vmcb_of_m(cpu)->control;
	u32 vector = code - SVM_EXIT_EXCP_BASE;

	switch (code) {
	case SVM_EXIT_NPF:
		if (!hv_is_secret(cpu->guarded))
			hv_log(cpu, HV_LOG_NO_MEMORY, control->exit_info_2);
		return set_exception(event, X86_TRAP_GP, 0);
	case SVM_EXIT_VMMCALL:
	case SVM_EXIT_VMRUN:
	case SVM_EXIT_VMLOAD:
	case SVM_EXIT_VMSAVE:
	case SVM_EXIT_STGI:
	case SVM_EXIT_CLGI:
	case SVM_EXIT_SKINIT:
	case SVM_EXIT_INVLPGA:
		return set_exception(event, X86_TRAP_UD, 0);
	default:
		/* Among others, registers that are constant in M. */
		if (vector >= HV_VECTORS)
			return set_exception(event, X86_TRAP_GP, 0);
		event->address = control->exit_info_2;
		return set_exception(event, vector, control->exit_info_1);
	}
}

static noinline void deliver(struct hv_cpu *cpu, const struct event *event)
{
	struct vmcb *k = hv_vmcb_of_k(cpu);

	k->control.event_inj = event->inject;
	k->control.event_inj_err = event->error;
	if ((event->inject & SVM_EVTINJ_VEC_MASK) == X86_TRAP_PF) {
		k->save.cr2 = event->address;
		k->control.clean &= ~SVM_CLEAN_CR2;
	}
}

/* ---- border control ---- */

/* A crossing, and what its actions work on. */
struct crossing {
	struct border border;
	struct hv_cpu *cpu;
	struct hv_guarded *guarded;
	u64 rip;			/* where the guest is */
	bool leaves_m;			/* a border-out */
	u32 slot;			/* of a border-in */
	const u64 *regs;		/* the same: where M's registers are */
	const struct event *event;	/* of a border-out; or NULL */
	const struct hv_leaves *leaves;	/* the same; or NULL */
};

static_assert(!offsetof(struct crossing, border));

/* The first pool is that of class D. */
static inline u32 slot_of(const struct crossing *crossing, u32 activation)
{
	return (crossing->border.class == CLASS_D ? 0 : crossing->guarded->first) + activation;
}

static __always_inline void border_act(struct border *border, u32 kind, u32 argument)
{
	struct crossing *crossing = (struct crossing *)border;
	struct hv_guarded *guarded = crossing->guarded;
	struct hv_cpu *cpu = crossing->cpu;

	switch (kind) {
	case ACT_FLUSH_K:
		hv_vmcb_of_k(cpu)->control.tlb_ctl = hv_config.flush_tag;
		break;
	case ACT_FLUSH_M:
		hv_vmcb_of_m(cpu)->control.tlb_ctl = hv_config.flush_tag;
		break;
	case ACT_LOWER:
		/* K does not use M's VMCB, which has what was raised. */
		break;
	case ACT_RAISE:
		if (unlikely(cpu->raised != guarded))
			hv_privileges_change(cpu, guarded);
		break;
	case ACT_SAVE:
		save(cpu, slot_of(crossing, argument), border->crossing);
		break;
	case ACT_CLEAR:
		clear(cpu, argument);
		break;
	case ACT_RESTORE:
		crossing->regs = restore(cpu, argument, crossing->slot);
		break;
	case ACT_FIXUP:
		fix_up(cpu, crossing->slot, guarded->module.fixups[argument].reg);
		break;
	case ACT_FRESH_STACK:
		*hv_secret_stack_end(guarded, argument) = guarded->module.gate;
		break;
	case ACT_CLEAR_STACK:
		hv_secret_clear_stack(guarded, argument);
		break;
	case ACT_KEEP:
		keep(cpu, slot_of(crossing, argument));
		break;
	case ACT_GIVE_BACK:
		copy_preserved(cpu->regs, kept[slot_of(crossing, argument) - HV_ACTIVATIONS]);
		break;
	case ACT_FAIL:
		hv_vmcb_of_m(cpu)->save.rax = -EIO;
		break;
	case ACT_ENTER_M:
		enter_m(cpu, guarded, border);
		if (unlikely(guarded->tally))
			hv_tally_add(guarded, &guarded->pool[argument], border->crossing,
				     crossing->rip);
		break;
	case ACT_ENTER_K:
		enter_k(cpu, border);
		break;
	case ACT_DELIVER:
		/* Interrupts are pending, and the kernel gets them at once. */
		if (crossing->event)
			deliver(cpu, crossing->event);
		else
			hv_vmcb_of_k(cpu)->control.event_inj = 0;
		break;
	case ACT_PUBLISH:
		/* Then others may have the activation. */
		if (unlikely(guarded->tally) && crossing->leaves_m &&
		    border->crossing != BORDER_REFUSED)
			hv_tally_add(guarded, &guarded->pool[argument], border->crossing,
				     crossing->rip);
		border_publish(border, argument);
		break;
	case ACT_FAULT:
		fault(cpu, guarded);
		break;
	case ACT_REPORT:
		cpu->crossings[HV_CROSSING_REFUSED]++;
		break;
	case ACT_LOG:
		hv_suspect_log(cpu, guarded, argument, crossing->rip);
		break;
	case ACT_CHANGE:
		hv_register_change(cpu, guarded, argument);
		break;
	case ACT_CLEAR_SECRETS:
		/* hv_panic() does, when no CPU can write them any more. */
		break;
	case ACT_PANIC:
		hv_panic(cpu);
		break;
	default:
		hv_reset();
	}
}

static __always_inline int border_read_stack(struct border *border, struct border_exit *exit)
{
	struct crossing *crossing = (struct crossing *)border;
	u64 value;

	if (!hv_stack_read(crossing->cpu, crossing->guarded->view, exit->at.rsp, &value))
		return 0;
	exit->return_address = value;
	if (crossing->leaves && !module_has(&crossing->guarded->module, value)) {
		struct hv_unwound unwound = hv_leaf_unwind(crossing->cpu, crossing->guarded,
							   exit->at.rsp, value);

		exit->return_address = unwound.return_address;
		exit->above = unwound.above;
	}
	return 1;
}

static __always_inline int border_is_leaf(const struct border *border, u64 address)
{
	const struct crossing *crossing = (const struct crossing *)border;

	return !!hv_leaf_at(crossing->guarded->leaves, address);
}

static __always_inline void begin(struct crossing *crossing, struct hv_cpu *cpu,
				  struct hv_guarded *guarded, u8 class, u64 rip)
{
	hv_border_begin(&crossing->border, cpu, guarded);
	crossing->border.class = class;
	/* Class D has one pool, which is where it is. */
	if (class == CLASS_D) {
		crossing->border.activations = hv_activations;
		crossing->border.activation_count = HV_ACTIVATIONS;
		crossing->border.used = hv_in_use;
	}
	crossing->cpu = cpu;
	crossing->guarded = guarded;
	crossing->rip = rip;
	crossing->leaves_m = false;
	crossing->event = NULL;
	crossing->leaves = NULL;
}

/* ---- border-in ---- */

/* K fetches from L's text, or from none. */
static noinline struct hv_next refuse(struct hv_cpu *cpu, const struct hv_guarded *guarded, u64 rip)
{
	u64 address = hv_vmcb_of_k(cpu)->control.exit_info_2, k_has = hv_nested_look(address);
	struct hv_guarded *owner;

	if (k_has && !(k_has & HV_NPT_NO_EXECUTE)) {
		/* The module has left, or its init, or L: the kernel executes what is there. */
		hv_lower(cpu, NULL);
	} else if (cpu->lowered) {
		/* The kernel fetches elsewhere, or the text is not at its address. */
		if (guarded == cpu->lowered)
			hv_inject(cpu, X86_TRAP_GP, true);
		hv_lower(cpu, NULL);
	} else if (k_has) {
		hv_inject(cpu, X86_TRAP_GP, true);
		/* The text at another address; or what nobody may execute: private memory. */
		owner = hv_patch_owner(address);
		if (owner) {
			hv_suspect(cpu, owner, SUSPECT_PLACE, rip);
		} else {
			cpu->crossings[HV_CROSSING_REFUSED]++;
			hv_log(cpu, HV_LOG_ENTER, rip);
		}
	} else {
		/* It has nothing to do with a guarded module. */
		hv_memory_fault(cpu);
	}
	return hv_next_in_k(cpu);
}

static __always_inline struct hv_next fetch(struct hv_cpu *cpu, struct hv_guarded *guarded,
					    u8 class)
{
	const struct vmcb_save_area *k = &hv_vmcb_of_k(cpu)->save;
	struct border_exit exit = { .at = { k->rip, k->rsp }, .is_fetch = 1 };
	struct border_claim claim;
	struct crossing crossing;

	look_at_views(cpu);
	/* Before the stack is read: M copies again what the kernel has then. */
	if (unlikely(cpu->copied_count))
		hv_space_clear_copies(cpu);
	begin(&crossing, cpu, guarded, class, exit.at.rip);
	exit.stack = exit.at.rsp & ~(STACK_SIZE - 1);
	/* Class S uses nothing of the kernel's, neither GS nor its stack. */
	exit.is_proper = !k->cpl && k->cs.attrib & ATTRIBUTE_LONG &&
			 (class == CLASS_S ? !!cpu->space : has_own_gs(cpu));
	claim = border_match(&crossing.border, &exit);
	crossing.slot = slot_of(&crossing, claim.activation);
	crossing.regs = cpu->regs;
	if (unlikely(border_in(&crossing.border, &exit, &claim) == BORDER_REFUSED))
		return hv_next_in_k(cpu);
	return hv_next_in_m(cpu, crossing.regs);
}

static noinline struct hv_next fetch_driver(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	return fetch(cpu, guarded, CLASS_D);
}

static noinline struct hv_next fetch_secret(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	return fetch(cpu, guarded, CLASS_S);
}

/* Whether the kernel has another module's text at an address of this one's. */
static bool fetches_others(struct hv_cpu *cpu, const struct hv_guarded *guarded, u64 rip)
{
	u64 frame = hv_vmcb_of_k(cpu)->control.exit_info_2 & ~(HV_PAGE - 1);
	u64 page = (rip - guarded->module.text) / HV_PAGE;
	const struct hv_guarded *owner;

	if (page < guarded->copy->text_pages && guarded->frames[page] == frame)
		return false;
	owner = hv_patch_owner(frame);
	return owner && owner != guarded;
}

struct hv_next hv_cross_search(struct hv_cpu *cpu)
{
	u64 rip = hv_vmcb_of_k(cpu)->save.rip;
	struct hv_guarded *guarded = search(rip);

	if (!guarded || cpu->lowered || fetches_others(cpu, guarded, rip))
		return refuse(cpu, guarded, rip);
	/* The guest executes its fetch again. */
	if (guarded->pending && !hv_patch_carry(cpu, guarded))
		return hv_next_in_k(cpu);
	/* What is remembered of a stack was found by the view of the module that was here last. */
	if (cpu->guarded != guarded) {
		cpu->guarded = NULL;
		cpu->walk.page = HV_NOWHERE;
	}
	return hv_is_secret(guarded) ? fetch_secret(cpu, guarded) : fetch_driver(cpu, guarded);
}

struct hv_next hv_cross_fetch(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	if (unlikely(!has(guarded, hv_vmcb_of_k(cpu)->save.rip) || guarded->pending))
		return hv_cross_search(cpu);
	return hv_is_secret(guarded) ? fetch_secret(cpu, guarded) : fetch_driver(cpu, guarded);
}

/* ---- border-out ---- */

/*
 * Exits of a module of class D, in its text or in a leaf, that are not the kernel's business: M
 * continues. Class S touches no memory of the kernel's, and has no reason to do the rest.
 */
static noinline bool is_done(struct hv_cpu *cpu, u32 code)
{
	struct vmcb_control_area *control = &hv_vmcb_of_m(cpu)->control;

	switch (code) {
	case SVM_EXIT_EXCP_BASE + X86_TRAP_PF:
		return !(control->exit_info_1 & 1) &&
		       hv_space_copy_entry(cpu, control->exit_info_2);
	case SVM_EXIT_MSR:
		/* Writes that are allowed do not exit. */
		if (control->exit_info_1)
			return false;
		hv_msr_read(cpu);
		break;
	case SVM_EXIT_IOIO:
		hv_io(cpu);
		break;
	case SVM_EXIT_VMMCALL:
		return hv_monitor_call(cpu);
	default:
		return false;
	}
	/* The kernel handles what they raise. */
	if (!control->event_inj)
		return true;
	control->event_inj = 0;
	return false;
}

/*
 * M's page tables are where no memory and no device is (space.c). A kernel that directs M's
 * accesses may look for the tables: the first miss stops the module.
 */
static void look_for_search(struct hv_cpu *cpu)
{
	if (hv_space_is_beside(hv_vmcb_of_m(cpu)->control.exit_info_2))
		hv_register_change(cpu, cpu->guarded, EVENT_STOP);
}

/* @event: what the kernel gets, or NULL */
static __always_inline struct hv_next leave_by(struct hv_cpu *cpu, u32 code, u8 class,
					       struct border_exit exit, const struct event *event)
{
	struct hv_guarded *guarded = cpu->guarded;
	const struct border_activation *activation;
	struct crossing crossing;
	struct event check;

	look_at_views(cpu);
	begin(&crossing, cpu, guarded, class, exit.at.rip);
	crossing.leaves_m = true;
	crossing.event = event;
	crossing.leaves = class == CLASS_D ? guarded->leaves : NULL;
	activation = &crossing.border.activations[cpu->border.activation];
	exit.stack = activation->exit.rsp - exit.at.rsp < LARGEST_STACK ?
		     activation->stack : exit.at.rsp & ~(STACK_SIZE - 1);
	border_out(&crossing.border, &exit);
	/* Unlike an interrupt, a machine check is not pending any more. */
	if (unlikely(code == SVM_EXIT_EXCP_BASE + X86_TRAP_MC) && exit.is_fetch &&
	    !hv_panics(&hv_vmcb_of_k(cpu)->control)) {
		set_exception(&check, X86_TRAP_MC, 0);
		deliver(cpu, &check);
	}
	return hv_next_in_k(cpu);
}

/* By something that the kernel would not get by itself. */
static __always_inline struct hv_next leave_by_event(struct hv_cpu *cpu, u32 code, u8 class)
{
	const struct vmcb_save_area *m = &hv_vmcb_of_m(cpu)->save;
	struct border_exit exit = { .at = { m->rip, m->rsp }, .is_inside = 1 };
	struct event event;

	exit.cause = read_event(cpu, code, &event);
	return leave_by(cpu, code, class, exit, &event);
}

static noinline struct hv_next leave_driver_by_event(struct hv_cpu *cpu, u32 code)
{
	return leave_by_event(cpu, code, CLASS_D);
}

static noinline struct hv_next leave_secret_by_event(struct hv_cpu *cpu, u32 code)
{
	return leave_by_event(cpu, code, CLASS_S);
}

static __always_inline struct hv_next leave(struct hv_cpu *cpu, u32 code, u8 class)
{
	const struct vmcb *m = hv_vmcb_of_m(cpu);
	struct hv_guarded *guarded = cpu->guarded;
	struct border_exit exit = { .at = { m->save.rip, m->save.rsp }, .cause = CAUSE_INTERRUPT };

	exit.is_inside = module_has(&guarded->module, exit.at.rip);
	if (class == CLASS_D && code != SVM_EXIT_INTR && code != SVM_EXIT_NPF &&
	    (exit.is_inside || hv_leaf_at(guarded->leaves, exit.at.rip)) && is_done(cpu, code))
		return hv_next_in_m(cpu, cpu->regs);
	if (code == SVM_EXIT_NPF)
		look_for_search(cpu);
	/* Elsewhere, an interrupt or a page fault has preceded the fetch. */
	exit.is_fetch = !exit.is_inside || (code == SVM_EXIT_NPF &&
					    m->control.exit_info_1 & SVM_NPF_FETCH);
	/* Interrupts are pending, and the kernel gets them at once. */
	if (exit.is_fetch || code == SVM_EXIT_INTR || code == SVM_EXIT_NMI)
		return leave_by(cpu, code, class, exit, NULL);
	return class == CLASS_D ? leave_driver_by_event(cpu, code) :
				  leave_secret_by_event(cpu, code);
}

static noinline struct hv_next leave_driver(struct hv_cpu *cpu, u32 code)
{
	return leave(cpu, code, CLASS_D);
}

static noinline struct hv_next leave_secret(struct hv_cpu *cpu, u32 code)
{
	return leave(cpu, code, CLASS_S);
}

struct hv_next hv_cross_exit(struct hv_cpu *cpu, u32 code)
{
	return hv_is_secret(cpu->guarded) ? leave_secret(cpu, code) : leave_driver(cpu, code);
}

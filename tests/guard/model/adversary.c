// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What may happen next. K is the adversary's: on each CPU it fetches from a module's text with
 * any RIP, any RSP and any return address out of a small set, writes through whatever its TLB
 * still allows, programs devices, edits page tables, moves the BAR, and makes every call of the
 * loader's in any order. M is the module's, but one of class D may have been led astray by its
 * stack, and then leaves in any way.
 */
#include "world.h"

struct list {
	const struct world *w;
	struct event *events;
	int count;
};

static struct event *add(struct list *list, u8 kind, int cpu, int module)
{
	struct event *event = &list->events[list->count++];

	*event = (struct event){ .kind = kind, .cpu = cpu, .module = module };
	return event;
}

static void fetches(struct list *list, int cpu, int module, u64 rip, u64 rsp, u64 return_address,
		    u8 is_proper)
{
	add(list, FETCH, cpu, module)->exit = (struct border_exit){
		.at = { text_of(module) + rip, rsp }, .return_address = return_address,
		.stack = stack_of(rsp), .is_proper = is_proper, .is_fetch = 1,
	};
}

/* All places of the text at which K may try to fetch. */
static void all_fetches(struct list *list, int cpu, int module)
{
	static const u8 entries[] = { ENTRY, INIT, EXIT };
	static const u8 places_of_d[] = { CALLED, INTERRUPTED, AFTER_BUG, FIXUP };
	static const u8 places_of_s[] = { STUB, CALLED };
	const u8 *places = config.class == CLASS_S ? places_of_s : places_of_d;
	int count = config.class == CLASS_S ? sizeof(places_of_s) : sizeof(places_of_d);

	for (int stack = 0; stack < config.stacks; stack++) {
		for (int level = 0; level < LEVELS; level++) {
			u64 rsp = entry_rsp(stack, level);

			for (unsigned int i = 0; i < sizeof(entries); i++)
				fetches(list, cpu, module, entries[i], rsp, CALLER, 1);
			if (config.class == CLASS_D)
				rsp = out_rsp(stack, level);
			for (int i = 0; i < count; i++)
				fetches(list, cpu, module, places[i], rsp, CALLER, 1);
			if (config.class == CLASS_S)
				continue;
			/* As a function that M called, and that ends in a jump. */
			fetches(list, cpu, module, ENTRY, rsp - 8, text_of(module) + CALLED, 1);
			fetches(list, cpu, module, EXIT, rsp - 8, text_of(module) + CALLED, 1);
			fetches(list, cpu, module, ENTRY, rsp - 8, text_of(module) + WRONG, 1);
		}
	}
	for (int stack = 0; stack < config.stacks; stack++) {
		u64 rsp = entry_rsp(stack, 0);

		fetches(list, cpu, module, ENTRY, rsp, text_of(module) + CALLED, 1);
		fetches(list, cpu, module, ENTRY, rsp, LEAF, 1);
		fetches(list, cpu, module, ENTRY, rsp, CALLER, 0);
		fetches(list, cpu, module, WRONG, rsp, CALLER, 1);
	}
}

#define A_FETCH	(-1)

static void leaves(struct list *list, int cpu, u8 crossing, u64 rip, u64 rsp, u64 return_address,
		   int cause)
{
	int module = list->w->ghosts[list->w->cpus[cpu].activation].module;
	struct event *event = add(list, LEAVE, cpu, module);

	event->crossing = crossing;
	event->ghost = crossing == BORDER_OUT_CALL ? CALLING :
		       crossing == BORDER_OUT_INT ? STOPPED : GONE;
	event->exit = (struct border_exit){
		.at = { rip, rsp }, .return_address = return_address, .stack = stack_of(rsp),
		.is_proper = 1, .is_fetch = cause == A_FETCH, .cause = cause == A_FETCH ? 0 : cause,
	};
}

/* The ways in which M may be left. The module's own are those with its own RSP. */
static void all_leaves(struct list *list, int cpu)
{
	const struct world *w = list->w;
	u8 index = w->cpus[cpu].activation;
	const struct border_activation *activation = &w->activations[index];
	u64 text = text_of(w->ghosts[index].module);
	u64 home = config.class == CLASS_S ? activation->home.rsp : activation->exit.rsp;
	u64 entered = config.class == CLASS_S ? home : home - 8;
	int stack = stack_of(entered);
	int level = entered == entry_rsp(stack, 0) ? 0 : 1;
	u64 rsps[] = { out_rsp(stack, level), out_rsp(stack, 1), out_rsp(!stack, level) };
	int count = config.stacks < STACKS ? 2 : 3;

	if (config.class == CLASS_S) {
		rsps[0] = activation->exit.rsp - 8;
		count = 1;
	}
	for (int i = 0; i < count; i++) {
		/* On a stack that is not the module's, it is no crossing whatever it looks like. */
		u8 call = i < 2 ? BORDER_OUT_CALL : BORDER_REFUSED;
		u8 interrupt = i < 2 ? BORDER_OUT_INT : BORDER_REFUSED;
		u8 exception = interrupt;

		/* Class S calls nothing, and has no fixups. */
		if (config.class == CLASS_S) {
			call = BORDER_REFUSED;
			exception = BORDER_REFUSED;
		}

		if (i == 1 && rsps[1] == rsps[0])
			continue;
		leaves(list, cpu, call, FUNCTION, rsps[i] - 8, text + CALLED, A_FETCH);
		leaves(list, cpu, interrupt, text + INTERRUPTED, rsps[i], CALLER, CAUSE_INTERRUPT);
		if (i)
			continue;
		leaves(list, cpu, exception, text + INTERRUPTED, rsps[i], CALLER, CAUSE_BUG);
		leaves(list, cpu, exception, text + INTERRUPTED, rsps[i], CALLER, CAUSE_FAULT);
		leaves(list, cpu, call, FUNCTION, rsps[i] - 8, text + CALLED, CAUSE_INTERRUPT);
		leaves(list, cpu, BORDER_REFUSED, FUNCTION, rsps[i] - 8, CALLER + 1, A_FETCH);
	}
	leaves(list, cpu, BORDER_OUT_RET, activation->exit.rip, activation->exit.rsp, CALLER + 1,
	       A_FETCH);
	leaves(list, cpu, BORDER_OUT_RET, FUNCTION, activation->exit.rsp - 8, activation->exit.rip,
	       A_FETCH);
	if (config.class == CLASS_D)
		leaves(list, cpu, BORDER_REFUSED, FUNCTION, home, text + CALLED, A_FETCH);
}

static void in_k(struct list *list, int cpu)
{
	const struct world *w = list->w;

	for (int module = 0; module < config.modules; module++) {
		int text = text_frame(module);

		if (!(w->views[IN_K][text] & X))
			all_fetches(list, cpu, module);
		if (w->registrations[module].state != REGISTRATION_LOADED)
			add(list, FLUSH, cpu, module);
		if (w->tlb[cpu][IN_K][text] & W && !w->is_evil[module])
			add(list, WRITE, cpu, module);
		if (!(w->views[IN_K][text] & W))
			add(list, WRITE_FAULT, cpu, module);
	}
	if (w->must_invalidate[cpu])
		add(list, INVALIDATE, cpu, 0);
}

int adversary_events(const struct world *w, struct event *events)
{
	static const u8 calls[] = {
		EVENT_FREEZE, EVENT_HASH, EVENT_ARM, EVENT_SEAL, EVENT_REVOKE, EVENT_THAW,
	};
	struct list list = { w, events, 0 };
	/* cpu_step() flushes M's tag at each border-in of either class: one class is enough. */
	bool may_unmap = config.class == CLASS_D;

	for (int cpu = 0; cpu < config.cpus; cpu++) {
		may_unmap = may_unmap && !w->must_invalidate[cpu];
		if (w->pending[cpu].kind != NOTHING) {
			add(&list, COMMIT, cpu, 0);
		} else if (w->cpus[cpu].view == VIEW_M) {
			all_leaves(&list, cpu);
			add(&list, FLUSH, cpu, w->ghosts[w->cpus[cpu].activation].module);
		} else {
			in_k(&list, cpu);
		}
	}
	if (w->pending[CPUS].kind != NOTHING)
		add(&list, COMMIT, CPUS, 0);
	for (int module = 0; module < config.modules; module++) {
		u8 state = w->registrations[module].state;

		if (config.has_iommu && w->pending[CPUS].kind == NOTHING &&
		    state != REGISTRATION_LOADED)
			add(&list, FLUSH, CPUS, module);
		if (config.has_iommu && w->iotlb[text_frame(module)] & W && !w->is_evil[module])
			add(&list, DMA, 0, module);
		if (w->is_evil[module] && w->views[IN_K][text_frame(module)] & W)
			add(&list, RELOAD, 0, module);
		for (unsigned int i = 0; i < sizeof(calls); i++)
			add(&list, CALL, 0, module)->call = calls[i];
		/* Only an entry into init changes a registration without its lock. */
		for (int cpu = 0; cpu < config.cpus; cpu++) {
			const struct pending *p = &w->pending[cpu];

			if (state != REGISTRATION_ARMED || w->registrations[module].begun ||
			    p->kind != CLAIM || p->claim.entry != ENTRY_INIT ||
			    p->module != module)
				continue;
			for (unsigned int i = 0; i < sizeof(calls); i++)
				add(&list, CALL_MEANWHILE, cpu, module)->call = calls[i];
		}
		/* In the other direction it is the first state. */
		if (w->registrations[module].privileges == 3)
			add(&list, CALL, 0, module)->call = EVENT_BIND;
	}
	if (!w->is_locked && !w->is_moved)
		add(&list, MOVE_BAR, 0, 0);
	if (may_unmap)
		add(&list, UNMAP, 0, 0);
	if (list.count > EVENTS)
		__builtin_trap();
	return list.count;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What holds in every state. Invariants that concern a crossing are verified where it happens
 * (machine.c). Each is known by a word, which the mutants' table and the document use.
 */
#include "world.h"

#include <string.h>

static bool has_more(const u8 *cached, const u8 *view)
{
	for (int frame = 0; frame < FRAMES; frame++) {
		if (cached[frame] & ~view[frame])
			return true;
	}
	return false;
}

/* A CPU that executes in M. */
static void check_in_m(struct world *w, int cpu)
{
	const struct border_cpu *c = &w->cpus[cpu];
	const struct ghost *ghost = &w->ghosts[c->activation];
	const struct border_registration *registration = &w->registrations[ghost->module];
	u64 word = w->activations[c->activation].word;

	if (ghost->state != INSIDE || word_state(word) != ACTIVATION_IN || word_cpu(word) != cpu)
		violate(w, "double", "CPU %d is in M without an activation of its own", cpu);
	if (!may_run(registration) && !(registration->awaited & AWAIT_CPU(cpu)))
		violate(w, "armed", "CPU %d is in M, and module %d may not run", cpu,
			ghost->module);
	if (w->is_evil[ghost->module])
		violate(w, "armed", "CPU %d executes text that was not hashed", cpu);
	if (may_run(registration) && w->raised[cpu] != w->opened[ghost->module])
		violate(w, "privilege", "CPU %d is in M with other privileges than are bound",
			cpu);
	if (w->m_is_stale[cpu] && !w->must_invalidate[cpu])
		violate(w, "stale", "CPU %d is in M with a translation that was ended", cpu);
}

/* What the TLBs and the IOMMU still allow of the frames of a module that is guarded. */
static void check_frames(struct world *w, int module)
{
	const struct border_registration *registration = &w->registrations[module];
	int text = text_frame(module);
	bool is_flushed = w->is_settled[module];

	for (int cpu = 0; cpu < config.cpus; cpu++) {
		const u8 *in_k = w->tlb[cpu][IN_K];

		if (w->cpus[cpu].view == VIEW_K && !(registration->awaited & AWAIT_CPU(cpu)) &&
		    (in_k[text] & ~w->views[IN_K][text] ||
		     w->tlb[cpu][IN_M][text] & ~w->views[IN_M][text]))
			violate(w, "stale", "CPU %d has acknowledged, and not flushed", cpu);
		if (!is_flushed)
			continue;
		if (in_k[text] & X)
			violate(w, "golden", "CPU %d can execute the text in K", cpu);
		if (in_k[text] & W)
			violate(w, "frozen", "CPU %d can write the text", cpu);
		if (!module && (in_k[BAR] || w->is_moved))
			violate(w, "bar", "CPU %d can reach the BAR in K", cpu);
	}
	/* has_more() looks at the frames of all modules, and another one's may still be awaited. */
	if (config.has_iommu && !(registration->awaited & AWAIT_IOMMU) &&
	    has_more(w->iotlb, w->views[IN_DMA]) && config.modules == 1)
		violate(w, "stale", "the IOMMU has acknowledged, and not flushed");
	if (config.has_iommu && is_flushed && w->iotlb[text] & W)
		violate(w, "frozen", "a device can write the text");
	if (config.has_iommu && is_flushed && !module && w->iotlb[BAR])
		violate(w, "bar", "a device can reach the BAR");
}

void world_check(struct world *w)
{
	for (int cpu = 0; cpu < config.cpus; cpu++) {
		const struct border_cpu *c = &w->cpus[cpu];

		if (c->view == VIEW_M && !w->ghosts[c->activation].module &&
		    w->tlb[cpu][IN_M][SECRET] & W)
			w->has_secret = 1;
		if (c->view == VIEW_M)
			check_in_m(w, cpu);
		else if (w->raised[cpu])
			violate(w, "privilege", "CPU %d is in K with privileges", cpu);
		if (w->has_secret && w->tlb[cpu][IN_K][SECRET])
			violate(w, "secret", "CPU %d can reach the private frame in K", cpu);
	}
	if (config.has_iommu && w->has_secret && w->iotlb[SECRET])
		violate(w, "secret", "a device can reach the private frame");
	for (int i = 0; i < ACTIVATIONS; i++) {
		u64 word = w->activations[i].word;
		u8 state = word_state(word);

		if (state == ACTIVATION_IN &&
		    (w->cpus[word_cpu(word)].view != VIEW_M ||
		     w->cpus[word_cpu(word)].activation != i))
			violate(w, "leak", "activation %d is in M, and no CPU is", i);
		if ((state == ACTIVATION_OUT_CALL && w->ghosts[i].state != CALLING) ||
		    (state == ACTIVATION_OUT_INT && w->ghosts[i].state != STOPPED))
			violate(w, "entry", "activation %d can be resumed, and must not", i);
		if ((state == ACTIVATION_OUT_CALL || state == ACTIVATION_OUT_INT) &&
		    w->registrations[word_registration(word)].state == REGISTRATION_LOADED)
			violate(w, "leak", "activation %d has outlived its registration", i);
	}
	for (int module = 0; module < config.modules; module++) {
		if (w->registrations[module].state != REGISTRATION_LOADED)
			check_frames(w, module);
		else if (w->views[IN_M][text_frame(module)])
			violate(w, "armed", "M can execute a frame that the kernel has again");
	}
}

static void let(struct world *w, u8 kind, int cpu, int module, u8 call, FILE *log)
{
	struct event event = { .kind = kind, .cpu = cpu, .module = module, .call = call };

	world_apply(w, &event, log);
}

void world_drain(struct world *w, FILE *log)
{
	struct event events[EVENTS];

	for (int cpu = 0; cpu <= CPUS; cpu++) {
		if (w->pending[cpu].kind != NOTHING)
			let(w, COMMIT, cpu, 0, 0, log);
	}
	for (int module = 0; module < config.modules; module++) {
		u8 state = w->registrations[module].state;

		if (state != REGISTRATION_LOADED && state != REGISTRATION_DYING)
			let(w, CALL, 0, module, EVENT_REVOKE, log);
	}
	/* Each CPU is interrupted, at the latest by its timer. */
	for (int cpu = 0; cpu < config.cpus; cpu++) {
		int count = w->cpus[cpu].view == VIEW_M ? adversary_events(w, events) : 0;

		for (int i = 0; i < count; i++) {
			if (events[i].kind == LEAVE && events[i].cpu == cpu &&
			    events[i].ghost == STOPPED) {
				world_apply(w, &events[i], log);
				break;
			}
		}
	}
	for (int module = 0; module < config.modules; module++) {
		for (int cpu = 0; cpu <= CPUS; cpu++) {
			let(w, FLUSH, cpu, module, 0, log);
			let(w, COMMIT, cpu, module, 0, log);
		}
		if (w->registrations[module].state != REGISTRATION_LOADED)
			let(w, CALL, 0, module, EVENT_THAW, log);
	}
	for (int cpu = 0; cpu < config.cpus; cpu++) {
		if (w->cpus[cpu].view != VIEW_K)
			violate(w, "leak", "CPU %d cannot be taken out of M", cpu);
	}
	for (int module = 0; module < config.modules; module++) {
		if (w->registrations[module].state != REGISTRATION_LOADED)
			violate(w, "leak", "module %d cannot be revoked", module);
		if (w->views[IN_K][text_frame(module)] != (R | W | X))
			violate(w, "leak", "the kernel does not get module %d back", module);
	}
	for (int i = 0; i < ACTIVATIONS; i++) {
		if (word_state(w->activations[i].word) != ACTIVATION_FREE)
			violate(w, "leak", "activation %d is in use, and no module is", i);
	}
	for (int module = 0; module < config.modules; module++) {
		let(w, CALL, 0, module, EVENT_FREEZE, log);
		if (w->was_stopped[module] && w->registrations[module].state != REGISTRATION_LOADED)
			violate(w, "choice", "module %d was stopped, but not for good", module);
	}
}

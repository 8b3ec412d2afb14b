// SPDX-License-Identifier: MIT OR Apache-2.0
/* The machine: carries out the actions of the automata, and knows what really happens. */
#include "automata.h"
#include "world.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Registers, in the groups that the sets of the automata distinguish. */
enum { RESULT = 1, CALLEE_SAVED = 2, OTHERS = 4, ALL = 7 };

/* Nothing has this address. */
#define UNKNOWN	0xfe

static const u8 sets[] = {
	[REGISTERS_ALL] = ALL,
	[REGISTERS_CALLEE_SAVED] = CALLEE_SAVED,
	[REGISTERS_BUT_RESULT] = ALL & ~RESULT,
};

/* One exit of one CPU, or one call. */
struct handler {
	struct world *w;
	FILE *log;
	int cpu;
	int module;
	struct border border;
	struct pending pending;	/* what this CPU has begun, and now does */
	const struct border_exit *exit;
	u8 own;			/* groups of registers with the values that the module had */
	u8 secret;		/* groups of registers with the module's values */
	u8 fresh, keeps, gives_back, fails, clears_stack;	/* class S */
	u8 is_published, is_in_line, is_named;
	u8 is_reported, is_logged, panics;
	u32 fixup;
	struct handler *meanwhile;	/* what another CPU does while a registration is stepped */
};

void violate(struct world *w, const char *invariant, const char *why, ...)
{
	va_list ap;

	if (w->violated)
		return;
	w->violated = invariant;
	va_start(ap, why);
	vsnprintf(w->why, sizeof(w->why), why, ap);
	va_end(ap);
}

static void say(FILE *log, const char *fmt, ...)
{
	va_list ap;

	if (!log)
		return;
	va_start(ap, fmt);
	vfprintf(log, fmt, ap);
	va_end(ap);
}

u64 world_present(void)
{
	u64 who = config.has_iommu ? AWAIT_IOMMU : 0;

	for (int cpu = 0; cpu < config.cpus; cpu++)
		who |= AWAIT_CPU(cpu);
	return who;
}

const struct border_module *world_module(int module)
{
	static struct border_module modules[MODULES];
	static u64 entries[MODULES], bugs[MODULES], found[MODULES][BORDER_FOUND];
	static struct border_fixup fixups[MODULES];
	struct border_module *m = &modules[module];
	u64 text = text_of(module);

	if (!m->text) {
		entries[module] = text + ENTRY;
		bugs[module] = text + INTERRUPTED;
		fixups[module] = (struct border_fixup){ text + INTERRUPTED, text + FIXUP, 0 };
		*m = (struct border_module){
			.class = config.class, .text = text, .text_end = text + TEXT_LENGTH,
			.init = text + INIT, .exit = text + EXIT,
			.entries = &entries[module], .entry_count = 1, .found = found[module],
			.bugs = &bugs[module], .bug_count = 1,
			.fixups = &fixups[module], .fixup_count = 1,
			.stub = text + STUB, .gate = GATE, .stacks = PRIVATE_STACKS,
			.stack_size = 0x18,
		};
	}
	return m;
}

/* ---- actions ---- */

static void change(struct handler *h, u8 kind);
static void commit(struct handler *h);

/* Every view is as it is now, and a TLB may have cached any of it. */
static void cache(struct world *w)
{
	for (int frame = 0; frame < FRAMES; frame++) {
		for (int cpu = 0; cpu < config.cpus; cpu++) {
			w->tlb[cpu][IN_K][frame] |= w->views[IN_K][frame];
			w->tlb[cpu][IN_M][frame] |= w->views[IN_M][frame];
		}
		w->iotlb[frame] |= w->views[IN_DMA][frame];
	}
}

static void set(struct world *w, int frame, u8 in_k, u8 in_m, u8 in_dma)
{
	w->views[IN_K][frame] = in_k;
	w->views[IN_M][frame] = in_m;
	w->views[IN_DMA][frame] = in_dma;
}

/* The views of a module's frames. */
static void set_views(struct world *w, int module, u8 text_in_k, u8 other_in_k, u8 text_in_m,
		      u8 other_in_m)
{
	set(w, text_frame(module), text_in_k, text_in_m, text_in_k & ~X);
	if (module)
		return;
	set(w, SECRET, other_in_k, other_in_m, other_in_k);
	set(w, BAR, other_in_k, other_in_m, other_in_k);
}

static void views_changed(struct world *w)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		cpu_views_changed(&w->cpus[cpu]);
	cache(w);
}

/*
 * M is entered. Reports a violation if what the module and the kernel really did does not allow it.
 */
static void enter_m(struct handler *h, u32 index)
{
	struct world *w = h->w;
	struct ghost *ghost = &w->ghosts[index];
	const struct border_module *m = world_module(h->module);
	u64 rip = h->exit->at.rip, rsp = h->exit->at.rsp;
	struct border_place inside = h->border.go;

	if (!cpu_is_square(&w->cpus[h->cpu]))
		violate(w, "debt", "M is entered, and a flush of its tag is owed");
	if (!h->exit->is_proper)
		violate(w, "entry", "M is entered outside of ring 0");
	if (w->was_stopped[h->module])
		violate(w, "choice", "M is entered after the module was stopped for good");
	if (ghost->state == INSIDE)
		violate(w, "double", "activation %u is resumed while it runs", index);
	if (h->border.crossing == BORDER_IN_CALL) {
		if (ghost->state != GONE)
			violate(w, "double", "activation %u is out, and claimed again", index);
		if (rip != m->text + ENTRY && rip != m->init && rip != m->exit)
			violate(w, "entry", "RIP is no entry point");
		if (config.class == CLASS_D && module_has(m, h->exit->return_address))
			violate(w, "entry", "the caller chose a return into the text");
		if (config.class == CLASS_D && h->exit->return_address == LEAF)
			violate(w, "entry", "the caller chose a return into a leaf");
		if (rip == m->init && w->was_begun[h->module])
			violate(w, "entry", "init is entered twice");
		if (rip != m->init && !w->was_begun[h->module])
			violate(w, "entry", "the module is entered before its init");
		w->was_begun[h->module] = 1;
		if (inside.rip != rip)
			violate(w, "entry", "M continues elsewhere than where it was entered");
		if (config.class == CLASS_S &&
		    (!h->fresh || inside.rsp != module_stack_top(m, index) - 8))
			violate(w, "own", "class S enters on a stack that is not its own");
		if (config.class == CLASS_S && !h->clears_stack &&
		    word_state(h->pending.claim.word) == ACTIVATION_DEAD)
			violate(w, "own", "class S enters on the stack of one that died");
		if (config.class == CLASS_S && !h->keeps)
			violate(w, "home", "the kernel's registers are not kept at an entry");
	} else {
		bool moved = h->border.crossing == BORDER_IN_RTI && config.class == CLASS_D &&
			     ghost->state == STOPPED && ghost->back.rsp == rsp &&
			     ((ghost->cause == CAUSE_BUG && rip == m->text + AFTER_BUG) ||
			      (ghost->cause == CAUSE_FAULT && rip == m->text + FIXUP));
		/* The kernel's function has jumped to an entry, which returns for it. */
		bool jumped = h->border.crossing == BORDER_IN_RET && config.class == CLASS_D &&
			      ghost->state == CALLING && rip == m->text + ENTRY &&
			      h->exit->return_address == ghost->back.rip &&
			      rsp + 8 == ghost->back.rsp;
		u8 need = h->border.crossing == BORDER_IN_RTI ? ALL : CALLEE_SAVED;
		bool was_call = ghost->state == CALLING;
		bool is_ret = h->border.crossing == BORDER_IN_RET;
		bool has_fixup = h->fixup != NO_FIXUP;
		bool is_at_fixup = rip == m->text + FIXUP;

		if (ghost->state != CALLING && ghost->state != STOPPED)
			violate(w, "double", "activation %u was not out", index);
		if (ghost->module != h->module)
			violate(w, "entry", "the activation is another module's");
		if (was_call != is_ret)
			violate(w, "entry", "a call is resumed like an interrupt, or vice versa");
		if (!moved && !jumped && (rip != ghost->back.rip || rsp != ghost->back.rsp))
			violate(w, "entry", "the kernel did not return to the recorded place");
		if (inside.rip != (moved || jumped ? rip : ghost->inside.rip) ||
		    inside.rsp != (jumped ? rsp : ghost->inside.rsp))
			violate(w, "entry", "M continues elsewhere than where it left");
		if (need & ~h->own)
			violate(w, "own", "M finds the kernel's values in its registers");
		if (moved && is_at_fixup != has_fixup)
			violate(w, "own", "the register that the fixup names is not set");
	}
	*ghost = (struct ghost){
		.state = INSIDE, .module = h->module,
		/* Of class S K has to find its RSP again. */
		.back.rsp = config.class == CLASS_S ? rsp : 0,
	};
	if (!h->module)
		w->has_secret = 1;
	for (int i = 0; i < ACTIVATIONS; i++) {
		const struct ghost *other = &w->ghosts[i];

		if (other->state != CALLING && other->state != STOPPED)
			continue;
		if (word_state(w->activations[i].word) != ACTIVATION_DEAD &&
		    stack_of(other->back.rsp) == stack_of(rsp) && other->back.rsp <= rsp)
			violate(w, "leak", "activation %d was unwound, and is not dead", i);
	}
}

/* The kernel continues. Reports a violation if it finds something of the module. */
static void enter_k(struct handler *h)
{
	const struct border_module *m = world_module(h->module);
	struct world *w = h->w;
	u64 rip = h->border.go.rip;
	u8 allowed = h->border.crossing == BORDER_OUT_RET ? RESULT : 0;

	if (!cpu_is_square(&w->cpus[h->cpu]))
		violate(w, "debt", "K is entered, and a flush of its tag is owed");
	if (config.class == CLASS_S) {
		if (h->secret & ~allowed)
			violate(w, "registers", "K finds values of class S in registers");
		if (h->border.go.rsp >= PRIVATE_STACKS)
			violate(w, "registers", "K finds the private stack's address in RSP");
		if (module_has(m, rip) && rip != m->stub)
			violate(w, "registers", "K finds a place of class S in RIP");
	}
}

/* After this, another CPU may resume the activation. */
static void publish(struct handler *h, u32 index)
{
	static const struct border_place nowhere = { UNKNOWN, UNKNOWN };
	struct ghost *ghost = &h->w->ghosts[index];
	u8 state;

	automata_publish(&h->border, index);
	h->is_published = 1;
	state = word_state(h->w->activations[index].word);
	/* Another CPU may have it already. */
	if (state == ACTIVATION_FREE)
		h->w->activations[index] = (struct border_activation){
			.word = h->w->activations[index].word,
			.home = nowhere, .exit = nowhere, .back = nowhere, .inside = nowhere,
			.entry = ENTRY_CALL,
		};
	if (state == ACTIVATION_FREE || state == ACTIVATION_DEAD)
		ghost->state = GONE;
	if ((state == ACTIVATION_OUT_CALL && ghost->state != CALLING) ||
	    (state == ACTIVATION_OUT_INT && ghost->state != STOPPED))
		violate(h->w, "entry", "activation %u can be resumed, and must not", index);
	if ((state == ACTIVATION_OUT_CALL || state == ACTIVATION_OUT_INT) && !ghost->is_saved)
		violate(h->w, "own", "an activation is published before its registers are saved");
}

static void act(struct handler *h, u32 kind, u32 argument)
{
	struct world *w = h->w;

	switch (kind) {
	case ACT_FLUSH_K:
	case ACT_FLUSH_M:
		memcpy(w->tlb[h->cpu][kind == ACT_FLUSH_M], w->views[kind == ACT_FLUSH_M], FRAMES);
		if (kind == ACT_FLUSH_M)
			w->m_is_stale[h->cpu] = 0;
		break;
	case ACT_LOWER:
		w->raised[h->cpu] &= ~argument;
		break;
	case ACT_RAISE:
		w->raised[h->cpu] |= argument;
		break;
	case ACT_SAVE:
		if (h->own != ALL)
			violate(w, "own", "registers are saved after they were cleared");
		w->ghosts[argument].is_saved = 1;
		break;
	case ACT_CLEAR:
		/* What was given back before is gone. */
		h->gives_back = 0;
		h->own &= ~sets[argument];
		h->secret &= ~sets[argument];
		break;
	case ACT_RESTORE:
		h->own |= sets[argument];
		break;
	case ACT_FIXUP:
		h->fixup = argument;
		break;
	case ACT_FRESH_STACK:
		h->fresh = 1;
		break;
	case ACT_CLEAR_STACK:
		h->clears_stack = 1;
		break;
	case ACT_KEEP:
		h->keeps = 1;
		break;
	case ACT_GIVE_BACK:
		h->gives_back = 1;
		break;
	case ACT_FAIL:
		h->fails = 1;
		break;
	case ACT_ENTER_M:
		enter_m(h, argument);
		break;
	case ACT_ENTER_K:
		enter_k(h);
		break;
	case ACT_PUBLISH:
		publish(h, argument);
		break;
	case ACT_CHANGE:
		change(h, argument);
		break;
	case ACT_LOCK_CONFIG:
		/* The BARs are read after that, wherever they are now. */
		w->is_locked = 1;
		w->is_moved = 0;
		break;
	case ACT_UNLOCK_CONFIG:
		w->is_locked = 0;
		break;
	case ACT_FREEZE:
		set_views(w, h->module, R, 0, 0, 0);
		break;
	case ACT_ASK_FLUSH:
		views_changed(w);
		break;
	case ACT_HASH:
		change(h, w->is_evil[h->module] ? EVENT_MISMATCH : EVENT_MATCH);
		break;
	case ACT_OPEN:
		set_views(w, h->module, R, 0, R | X, R | W);
		w->opened[h->module] = argument;
		break;
	case ACT_CLOSE:
		set_views(w, h->module, R, 0, 0, 0);
		w->opened[h->module] = 0;
		break;
	case ACT_SWEEP:
		automata_sweep(&h->border);
		for (int i = 0; i < ACTIVATIONS; i++) {
			if (w->ghosts[i].state != INSIDE && w->ghosts[i].module == h->module)
				w->ghosts[i].state = GONE;
		}
		break;
	case ACT_CLEAR_SECRETS:
		if (!h->module)
			w->has_secret = 0;
		break;
	case ACT_THAW:
		w->is_settled[h->module] = 0;
		w->was_begun[h->module] = 0;
		if (!h->module && w->has_secret)
			violate(w, "secret", "the kernel gets a frame with secrets");
		set_views(w, h->module, R | W | X, R | W, w->views[IN_M][text_frame(h->module)],
			  h->module ? 0 : w->views[IN_M][BAR]);
		break;
	case ACT_REPORT:
		h->is_reported = 1;
		break;
	case ACT_LOG:
		h->is_logged = 1;
		break;
	case ACT_PANIC:
		h->panics = 1;
		/* The secrets of other modules are the hypervisor's business. */
		if (!h->module && w->has_secret)
			violate(w, "secret", "the kernel panics, and secrets are not cleared");
		break;
	case ACT_DELIVER:
		if (config.class == CLASS_S && h->exit->cause != CAUSE_INTERRUPT)
			violate(w, "registers", "K finds an exception of class S");
		break;
	case ACT_FAULT:
	case ACT_REFUSE:
		break;
	default:
		violate(w, "actions", "unknown action %u", kind);
	}
	cache(w);
}

static void end_line(struct handler *h)
{
	if (h->is_in_line)
		say(h->log, "\n");
	h->is_in_line = 0;
}

static void say_action(struct handler *h, u32 kind)
{
	say(h->log, "%s%s", h->is_in_line ? ", " : "      -> ", action_name(kind));
	h->is_in_line = 1;
}

/* Of a crossing: at once. */
void machine_act(struct border *border, u32 kind, u32 argument)
{
	struct handler *h = (struct handler *)((char *)border - offsetof(struct handler, border));

	if (!h->is_named && border->crossing)
		say(h->log, "      %s\n", crossing_name(border->crossing));
	h->is_named = 1;
	say_action(h, kind);
	act(h, kind, argument);
}

/* What the automata do not read they do not know. */
static struct border_exit forget_stack(const struct handler *h)
{
	struct border_exit exit = *h->exit;

	exit.return_address = UNKNOWN;
	return exit;
}

int machine_read_stack(struct border *border, struct border_exit *exit)
{
	struct handler *h = (struct handler *)((char *)border - offsetof(struct handler, border));

	exit->return_address = h->exit->return_address;
	return 1;
}

int machine_is_leaf(const struct border *border, u64 address)
{
	(void)border;
	return address == LEAF;
}

static void carry_out(struct handler *h, const struct border_actions *list)
{
	if (list->count > BORDER_ACTIONS)
		violate(h->w, "actions", "%u actions are more than there is room for",
			list->count);
	for (u32 i = 0; i < list->count && i < BORDER_ACTIONS; i++) {
		say_action(h, list->list[i].kind);
		act(h, list->list[i].kind, list->list[i].argument);
	}
	end_line(h);
}

/* Steps a registration, which the hypervisor does with the lock held. A border-in takes no lock. */
static void step(struct handler *h, int module, const struct registration_event *event,
		 struct border_actions *list)
{
	struct border_registration *registration = &h->w->registrations[module];
	struct border_registration old = *registration;

	if (h->meanwhile)
		commit(h->meanwhile);
	registration_store(registration, old, registration_step(old, event, list));
	if (registration->state == REGISTRATION_FLUSHED)
		h->w->is_settled[module] = 1;
}

static void change(struct handler *h, u8 kind)
{
	struct border_registration *registration = &h->w->registrations[h->module];
	struct registration_event event = {
		.kind = kind, .who = world_present(), .privileges = 1, .choice = config.choice,
	};
	struct border_actions list = { 0 };

	step(h, h->module, &event, &list);
	end_line(h);
	say(h->log, "      module %d: %s\n", h->module, state_name(registration->state));
	carry_out(h, &list);
}

/* ---- events ---- */

static void handler_init(struct handler *h, struct world *w, int cpu, int module,
			 const struct border_exit *exit, FILE *log)
{
	*h = (struct handler){
		.w = w, .log = log, .cpu = cpu, .module = module, .exit = exit, .fixup = NO_FIXUP,
		.border = {
			.cpu = &w->cpus[cpu],
			.activations = w->activations,
			.activation_count = ACTIVATIONS,
			.used = &w->used,
			.registration = &w->registrations[module],
			.module = world_module(module),
			.class = config.class,
			.who = word_who(cpu, module),
		},
	};
}

/* A fetch that is refused needs no second half: it takes nothing. */
static void fetch(struct handler *h)
{
	struct pending *pending = &h->w->pending[h->cpu];
	struct border_exit exit = forget_stack(h);
	struct border_claim claim = automata_match(&h->border, &exit);

	for (int i = 0; i < ACTIVATIONS; i++) {
		const struct ghost *ghost = &h->w->ghosts[i];

		if ((ghost->state == CALLING || ghost->state == STOPPED) && h->exit->is_proper &&
		    ghost->back.rip == h->exit->at.rip && ghost->back.rsp == h->exit->at.rsp &&
		    claim.crossing == BORDER_REFUSED)
			violate(h->w, "refused", "activation %d cannot return to its place", i);
	}
	if (claim.crossing == BORDER_REFUSED) {
		say(h->log, "      refused\n");
		automata_in(&h->border, &exit, &claim);
		end_line(h);
		return;
	}
	say(h->log, "      finds activation %u for a %s\n", claim.activation,
	    crossing_name(claim.crossing));
	*pending = (struct pending){
		.kind = CLAIM, .module = h->module, .claim = claim, .exit = exit,
	};
}

static void commit_claim(struct handler *h)
{
	if (automata_in(&h->border, h->exit, &h->pending.claim) == BORDER_REFUSED &&
	    !h->is_named)
		say(h->log, "      another CPU was faster\n");
	end_line(h);
}

static void acknowledge(struct handler *h)
{
	const struct pending *pending = &h->pending;
	struct registration_event event = {
		.kind = EVENT_ACK, .generation = pending->generation,
		.who = h->cpu == CPUS ? AWAIT_IOMMU : AWAIT_CPU(h->cpu),
	};
	struct border_registration *registration = &h->w->registrations[pending->module];
	struct border_actions list = { 0 };

	step(h, pending->module, &event, &list);
	say(h->log, "      module %d: %s, %d awaited\n", pending->module,
	    state_name(registration->state), __builtin_popcountll(registration->awaited));
}

/* The second half of what this CPU has begun. */
static void commit(struct handler *h)
{
	h->pending = h->w->pending[h->cpu];
	h->exit = &h->pending.exit;
	if (h->pending.kind == CLAIM)
		commit_claim(h);
	else if (h->pending.kind == ACKNOWLEDGE)
		acknowledge(h);
	h->w->pending[h->cpu] = (struct pending){ 0 };
}

static void flush(struct handler *h)
{
	struct pending *pending = &h->w->pending[h->cpu];

	*pending = (struct pending){ .kind = ACKNOWLEDGE, .module = h->module };
	if (h->cpu == CPUS) {
		pending->generation = h->w->registrations[h->module].generation;
		memcpy(h->w->iotlb, h->w->views[IN_DMA], FRAMES);
		return;
	}
	if (!automata_flush(&h->border, &pending->generation))
		*pending = (struct pending){ 0 };
	end_line(h);
}

/* Class S has returned, or has died: the kernel's caller continues as after a call. */
static void check_home(struct handler *h, u64 entry)
{
	if (h->border.go.rip != GATE || h->border.go.rsp != entry)
		violate(h->w, "home", "the kernel does not continue at the gate");
	if (!h->gives_back)
		violate(h->w, "home", "the kernel does not find its own registers again");
	if (h->fails ? h->border.crossing == BORDER_OUT_RET : h->border.crossing != BORDER_OUT_RET)
		violate(h->w, "home", "the result of an activation that died is no error");
	if (h->border.crossing == BORDER_REFUSED && !h->clears_stack)
		violate(h->w, "own", "the stack of an activation that died is not cleared");
}

static void leave(struct handler *h, const struct event *event)
{
	struct world *w = h->w;
	u8 index = w->cpus[h->cpu].activation;
	struct ghost *ghost = &w->ghosts[index];
	struct border_activation *activation = &w->activations[index];
	u64 entry = ghost->back.rsp;	/* class S */
	u8 kind = activation->entry;
	const struct border_registration *registration = h->border.registration;
	struct border_exit exit = forget_stack(h);

	ghost->state = event->ghost;
	ghost->cause = event->exit.cause;
	ghost->inside = event->exit.at;
	if (event->ghost == CALLING)
		ghost->inside = (struct border_place){ event->exit.return_address,
						       event->exit.at.rsp + 8 };
	ghost->back = config.class == CLASS_D ? ghost->inside :
		      (struct border_place){ h->border.module->stub, entry };
	h->own = ALL;
	h->secret = ALL;
	automata_out(&h->border, &exit);
	end_line(h);
	if (config.class == CLASS_S && event->crossing != BORDER_OUT_INT)
		check_home(h, entry);
	if (h->border.crossing != event->crossing)
		violate(w, event->crossing == BORDER_REFUSED ? "entry" : "refused",
			"this was not recognized as a %s", crossing_name(event->crossing));
	if (event->crossing == BORDER_OUT_RET && kind == ENTRY_INIT &&
	    registration->state == REGISTRATION_ARMED)
		violate(w, "entry", "init has returned, and the module is not sealed");
	if (event->crossing == BORDER_OUT_RET && kind == ENTRY_EXIT &&
	    event->exit.at.rip != FUNCTION && may_run(registration))
		violate(w, "entry", "exit has returned, and the module may be entered");
	if (!h->is_published)
		violate(w, "leak", "activation %u has left M, and is not published", index);
}

/* What became of suspicious activity is what was chosen, and of a stopped module nothing more. */
static void check_choice(const struct handler *h)
{
	struct world *w = h->w;
	const struct border_registration *registration = h->border.registration;
	bool is_new = h->is_reported && !w->was_stopped[h->module];

	if (h->is_logged != (is_new && config.choice >= CHOICE_LOG))
		violate(w, "choice", "suspicious activity is%s logged", h->is_logged ? "" : " not");
	if (h->panics != (is_new && config.choice == CHOICE_PANIC))
		violate(w, "choice", "the kernel does%s panic", h->panics ? "" : " not");
	if (h->is_reported && config.choice >= CHOICE_STOP)
		w->was_stopped[h->module] = 1;
	if (w->was_stopped[h->module] ? may_run(registration) || !registration->stopped :
					registration->stopped)
		violate(w, "choice", "the module is%s stopped for good",
			registration->stopped ? "" : " not");
}

void world_apply(struct world *w, const struct event *e, FILE *log)
{
	int module = e->kind == COMMIT ? w->pending[e->cpu].module : e->module;
	struct handler h, meanwhile;

	if (w->violated)
		return;
	if (log)
		print_event(w, e, log);
	handler_init(&h, w, e->cpu, module, &e->exit, log);
	switch (e->kind) {
	case FETCH:
		fetch(&h);
		break;
	case COMMIT:
		commit(&h);
		break;
	case FLUSH:
		flush(&h);
		break;
	case LEAVE:
		leave(&h, e);
		break;
	case WRITE:
	case DMA:
		w->is_evil[e->module] = 1;
		break;
	case RELOAD:
		w->is_evil[e->module] = 0;
		break;
	case WRITE_FAULT:
		automata_suspect(&h.border, SUSPECT_WRITE);
		end_line(&h);
		break;
	case MOVE_BAR:
		w->is_moved = 1;
		break;
	case UNMAP:
		memset(w->m_is_stale, 1, config.cpus);
		memset(w->must_invalidate, 1, config.cpus);
		break;
	case INVALIDATE:
		w->must_invalidate[e->cpu] = 0;
		break;
	case CALL_MEANWHILE:
		handler_init(&meanwhile, w, e->cpu, module, NULL, log);
		h.meanwhile = &meanwhile;
		change(&h, e->call);
		break;
	case CALL:
		change(&h, e->call);
		break;
	}
	check_choice(&h);
	cache(w);
	/* What died while it was out is gone. */
	for (int i = 0; i < ACTIVATIONS; i++) {
		u8 state = word_state(w->activations[i].word);

		if ((state == ACTIVATION_DEAD || state == ACTIVATION_FREE) &&
		    w->ghosts[i].state != INSIDE)
			w->ghosts[i] = (struct ghost){ 0 };
	}
	world_check(w);
}

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < ACTIVATIONS; i++)
		w->activations[i].word = ACTIVATION_FIRST;
	for (int module = 0; module < MODULES; module++) {
		w->registrations[module].choice = config.choice;
		w->registrations[module].privileges = 3;
		w->registrations[module].has_init = 1;
		set_views(w, module, R | W | X, R | W, 0, 0);
	}
	cache(w);
	for (int module = 0; module < config.modules; module++) {
		static const u8 calls[] = { EVENT_HASH, EVENT_ARM, EVENT_SEAL };
		struct event call = { .kind = CALL, .module = module, .call = EVENT_FREEZE };

		if (config.from == REGISTRATION_LOADED)
			break;
		world_apply(w, &call, NULL);
		for (int who = 0; who <= CPUS; who++) {
			struct event ack = { .kind = FLUSH, .cpu = who, .module = module };

			world_apply(w, &ack, NULL);
			ack.kind = COMMIT;
			world_apply(w, &ack, NULL);
		}
		for (unsigned int i = 0; i < sizeof(calls); i++) {
			if (w->registrations[module].state == config.from)
				break;
			call.call = calls[i];
			if (calls[i] == EVENT_SEAL) {
				w->was_begun[module] = 1;
				w->registrations[module].begun = 1;
			}
			world_apply(w, &call, NULL);
		}
	}
}

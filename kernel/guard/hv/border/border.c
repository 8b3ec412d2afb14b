// SPDX-License-Identifier: GPL-2.0-only
/* The six crossings: see border.h. */
#include "guard/hv/border/border.h"

static int is_same(struct border_place a, struct border_place b)
{
	return a.rip == b.rip && a.rsp == b.rsp;
}

static struct border_place place(u64 rip, u64 rsp)
{
	return (struct border_place){ .rip = rip, .rsp = rsp };
}

/* ---- border-in: the search ---- */

static struct border_claim refuse(u8 suspicion)
{
	return (struct border_claim){ .crossing = BORDER_REFUSED, .suspicion = suspicion };
}

/*
 * The kernel's function ends in a jump to an entry point of the module that called it: the entered
 * function returns for it, to the place where the activation waits, and crosses no border then.
 * Class S calls nothing.
 */
static int returns_by_entry(const struct border_module *module,
			    const struct border_activation *activation,
			    const struct border_exit *exit)
{
	return module->class == CLASS_D && exit->return_address == activation->back.rip &&
	       exit->at.rsp + 8 == activation->back.rsp &&
	       module_entry(module, exit->at.rip) == ENTRY_CALL;
}

/* Returns the crossing if this activation waits for the kernel to return to this place. */
static u8 returns(const struct border_module *module, const struct border_activation *activation,
		  u8 state, const struct border_exit *exit, u32 *fixup)
{
	struct border_place at = exit->at;

	*fixup = NO_FIXUP;
	switch (state) {
	case ACTIVATION_OUT_CALL:
		return is_same(activation->back, at) ||
		       returns_by_entry(module, activation, exit) ? BORDER_IN_RET : BORDER_REFUSED;
	case ACTIVATION_OUT_INT:
		if (activation->back.rsp != at.rsp)
			return BORDER_REFUSED;
		/* The kernel's handlers see the stub of class S, and do not move it. */
		if (module->class == CLASS_S)
			return activation->back.rip == at.rip ? BORDER_IN_RTI : BORDER_REFUSED;
		return module_may_resume(module, activation->cause, activation->back.rip, at.rip,
					 fixup) ? BORDER_IN_RTI : BORDER_REFUSED;
	}
	return BORDER_REFUSED;
}

static struct border_claim match_return(const struct border *border, const struct border_exit *exit)
{
	u8 suspicion = SUSPECT_PLACE;

	for (u32 i = 0; i < border->activation_count; i++) {
		const struct border_activation *activation = &border->activations[i];
		u64 word = activation_read(activation);
		struct border_claim claim = { .activation = i, .word = word };

		if (word_registration(word) != border->registration_number)
			continue;
		claim.crossing = returns(border->module, activation, word_state(word), exit,
					 &claim.fixup);
		if (claim.crossing != BORDER_REFUSED)
			return claim;
		if (word_state(word) == ACTIVATION_DEAD && is_same(activation->back, exit->at))
			suspicion = SUSPECT_DEAD;
	}
	return refuse(suspicion);
}

/* A free activation, or else a dead one. */
static struct border_claim match_entry(const struct border *border, u8 entry)
{
	static const u8 wanted[] = { ACTIVATION_FREE, ACTIVATION_DEAD };

	for (u32 round = 0; round < 2; round++) {
		for (u32 i = 0; i < border->activation_count; i++) {
			u64 word = activation_read(&border->activations[i]);

			if (word_state(word) == wanted[round])
				return (struct border_claim){
					.crossing = BORDER_IN_CALL, .entry = entry,
					.activation = i, .word = word, .fixup = NO_FIXUP,
				};
		}
	}
	return refuse(SUSPECT_POOL);
}

struct border_claim border_match(const struct border *border, const struct border_exit *exit)
{
	struct border_claim claim;
	u8 entry;

	if (!exit->is_proper)
		return refuse(SUSPECT_MODE);
	/* An activation that was interrupted at an entry point resumes there. */
	claim = match_return(border, exit);
	if (claim.crossing != BORDER_REFUSED)
		return claim;
	entry = module_entry(border->module, exit->at.rip);
	if (entry == ENTRY_NONE)
		return claim;
	/*
	 * A return into the text would cross no border: the caller would choose the place. Class S
	 * returns to its gate.
	 */
	if (border->module->class == CLASS_D && module_has(border->module, exit->return_address))
		return refuse(SUSPECT_RETURN);
	return match_entry(border, entry);
}

/* ---- border-in: the crossing ---- */

/* The kernel is back above the frames of these activations, which cannot return any more. */
static void unwind(struct border *border, u8 except, const struct border_exit *exit)
{
	for (u32 i = 0; i < border->activation_count; i++) {
		struct border_activation *activation = &border->activations[i];
		u64 word = activation_read(activation);
		u8 state = word_state(word);

		if (i == except || (state != ACTIVATION_OUT_CALL && state != ACTIVATION_OUT_INT))
			continue;
		if (activation->stack == exit->stack && activation->back.rsp <= exit->at.rsp)
			activation_change(activation, word,
					  activation_step(word, ACTIVATION_DIE, border->cpu_number,
							  word_registration(word)));
	}
}

/* The next word of an activation that this CPU has: nobody else changes it. */
static void step(struct border *border, struct border_activation *activation, u8 event)
{
	u64 word = activation_read(activation);

	activation_change(activation, word, activation_step(word, event, border->cpu_number,
							    border->registration_number));
}

static int admits(struct border *border, const struct border_claim *claim)
{
	if (claim->crossing != BORDER_IN_CALL)
		return registration_runs(border->registration);
	if (!registration_admits(border->registration, claim->entry))
		return 0;
	return claim->entry != ENTRY_INIT || registration_begin(border->registration);
}

static void begin(struct border *border, struct border_activation *activation,
		  const struct border_exit *exit, const struct border_claim *claim)
{
	const struct border_module *module = border->module;

	activation->stack = exit->stack;
	activation->entry = claim->entry;
	activation->home = place(exit->return_address, exit->at.rsp + 8);
	activation->exit = activation->home;
	activation->inside = exit->at;
	if (module->class == CLASS_S) {
		activation->home = place(module->gate, exit->at.rsp);
		activation->exit = place(module->gate,
					 module_stack_top(module, claim->activation));
		activation->inside.rsp = activation->exit.rsp - 8;
	}
}

u8 border_in(struct border *border, const struct border_exit *exit,
	     const struct border_claim *claim)
{
	struct border_activation *activation = &border->activations[claim->activation];
	struct cpu_event event = {
		.kind = CPU_ENTER, .class = border->module->class, .crossing = claim->crossing,
		.activation = claim->activation, .privileges = border->registration->privileges,
		.fixup = claim->fixup, .was_dead = word_state(claim->word) == ACTIVATION_DEAD,
	};
	u8 how = claim->crossing == BORDER_IN_CALL ? ACTIVATION_CLAIM : ACTIVATION_RESUME;

	if (claim->crossing == BORDER_REFUSED) {
		border_do(&border->actions, ACT_FAULT, 0);
		border_suspect(border, claim->suspicion);
		return BORDER_REFUSED;
	}
	if (!activation_change(activation, claim->word,
			       activation_step(claim->word, how, border->cpu_number,
					       border->registration_number)))
		return BORDER_REFUSED;
	if (!admits(border, claim)) {
		activation->back = exit->at;
		step(border, activation, how == ACTIVATION_CLAIM ? ACTIVATION_RETURN :
								   ACTIVATION_DIE);
		border_do(&border->actions, ACT_FAULT, 0);
		border_suspect(border, SUSPECT_STATE);
		return BORDER_REFUSED;
	}
	unwind(border, claim->activation, exit);
	if (claim->crossing == BORDER_IN_CALL)
		begin(border, activation, exit, claim);
	else if (border->module->class == CLASS_D)
		/* An exception may resume at another place, and a call by an entry. */
		activation->inside = exit->at;
	*border->cpu = cpu_step(*border->cpu, &event, &border->actions);
	return claim->crossing;
}

/* ---- border-out ---- */

/* Returns whether RSP is below the frame of the entry, on the stack on which M works. */
static int is_on_its_stack(const struct border *border, const struct border_activation *activation,
			   const struct border_exit *exit)
{
	u64 top = activation->exit.rsp;

	if (exit->at.rsp >= top)
		return 0;
	if (border->module->class == CLASS_S)
		return exit->at.rsp >= top - border->module->stack_size;
	return exit->stack == activation->stack;
}

/* Class S has no fixups, and what faulted may be secret: the kernel never gets its exceptions. */
static int is_hidden(const struct border *border, const struct border_exit *exit)
{
	return border->module->class == CLASS_S && !exit->is_fetch &&
	       exit->cause != CAUSE_INTERRUPT;
}

/* By which crossing M was left. */
static u8 recognize(const struct border *border, const struct border_activation *activation,
		    const struct border_exit *exit)
{
	int is_secret = border->module->class == CLASS_S;

	if (is_hidden(border, exit))
		return BORDER_REFUSED;
	/* An interrupt may come after a jump out of the text and before its first fetch. */
	if (!exit->is_fetch && module_has(border->module, exit->at.rip))
		return is_on_its_stack(border, activation, exit) ? BORDER_OUT_INT : BORDER_REFUSED;
	if (is_same(exit->at, activation->exit))
		return BORDER_OUT_RET;
	/*
	 * The function's last call was made by a jump: the kernel's function returns for it. In
	 * class S that can only be a return thunk of the kernel's, and the gate returns for it.
	 */
	if (exit->at.rsp == activation->exit.rsp - 8 &&
	    (is_secret || exit->return_address == activation->exit.rip))
		return BORDER_OUT_RET;
	if (!is_secret && module_has(border->module, exit->return_address) &&
	    is_on_its_stack(border, activation, exit))
		return BORDER_OUT_CALL;
	return BORDER_REFUSED;
}

/* Records where the kernel must return to, and where it continues now. */
static void record(struct border *border, struct border_activation *activation,
		   const struct border_exit *exit, u8 crossing)
{
	struct border_place stub = place(border->module->stub, activation->home.rsp);
	int is_secret = border->module->class == CLASS_S;

	activation->cause = exit->cause;
	border->go = exit->at;
	switch (crossing) {
	case BORDER_OUT_CALL:
		activation->inside = place(exit->return_address, exit->at.rsp + 8);
		activation->back = activation->inside;
		break;
	case BORDER_OUT_INT:
		activation->inside = exit->at;
		activation->back = is_secret ? stub : exit->at;
		border->go = activation->back;
		break;
	case BORDER_OUT_RET:
		if (is_secret)
			border->go = activation->home;
		break;
	default:
		/* The place to which the kernel would return, to know it if it tries. */
		activation->back = is_secret ? stub : exit->at;
		if (is_secret)
			border->go = activation->home;
	}
}

static void change(struct border *border, u8 event)
{
	border_do(&border->actions, ACT_CHANGE, event);
}

u8 border_out(struct border *border, const struct border_exit *exit)
{
	static const u8 events[] = {
		[BORDER_REFUSED] = ACTIVATION_DIE,
		[BORDER_OUT_CALL] = ACTIVATION_CALL,
		[BORDER_OUT_INT] = ACTIVATION_INTERRUPT,
		[BORDER_OUT_RET] = ACTIVATION_RETURN,
	};
	u8 index = border->cpu->activation;
	struct border_activation *activation = &border->activations[index];
	u8 crossing = recognize(border, activation, exit);
	u8 entry = activation->entry;
	struct cpu_event event = {
		.kind = CPU_LEAVE, .class = border->module->class, .crossing = crossing,
	};

	border->publish = events[crossing];
	/* While the registration dies, nothing returns to M. */
	if (crossing != BORDER_OUT_RET && !registration_runs(border->registration))
		border->publish = ACTIVATION_DIE;
	record(border, activation, exit, crossing);
	*border->cpu = cpu_step(*border->cpu, &event, &border->actions);
	if (!exit->is_fetch && !is_hidden(border, exit))
		border_do(&border->actions, ACT_DELIVER, 0);
	border_do(&border->actions, ACT_PUBLISH, index);
	if (crossing == BORDER_REFUSED)
		border_suspect(border, SUSPECT_EXIT);
	if (crossing == BORDER_OUT_RET && entry == ENTRY_INIT)
		change(border, EVENT_SEAL);
	/* A driver's exit mostly ends in a jump to a function that then calls the driver. */
	if (crossing == BORDER_OUT_RET && entry == ENTRY_EXIT &&
	    is_same(exit->at, activation->exit))
		change(border, EVENT_REVOKE);
	return crossing;
}

void border_publish(struct border *border, u32 activation)
{
	step(border, &border->activations[activation], border->publish);
}

/* ---- the rest ---- */

int border_flush(struct border *border, u32 *generation)
{
	struct cpu_event event = { .kind = CPU_FLUSH };

	if (border->cpu->view != VIEW_K)
		return 0;
	*generation = __atomic_load_n(&border->registration->generation, __ATOMIC_ACQUIRE);
	*border->cpu = cpu_step(*border->cpu, &event, &border->actions);
	return 1;
}

void border_suspect(struct border *border, u8 suspicion)
{
	u8 choice = border->registration->choice;

	border_do(&border->actions, ACT_REPORT, suspicion);
	if (choice >= CHOICE_STOP)
		change(border, EVENT_STOP);
	if (choice == CHOICE_PANIC)
		border_panic(&border->actions);
}

void border_sweep(struct border *border)
{
	for (u32 i = 0; i < border->activation_count; i++) {
		struct border_activation *activation = &border->activations[i];

		if (word_registration(activation_read(activation)) == border->registration_number)
			step(border, activation, ACTIVATION_SWEEP);
	}
}

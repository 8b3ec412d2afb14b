/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The six crossings: see border.h. They are functions of their includer, so that a compiler can
 * make one piece of code of a crossing and of what the hypervisor does for it.
 */
#ifndef GUARD_BORDER_CROSSINGS_H
#define GUARD_BORDER_CROSSINGS_H

#include "guard/hv/border/border.h"
#include "guard/hv/border/cpu_step.h"

/*
 * Of the includer: reads the return address of @exit, where RSP points. Returns 0 if nothing can be
 * read there, and leaves @exit as it is. Called in class D alone.
 */
static int border_read_stack(struct border *border, struct border_exit *exit);

/*
 * Of the includer: whether @address is in a function of the kernel's that M executes (hv/leaf.c).
 * Called in class D alone.
 */
static int border_is_leaf(const struct border *border, u64 address);

static __always_inline int border_is_same(struct border_place a, struct border_place b)
{
	return a.rip == b.rip && a.rsp == b.rsp;
}

static __always_inline struct border_place border_place(u64 rip, u64 rsp)
{
	return (struct border_place){ .rip = rip, .rsp = rsp };
}

/* Suspicious activity; also one that is no crossing: a write to frozen frames. */
static __always_inline void border_suspect(struct border *border, u8 suspicion)
{
	int panics = registration_chose(border->registration, CHOICE_PANIC);

	border_act(border, ACT_REPORT, suspicion);
	if (registration_chose(border->registration, CHOICE_LOG))
		border_act(border, ACT_LOG, suspicion);
	if (registration_chose(border->registration, CHOICE_STOP))
		border_act(border, ACT_CHANGE, EVENT_STOP);
	if (!panics)
		return;
	/* As border_panic(), which is of a registration. */
	border_act(border, ACT_CLEAR_SECRETS, 0);
	border_act(border, ACT_PANIC, 0);
}

/* ---- border-in: the search ---- */

static __always_inline struct border_claim border_refuse(u8 suspicion)
{
	return (struct border_claim){ .crossing = BORDER_REFUSED, .suspicion = suspicion };
}

/*
 * Returns the crossing if this activation, which waits with the stack pointer that the kernel has,
 * waits for the kernel to return to this place.
 */
static __always_inline u8 border_returns(const struct border *border,
					 const struct border_activation *activation, u8 state,
					 u64 rip, u32 *fixup)
{
	u64 back = activation->back.rip;

	*fixup = NO_FIXUP;
	switch (state) {
	case ACTIVATION_OUT_CALL:
		return back == rip ? BORDER_IN_RET : BORDER_REFUSED;
	case ACTIVATION_OUT_INT:
		/* The kernel's handlers see the stub of class S, and do not move it. */
		if (border->class == CLASS_S)
			return back == rip ? BORDER_IN_RTI : BORDER_REFUSED;
		return module_may_resume(border->module, activation->cause, back, rip, fixup) ?
		       BORDER_IN_RTI : BORDER_REFUSED;
	}
	return BORDER_REFUSED;
}

/*
 * The return address is in the text. If the kernel's function ends in a jump to an entry point of
 * the module that called it, the entered function returns for it, to the place where the activation
 * waits, and crosses no border then. Any other return into the text would cross no border, too: the
 * caller would choose the place.
 */
static __always_inline struct border_claim border_match_jump(const struct border *border,
							     const struct border_exit *exit,
							     u8 entry)
{
	u64 left = entry == ENTRY_CALL ? __atomic_load_n(border->used, __ATOMIC_ACQUIRE) : 0;

	for (; left; left &= left - 1) {
		u32 i = __builtin_ctzll(left);
		const struct border_activation *activation = &border->activations[i];
		u64 word = activation_read(activation);

		if (word_state(word) == ACTIVATION_OUT_CALL &&
		    border_has(border, word) &&
		    exit->return_address == activation->back.rip &&
		    exit->at.rsp + 8 == activation->back.rsp)
			return (struct border_claim){
				.crossing = BORDER_IN_RET, .activation = i, .word = word,
				.fixup = NO_FIXUP,
			};
	}
	return border_refuse(SUSPECT_RETURN);
}

/* No activation of the pool. */
#define BORDER_NONE	0xffffffff

/* One that became free since the mask was read, or else the first dead one. */
static noinline u32 border_find_dead(const struct border_activation *pool, u64 used)
{
	u32 dead = BORDER_NONE;

	for (u64 left = used; left; left &= left - 1) {
		u32 i = __builtin_ctzll(left);
		u8 state = word_state(activation_read(&pool[i]));

		if (state == ACTIVATION_FREE)
			return i;
		if (state == ACTIVATION_DEAD && dead == BORDER_NONE)
			dead = i;
	}
	return dead;
}

/*
 * An activation for a border-in call, or BORDER_NONE. If another CPU is faster, border_in() does
 * not find the word that it needs.
 */
static __always_inline u32 border_find(const struct border *border, u64 used)
{
	if (border_mostly(~used)) {
		u32 free = __builtin_ctzll(~used);

		if (free < border->activation_count)
			return free;
	}
	return border_find_dead(border->activations, used);
}

/* @suspicion: if the place is no entry point */
static __always_inline struct border_claim border_match_entry(struct border *border,
							      struct border_exit *exit,
							      u8 suspicion, u64 used)
{
	struct border_claim claim = { .crossing = BORDER_IN_CALL, .fixup = NO_FIXUP };
	u32 activation;

	claim.entry = module_entry(border->module, exit->at.rip);
	if (border_rarely(claim.entry == ENTRY_NONE))
		return border_refuse(suspicion);
	/* Class S returns to its gate. */
	if (border->class == CLASS_D) {
		if (border_rarely(!border_read_stack(border, exit)))
			return border_refuse(SUSPECT_MODE);
		if (module_has(border->module, exit->return_address))
			return border_match_jump(border, exit, claim.entry);
		/* It would return for the caller again: to the text, without a border. */
		if (border_is_leaf(border, exit->return_address))
			return border_refuse(SUSPECT_RETURN);
	}
	activation = border_find(border, used);
	if (border_rarely(activation == BORDER_NONE))
		return border_refuse(SUSPECT_POOL);
	claim.activation = activation;
	claim.word = activation_read(&border->activations[activation]);
	return claim;
}

static __always_inline struct border_claim border_match(struct border *border,
							struct border_exit *exit)
{
	u64 used = __atomic_load_n(border->used, __ATOMIC_ACQUIRE);
	u8 suspicion = SUSPECT_PLACE;

	if (border_rarely(!exit->is_proper))
		return border_refuse(SUSPECT_MODE);
	/* An activation that was interrupted at an entry point resumes there. */
	for (u64 left = used; left; left &= left - 1) {
		u64 i = __builtin_ctzll(left);
		const struct border_activation *activation = &border->activations[i];
		u64 word = activation_read(activation);
		u8 state = word_state(word);

		if (activation->back.rsp == exit->at.rsp &&
		    border_has(border, word)) {
			struct border_claim claim = { .activation = i, .word = word };

			claim.crossing = border_returns(border, activation, state, exit->at.rip,
							&claim.fixup);
			if (border_mostly(claim.crossing != BORDER_REFUSED))
				return claim;
			if (state == ACTIVATION_DEAD && activation->back.rip == exit->at.rip)
				suspicion = SUSPECT_DEAD;
		}
	}
	return border_match_entry(border, exit, suspicion, used);
}

/* ---- border-in: the crossing ---- */

/* The kernel is back above the frames of these activations, which cannot return any more. */
static __always_inline void border_unwind(struct border *border, u8 except,
					  const struct border_exit *exit)
{
	u64 used = __atomic_load_n(border->used, __ATOMIC_ACQUIRE);

	for (u64 left = used & ~(1ULL << except); left; left &= left - 1) {
		struct border_activation *activation = &border->activations[__builtin_ctzll(left)];
		u64 word = activation_read(activation);
		u8 state = word_state(word);

		if (state != ACTIVATION_OUT_CALL && state != ACTIVATION_OUT_INT)
			continue;
		if (activation->stack == exit->stack && activation->back.rsp <= exit->at.rsp)
			activation_change(activation, word,
					  activation_step(word, ACTIVATION_DIE,
							  word & WORD_REGISTRATION));
	}
}

/* The next word of an activation that this CPU has. */
static __always_inline void border_step(struct border *border, u32 activation, u8 event)
{
	struct border_activation *own = &border->activations[activation];
	u64 word = activation_read(own);

	if (event == ACTIVATION_RETURN)
		border_mark(border, activation, 0);
	activation_leave(own, activation_step(word, event, border->who));
}

static __always_inline int border_admits(struct border *border, const struct border_claim *claim,
					 u8 crossing)
{
	if (crossing != BORDER_IN_CALL)
		return registration_runs(border->registration);
	if (!registration_admits(border->registration, claim->entry))
		return 0;
	return claim->entry != ENTRY_INIT || registration_begin(border->registration);
}

static __always_inline void border_begin(struct border *border,
					 struct border_activation *activation,
					 const struct border_exit *exit,
					 const struct border_claim *claim)
{
	const struct border_module *module = border->module;

	activation->stack = exit->stack;
	activation->entry = claim->entry;
	if (border->class == CLASS_S) {
		u64 top = module_stack_top(module, claim->activation);

		activation->home = border_place(module->gate, exit->at.rsp);
		activation->exit = border_place(module->gate, top);
		activation->inside = border_place(exit->at.rip, top - 8);
		return;
	}
	activation->exit = border_place(exit->return_address, exit->at.rsp + 8);
}

/* The fetch is no crossing. */
static __always_inline u8 border_fault(struct border *border, u8 suspicion)
{
	border->crossing = BORDER_REFUSED;
	border_act(border, ACT_FAULT, 0);
	border_suspect(border, suspicion);
	return BORDER_REFUSED;
}

/* @crossing: that of the claim. */
static __always_inline u8 border_take(struct border *border, const struct border_exit *exit,
				      const struct border_claim *claim, u8 crossing)
{
	struct border_activation *activation = &border->activations[claim->activation];
	u8 how = crossing == BORDER_IN_CALL ? ACTIVATION_CLAIM : ACTIVATION_RESUME;

	if (border_rarely(!activation_change(activation, claim->word,
					     activation_step(claim->word, how, border->who))))
		return BORDER_REFUSED;
	if (crossing == BORDER_IN_CALL)
		border_mark(border, claim->activation, 1);
	if (border_rarely(!border_admits(border, claim, crossing))) {
		activation->back = exit->at;
		border_step(border, claim->activation,
			    how == ACTIVATION_CLAIM ? ACTIVATION_RETURN : ACTIVATION_DIE);
		return border_fault(border, SUSPECT_STATE);
	}
	border_unwind(border, claim->activation, exit);
	if (crossing == BORDER_IN_CALL)
		border_begin(border, activation, exit, claim);
	border->go = border->class == CLASS_S ? activation->inside : exit->at;
	border->crossing = crossing;
	cpu_enter(border, claim);
	return crossing;
}

/* Returns the crossing; BORDER_REFUSED without an action if another CPU was faster. */
static __always_inline u8 border_in(struct border *border, const struct border_exit *exit,
				    const struct border_claim *claim)
{
	switch (claim->crossing) {
	case BORDER_IN_CALL:
		return border_take(border, exit, claim, BORDER_IN_CALL);
	case BORDER_IN_RET:
		return border_take(border, exit, claim, BORDER_IN_RET);
	case BORDER_IN_RTI:
		return border_take(border, exit, claim, BORDER_IN_RTI);
	}
	return border_fault(border, claim->suspicion);
}

/* ---- border-out ---- */

/* Returns whether RSP is below the frame of the entry, on the stack on which M works. */
static __always_inline int border_is_on_its_stack(const struct border *border,
						  const struct border_activation *activation,
						  const struct border_exit *exit)
{
	u64 top = activation->exit.rsp;

	if (exit->at.rsp >= top)
		return 0;
	if (border->class == CLASS_S)
		return exit->at.rsp >= top - border->module->stack_size;
	return exit->stack == activation->stack;
}

/* Class S has no fixups, and what faulted may be secret: the kernel never gets its exceptions. */
static __always_inline int border_is_hidden(const struct border *border,
					    const struct border_exit *exit)
{
	return border->class == CLASS_S && !exit->is_fetch &&
	       exit->cause != CAUSE_INTERRUPT;
}

/* By which crossing M was left. */
static __always_inline u8 border_recognize(struct border *border,
					   const struct border_activation *activation,
					   struct border_exit *exit)
{
	int is_secret = border->class == CLASS_S;

	if (border_is_hidden(border, exit))
		return BORDER_REFUSED;
	/* An interrupt may come after a jump out of the text and before its first fetch. */
	if (!exit->is_fetch && exit->is_inside)
		return border_is_on_its_stack(border, activation, exit) ? BORDER_OUT_INT :
									  BORDER_REFUSED;
	if (border_is_same(exit->at, activation->exit))
		return BORDER_OUT_RET;
	if (!is_secret && !border_read_stack(border, exit))
		return BORDER_REFUSED;
	/*
	 * The function's last call was made by a jump: the kernel's function returns for it. In
	 * class S that can only be a return thunk of the kernel's, and the gate returns for it.
	 */
	if (exit->at.rsp + exit->above == activation->exit.rsp - 8 &&
	    (is_secret || exit->return_address == activation->exit.rip))
		return BORDER_OUT_RET;
	if (!is_secret && module_has(border->module, exit->return_address) &&
	    border_is_on_its_stack(border, activation, exit))
		return BORDER_OUT_CALL;
	return BORDER_REFUSED;
}

/* Records where the kernel must return to, and where it continues now. */
static __always_inline void border_record(struct border *border,
					  struct border_activation *activation,
					  const struct border_exit *exit)
{
	struct border_place stub = border_place(border->module->stub, activation->home.rsp);
	int is_secret = border->class == CLASS_S;

	border->go = exit->at;
	switch (border->crossing) {
	case BORDER_OUT_CALL:
		activation->back = border_place(exit->return_address,
						exit->at.rsp + exit->above + 8);
		break;
	case BORDER_OUT_INT:
		activation->cause = exit->cause;
		if (is_secret) {
			activation->inside = exit->at;
			border->go = stub;
		}
		activation->back = border->go;
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

/* What becomes of the activation. */
static __always_inline u8 border_end(const struct border *border, u8 crossing)
{
	if (crossing == BORDER_OUT_RET)
		return ACTIVATION_RETURN;
	/* While the registration dies, nothing returns to M. */
	if (crossing == BORDER_REFUSED || border_rarely(!registration_runs(border->registration)))
		return ACTIVATION_DIE;
	return crossing == BORDER_OUT_CALL ? ACTIVATION_CALL : ACTIVATION_INTERRUPT;
}

/* @crossing: what border_recognize() has found. */
static __always_inline u8 border_leave(struct border *border, struct border_activation *activation,
				       const struct border_exit *exit, u8 crossing)
{
	u8 index = border->cpu->activation, entry = activation->entry;
	int has_returned = border_is_same(exit->at, activation->exit);

	border->crossing = crossing;
	border->publish = border_end(border, crossing);
	border_record(border, activation, exit);
	cpu_leave(border, index);
	if (!exit->is_fetch && !border_is_hidden(border, exit))
		border_act(border, ACT_DELIVER, 0);
	border_act(border, ACT_PUBLISH, index);
	if (crossing == BORDER_REFUSED)
		border_suspect(border, SUSPECT_EXIT);
	if (crossing != BORDER_OUT_RET || border_mostly(entry == ENTRY_CALL))
		return crossing;
	if (entry == ENTRY_INIT)
		border_act(border, ACT_CHANGE, EVENT_SEAL);
	/* A driver's exit mostly ends in a jump to a function that then calls the driver. */
	if (entry == ENTRY_EXIT && has_returned)
		border_act(border, ACT_CHANGE, EVENT_REVOKE);
	return crossing;
}

/* Returns the crossing; BORDER_REFUSED if M was left in another way, which ended the activation. */
static __always_inline u8 border_out(struct border *border, struct border_exit *exit)
{
	struct border_activation *activation = &border->activations[border->cpu->activation];

	switch (border_recognize(border, activation, exit)) {
	case BORDER_OUT_CALL:
		return border_leave(border, activation, exit, BORDER_OUT_CALL);
	case BORDER_OUT_INT:
		return border_leave(border, activation, exit, BORDER_OUT_INT);
	case BORDER_OUT_RET:
		return border_leave(border, activation, exit, BORDER_OUT_RET);
	}
	return border_leave(border, activation, exit, BORDER_REFUSED);
}

/* Carries out ACT_PUBLISH for this activation, which this CPU has. */
static __always_inline void border_publish(struct border *border, u32 activation)
{
	/* With a constant event, a step is a comparison. */
	switch (border->publish) {
	case ACTIVATION_CALL:
		border_step(border, activation, ACTIVATION_CALL);
		break;
	case ACTIVATION_INTERRUPT:
		border_step(border, activation, ACTIVATION_INTERRUPT);
		break;
	case ACTIVATION_RETURN:
		border_step(border, activation, ACTIVATION_RETURN);
		break;
	default:
		border_step(border, activation, ACTIVATION_DIE);
	}
}

#endif /* GUARD_BORDER_CROSSINGS_H */

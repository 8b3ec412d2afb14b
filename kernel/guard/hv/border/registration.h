/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The automaton of a registration: a module, known by its content, that may have privileges.
 *
 * Its frames are first frozen in all views. Every CPU and the IOMMU then acknowledge that they
 * have flushed what they cached of the views before. Only then the content is hashed, and only
 * then M can execute it. Without all acknowledgments there is no privilege. A revocation goes
 * the same way: M loses the frames, all acknowledge, and only then the kernel gets them back.
 *
 * An acknowledgment carries the generation of the flush, which was read before the flush: one
 * that belongs to an earlier freeze does not count.
 *
 * A registration has a lock, which is held for registration_step() and until its actions were
 * carried out. A revocation is stored (registration_store()) before its actions, so that no CPU
 * enters M while M is closed. Every other step is stored after its actions, with two exceptions.
 * A freeze is stored before ACT_ASK_FLUSH: a CPU that is asked must find the new generation.
 * EVENT_HASH is stored before ACT_HASH, whose verdict is a step of its own. The lock is held until
 * that step was stored, too: a verdict must not come after another freeze.
 *
 * Code in a crossing reads state, begun, privileges, choice, stopped and generation without the
 * lock. That is safe because this CPU cannot acknowledge a flush before the crossing has ended:
 * when a revocation is complete, the CPU has left M or has seen the new state. Privileges and
 * choice change only while nothing is guarded, and what was stopped stays so.
 */
#ifndef GUARD_BORDER_REGISTRATION_H
#define GUARD_BORDER_REGISTRATION_H

#include "guard/hv/border/actions.h"
#include "guard/hv/border/module.h"

enum registration_state {
	REGISTRATION_LOADED,	/* the metadata are bound to privileges; nothing is guarded */
	REGISTRATION_FROZEN,	/* some have not acknowledged the flush ("awaited") */
	REGISTRATION_FLUSHED,	/* all have */
	REGISTRATION_HASHED,	/* and the content is the registered one */
	REGISTRATION_ARMED,	/* M may be entered: first by init, which then may be called back */
	REGISTRATION_SEALED,	/* init cannot be entered any more, and exit can */
	REGISTRATION_DYING,	/* M may not be entered; some may not have acknowledged */
};

/* Bits of "awaited": one for each CPU, and one for the IOMMU, if the guard has it. */
#define MOST_CPUS	63
#define AWAIT_CPU(n)	(1ull << (n))
#define AWAIT_IOMMU	AWAIT_CPU(MOST_CPUS)

struct border_registration {
	u8 state;
	u8 choice;
	u8 has_init;
	u8 begun;	/* init was entered, or there is none */
	u8 stopped;	/* for good */
	u32 generation;
	u32 privileges;	/* a bit for each name that the administrator bound */
	u64 awaited;
};

enum registration_event_kind {
	EVENT_BIND,	/* administrator: @privileges, @choice */
	EVENT_FREEZE,	/* loader; @who: all that have to acknowledge */
	EVENT_ACK,	/* the CPU or IOMMU @who has flushed its TLB, or goes off line */
	EVENT_HASH,	/* loader */
	EVENT_MATCH,	/* the guard's own verdict on the hash */
	EVENT_MISMATCH,
	EVENT_ARM,	/* loader */
	EVENT_SEAL,	/* init has returned, or the loader; never before init was entered */
	EVENT_REVOKE,	/* loader, or the module's exit has returned; @who as for EVENT_FREEZE */
	EVENT_STOP,	/* suspicious activity; @who as for EVENT_FREEZE */
	EVENT_THAW,	/* loader */
};

struct registration_event {
	u8 kind;
	u8 choice;
	u32 privileges;
	u32 generation;
	u64 who;
};

struct border_registration registration_step(struct border_registration old,
					     const struct registration_event *event,
					     struct border_actions *actions);

/*
 * Stores @next, the step from @old, with the lock held. Begun is stored only if the step changed
 * it, because registration_begin() may set it meanwhile, without the lock. EVENT_ARM and
 * EVENT_THAW change it, and no CPU can begin init during these. The state is stored last.
 */
void registration_store(struct border_registration *registration, struct border_registration old,
			struct border_registration next);

/*
 * Returns whether a suspicion has what belongs to this choice: to log it, to stop the module, to
 * make the kernel panic. A module that is stopped is only refused. Otherwise its calls would soon
 * fill the log, and hide why it was stopped; and the kernel, whose panic may call it, would panic
 * again.
 */
static inline int registration_chose(const struct border_registration *registration, u8 choice)
{
	return registration->choice >= choice &&
	       !__atomic_load_n(&registration->stopped, __ATOMIC_RELAXED);
}

/* Returns whether activations of this registration may run in M. */
static __always_inline int registration_runs(const struct border_registration *registration)
{
	u8 state = __atomic_load_n(&registration->state, __ATOMIC_ACQUIRE);

	return state == REGISTRATION_ARMED || state == REGISTRATION_SEALED;
}

/* Returns whether the module may be entered at an entry point of this kind. */
static __always_inline int registration_admits(const struct border_registration *registration,
					       u8 entry)
{
	switch (__atomic_load_n(&registration->state, __ATOMIC_ACQUIRE)) {
	case REGISTRATION_ARMED:
		/* Once: registration_begin(). While init runs, the module may be called back. */
		if (entry == ENTRY_INIT)
			return 1;
		return entry == ENTRY_CALL &&
		       __atomic_load_n(&registration->begun, __ATOMIC_ACQUIRE);
	case REGISTRATION_SEALED:
		return entry == ENTRY_CALL || entry == ENTRY_EXIT;
	}
	return 0;
}

/* Returns whether this is the first entry into init. Of two CPUs, one gets the answer 1. */
static inline int registration_begin(struct border_registration *registration)
{
	return !__atomic_exchange_n(&registration->begun, 1, __ATOMIC_ACQ_REL);
}

#endif /* GUARD_BORDER_REGISTRATION_H */

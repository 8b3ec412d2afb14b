/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The border control of the guard: fixed-width types, and the words that its three automata
 * share. The same source is compiled into the guard's resident part and into the program that
 * explores it (tests/guard/model/). It therefore includes nothing, allocates nothing and calls
 * nothing outside of this directory. docs/guard-border.md has the automata as tables.
 *
 * K is the kernel's view of memory, in which no text of a guarded module can be executed. M is
 * the view in which nothing but that text can be executed. A border-in leads from K to M, a
 * border-out from M to K. Read on in registration.h, activation.h and cpu.h, which are the
 * automata, and in border.h, which composes them to the six crossings.
 */
#ifndef GUARD_BORDER_TYPES_H
#define GUARD_BORDER_TYPES_H

/* The same types as Linux's, so that a file may include both definitions. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

/* Where a compiler puts code: which way a crossing goes that is one, and is not the first. */
#define border_mostly(condition)	__builtin_expect(!!(condition), 1)
#define border_rarely(condition)	__builtin_expect(!!(condition), 0)

/* A place in code, with the stack pointer that belongs to it. */
struct border_place {
	u64 rip;
	u64 rsp;
};

/*
 * The class of a module. S keeps secrets: it has private stacks, its registers never reach the
 * kernel, and it calls nothing. D is a driver that nobody changed: it works on the kernel's stack,
 * which the kernel can write.
 */
enum border_class {
	CLASS_D,
	CLASS_S,
};

/* The six crossings, and the answer to a fetch that is none of them. */
enum border_crossing {
	BORDER_REFUSED,
	BORDER_IN_CALL,
	BORDER_IN_RET,
	BORDER_IN_RTI,
	BORDER_OUT_CALL,
	BORDER_OUT_RET,
	BORDER_OUT_INT,
};

/* Suspicious activity. */
enum border_suspicion {
	SUSPECT_NOTHING,
	SUSPECT_PLACE,		/* a fetch in K at no entry point and at no recorded place */
	SUSPECT_MODE,		/* a border-in outside of ring 0, 64-bit mode, or with a false GS */
	SUSPECT_RETURN,		/* a border-in call that would return into the module's text */
	SUSPECT_STATE,		/* a border-in that the registration does not admit */
	SUSPECT_DEAD,		/* a return to an activation that is dead */
	SUSPECT_POOL,		/* a border-in call while all activations are in use */
	SUSPECT_EXIT,		/* M was left by no call, no return, and no interrupt */
	SUSPECT_WRITE,		/* a write to frozen frames */
	SUSPECT_CONTENT,	/* the content is not the registered one */
};

/*
 * What the administrator chose to happen on suspicious activity. Each includes those above it. 0 is
 * none of them, so that nobody chooses by leaving it out.
 */
enum border_choice {
	CHOICE_LOWER = 1,	/* refuse the crossing or lower the privilege, and continue */
	CHOICE_LOG,
	CHOICE_STOP,		/* stop the module for good */
	CHOICE_PANIC,
};

static inline int choice_is_known(u32 choice)
{
	return choice >= CHOICE_LOWER && choice <= CHOICE_PANIC;
}

/* Sets of general registers. */
enum border_registers {
	REGISTERS_ALL,
	REGISTERS_CALLEE_SAVED,
	REGISTERS_BUT_RESULT,		/* all but RAX and RDX */
};

#endif /* GUARD_BORDER_TYPES_H */

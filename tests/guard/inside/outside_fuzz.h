/* SPDX-License-Identifier: GPL-2.0-only */
/* One fetch of the fuzzer's (outside_fuzz.c). */
#ifndef OUTSIDE_FUZZ_H
#define OUTSIDE_FUZZ_H

/* Offsets in struct fuzz_step, for outside_fuzz_code.S. */
#define STEP_TARGET	0
#define STEP_RSP	8
#define STEP_FLAGS	16
#define STEP_SP		24
#define STEP_RESULT	32
#define STEP_REGS	40

#ifndef __ASSEMBLER__
#include <linux/types.h>

/**
 * struct fuzz_step - a fetch
 * @target:	where
 * @rsp:	the stack pointer there
 * @flags:	RFLAGS there
 * @sp:		our own stack pointer
 * @result:	RAX afterwards
 * @regs:	all registers there, in the order of the instruction encoding, but for RSP
 */
struct fuzz_step {
	u64 target, rsp, flags, sp, result;
	u64 regs[16];
};

/* outside_fuzz_code.S */
void outside_fuzz_go(struct fuzz_step *step);
u64 outside_fuzz_callee(u64 argument);
extern const u8 outside_fuzz_landing[];

/* outside_fuzz.c */
extern struct fuzz_step *outside_fuzz_now;
void outside_fuzz_nested(u64 rip, u64 rsp);
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A module of class S with the hostile kernel around it, for the tests. The inside
 * (secret_inside.S) has a secret in its registers, on its stack and in its private memory. The
 * secret is in no other memory, not even in the inside's text: that has its complement.
 */
#ifndef SECRET_H
#define SECRET_H

#define SECRETS_COMPLEMENT	0x5ec2e7a1c0ffee17

/* What secret_enter() does: RDI. RSI is an argument. */
#define SECRET_NOTHING		0	/* returns 0 */
#define SECRET_ARGUMENTS	1	/* the OR of all registers that are no arguments */
#define SECRET_FLAGS		2	/* RFLAGS */
#define SECRET_RSP		3
#define SECRET_SPIN		4	/* that many rounds with secrets: 1, or 0 if one was lost */
#define SECRET_STORE		5	/* leaves the secret everywhere */
#define SECRET_CHECK		6	/* 1 if the private memory has the secret */
#define SECRET_RESIDUE		7	/* 0 if its stack is clear */
#define SECRET_READ		8	/* reads at an address, with secrets in registers */
#define SECRET_WRITE		9	/* writes there */
#define SECRET_CALL		10	/* calls there */
#define SECRET_EXECUTE		11	/* an instruction, by its number */
#define SECRET_HOLD		12	/* waits until the second word of the exchange is not 0 */
#define SECRET_BAD_RETURN	13	/* returns with another stack pointer */
#define SECRET_CONSTANT		14	/* the first word of the constants */

#define SECRET_INSTRUCTIONS	9

#define SECRET_STACKS		4
#define SECRET_STACK		4096

/* Of struct secret_call, for secret_enter.S. */
#define CALL_TARGET		0
#define CALL_RSP		8
#define CALL_SP			16
#define CALL_RDI		24
#define CALL_RSI		32
#define CALL_OUT		40
#define CALL_FLAGS		168

/* What the callee-saved registers have at a call: this times their number. */
#define CALLERS			0x0101010101010101

/* The rest is not for the program. */
#if defined(__KERNEL__) && !defined(__ASSEMBLER__)
#include <linux/types.h>

/**
 * struct secret_call - one call, or what looks like one
 * @target:	where it goes
 * @rsp:	the stack for it; 0: ours
 * @sp:		our stack pointer
 * @rdi, @rsi:	arguments
 * @out:	all registers afterwards, in the order of the instruction encoding; [4] is nothing
 * @flags:	RFLAGS then
 */
struct secret_call {
	u64 target, rsp, sp, rdi, rsi;
	u64 out[16];
	u64 flags;
};

/* secret_enter.S: returns 0, or 1 if the call was refused, which continues at secret_refused. */
int secret_make_call(struct secret_call *call);
extern const u8 secret_refused[], secret_gate[];

/* secret_inside.S */
u64 secret_enter(u64 what, u64 argument);
extern const u8 secret_text[], secret_text_end[], secret_middle[];
extern const u8 secret_constants[], secret_constants_end[];
extern u8 secret_private[], secret_private_end[];
extern u64 secret_exchange[];
extern u8 secret_exchange_end[];
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the kernel continues after the inside, if a guard has entered it: the guard puts the CPU
 * here with the stack pointer of the call, so that the kernel itself reads the return address.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>

	.text

SYM_FUNC_START(keys_return)
	ANNOTATE_NOENDBR
	RET
SYM_FUNC_END(keys_return)

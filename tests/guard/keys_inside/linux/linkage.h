/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What enter.S takes from Linux's header of this name, for a program. */
.macro global_label name
	.globl \name
\name :
.endm

#define SYM_FUNC_START(name)		global_label name
#define SYM_FUNC_END(name)
#define SYM_INNER_LABEL(name, linkage)	global_label name
#define RET				ret

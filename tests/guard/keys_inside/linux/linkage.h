/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What enter.S takes from Linux's header of this name, for a program. */
#define SYM_FUNC_START(name)		.globl name; name:
#define SYM_FUNC_END(name)
#define SYM_INNER_LABEL(name, linkage)	.globl name; name:
#define RET				ret

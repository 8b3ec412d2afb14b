/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What enter.S takes from Linux's header of this name, for a program. */
.macro STACK_FRAME_NON_STANDARD function
.endm

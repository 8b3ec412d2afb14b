/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For CLEAR_BUFFERS_BEFORE_GUEST (mitigations.h): on processors that leak others' data from
 * their buffers, VERW also clears these buffers (Linux: arch/x86/mds.rst). Its operand must be
 * in memory, the selector of a writable data segment. The name is the kernel's, which newer
 * kernels export to KVM alone.
 */
#include <linux/linkage.h>
#include <asm/segment.h>

	.section .rodata, "a"
	.balign 2
SYM_DATA(x86_verw_sel, .word __KERNEL_DS)

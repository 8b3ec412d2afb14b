// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Entering ring 3. dune_ring3_enter() (entry.S) remembers its caller's stack and
 * loads the frame; a handler of a system call or trap returns to that caller
 * by dune_ring3_leave().
 */
#include "guest.h"

long dune_ring3(const struct dune_tf *from)
{
	struct dune_tf tf = *from;
	struct dune_thread *t;
	u16 control;
	u32 mxcsr;
	long value;

	if (!dune_active())
		return -EPERM;
	if (tf.rip >= USER_END)
		return -EFAULT;
	tf.cs = USER_CS;
	tf.ss = USER_SS;
	tf.rflags = (tf.rflags & RFLAGS_USER) | RFLAGS_FIXED | RFLAGS_IF;

	/* Ring 3 may change all of these; C code here relies on them. */
	t = dune_self();
	t->ring0_fs = rdmsr(MSR_FS_BASE);
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m" (mxcsr), "=m" (control));
	value = dune_ring3_enter(&tf);
	__asm__ volatile("fninit; fldcw %1; ldmxcsr %0" : : "m" (mxcsr), "m" (control));
	wrmsr(MSR_FS_BASE, t->ring0_fs);
	return value;
}

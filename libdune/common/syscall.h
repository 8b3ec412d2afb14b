/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * System calls of the library itself. The host half and dune_enter() make them in user
 * mode, the guest half by dune_hypercall().
 */
#ifndef LIBDUNE_SYSCALL_H
#define LIBDUNE_SYSCALL_H

#include <asm/unistd_64.h>
#include "compiler.h"
#include "dune.h"

/* Returns whether a system call that returns an address has failed. */
static inline bool is_error(long ret)
{
	return ret < 0 && ret > -4096;
}

/* Makes a system call in user mode. Returns its result or a negative errno number. */
ALWAYS_INLINE long sys6(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	register long r10 __asm__("r10") = a3;
	register long r8 __asm__("r8") = a4;
	register long r9 __asm__("r9") = a5;
	long ret;

	__asm__ volatile("syscall"
			 : "=a" (ret)
			 : "a" (nr), "D" (a0), "S" (a1), "d" (a2), "r" (r10),
			   "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return ret;
}

ALWAYS_INLINE long sys3(long nr, long a0, long a1, long a2)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a" (ret)
			 : "a" (nr), "D" (a0), "S" (a1), "d" (a2)
			 : "rcx", "r11", "memory");
	return ret;
}

ALWAYS_INLINE long sys4(long nr, long a0, long a1, long a2, long a3)
{
	return sys6(nr, a0, a1, a2, a3, 0, 0);
}

/* Makes a system call in either half. Returns its result or a negative errno number. */
static inline long sys_any(long nr, long a0, long a1, long a2, long a3, long a4)
{
	if (dune_active())
		return dune_hypercall(nr, a0, a1, a2, a3, a4, 0);
	return sys6(nr, a0, a1, a2, a3, a4, 0);
}

#endif /* LIBDUNE_SYSCALL_H */

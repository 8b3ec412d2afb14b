/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls of dune-run itself, before and after entering. */
#ifndef DUNE_RUN_SYS_H
#define DUNE_RUN_SYS_H

#include "types.h"

#include <linux/errno.h>

/*
 * Make a system call: natively before dune_enter(), as a hypercall after it. Returns the
 * kernel's value, or -errno.
 */
long sys(long nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);

#define SYS0(nr)		sys(nr, 0, 0, 0, 0, 0, 0)
#define SYS1(nr, a)		sys(nr, (u64)(a), 0, 0, 0, 0, 0)
#define SYS2(nr, a, b)		sys(nr, (u64)(a), (u64)(b), 0, 0, 0, 0)
#define SYS3(nr, a, b, c)	sys(nr, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)
#define SYS4(nr, a, b, c, d)	\
	sys(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), 0, 0)
#define SYS5(nr, a, b, c, d, e)	\
	sys(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), 0)
#define SYS6(nr, a, b, c, d, e, f)	\
	sys(nr, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), (u64)(f))

#endif /* DUNE_RUN_SYS_H */

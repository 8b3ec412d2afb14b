// SPDX-License-Identifier: MIT OR Apache-2.0
/* System calls of the native start. (base/sys.c has those of ring 0.) */
#include "sys.h"

#include <asm/unistd.h>

long sys(long nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
	register u64 r10 asm("r10") = a3;
	register u64 r8 asm("r8") = a4;
	register u64 r9 asm("r9") = a5;
	long ret = nr;

	asm volatile("syscall"
		     : "+a" (ret)
		     : "D" (a0), "S" (a1), "d" (a2), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

long sys_write(int fd, const void *from, u64 len)
{
	return SYS3(__NR_write, fd, from, len);
}

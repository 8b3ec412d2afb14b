/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls of dune-run itself. */
#ifndef DUNE_RUN_SYS_H
#define DUNE_RUN_SYS_H

#include "types.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <linux/errno.h>

struct flock;
struct rlimit64;

/*
 * Make a system call, in ring 0 by a hypercall. Returns the kernel's value, or -errno. No argument
 * is an address of the runtime's own memory: the functions below, and those of copies.h, pass
 * copies.
 */
long sys(long nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);

/*
 * Returns @ret, the result of a call, if it is an error or a count that the call can have; or else
 * -EIO. The supervisor of a seccomp filter can give a call any result.
 */
long count_within(long ret, u64 most);

/* The calls of their names with memory of the runtime. */
long sys_openat(int dir, const char *name, u64 flags, u64 mode);
long sys_fstatat(int dir, const char *name, struct stat *st, u64 flags);
long sys_faccessat2(int dir, const char *name, u64 mode, u64 flags);
long sys_readlink(const char *name, void *to, u64 len);
long sys_fstat(int fd, struct stat *st);
long sys_fstatfs(int fd, struct statfs *fs);
long sys_pread(int fd, void *to, u64 len, u64 at);
long sys_pwrite(int fd, const void *from, u64 len, u64 at);
long sys_write(int fd, const void *from, u64 len);
long sys_lock(int fd, const struct flock *lock);	/* fcntl(F_SETLKW) */
/* prlimit64() of this process; @to or @old may be NULL. */
long sys_rlimit(int resource, const struct rlimit64 *to, struct rlimit64 *old);

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

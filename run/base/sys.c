// SPDX-License-Identifier: MIT OR Apache-2.0
/* System calls that dune-run makes for itself. (start/sys.c has those of the native start.) */
#include "copies.h"
#include "sys.h"

#include <dune.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/resource.h>

long sys(long nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
	return dune_hypercall(nr, a0, a1, a2, a3, a4, a5);
}

/* A call whose argument @name is shown to the kernel, and whose result is at @to, if not NULL. */
static long sys_named(long nr, int dir, const char *name, void *to, u64 len, u64 a2, u64 a3)
{
	u64 mark = dune_copies_mark();
	u64 room = to ? result_room(len) : a2;
	long ret = SYS4(nr, dir, shown_string(name), room, a3);

	if (to)
		ret = take_result(to, room, len, ret);
	dune_copies_release(mark);
	return ret;
}

long sys_openat(int dir, const char *name, u64 flags, u64 mode)
{
	return sys_named(__NR_openat, dir, name, NULL, 0, flags, mode);
}

long sys_fstatat(int dir, const char *name, struct stat *st, u64 flags)
{
	return sys_named(__NR_newfstatat, dir, name, st, sizeof(*st), 0, flags);
}

long sys_faccessat2(int dir, const char *name, u64 mode, u64 flags)
{
	return sys_named(__NR_faccessat2, dir, name, NULL, 0, mode, flags);
}

long count_within(long ret, u64 most)
{
	return ret > (long)most ? -EIO : ret;
}

/*
 * Takes what a call has stored, as many bytes as it has returned in @ret. Returns @ret, or -EIO if
 * that is more than @most.
 */
static long take_counted(void *to, u64 room, long ret, u64 most)
{
	ret = count_within(ret, most);
	return take_result(to, room, ret, ret);
}

long sys_readlink(const char *name, void *to, u64 len)
{
	u64 mark = dune_copies_mark(), room = result_room(len);
	long ret = sys_named(__NR_readlinkat, AT_FDCWD, name, NULL, 0, room, len);

	ret = take_counted(to, room, ret, len);
	dune_copies_release(mark);
	return ret;
}

/* A call whose argument 1 is where it stores up to @len bytes, which go to @to. */
static long sys_to(long nr, int fd, void *to, u64 len, u64 a2, u64 a3)
{
	u64 mark = dune_copies_mark(), room = result_room(len);
	long ret = take_result(to, room, len, SYS4(nr, fd, room, a2, a3));

	dune_copies_release(mark);
	return ret;
}

long sys_fstat(int fd, struct stat *st)
{
	return sys_to(__NR_fstat, fd, st, sizeof(*st), 0, 0);
}

long sys_fstatfs(int fd, struct statfs *fs)
{
	return sys_to(__NR_fstatfs, fd, fs, sizeof(*fs), 0, 0);
}

long sys_pread(int fd, void *to, u64 len, u64 at)
{
	u64 mark = dune_copies_mark(), room = result_room(len);
	long ret = take_counted(to, room, SYS4(__NR_pread64, fd, room, len, at), len);

	dune_copies_release(mark);
	return ret;
}

/* A call whose argument 1 is @len bytes that the kernel reads. */
static long sys_from(long nr, int fd, const void *from, u64 len, u64 a2, u64 a3)
{
	u64 mark = dune_copies_mark();
	long ret = SYS4(nr, fd, scratched(from, len), a2, a3);

	dune_copies_release(mark);
	return ret;
}

long sys_pwrite(int fd, const void *from, u64 len, u64 at)
{
	return sys_from(__NR_pwrite64, fd, from, len, len, at);
}

long sys_write(int fd, const void *from, u64 len)
{
	return sys_from(__NR_write, fd, from, len, len, 0);
}

long sys_lock(int fd, const struct flock *lock)
{
	u64 mark = dune_copies_mark();
	long ret = SYS3(__NR_fcntl, fd, F_SETLKW, scratched(lock, sizeof(*lock)));

	dune_copies_release(mark);
	return ret;
}

long sys_rlimit(int resource, const struct rlimit64 *to, struct rlimit64 *old)
{
	u64 mark = dune_copies_mark();
	u64 room = old ? result_room(sizeof(*old)) : 0;
	long ret = SYS4(__NR_prlimit64, 0, resource, to ? shown(to, sizeof(*to)) : 0, room);

	if (old)
		ret = take_result(old, room, sizeof(*old), ret);
	dune_copies_release(mark);
	return ret;
}

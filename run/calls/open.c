// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls that open or truncate a file, which is judged (judge.c). A forbidden file is
 * closed again before the program learns its number. No other process shares the table
 * of descriptors in between: process.c refuses CLONE_FILES.
 */
#include "calls.h"
#include "copies.h"
#include "judge.h"
#include "program.h"
#include "sys.h"
#include "text.h"
#include "user_memory.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>

/*
 * The name to open with @flags at the program's address @path. /proc/self/exe always exists, but
 * the name of the program's file, which takes its place, may be gone. The kernel must not make a
 * new file then, so O_CREAT is removed from @flags. With O_EXCL or O_DIRECTORY as well the kernel
 * opens no existing file: the link itself gives the native error. With O_PATH, open() ignores
 * O_CREAT and O_EXCL (openat2() gives EINVAL), and O_DIRECTORY is about the file to which the
 * link leads.
 */
static u64 opened_name(u64 path, u64 *flags)
{
	u64 name;

	if (*flags & O_NOFOLLOW)
		return path;
	if (*flags & O_PATH)
		return followed_name(path);
	if ((*flags & O_CREAT) && (*flags & (O_EXCL | O_DIRECTORY)))
		return path;
	name = followed_name(path);
	if (unlikely(name != path))
		*flags &= ~(u64)O_CREAT;
	return name;
}

/* Make the call of openat2 without O_TRUNC, from a copy of its structure. */
static long openat2_untruncated(struct dune_tf *tf, u64 *flags)
{
	struct open_how how;
	u64 name;
	long err = user_read_struct(&how, sizeof(how), sizeof(how), ARG2(tf), ARG3(tf));

	if (err)
		return err;
	*flags = how.flags;
	/* With any flag in resolve the kernel does not follow /proc/self/exe. */
	name = how.resolve ? ARG1(tf) : opened_name(ARG1(tf), flags);
	/* Without O_CREAT the kernel takes no mode. */
	if ((how.flags & O_CREAT) && !(*flags & O_CREAT))
		how.mode &= ~(u64)07777;
	how.flags = *flags & O_PATH ? *flags : *flags & ~(u64)O_TRUNC;
	return dune_syscall_forward(tf->rax, ARG0(tf), name, shown(&how, sizeof(how)), sizeof(how),
				    0, 0);
}

/*
 * Open as the program asked, but without O_TRUNC: a file is judged before it is
 * truncated. Stores the program's flags in @flags.
 */
static long open_untruncated(struct dune_tf *tf, u64 *flags)
{
	u64 name;

	switch (tf->rax) {
	case __NR_open:
		*flags = ARG1(tf);
		name = opened_name(ARG0(tf), flags);
		if (likely(name == ARG0(tf) && !(*flags & O_TRUNC)))
			return forward(tf);
		return dune_syscall_forward(tf->rax, name, *flags & ~(u64)O_TRUNC, ARG2(tf),
					    0, 0, 0);
	case __NR_creat:
		*flags = O_CREAT | O_WRONLY | O_TRUNC;
		name = opened_name(ARG0(tf), flags);
		return dune_syscall_forward(__NR_open, name, *flags & ~(u64)O_TRUNC, ARG1(tf),
					    0, 0, 0);
	case __NR_openat2:
		return openat2_untruncated(tf, flags);
	default:	/* openat, open_by_handle_at */
		*flags = ARG2(tf);
		name = ARG1(tf);
		if (tf->rax == __NR_openat)
			name = opened_name(name, flags);
		if (likely(name == ARG1(tf) && !(*flags & O_TRUNC)))
			return forward(tf);
		return dune_syscall_forward(tf->rax, ARG0(tf), name, *flags & ~(u64)O_TRUNC,
					    ARG3(tf), 0, 0);
	}
}

/* Truncate by a descriptor, so that it is the file that was judged. Closes @fd. */
static long truncate_judged(int fd, u64 length)
{
	struct stat st = {};
	long ret = judge(fd, &st, true);

	/* A file that is not regular. If fstat failed, st is empty, and ret is its error. */
	if (!S_ISREG(st.st_mode) && (st.st_mode || !ret))
		ret = -EINVAL;
	if (!ret)
		ret = SYS2(__NR_ftruncate, fd, length);
	SYS1(__NR_close, fd);
	return ret;
}

#define TO_TRUNCATE	(O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/*
 * Do what O_TRUNC does after opening. Linux truncates with O_RDONLY, too, where
 * the file may be written. Such a descriptor cannot be used to truncate, so the
 * file is opened again by its name in /proc. The program may have mounted
 * something else there, so that file is judged, too.
 */
static long truncate_opened(int fd, u64 flags, const struct stat *st)
{
	char link[32];
	long other;

	if (!(flags & O_TRUNC) || (flags & O_PATH) || !S_ISREG(st->st_mode))
		return 0;
	if ((flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR)
		return SYS2(__NR_ftruncate, fd, 0);
	if (!st->st_size)
		return 0;
	text_fd_name(link, sizeof(link), fd);
	other = sys_openat(AT_FDCWD, link, TO_TRUNCATE, 0);
	return other < 0 ? other : truncate_judged(other, 0);
}

/* open, openat, openat2, creat, open_by_handle_at */
void call_open(struct dune_tf *tf)
{
	struct stat st;
	u64 flags = 0;
	long fd = open_untruncated(tf, &flags);

	if (fd >= 0) {
		long err = judge(fd, &st, flags & O_TRUNC);

		if (!err)
			err = truncate_opened(fd, flags, &st);
		if (unlikely(err)) {
			SYS1(__NR_close, fd);
			fd = err;
		}
	}
	dune_syscall_result(tf, fd);
}

void call_truncate(struct dune_tf *tf)
{
	long ret = dune_syscall_forward(__NR_open, ARG0(tf), TO_TRUNCATE, 0, 0, 0, 0);

	if (ret >= 0)
		ret = truncate_judged(ret, ARG1(tf));
	else if (ret == -ENXIO || ret == -ENODEV)
		ret = -EINVAL;	/* a FIFO without a reader, a device without a driver */
	dune_syscall_result(tf, ret);
}

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

#define W_OK	2	/* the C library's name */

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

/* Whether a descriptor that is opened with @flags can be used to truncate. */
static bool may_write(u64 flags)
{
	return (flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR;
}

/*
 * What the kernel gets in place of the program's @flags: a file is judged before it is truncated.
 * @look: for a handle, which acts on nothing.
 */
static u64 kernel_flags(u64 flags, bool look)
{
	if (look)
		return O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW);
	return flags & ~(u64)O_TRUNC;
}

/* Make the call of openat2, from a copy of its structure. Arguments as open_untruncated(). */
static long openat2_untruncated(struct dune_tf *tf, u64 *flags, bool look)
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
	if (look)
		how.mode = 0;
	how.flags = *flags & O_PATH ? *flags : kernel_flags(*flags, look);
	return dune_syscall_forward(tf->rax, ARG0(tf), name, shown(&how, sizeof(how)), sizeof(how),
				    0, 0);
}

/*
 * Open as the program asked, but with the flags of kernel_flags(). Stores the program's flags in
 * @flags.
 */
static long open_untruncated(struct dune_tf *tf, u64 *flags, bool look)
{
	u64 name;

	switch (tf->rax) {
	case __NR_open:
		*flags = ARG1(tf);
		name = opened_name(ARG0(tf), flags);
		if (likely(name == ARG0(tf) && !(*flags & O_TRUNC)))
			return forward(tf);
		return dune_syscall_forward(tf->rax, name, kernel_flags(*flags, look), ARG2(tf),
					    0, 0, 0);
	case __NR_creat:
		*flags = O_CREAT | O_WRONLY | O_TRUNC;
		name = opened_name(ARG0(tf), flags);
		return dune_syscall_forward(__NR_open, name, kernel_flags(*flags, look), ARG1(tf),
					    0, 0, 0);
	case __NR_openat2:
		return openat2_untruncated(tf, flags, look);
	default:	/* openat, open_by_handle_at */
		*flags = ARG2(tf);
		name = ARG1(tf);
		if (tf->rax == __NR_openat)
			name = opened_name(name, flags);
		if (likely(name == ARG1(tf) && !(*flags & O_TRUNC)))
			return forward(tf);
		return dune_syscall_forward(tf->rax, ARG0(tf), name, kernel_flags(*flags, look),
					    ARG3(tf), 0, 0);
	}
}

/*
 * Whether the call of @tf opens a file to read that it truncates unless it makes it. The kernel
 * asks for the right to write then, but not for that of a new file.
 */
static bool truncates_or_makes(const struct dune_tf *tf)
{
	u64 flags;

	switch (tf->rax) {
	case __NR_open:
		flags = ARG1(tf);
		break;
	case __NR_openat:
		flags = ARG2(tf);
		break;
	case __NR_openat2:
		if (user_read(&flags, ARG2(tf) + offsetof(struct open_how, flags), sizeof(flags)))
			return false;
		break;
	default:	/* creat opens to write; open_by_handle_at makes no file */
		return false;
	}
	return (flags & (O_CREAT | O_EXCL | O_TRUNC | O_PATH)) == (O_CREAT | O_TRUNC) &&
	       !may_write(flags);
}

/*
 * Whether the file exists that the call of @tf opens: 1, 0, or DUNE_AGAIN. The program sees a wrong
 * answer only if it makes or removes the file meanwhile.
 */
static long exists(struct dune_tf *tf)
{
	u64 flags = 0;
	long fd = open_untruncated(tf, &flags, true);

	if (fd < 0)
		return fd == DUNE_AGAIN ? fd : 0;
	SYS1(__NR_close, fd);
	return 1;
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
 * Do what O_TRUNC does after opening a file that existed. Linux truncates with O_RDONLY, too, where
 * the file may be written. Such a descriptor cannot be used to truncate, so the
 * file is opened again by its name in /proc. The program may have mounted
 * something else there, so that file is judged, too.
 */
static long truncate_opened(int fd, u64 flags, const struct stat *st)
{
	char link[32];
	long other;

	if (!(flags & O_TRUNC) || (flags & O_PATH))
		return 0;
	if (may_write(flags))
		return S_ISREG(st->st_mode) ? SYS2(__NR_ftruncate, fd, 0) : 0;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	/* What cannot be truncated has to be writable nevertheless. */
	if (!S_ISREG(st->st_mode))
		return sys_faccessat2(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH);
	text_fd_name(link, sizeof(link), fd);
	other = sys_openat(AT_FDCWD, link, TO_TRUNCATE, 0);
	return other < 0 ? other : truncate_judged(other, 0);
}

/* open, openat, openat2, creat, open_by_handle_at */
void call_open(struct dune_tf *tf)
{
	long fd, existed = 1;
	struct stat st;
	u64 flags = 0;

	if (unlikely(truncates_or_makes(tf)))
		existed = exists(tf);
	fd = existed < 0 ? existed : open_untruncated(tf, &flags, false);
	if (fd >= 0) {
		long err;

		if ((flags & O_CREAT) && (flags & O_EXCL))
			existed = 0;
		err = judge(fd, &st, flags & O_TRUNC);
		if (!err && existed)
			err = truncate_opened(fd, flags, &st);
		if (unlikely(err)) {
			SYS1(__NR_close, fd);
			fd = err;
		}
	}
	dune_syscall_result(tf, fd);
}

/*
 * Whether @path is the name of a file that truncate() may have: 0, an error, or DUNE_AGAIN. Nothing
 * else is opened, because that would have effects: a process that waits for a FIFO's writer would
 * find one.
 */
static long look_at_truncated(u64 path)
{
	u64 room = result_room(sizeof(struct stat));
	struct stat st = {};
	long ret = dune_syscall_forward(__NR_newfstatat, AT_FDCWD, path, room, 0, 0, 0);

	ret = take_result(&st, room, sizeof(st), ret);
	if (ret < 0)
		return ret;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

void call_truncate(struct dune_tf *tf)
{
	long ret = -EINVAL;

	if ((long)ARG1(tf) >= 0)
		ret = look_at_truncated(ARG0(tf));
	if (!ret)
		ret = dune_syscall_forward(__NR_open, ARG0(tf), TO_TRUNCATE, 0, 0, 0, 0);
	if (ret >= 0)
		ret = truncate_judged(ret, ARG1(tf));
	dune_syscall_result(tf, ret);
}

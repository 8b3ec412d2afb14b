// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * File descriptors and names: the few descriptors of dune-run that the program
 * must not reach, the files through which memory could be reached, and
 * /proc/self/exe.
 *
 * A file is judged after it was opened, by what it is, so that no name, link,
 * mount or handle can hide it. A forbidden file is closed again before the
 * program learns its number. No other process shares the table of descriptors in
 * between: process.c refuses CLONE_FILES.
 */
#include "calls.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/stat.h>

/*
 * Hidden descriptors get this number or a higher one: low enough that the
 * kernel's table stays small (a fork copies it up to the highest open number), and
 * high enough that few programs open so many files.
 */
#define HIDDEN_FLOOR	1008

#define MISC_MAJOR	10

static struct files_table table = { .hidden = { -1, -1, -1 } };

/* The identity of a file, by any name. No file has inode 0. */
struct identity {
	u64 device;
	u64 inode;
};

static struct identity self_file, program_file, stats_file;
static char program[PATH_BYTES];

int files_hidden(enum hidden which)
{
	if (which == HIDDEN_VCPU)
		return dune_vcpu_fd();
	return table.hidden[which];
}

/*
 * A vfork child has a table of descriptors of its own, in which hidden ones may
 * move, but it uses its parent's memory. So the parent, which does not run
 * meanwhile, saves its record and restores it when the child is gone.
 */
void files_save(struct files_table *to)
{
	*to = table;
}

void files_restore(const struct files_table *from)
{
	table = *from;
}

bool files_is_hidden(u64 fd)
{
	int n = (int)fd;

	_Static_assert(HIDDEN_OWNED == 3, "files_is_hidden() names each slot");
	if (likely(n < 0))
		return false;
	return n == table.hidden[HIDDEN_SELF] || n == table.hidden[HIDDEN_STATS] ||
	       n == table.hidden[HIDDEN_REPORT] || n == dune_vcpu_fd();
}

/* Give @fd a number that the program hardly uses. Returns the number or an error. */
static long move_away(enum hidden which, int fd)
{
	int floor = HIDDEN_FLOOR;
	long n = -EMFILE;

	/* under a low RLIMIT_NOFILE, the highest number that it allows */
	for (; n < 0 && floor >= 3; floor = floor * 3 / 4)
		n = SYS3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, floor);
	if (n < 0)
		return n;
	SYS1(__NR_close, fd);
	table.hidden[which] = n;
	return n;
}

long files_hide(enum hidden which, int fd)
{
	if (fd < HIDDEN_FLOOR) {
		long n = move_away(which, fd);

		if (n >= 0)
			return n;
	}
	SYS3(__NR_fcntl, fd, F_SETFD, FD_CLOEXEC);
	table.hidden[which] = fd;
	return fd;
}

/* The program wants number @fd for itself: move a hidden descriptor away from it. */
static bool make_way(int fd)
{
	int i;

	if (fd == dune_vcpu_fd())
		return dune_vcpu_fd_move() >= 0;
	for (i = 0; i < HIDDEN_OWNED; i++)
		if (table.hidden[i] == fd)
			return move_away(i, fd) >= 0;
	return true;
}

static bool is_file(const struct stat *st, const struct identity *file)
{
	return st->st_ino == file->inode && st->st_dev == file->device;
}

static void identify(struct identity *file, int fd)
{
	struct stat st;

	if (SYS2(__NR_fstat, fd, &st) < 0)
		return;
	file->device = st.st_dev;
	file->inode = st.st_ino;
}

void files_init(void)
{
	identify(&self_file, table.hidden[HIDDEN_SELF]);
	if (table.hidden[HIDDEN_STATS] >= 0)
		identify(&stats_file, table.hidden[HIDDEN_STATS]);
}

bool files_is_self(int fd)
{
	struct stat st;

	return self_file.inode && SYS2(__NR_fstat, fd, &st) == 0 && is_file(&st, &self_file);
}

static void name_of_fd(char *to, u64 size, int fd)
{
	text_number(text_append(to, to + size, "/proc/self/fd/"), to + size, fd);
}

void files_set_program(int fd)
{
	char link[32];
	long n;

	name_of_fd(link, sizeof(link), fd);
	identify(&program_file, fd);
	n = SYS3(__NR_readlink, link, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = 0;
}

const char *files_program(void)
{
	return program;
}

bool files_names_program(u64 path)
{
	static const char prefix[8] = "/proc/";
	char name[32];
	const char *rest;
	u64 first = 0, pid;

	if (!program[0])
		return false;
	if ((path & (PAGE_BYTES - 1)) <= PAGE_BYTES - sizeof(first)) {
		if (user_read(&first, path, sizeof(first)))
			return false;
		if (likely((first ^ *(const u64 *)prefix) << 16))
			return false;
	}
	if (user_string(name, path, sizeof(name)) < 0)
		return false;
	if (text_equal(name, "/proc/self/exe") ||
	    text_equal(name, "/proc/thread-self/exe"))
		return true;
	return text_starts(name, "/proc/") &&
	       text_to_number(name + 6, &rest, &pid) &&
	       text_equal(rest, "/exe") && (long)pid == SYS0(__NR_getpid);
}

/*
 * Character devices whose arguments contain no pointers, or which ioctl.c covers,
 * and which cannot reach memory of a process by themselves. All others look like
 * devices whose driver is missing: /dev/mem and /dev/port, /dev/kvm, /dev/dune,
 * vhost, vfio, userfaultfd, sg, InfiniBand, GPUs, CUSE, ...
 */
static bool device_allowed(u32 major, u32 minor)
{
	switch (major) {
	case 1:		/* null, zero, full, random, urandom, kmsg */
		return minor == 3 || minor == 5 || minor == 7 || minor == 8 ||
		       minor == 9 || minor == 11;
	case 2:		/* BSD terminals */
	case 3:
	case 4:		/* consoles and serial lines */
	case 5:
	case 7:		/* vcs */
	case 13:	/* input */
	case 136 ... 143:	/* pseudo terminals */
	case 166:	/* USB modems */
	case 188:	/* USB serial lines */
	case 204:	/* serial lines of other chips */
	case 229:	/* hypervisor consoles */
		return true;
	case MISC_MAJOR:
		switch (minor) {
		case 130:	/* watchdog */
		case 135:	/* rtc */
		case 144:	/* nvram */
		case 183:	/* hwrng */
		case 200:	/* tun */
		case 229:	/* fuse */
		case 234:	/* btrfs-control */
		case 235:	/* autofs */
		case 237:	/* loop-control */
		case 242:	/* rfkill */
			return true;
		}
	}
	return false;
}

/*
 * Where the kernel refuses a call that is needed to judge the file (because of a
 * seccomp filter from before dune-run, or a security module), the program gets
 * that error.
 */
static long judge_regular(int fd, const struct stat *st, bool truncates)
{
	struct statfs fs;
	long err;

	if (unlikely(is_file(st, &stats_file)))
		return -EACCES;
	if (unlikely(is_file(st, &self_file) || is_file(st, &program_file))) {
		/*
		 * A file that runs is not written, and the pages of dune-run's
		 * file are the runtime's memory. Some kernels refuse to write
		 * dune-run's file themselves; they do not know that the
		 * program's file runs.
		 */
		long flags = SYS2(__NR_fcntl, fd, F_GETFL);

		if (flags < 0)
			return flags;
		if (!(flags & O_PATH) && (truncates || (flags & O_ACCMODE) != O_RDONLY))
			return -ETXTBSY;
		/*
		 * The rest is judged as any other: when the file system that the
		 * program came from is gone, another file may have its numbers.
		 */
	}
	/*
	 * /proc/kcore has the size of the address space, and root may give it
	 * any mode; the other files there have none.
	 */
	if (likely((u64)st->st_size < 1UL << 32 &&
		   ((st->st_mode & 07777) != 0600 || st->st_blocks)))
		return 0;
	err = SYS2(__NR_fstatfs, fd, &fs);
	if (err < 0)
		return err;
	if (fs.f_type != PROC_SUPER_MAGIC)
		return 0;
	if ((u64)st->st_size >= 1UL << 32)
		return -EPERM;

	/*
	 * Of the files of a process, mem alone has mode 0600, and chmod cannot
	 * change it. (A few files in /proc/sys also have mode 0600; they are refused
	 * as well.)
	 */
	return -EACCES;
}

/*
 * May the program have the file that was opened as @fd, and truncate it? Stores
 * what it is in @st.
 */
static long judge(int fd, struct stat *st, bool truncates)
{
	long err;

	err = SYS2(__NR_fstat, fd, st);
	if (err < 0)
		return err;
	if (S_ISREG(st->st_mode))
		return judge_regular(fd, st, truncates);
	if (S_ISCHR(st->st_mode)) {
		u32 major = (st->st_rdev >> 8 & 0xfff) | (st->st_rdev >> 32 & ~0xfffUL);
		u32 minor = (st->st_rdev & 0xff) | (st->st_rdev >> 12 & ~0xffUL);

		if (device_allowed(major, minor))
			return 0;
		return major == MISC_MAJOR ? -ENODEV : -ENXIO;
	}
	return 0;
}

/* openat2 without O_TRUNC, from a copy of its structure. */
static long open_how(struct dune_tf *tf, u64 *flags)
{
	struct open_how how;
	u64 size = ARG3(tf), at;

	if (size < sizeof(how))
		return -EINVAL;
	if (size > PAGE_BYTES)
		return -E2BIG;
	if (user_read(&how, ARG2(tf), sizeof(how)))
		return -EFAULT;
	for (at = sizeof(how); at < size; at++) {
		u8 rest;

		if (user_read(&rest, ARG2(tf) + at, 1))
			return -EFAULT;
		if (rest)
			return -E2BIG;	/* fields that are not known here */
	}
	*flags = how.flags;
	if (!(how.flags & O_PATH))
		how.flags &= ~(u64)O_TRUNC;
	return dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), (u64)&how, sizeof(how), 0, 0);
}

/*
 * Open as the program asked, but without O_TRUNC: a file is judged before it is
 * truncated. Stores the program's flags in @flags.
 */
static long open_whole(struct dune_tf *tf, u64 *flags)
{
	switch (tf->rax) {
	case __NR_open:
		*flags = ARG1(tf);
		break;
	case __NR_creat:
		*flags = O_CREAT | O_WRONLY | O_TRUNC;
		return dune_syscall_forward(__NR_open, ARG0(tf), O_CREAT | O_WRONLY, ARG1(tf),
					    0, 0, 0);
	case __NR_openat2:
		return open_how(tf, flags);
	default:	/* openat, open_by_handle_at */
		*flags = ARG2(tf);
	}
	if (likely(!(*flags & O_TRUNC)))
		return forward(tf);
	if (tf->rax == __NR_open)
		return dune_syscall_forward(tf->rax, ARG0(tf), *flags & ~(u64)O_TRUNC, ARG2(tf),
					    0, 0, 0);
	return dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), *flags & ~(u64)O_TRUNC,
				    ARG3(tf), 0, 0);
}

/* By a descriptor, so that the file that was judged is truncated. Closes @fd. */
static long truncate_judged(int fd, u64 length)
{
	struct stat st = {};
	long ret = judge(fd, &st, true);

	if (!S_ISREG(st.st_mode))
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
	name_of_fd(link, sizeof(link), fd);
	other = SYS4(__NR_openat, AT_FDCWD, link, TO_TRUNCATE, 0);
	return other < 0 ? other : truncate_judged(other, 0);
}

/* open, openat, openat2, creat, open_by_handle_at */
void call_open(struct dune_tf *tf)
{
	struct stat st;
	u64 flags = 0;
	long fd = open_whole(tf, &flags);

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

void call_dup2(struct dune_tf *tf)
{
	if (unlikely(files_is_hidden(ARG1(tf))) && !make_way(ARG1(tf))) {
		refuse(tf, EBADF);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/* Close what lies between the hidden ones. */
void call_close_range(struct dune_tf *tf)
{
	u64 first = (u32)ARG0(tf), last = (u32)ARG1(tf);
	u64 flags = ARG2(tf);
	long ret = 0;

	if ((flags & CLOSE_RANGE_CLOEXEC) || first > last) {
		/* the hidden ones are close-on-exec already */
		dune_syscall_result(tf, forward(tf));
		return;
	}
	while (first <= last) {
		u64 stop = last + 1;	/* the next hidden one, or the end */
		int i;

		for (i = 0; i <= HIDDEN_VCPU; i++) {
			int fd = files_hidden(i);

			if (fd >= 0 && (u64)fd >= first && (u64)fd < stop)
				stop = fd;
		}
		if (stop > first)
			ret = dune_syscall_forward(__NR_close_range, first, stop - 1,
						   flags, 0, 0, 0);
		if (ret < 0)
			break;
		first = stop + 1;
	}
	dune_syscall_result(tf, ret);
}

/* readlink and readlinkat: the arguments of the second are one further on */
void call_readlink(struct dune_tf *tf)
{
	bool at = tf->rax == __NR_readlinkat;
	u64 path = at ? ARG1(tf) : ARG0(tf);
	u64 buffer = at ? ARG2(tf) : ARG1(tf);
	int size = at ? ARG3(tf) : ARG2(tf);

	if (size > 0 && unlikely(files_names_program(path))) {
		u64 n = text_len(program);

		if (n > (u64)size)
			n = size;
		if (user_write(buffer, program, n))
			refuse(tf, EFAULT);
		else
			dune_syscall_result(tf, n);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

static void forward_at(struct dune_tf *tf, u64 flags)
{
	u64 path = ARG1(tf);

	if (!(flags & AT_SYMLINK_NOFOLLOW) && unlikely(files_names_program(path)))
		path = (u64)program;
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), path, ARG2(tf),
						     ARG3(tf), ARG4(tf), ARG5(tf)));
}

void call_newfstatat(struct dune_tf *tf)
{
	forward_at(tf, ARG3(tf));
}

void call_statx(struct dune_tf *tf)
{
	forward_at(tf, ARG2(tf));
}

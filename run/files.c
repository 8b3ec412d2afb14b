// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * File descriptors and names: the few descriptors that are dune-run's own and
 * that the program must not reach, the files through which memory could be
 * reached, and /proc/self/exe.
 *
 * A file is judged after it was opened, by what it is: no name, link, mount
 * or handle can hide it. Should it be forbidden it is closed again before
 * the program learns its number. No other process shares the table of
 * descriptors in between: process.c refuses CLONE_FILES.
 */
#include "calls.h"

#include <asm/stat.h>
#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>

/*
 * Hidden descriptors are put here or above, near libdune's: low enough that
 * the kernel's table stays small (a fork copies it up to the highest open
 * number), high enough that few programs count so far.
 */
#define HIDDEN_FLOOR	1008

#define MISC_MAJOR	10

/* The vCPU's number is in the library's block of the thread. */
static struct files_table table = { .hidden = { -1, -1, -1, -1 } };
static u64 self_device, self_inode;
static char program[PATH_BYTES];

int files_hidden(enum hidden which)
{
	if (which == HIDDEN_VCPU)
		return dune_vcpu_fd();
	return table.hidden[which];
}

/*
 * A vfork child has a table of descriptors of its own, in which hidden ones
 * may move, but its parent's memory. So the parent, which does not run
 * meanwhile, keeps its record until the child is gone.
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

	/* the library's descriptor is never below the floor either */
	if (likely(n < 0))
		return false;
	return n == table.hidden[HIDDEN_SELF] || n == table.hidden[HIDDEN_STATS] ||
	       n == table.hidden[HIDDEN_REPORT] || n == dune_vcpu_fd();
}

/* Put @fd out of the program's way. Returns its new number or an error. */
static long move_away(enum hidden which, int fd)
{
	int floor = HIDDEN_FLOOR;
	long n = -EMFILE;

	/* a low RLIMIT_NOFILE: as high as it allows */
	for (; n < 0 && floor >= 3; floor = floor * 3 / 4)
		n = SYS3(__NR_fcntl, fd, F_DUPFD_CLOEXEC, floor);
	if (n < 0)
		return n;
	SYS1(__NR_close, fd);
	table.hidden[which] = n;
	return n;
}

/* The same, where a number that came by execve is good already. */
long files_hide(enum hidden which, int fd)
{
	if (fd < HIDDEN_FLOOR)
		return move_away(which, fd);
	SYS3(__NR_fcntl, fd, F_SETFD, FD_CLOEXEC);
	table.hidden[which] = fd;
	return fd;
}

/* The program wants number @fd for itself: go elsewhere. */
static bool make_way(int fd)
{
	int i;

	if (fd == dune_vcpu_fd())
		return dune_vcpu_fd_move() >= 0;
	for (i = 0; i < HIDDEN_MAX; i++)
		if (table.hidden[i] == fd)
			return move_away(i, fd) >= 0;
	return true;
}

/* @self_fd: dune-run's own file. */
void files_init(int self_fd)
{
	struct stat st;

	if (SYS2(__NR_fstat, self_fd, &st) < 0)
		return;
	self_device = st.st_dev;
	self_inode = st.st_ino;
}

/* Is this number still dune-run's own file? */
bool files_is_self(int fd)
{
	struct stat st;

	return self_inode && SYS2(__NR_fstat, fd, &st) == 0 &&
	       st.st_ino == self_inode && st.st_dev == self_device;
}

/* The program's file: what /proc/self/exe would name. */
void files_set_program(int fd)
{
	char link[32];
	char *p;
	long n;

	p = text_append(link, link + sizeof(link), "/proc/self/fd/");
	text_number(p, link + sizeof(link), fd);
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

	if (path < PAGE_BYTES || !program[0])
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
 * Character devices that take their arguments flat or are covered by ioctl.c
 * and cannot reach memory of a process by themselves. All others look like
 * devices whose driver is missing: /dev/mem and /dev/port, /dev/kvm,
 * /dev/dune, vhost, vfio, userfaultfd, sg, InfiniBand, GPUs, CUSE, ...
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

static long judge_regular(int fd, const struct stat *st)
{
	struct statfs fs;

	if (unlikely(st->st_ino == self_inode && st->st_dev == self_device)) {
		/*
		 * Kernels before 6.11 do this themselves while the file runs,
		 * and its pages are the runtime's memory.
		 */
		long flags = SYS2(__NR_fcntl, fd, F_GETFL);

		return !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY ? -ETXTBSY : 0;
	}
	if (likely((st->st_mode & 0177) || st->st_blocks))
		return 0;

	/* /proc/kcore has the size of the address space, a proc file has 0 */
	if ((st->st_mode & 07777) != 0600 && (u64)st->st_size < 1UL << 32)
		return 0;
	if (SYS2(__NR_fstatfs, fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return 0;
	if ((u64)st->st_size >= 1UL << 32)
		return -EPERM;

	/*
	 * Of the files of a process, mem alone has mode 0600, and chmod cannot
	 * change it. (A few sysctls have it too and share its fate.)
	 */
	return -EACCES;
}

static long judge(int fd)
{
	struct stat st;
	long err;

	err = SYS2(__NR_fstat, fd, &st);
	if (err < 0)
		return err;
	if (S_ISREG(st.st_mode))
		return judge_regular(fd, &st);
	if (S_ISCHR(st.st_mode)) {
		u32 major = (st.st_rdev >> 8 & 0xfff) | (st.st_rdev >> 32 & ~0xfffUL);
		u32 minor = (st.st_rdev & 0xff) | (st.st_rdev >> 12 & ~0xffUL);

		if (device_allowed(major, minor))
			return 0;
		return major == MISC_MAJOR ? -ENODEV : -ENXIO;
	}
	return 0;
}

/* open, openat, openat2, creat, open_by_handle_at */
void call_open(struct dune_tf *tf)
{
	long fd = forward(tf);

	if (fd >= 0) {
		long err = judge(fd);

		if (unlikely(err)) {
			SYS1(__NR_close, fd);
			fd = err;
		}
	}
	dune_syscall_result(tf, fd);
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

		for (i = 0; i < HIDDEN_MAX; i++) {
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
		tf->rax = user_write(buffer, program, n) ? -EFAULT : (long)n;
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

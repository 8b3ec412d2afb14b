// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * May the program have a file? It is judged after it was opened, by what it is, so
 * that no name, link, mount or handle can hide it.
 */
#include "files.h"
#include "judge.h"
#include "own_syscall.h"

#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>

#define MISC_MAJOR	10

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
 * If the kernel refuses a call that is needed to judge the file (because of a
 * seccomp filter from before dune-run, or a security module), the program gets
 * the error of that call.
 */
static long judge_regular(int fd, const struct stat *st, bool truncates)
{
	struct statfs fs;
	long err;

	if (unlikely(is_stats_memory(st)))
		return -EACCES;
	if (unlikely(is_running_file(st))) {
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
		 * The tests below hold for this file, too: when the file system that
		 * the program came from is gone, another file may have its numbers.
		 */
	}
	/*
	 * /proc/kcore has the size of the address space, and root may give it
	 * any mode; the other files of procfs have no size.
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

long judge(int fd, struct stat *st, bool truncates)
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

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Decides whether the program may use a file. The decision is made on the open descriptor,
 * from the file's type and identity, so no name, link, mount or handle can disguise the
 * file.
 */
#include "judge.h"
#include "protected_files.h"
#include "sys.h"

#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <linux/stat.h>

/* Majors that the header lacks, by the numbers of Linux's admin-guide/devices.txt */
#define USB_SERIAL_MAJOR	188
#define LOW_DENSITY_MAJOR	204	/* serial lines of other chips */
#define HVC_MAJOR		229	/* consoles of hypervisors */

/* Minors of MEM_MAJOR and, from 130 on, of MISC_MAJOR, by the same numbers */
#define NULL_MINOR		3
#define ZERO_MINOR		5
#define FULL_MINOR		7
#define RANDOM_MINOR		8
#define URANDOM_MINOR		9
#define KMSG_MINOR		11
#define WATCHDOG_MINOR		130
#define RTC_MINOR		135
#define NVRAM_MINOR		144
#define HWRNG_MINOR		183
#define TUN_MINOR		200
#define FUSE_MINOR		229
#define BTRFS_CONTROL_MINOR	234
#define AUTOFS_MINOR		235
#define LOOP_CONTROL_MINOR	237
#define RFKILL_MINOR		242

/*
 * Character devices whose arguments contain no pointers, or which ioctl.c covers,
 * and which cannot reach memory of a process by themselves. All others look like
 * devices whose driver is missing: /dev/mem and /dev/port, /dev/kvm, /dev/dune,
 * vhost, vfio, userfaultfd, sg, InfiniBand, GPUs, CUSE, ...
 */
static bool device_allowed(u32 major, u32 minor)
{
	switch (major) {
	case MEM_MAJOR:
		switch (minor) {
		case NULL_MINOR:
		case ZERO_MINOR:
		case FULL_MINOR:
		case RANDOM_MINOR:
		case URANDOM_MINOR:
		case KMSG_MINOR:
			return true;
		}
		return false;
	case PTY_MASTER_MAJOR:	/* BSD terminals */
	case PTY_SLAVE_MAJOR:
	case TTY_MAJOR:		/* consoles and serial lines */
	case TTYAUX_MAJOR:
	case VCS_MAJOR:
	case INPUT_MAJOR:
	case UNIX98_PTY_SLAVE_MAJOR ... UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT - 1:
	case USB_ACM_MAJOR:	/* modems */
	case USB_SERIAL_MAJOR:
	case LOW_DENSITY_MAJOR:
	case HVC_MAJOR:
		return true;
	case MISC_MAJOR:
		switch (minor) {
		case WATCHDOG_MINOR:
		case RTC_MINOR:
		case NVRAM_MINOR:
		case HWRNG_MINOR:
		case TUN_MINOR:
		case FUSE_MINOR:
		case BTRFS_CONTROL_MINOR:
		case AUTOFS_MINOR:
		case LOOP_CONTROL_MINOR:
		case RFKILL_MINOR:
			return true;
		}
	}
	return false;
}

static long judge_regular(int fd, const struct stat *st, bool truncates)
{
	struct statfs fs;
	long err;

	if (unlikely(is_stats_file(st)))
		return -EACCES;
	if (unlikely(is_running_file(st))) {
		/*
		 * An executing file must not be written, and a write to dune-run's
		 * file would change the runtime's memory. Some kernels refuse to
		 * write dune-run's file, but no kernel knows that the program's
		 * file is executing.
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
	err = sys_fstatfs(fd, &fs);
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

	err = sys_fstat(fd, st);
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

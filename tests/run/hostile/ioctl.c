// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox passes one of dune-run's descriptors to an ioctl, as its argument or
 * inside a structure. Fails when such an ioctl gives anything but EBADF, when one with a
 * descriptor of the program does, or when FIDEDUPERANGE does not return its results.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUSE_CLONE	0x8004e500L	/* FUSE_DEV_IOC_CLONE */

/* No open descriptor. */
#define CLOSED	700

static int file, hidden;

static long ioctl_of_file(long number, const void *arg)
{
	return call(SYS_ioctl, file, number, (long)arg, 0, 0, 0);
}

/* Descriptors as arguments, of files and of loop devices. */
static void test_arguments(void)
{
	is(ioctl_of_file(FICLONE, (void *)(long)hidden), -EBADF,
	   "FICLONE from a hidden descriptor: EBADF");
	is(ioctl_of_file(LOOP_SET_FD, (void *)(long)hidden), -EBADF,
	   "LOOP_SET_FD of a hidden descriptor: EBADF");
	is(ioctl_of_file(LOOP_CHANGE_FD, (void *)(long)hidden), -EBADF,
	   "LOOP_CHANGE_FD to a hidden descriptor: EBADF");
}

/* One descriptor in a structure. */
static void test_structures(void)
{
	struct file_clone_range range = { .src_fd = hidden };
	struct loop_config config = { .fd = hidden };
	unsigned int device = hidden;

	is(ioctl_of_file(FICLONERANGE, &range), -EBADF,
	   "FICLONERANGE from a hidden descriptor: EBADF");
	range.src_fd = hidden | 1L << 32;
	is(ioctl_of_file(FICLONERANGE, &range), -EBADF,
	   "FICLONERANGE from a hidden descriptor, of which the kernel drops bit 32: EBADF");
	range.src_fd = file;
	ok(ioctl_of_file(FICLONERANGE, &range) != -EBADF,
	   "FICLONERANGE from the program's own descriptor reaches the kernel");
	is(ioctl_of_file(LOOP_CONFIGURE, &config), -EBADF,
	   "LOOP_CONFIGURE of a hidden descriptor: EBADF");
	is(ioctl_of_file(FUSE_CLONE, &device), -EBADF,
	   "FUSE_DEV_IOC_CLONE of a hidden descriptor: EBADF");
	is(ioctl_of_file(FICLONERANGE, (void *)IMAGE), -EFAULT,
	   "FICLONERANGE with its structure in the runtime: EFAULT");
	is(ioctl_of_file(FUSE_CLONE, (void *)(SUPER_BASE - 2)), -EFAULT,
	   "FUSE_DEV_IOC_CLONE with its number reaching into the supervisor range: EFAULT");
}

/* FIDEDUPERANGE has a descriptor for each file to compare with. */
static void test_dedupe(void)
{
	struct file_dedupe_range *range = calloc(1, 8192);
	long ret;

	range->src_length = 1;
	range->dest_count = 2;
	range->info[0].dest_fd = CLOSED;
	range->info[1].dest_fd = hidden;
	is(ioctl_of_file(FIDEDUPERANGE, range), -EBADF,
	   "FIDEDUPERANGE with a hidden descriptor: EBADF");
	is(range->info[0].status, 0, "FIDEDUPERANGE with a hidden descriptor compares nothing");
	range->dest_count = 1;
	ret = ioctl_of_file(FIDEDUPERANGE, range);
	if (ret == -EOPNOTSUPP)
		skip("the file system has no FIDEDUPERANGE",
		     "FIDEDUPERANGE returns its results: a closed descriptor is EBADF");
	else
		is(ret ? ret : range->info[0].status, -EBADF,
		   "FIDEDUPERANGE returns its results: a closed descriptor is EBADF");
	range->dest_count = 200;
	is(ioctl_of_file(FIDEDUPERANGE, range), -ENOMEM,
	   "FIDEDUPERANGE with more than a page: ENOMEM");
}

int main(void)
{
	char name[] = "/ioctl.XXXXXX";

	leave_session();
	/* The kernel takes this one for a file, unlike dune-run's own, which is O_PATH. */
	if (find_descriptors("dune-vcpu", &hidden, 1) != 1)
		bail("the vCPU's descriptor cannot be seen in /proc");
	/* The root directory of a machine is on overlayfs, which knows FIDEDUPERANGE. */
	file = mkstemp(name);
	if (file < 0)
		bail("%s: %s", name, strerror(errno));
	unlink(name);
	if (write(file, "x", 1) != 1)
		bail("write: %s", strerror(errno));
	test_arguments();
	test_structures();
	test_dedupe();
	return done();
}

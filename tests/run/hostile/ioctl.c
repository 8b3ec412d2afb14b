// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox passes one of dune-run's descriptors to an ioctl, as its argument or
 * inside a structure, or a structure with a pointer to the supervisor range. Fails when the
 * kernel sees such a descriptor or pointer, when an ioctl with a descriptor of the program's own
 * is refused, or when FIDEDUPERANGE does not return its results.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/input.h>
#include <linux/loop.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUSE_CLONE	0x8004e500L	/* FUSE_DEV_IOC_CLONE */
#define PAGEMAP_SCAN	0xc0606610L	/* since 6.7: struct pm_scan_arg */
#define PROCMAP_QUERY	0xc0686611L	/* since 6.11: struct procmap_query */

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
	is(ioctl_of_file(FICLONERANGE, (void *)WINDOW), -EFAULT,
	   "FICLONERANGE with its structure in the supervisor range: EFAULT");
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

/* Structures with pointers, of files in /proc. The kernel would store where these lead. */
static void test_pointers(void)
{
	unsigned long scan[12] = { sizeof(scan), 0, 0x10000, 0x7ffffffff000, 0, SPARE, 8, 0,
				   0, 1 << 1, 0, 1 << 1 };
	unsigned long query[13] = { sizeof(query), 0x10, (long)test_pointers };
	int fd = open("/proc/self/pagemap", O_RDONLY);

	is(call(SYS_ioctl, fd, PAGEMAP_SCAN, (long)scan, 0, 0, 0), -ENOTTY,
	   "PAGEMAP_SCAN with a pointer to the supervisor range: ENOTTY");
	close(fd);
	fd = open("/proc/self/maps", O_RDONLY);
	((unsigned int *)query)[20] = 64;	/* vma_name_size */
	query[11] = SPARE;			/* vma_name_addr */
	is(call(SYS_ioctl, fd, PROCMAP_QUERY, (long)query, 0, 0, 0), -ENOTTY,
	   "PROCMAP_QUERY with a pointer to the supervisor range: ENOTTY");
	close(fd);
}

/* Opens an input device that there is, or returns -1. */
static int open_input(void)
{
	DIR *d = opendir("/dev/input");
	struct dirent *e;
	char path[300];
	int fd = -1;

	while (d && fd < 0 && (e = readdir(d))) {
		if (strncmp(e->d_name, "event", 5))
			continue;
		snprintf(path, sizeof(path), "/dev/input/%s", e->d_name);
		fd = open(path, O_RDWR);
	}
	if (d)
		closedir(d);
	return fd;
}

static void test_input(void)
{
	struct input_mask mask = { .type = EV_KEY, .codes_size = 8, .codes_ptr = SPARE };
	int event = open_input();
	char name[256] = "";

	if (event < 0) {
		skip("no input device", "EVIOCGMASK, EVIOCSFF and EVIOCGNAME");
		return;
	}
	is(call(SYS_ioctl, event, EVIOCGMASK, (long)&mask, 0, 0, 0), -ENOTTY,
	   "EVIOCGMASK with a pointer to the supervisor range: ENOTTY");
	is(call(SYS_ioctl, event, EVIOCSFF, (long)name, 0, 0, 0), -ENOTTY,
	   "EVIOCSFF, whose structure has a pointer: ENOTTY");
	ok(call(SYS_ioctl, event, EVIOCGNAME(sizeof(name)), (long)name, 0, 0, 0) > 0,
	   "EVIOCGNAME of a device succeeds");
	close(event);
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
	test_pointers();
	test_input();
	return done();
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the tests of the interface: a request, the shortest guest, and what mmap() refuses. */
#ifndef DUNE_TESTS_UAPI_H
#define DUNE_TESTS_UAPI_H

#include "guest.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* 0 or -errno. */
static inline int call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

/*
 * Whether this kernel maps no anonymous inode for execution (EPERM, since 6.16). A vCPU's file and
 * the stub's are such inodes. So is an eventfd, which cannot be mapped at all (ENODEV).
 */
static inline bool maps_no_code(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	bool refused = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED &&
		       errno == EPERM;

	close(fd);
	return refused;
}

static inline u64 return_42(void *arg)
{
	return 42;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the tests of the module's interface: a request, and the shortest guest. */
#ifndef DUNE_TESTS_UAPI_H
#define DUNE_TESTS_UAPI_H

#include "guest.h"

#include <errno.h>
#include <sys/ioctl.h>

/* 0 or -errno. */
static inline int call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static inline u64 return_42(void *arg)
{
	return 42;
}

#endif

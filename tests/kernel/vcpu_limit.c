// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The number of a process's vCPUs. A kick looks at each of them, so a process may have 4,096 where
 * a change of memory kicks vCPUs: on Intel, and on AMD where TLBs are flushed without interrupts,
 * for which the module has a parameter (kernel/kick). Elsewhere only RLIMIT_NOFILE limits
 * them. Fails when 4,096 cannot be made, when one more can, also by another open file of the
 * device, or when a closed vCPU makes no room.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT	4096

static int make_vcpu(int dune)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };

	return ioctl(dune, DUNE_CREATE_VCPU, &c);
}

static int open_device(void)
{
	int dune = open("/dev/dune", O_RDWR | O_CLOEXEC);

	if (dune < 0)
		child_fails("/dev/dune cannot be opened");
	return dune;
}

static void fill(void *arg)
{
	struct rlimit files = { LIMIT + 900, LIMIT + 900 };
	int dune, last = -1, n;

	if (setrlimit(RLIMIT_NOFILE, &files))
		child_fails("the limit on descriptors cannot be raised");
	dune = open_device();
	for (n = 0; n <= LIMIT; n++) {
		int fd = make_vcpu(dune);

		if (fd < 0)
			break;
		last = fd;
	}
	if (n > LIMIT)
		child_fails("more than %d vCPUs are made", LIMIT);
	if (n < LIMIT || errno != ENOSPC)
		child_fails("after %d vCPUs: %m", n);
	/* The limit is the process's, not the open file's. */
	close(dune);
	dune = open_device();
	if (make_vcpu(dune) >= 0 || errno != ENOSPC)
		child_fails("another open file of the device gives one more");
	close(last);
	if (make_vcpu(dune) < 0)
		child_fails("a closed vCPU does not make room for another");
}

int main(void)
{
	struct outcome o;
	struct guest g;
	int err;

	begin(200);
	err = guest_vcpu(&g);
	guest_close(&g);
	if (err)
		bail("no vCPU can be made: %s", strerror(-err));
	if (!guest_vmx) {
		err = dune_reload("notify_flushes=1");
		if (!ok(!err, "the module is loaded with notify_flushes=1 (%s)", strerror(-err)))
			return done();
	}
	o = in_child(fill, NULL, 120);
	ok(!o.code, "a process has at most 4,096 vCPUs; the next one is ENOSPC (%s)",
	   outcome_text(o));
	if (!guest_vmx) {
		err = dune_reload("");
		ok(!err, "the module is loaded without notify_flushes again (%s)", strerror(-err));
	}
	return done();
}

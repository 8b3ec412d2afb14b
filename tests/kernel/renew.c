// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Descriptors that a process inherited, by fork or over exec: they name an address space that
 * is not its own, and DUNE_RENEW_VCPU makes such a vCPU its own. Fails when a vCPU or a device
 * of another address space works without that, when DUNE_RENEW_VCPU ignores a field that it
 * does not know or accepts a vCPU that the caller has already, when it needs a free number,
 * when the guest does not run in the renewed vCPU, or when the parent's is affected.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct guest g;

/*
 * An inherited vCPU becomes one of the caller's, at its number; the guest runs
 * in it. No descriptor is free meanwhile.
 */
static bool renewed(int fd)
{
	struct dune_renew_vcpu r = { .size = sizeof(r), .fd = fd };
	struct dune_info info = { .size = sizeof(info) };
	struct rlimit limit, none;
	struct guest own;
	bool good;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	good = !call(fd, DUNE_GET_INFO, &info) && info.api_version == DUNE_API_VERSION &&
	       !call(fd, DUNE_RENEW_VCPU, &r) && call(fd, DUNE_RENEW_VCPU, &r) == -EPERM &&
	       fcntl(fd, F_GETFD) == FD_CLOEXEC;
	setrlimit(RLIMIT_NOFILE, &limit);
	return good && !guest_adopt(&own, fd) && guest_call(&own, return_42, NULL) == GUEST_DONE &&
	       own.value == 42;
}

static void renew_child(void *arg)
{
	struct dune_renew_vcpu r = { .size = sizeof(r), .fd = g.fd };
	int bits = 0, null = open("/dev/null", O_RDWR);

	r.size = 8;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EINVAL) << 0;
	r.size = sizeof(r);
	r.flags = 2;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EINVAL) << 1;
	r.flags = 0;
	r.reserved = 1;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EINVAL &&
		 call(g.fd, DUNE_RENEW_VCPU, NULL) == -EFAULT) << 2;
	r.reserved = 0;
	r.fd = null;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EBADF) << 3;
	r.fd = -1;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EBADF) << 4;
	r.fd = 1 << 20;
	bits |= (call(g.fd, DUNE_RENEW_VCPU, &r) == -EBADF) << 5;
	bits |= renewed(g.fd) << 6;
	_exit(bits);
}

static void renew(void)
{
	struct dune_renew_vcpu r = { .size = sizeof(r), .fd = g.fd };
	struct outcome o;

	ok(sizeof(r) == 16 && DUNE_RENEW_VCPU == 0x4010de14, "struct dune_renew_vcpu has 16 bytes");
	ok(call(g.fd, DUNE_RENEW_VCPU, &r) == -EPERM,
	   "DUNE_RENEW_VCPU on the caller's own vCPU: EPERM");
	ok(call(g.dev, DUNE_RENEW_VCPU, &r) == -ENOTTY, "DUNE_RENEW_VCPU on the device: ENOTTY");
	o = in_child(renew_child, NULL, 20);
	ok(outcome_has(o, 7),
	   "DUNE_RENEW_VCPU with a wrong size, flag, reserved field or address");
	ok(outcome_has(o, 0x38),
	   "DUNE_RENEW_VCPU with a number that is not the vCPU's: EBADF");
	ok(outcome_has(o, 0x40),
	   "a child makes the inherited descriptor its own, with no number free (%s)",
	   outcome_text(o));
	guest_prepare(&g, 0, return_42, NULL);
	ok(guest_resume(&g) == GUEST_DONE && g.value == 42,
	   "the parent's vCPU runs after the child has renewed its copy");
}

/* Descriptors that survive exec (dup clears close-on-exec) name an address space that is gone. */
static void exec_child(void *arg)
{
	char fd[12], dev[12];

	snprintf(fd, sizeof(fd), "%d", dup(g.fd));
	snprintf(dev, sizeof(dev), "%d", dup(g.dev));
	execl("/proc/self/exe", "renew.t", "--after-exec", fd, dev, NULL);
	child_fails("execl() failed");
}

static void exec_self(void *arg)
{
	char fd[12], dev[12];
	struct guest own;

	guest_open(&own);
	if (guest_call(&own, return_42, NULL) != GUEST_DONE)
		child_fails("the guest does not run before exec");
	snprintf(fd, sizeof(fd), "%d", dup(own.fd));
	snprintf(dev, sizeof(dev), "%d", dup(own.dev));
	execl("/proc/self/exe", "renew.t", "--after-exec", fd, dev, NULL);
	child_fails("execl() failed");
}

/* Bits from 1 on: child_fails() has bit 0. */
static int after_exec(int fd, int dev)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	int bits = 0;

	bits |= (call(fd, DUNE_RUN, NULL) == -EPERM) << 1;
	bits |= (call(dev, DUNE_CREATE_VCPU, &c) == -EPERM) << 2;
	bits |= renewed(fd) << 3;
	return bits;
}

static void executed(void)
{
	struct outcome o = in_child(exec_self, NULL, 20);

	ok(outcome_has(o, 2), "after exec the old vCPU does not run: EPERM (%s)",
	   outcome_text(o));
	ok(outcome_has(o, 4), "after exec the old device makes no vCPU: EPERM");
	ok(outcome_has(o, 8), "after exec the old vCPU's descriptor becomes a new one's");
	o = in_child(exec_child, NULL, 20);
	ok(outcome_has(o, 6),
	   "after fork and exec the parent's descriptors neither run nor make a vCPU: EPERM (%s)",
	   outcome_text(o));
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "--after-exec"))
		return after_exec(atoi(argv[2]), atoi(argv[3]));

	begin(60);
	guest_open(&g);
	renew();
	executed();
	guest_close(&g);
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A vCPU's descriptor as dune.h describes it: DUNE_CREATE_VCPU, the requests that a vCPU does not
 * have, the mapping of its run page, and the order in which descriptors are closed. Fails
 * when the module ignores a size, a flag or a reserved field that it does not know, when more
 * than the one run page can be mapped, or when a vCPU needs a descriptor that was closed.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct guest g;

static void create(void)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	static const u32 sizes[] = { 0, 8, 23, 25, 4096 };

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		c.size = sizes[i];
		ok(call(g.dev, DUNE_CREATE_VCPU, &c) == -EINVAL,
		   "DUNE_CREATE_VCPU with size %u: EINVAL", sizes[i]);
	}
	c.size = sizeof(c);
	for (int bit = 1; bit < 32; bit += 5) {
		c.flags = 1U << bit;
		ok(call(g.dev, DUNE_CREATE_VCPU, &c) == -EINVAL,
		   "DUNE_CREATE_VCPU with flag %d: EINVAL", bit);
	}
	c.flags = 0;
	for (int i = 0; i < 2; i++) {
		c.reserved[i] = 1UL << 63;
		ok(call(g.dev, DUNE_CREATE_VCPU, &c) == -EINVAL,
		   "DUNE_CREATE_VCPU with reserved[%d]: EINVAL", i);
		c.reserved[i] = 0;
	}
	ok(call(g.dev, DUNE_CREATE_VCPU, NULL) == -EFAULT, "DUNE_CREATE_VCPU at 0: EFAULT");

	int fd = ioctl(g.dev, DUNE_CREATE_VCPU, &c);

	ok(fd >= 0, "a thread makes a second vCPU");
	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "a vCPU's descriptor is close-on-exec");
	close(fd);
}

static void vcpu(void)
{
	static const unsigned int unknown[] = { 0xde11, 0xde13, 0xc138de10, 0xde14,
						DUNE_CREATE_VCPU, 0xae80 };
	struct dune_state s;

	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		int err = call(g.fd, unknown[i], &s);

		ok(err == -ENOTTY, "request %#x on a vCPU: ENOTTY (%s)", unknown[i],
		   strerror(-err));
	}
	ok(call(g.fd, DUNE_RUN, &s) == -EINVAL, "DUNE_RUN with an argument: EINVAL");
}

static void mappings(void)
{
	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.fd, 8192) == MAP_FAILED,
	   "mmap of a vCPU at offset 8192 fails");
	ok(mmap(NULL, 8192, PROT_READ, MAP_SHARED, g.fd, 0) == MAP_FAILED,
	   "mmap of two pages of a vCPU fails");
	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.fd, 1UL << 40) == MAP_FAILED,
	   "mmap of a vCPU at offset 2^40 fails");
	ok(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, g.fd, 0) == MAP_FAILED,
	   "a private mapping of a vCPU fails");

	ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, g.fd, 0) == MAP_FAILED && errno == EBUSY,
	   "a second mapping of the run page: EBUSY");
	ok(mremap(g.run, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED,
	   "the mapping of the run page cannot be grown");
}

/* Order of closing is free. */
static void closing(void)
{
	struct guest h;

	guest_open(&h);
	close(h.dev);
	h.dev = -1;
	ok(guest_call(&h, return_42, NULL) == GUEST_DONE,
	   "a vCPU runs after the device's descriptor was closed");
	guest_close(&h);
	guest_open(&h);
	int fd = h.fd;

	h.fd = -1;
	close(fd);
	h.run->regs.rax = 7;
	ok(h.run->regs.rax == 7, "the run page works after the vCPU's descriptor was closed");
	guest_close(&h);
}

int main(void)
{
	begin(60);
	guest_open(&g);
	create();
	vcpu();
	mappings();
	closing();
	guest_close(&g);
	return done();
}

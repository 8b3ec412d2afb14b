// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The request DUNE_ADD_PRIVATE: what it refuses, how many pages an address space gets, and two
 * threads that make it at the same time. Fails when a request with a wrong argument is not refused
 * with its own error, or leaves something after it was refused; when an address space gets more
 * pages than dune_info.private_pages, or fewer; when two requests get the same page; and when
 * dune_info has private pages on a processor whose addresses are too narrow for them.
 */
#define _GNU_SOURCE
#include "private.h"
#include "tap.h"
#include "uapi.h"

#include <cpuid.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct guest g;
static u64 first;	/* guest-physical address of the first page */

/* Guest-physical addresses that the processor has; AMD's private memory is at the last bit. */
static bool wide_enough(void)
{
	u32 eax, ebx, ecx, edx, bits;

	if (guest_vmx)
		return true;
	__cpuid(0x80000008, eax, ebx, ecx, edx);
	bits = (eax >> 16 & 0xff) ?: (eax & 0xff);
	__cpuid_count(7, 0, eax, ebx, ecx, edx);
	return bits >= (ecx >> 16 & 1 ? 49 : 48);
}

static void refused(void)
{
	static const u32 sizes[] = { 0, 8, 23, 25, 4096 };
	struct dune_private p = { .size = sizeof(p), .pages = 1 };
	struct dune_private *edge;
	u64 after;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		p.size = sizes[i];
		is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL,
		   "DUNE_ADD_PRIVATE with size %u: EINVAL", sizes[i]);
	}
	p.size = sizeof(p);
	p.flags = 4;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL,
	   "DUNE_ADD_PRIVATE with an unknown flag: EINVAL");
	p.flags = DUNE_PRIVATE_SEALED;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL,
	   "DUNE_ADD_PRIVATE of sealed pages without contents: EINVAL");
	p.flags = 0;
	is(call(g.dev, DUNE_ADD_PRIVATE, &p), -ENOTTY, "DUNE_ADD_PRIVATE on the device: ENOTTY");
	p.pages = 0;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL, "DUNE_ADD_PRIVATE of no page: EINVAL");
	p.pages = g.info.private_pages;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -ENOSPC,
	   "DUNE_ADD_PRIVATE of more pages than are left: ENOSPC");
	for (int bit = 32; bit < 64; bit += 5) {
		p.pages = 1UL << bit;
		is(call(g.fd, DUNE_ADD_PRIVATE, &p), -ENOSPC,
		   "DUNE_ADD_PRIVATE of 2^%d pages: ENOSPC", bit);
	}
	is(call(g.fd, DUNE_ADD_PRIVATE, NULL), -EFAULT, "DUNE_ADD_PRIVATE at 0: EFAULT");
	edge = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*edge = (struct dune_private){ .size = sizeof(p), .pages = 1 };
	mprotect(edge, 4096, PROT_READ);
	is(call(g.fd, DUNE_ADD_PRIVATE, edge), -EFAULT,
	   "DUNE_ADD_PRIVATE in read-only memory: EFAULT");
	munmap(edge, 4096);
	is(private_add(&g, 1, &after), 0, "a page is added after the refused requests");
	ok(after == first + 4096, "the refused requests have added nothing");
}

/* Pages up to the limit, in an address space of its own. */
static void fill(void)
{
	struct guest h;
	int err = 0;
	u64 gpa;

	guest_open(&h);

	u64 max = h.info.private_pages, n;

	private_add(&h, 1, &gpa);
	/* Numbers that end within tables, at the end of one, and after it. */
	for (n = 1; !err && n + 1021 <= max; n += 1021) {
		err = private_add(&h, 1021, &gpa);
		if (gpa != first + n * 4096)
			err = -1;
	}
	is(err, 0, "an address space gets pages up to its limit");
	is(private_add(&h, max - n + 1, &gpa), -ENOSPC, "one page more than the limit: ENOSPC");
	is(private_add(&h, max - n, &gpa), 0, "an address space gets its last pages");
	is(private_add(&h, 1, &gpa), -ENOSPC, "one page more than the last one: ENOSPC");
	private_show(&h, first + (max - 512) * 4096);
	ok(guest_call(&h, guest_load, (void *)(PRIVATE_AT + 511 * 4096)) == GUEST_DONE &&
	   !h.value, "the guest reads the last page");
	guest_close(&h);
}

/* Two threads, each with a vCPU of one new address space, add pages at the same time. */
#define ADDS	40

static int shared_device;
static u8 added[2 * ADDS];

static void *adder(void *arg)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	struct guest h = { .fd = ioctl(shared_device, DUNE_CREATE_VCPU, &create) };

	for (int i = 0; i < ADDS; i++) {
		u64 gpa;

		if (!private_add(&h, 1, &gpa) && (gpa - first) / 4096 < 2 * ADDS)
			__atomic_add_fetch(&added[(gpa - first) / 4096], 1, __ATOMIC_SEQ_CST);
	}
	close(h.fd);
	return NULL;
}

static void at_the_same_time(void)
{
	int bad = 0;

	for (int round = 0; round < 20; round++) {
		pthread_t t[2];

		shared_device = open("/dev/dune", O_RDWR);
		memset(added, 0, sizeof(added));
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, adder, NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < 2 * ADDS; i++)
			bad += added[i] != 1;
		close(shared_device);
	}
	is(bad, 0, "two threads that add pages at the same time each get their own");
}

int main(void)
{
	bool exists = private_begin(&g, 180);

	is(exists, wide_enough(),
	   "dune_info has private pages where guest-physical addresses are wide enough");
	if (exists) {
		is(private_add(&g, 1, &first), 0, "a page is added");
		refused();
		fill();
		at_the_same_time();
	} else {
		is(private_add(&g, 1, &first), -ENOTTY, "DUNE_ADD_PRIVATE: ENOTTY");
	}
	guest_close(&g);
	return private_end();
}

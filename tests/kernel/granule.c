// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Granules of guest-physical space (DUNE_MAP_GRANULE), on processors that
 * need them: which calls are refused, how an access without a granule ends,
 * when a new granule takes effect, and for which processes. Fails when an address leads to
 * memory without a granule, or to other memory than its granule's.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "klog.h"
#include "memory.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOT	300		/* of the guest's page table, for these tests */
#define WINDOW(n) (0xffff000000000000 | (u64)SLOT << 39 | (u64)(n) << 21)
#define FAR	0x300000000000UL

static struct guest g;
static u64 *pdpt, *pd;	/* pd[n] is what WINDOW(n) shows */

static int map(struct guest *h, u64 guest, u64 address)
{
	struct dune_granule granule = { .size = sizeof(granule), .guest = guest,
					.address = address };

	return ioctl(h->fd, DUNE_MAP_GRANULE, &granule) ? -errno : 0;
}

static u64 *page_at(u64 address)
{
	u64 *p = mmap((void *)address, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	return p;
}

static u64 jump(void *arg)
{
	return ((u64 (*)(void))arg)();
}

static bool no_granule(struct guest *h, u32 flags, u64 address)
{
	if (h->run->exit_reason == DUNE_EXIT_FAULT &&
	    (h->run->fault_flags & ~DUNE_FAULT_TABLE) == (flags | DUNE_FAULT_GUEST) &&
	    h->run->fault_address == address)
		return true;
	diag("exit %u flags %#x address %#llx, not %#x %#lx", h->run->exit_reason,
	     h->run->fault_flags,
	     h->run->fault_address, flags | DUNE_FAULT_GUEST, address);
	return false;
}

static void refused(u64 last)
{
	struct dune_granule granule = { .size = sizeof(granule), .guest = last, .address = FAR };
	static const u32 sizes[] = { 0, 8, 23, 25, 4096 };

	for (unsigned int i = 0; i < 5; i++) {
		granule.size = sizes[i];
		ok(ioctl(g.fd, DUNE_MAP_GRANULE, &granule) && errno == EINVAL,
		   "DUNE_MAP_GRANULE with size %u: EINVAL", sizes[i]);
	}
	granule.size = sizeof(granule);
	granule.flags = 1;
	ok(ioctl(g.fd, DUNE_MAP_GRANULE, &granule) && errno == EINVAL,
	   "DUNE_MAP_GRANULE with a flag: EINVAL");
	ok(ioctl(g.fd, DUNE_MAP_GRANULE, NULL) && errno == EFAULT, "DUNE_MAP_GRANULE at 0: EFAULT");
	ok(map(&g, 0, FAR) == -EINVAL, "mapping granule 0: EINVAL");
	ok(map(&g, last + GB, FAR) == -EINVAL, "mapping the granule after the last: EINVAL");
	ok(map(&g, 1UL << 63, FAR) == -EINVAL, "mapping a granule far after the last: EINVAL");
	ok(map(&g, last + 4096, FAR) == -EINVAL,
	   "mapping an address that is not the start of a granule: EINVAL");
	ok(map(&g, last, FAR + 4096) == -EINVAL,
	   "mapping to an address that is not the start of a gigabyte: EINVAL");
	ok(map(&g, last, 1UL << 47) == -EINVAL,
	   "mapping to an address that no process has: EINVAL");
	ok(map(&g, last, 0xffff888000000000) == -EINVAL,
	   "mapping to an address of the kernel: EINVAL");
}

static void *other_thread(void *arg)
{
	struct guest h;

	guest_open(&h);
	/* The first thread's vCPU has mapped its granule. */
	h.mem->pml4[SLOT] = guest_gpa(&h, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
	guest_call(&h, guest_load, arg);
	u64 value = h.value;

	guest_close(&h);
	return (void *)value;
}

static void forked(void *arg)
{
	struct guest h;
	u64 last = (u64)arg;

	/*
	 * guest_open() maps the parent's granules again, except the last, which
	 * only this test mapped.
	 */
	guest_open(&h);
	h.mem->pml4[SLOT] = guest_gpa(&h, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
	guest_first_exit(&h, guest_load, WINDOW(2));
	if (!no_granule(&h, 0, last))
		child_fails("the parent's last granule is mapped in the child");
	/* In this process it may be another gigabyte. */
	*page_at(FAR + 64 * GB) = 5;
	if (map(&h, last, FAR + 64 * GB))
		child_fails("the child cannot map its own last granule");
	if (guest_resume(&h) != GUEST_DONE || h.value != 5)
		child_fails("the guest does not read the child's own last granule");
}

/* Windows to granule 0, the one @before the last, the last, and a table in @before. */
static void make_windows(u64 before, u64 last)
{
	pdpt = new_memory(4096);
	pd = new_memory(4096);
	g.mem->pml4[SLOT] = guest_gpa(&g, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
	pdpt[0] = guest_gpa(&g, (u64)pd) | PTE_P | PTE_W | PTE_U;
	pd[0] = 0 | PTE_P | PTE_W | PTE_U | PTE_PS;
	pd[1] = before | PTE_P | PTE_W | PTE_U | PTE_PS;
	pd[2] = last | PTE_P | PTE_W | PTE_U | PTE_PS;
	pd[3] = before | PTE_P | PTE_W | PTE_U;
}

static void not_mapped(u64 before)
{
	struct dune_state s = g.state;

	guest_first_exit(&g, guest_load, WINDOW(0) + 0x5008);
	ok(no_granule(&g, 0, 0x5008),
	   "a read in granule 0 ends in DUNE_EXIT_FAULT with DUNE_FAULT_GUEST");
	guest_first_exit(&g, guest_load, WINDOW(1) + 0x5008);
	ok(no_granule(&g, 0, before + 0x5008),
	   "a read in a granule that is not mapped ends the run");
	guest_first_exit(&g, store, WINDOW(1));
	ok(no_granule(&g, DUNE_FAULT_WRITE, before),
	   "a write in a granule that is not mapped ends the run");
	guest_first_exit(&g, jump, WINDOW(1) + 0x10);
	ok(no_granule(&g, DUNE_FAULT_EXEC, before + 0x10),
	   "an instruction fetch from a granule that is not mapped ends the run");
	guest_first_exit(&g, guest_load, WINDOW(3));
	ok(no_granule(&g, g.run->fault_flags & DUNE_FAULT_WRITE, before) &&
	   (g.run->fault_flags & DUNE_FAULT_TABLE),
	   "a page table in a granule that is not mapped ends the run");

	guest_prepare(&g, 0, guest_load, NULL);
	s.cr3 = before;
	guest_set_state(&g, &s);
	int err = guest_run_to_exit(&g);

	ok(!err && no_granule(&g, g.run->fault_flags & DUNE_FAULT_WRITE, before),
	   "CR3 in a granule that is not mapped ends the run");
}

static void mapped_during_a_run(u64 before, u64 last)
{
	*page_at(FAR) = 4711;
	guest_first_exit(&g, guest_load, WINDOW(1));
	ok(!map(&g, before, FAR), "a granule is mapped after the guest's exit for it");
	ok(guest_resume(&g) == GUEST_DONE && g.value == 4711,
	   "the guest continues and reads the granule's memory");
	ok(guest_call(&g, store, (void *)(WINDOW(1))) == GUEST_DONE && *(u64 *)FAR == STORED,
	   "the guest writes the granule's memory");
	*page_at(FAR + 4096) = 0xc3;
	ok(guest_call(&g, jump, (void *)(WINDOW(1) + 4096)) == GUEST_DONE,
	   "the guest executes the granule's memory");
	guest_first_exit(&g, guest_load, WINDOW(1) + 0x100000);
	ok(g.run->exit_reason == DUNE_EXIT_FAULT && g.run->fault_flags == 0 &&
	   g.run->fault_address == FAR + 0x100000,
	   "a fault where the process has no memory reports the process's address");
	ok(!map(&g, before, FAR), "mapping a granule to the same gigabyte again is no error");
	ok(map(&g, before, FAR + GB) == -EEXIST,
	   "mapping a mapped granule to another gigabyte: EEXIST");
	ok(map(&g, last, FAR) == -EEXIST, "mapping another granule to a mapped gigabyte: EEXIST");
}

/* Other threads have the process's granules, a child after fork has not. */
static void shared_by_threads(u64 last)
{
	pthread_t t;
	void *value;

	*page_at(FAR + GB) = 12;
	ok(!map(&g, last, FAR + GB), "the last granule is mapped");
	ok(guest_call(&g, guest_load, (void *)(WINDOW(2))) == GUEST_DONE && g.value == 12,
	   "the guest reads the last granule's memory");
	pthread_create(&t, NULL, other_thread, (void *)(WINDOW(2)));
	pthread_join(t, &value);
	ok((u64)value == 12, "another thread's vCPU reads the last granule's memory");
	struct outcome o = in_child(forked, (void *)last, 20);

	ok(o.code == 0,
	   "a child after fork has the last granule unmapped, and maps its own (%s)",
	   outcome_text(o));
	ok(guest_call(&g, guest_load, (void *)(WINDOW(2))) == GUEST_DONE && g.value == 12,
	   "the parent's last granule is unchanged after the child mapped its own");
}

/* Map all granules that are left and have a window, with one page in each, and unmap the pages. */
static void all_others(u64 before)
{
	u64 end = before < 500 * GB ? before : 500 * GB;
	int bad = 0;

	for (u64 at = 32 * GB; at < end; at += GB) {
		pd[at / GB] = at | PTE_P | PTE_W | PTE_U | PTE_PS;
		*page_at(FAR + at) = at;
		bad += !!map(&g, at, FAR + at);
	}
	for (u64 at = 32 * GB; at < end; at += GB)
		bad += guest_call(&g, guest_load, (void *)WINDOW(at / GB)) != GUEST_DONE ||
			g.value != at;
	ok(!bad, "all other granules lead to their own memory");
	bad = 0;
	for (u64 at = 32 * GB; at < end; at += GB)
		munmap((void *)(FAR + at), 4096);
	for (u64 at = 32 * GB; at < end; at += GB) {
		guest_first_exit(&g, guest_load, WINDOW(at / GB));
		bad += g.run->exit_reason != DUNE_EXIT_FAULT || g.run->fault_address != FAR + at;
	}
	ok(!bad, "a page that is unmapped is gone from each of them");
}

static void granules(void)
{
	u64 last = (u64)(g.info.granules - 1) * GB, before = last - GB;

	refused(last);
	make_windows(before, last);
	not_mapped(before);
	mapped_during_a_run(before, last);
	shared_by_threads(last);
	all_others(before);
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	guest_open(&g);
	if (g.info.granules) {
		granules();
	} else {
		ok(map(&g, GB, FAR) == -ENOTTY, "DUNE_MAP_GRANULE: ENOTTY where there are none");
		skip("this processor needs no granules", "granules");
	}
	klog_end(&log);
	guest_close(&g);
	return done();
}

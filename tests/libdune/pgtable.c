// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Page-table calls, the TLB and the page allocator. Fails when an access faults
 * that should not, or does not fault where it should; when the accessed and dirty
 * bits do not tell what was touched; when a change is seen late because the TLB was
 * not flushed; or when tables are not given back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

static volatile uint64_t fault_addr, fault_error;
static volatile int faults;
static uint64_t restore;		/* rights to give back; 0: skip */

GPR_ONLY static void on_fault(struct dune_tf *tf)
{
	fault_addr = dune_cr2();
	fault_error = tf->error;
	faults++;
	if (dune_pt_protect(dune_pt_root(), fault_addr & ~(PAGE - 1), PAGE,
			    restore))
		tf->rip = 0;
}

/* The largest page of the processor (CPUID: 1-GByte pages). */
static uint64_t largest(void)
{
	uint32_t eax = 0x80000001, ebx, ecx, edx;

	__asm__ volatile("cpuid"
			 : "+a" (eax), "=b" (ebx), "=c" (ecx), "=d" (edx));
	return edx >> 26 & 1 ? GB : MB2;
}

static char *map(size_t size, void *at)
{
	char *p = mmap(at, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		       (at ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		bail("mmap: %m");
	return p;
}

static uint64_t size_of(const void *p)
{
	uint64_t size = 0;

	dune_pt_entry(dune_pt_root(), (uint64_t)p, &size);
	return size;
}

/* The first 2 MB and the first page, before any other call. */
static void test_first(void)
{
	dune_pte *root = dune_pt_root();

	/* The thread remembers no table yet. */
	is(dune_pt_protect(root, (1UL << 50) - MB2, PAGE, 0), -EINVAL,
	   "dune_pt_protect() of an address that no process has, before any other: EINVAL");
	is(dune_pt_unmap(root, 0, PAGE), 0, "unmap the page at 0");
	is(*dune_pt_entry(root, 0, NULL) & DUNE_PTE_P, 0,
	   "the page at 0 is not present after dune_pt_unmap()");
	is(dune_pt_protect(root, 0, PAGE, DUNE_PT_RW), 0,
	   "dune_pt_protect() brings the page at 0 back");
}

static void test_protect(void)
{
	dune_pte *root = dune_pt_root();
	volatile char *p = map(4 * PAGE, NULL);
	uint64_t va = (uint64_t)p;
	int i, wrong = 0;

	dune_trap_set(DUNE_VECTOR_PF, on_fault, 0);
	restore = DUNE_PT_RW;
	p[0] = 1;
	is(size_of((void *)p), largest(), "memory is mapped in the largest pages at first");
	is(dune_pt_protect(root, va, PAGE, DUNE_PT_RO), 0,
	   "dune_pt_protect() of one page succeeds");
	is(size_of((void *)p), PAGE, "protecting a page splits its large page down to 4 KB");
	faults = 0;
	is(p[0], 1, "a read-only page can be read");
	is(faults, 0, "reading a read-only page causes no fault");
	p[0] = 2;
	is(faults, 1, "a write to a read-only page causes a fault");
	is(fault_addr, va, "the fault of a write is at the page's address");
	is(fault_error & 3, 3, "the error code of a write to a read-only page: present, write");
	is(p[0], 2, "the write is made once the handler returns");
	p[1] = 3;
	is(faults, 1, "a page that is writable again causes no more faults");
	is(dune_pt_unmap(root, va + PAGE, 2 * PAGE), 0, "dune_pt_unmap() of two pages succeeds");
	faults = 0;
	p[PAGE + 5] = 6;
	is(faults, 1, "the first of two unmapped pages causes a fault");
	is(fault_error & 1, 0, "the error code of an unmapped page: not present");
	is(p[2 * PAGE], 0, "the second of two unmapped pages reads as zero after its fault");
	is(faults, 2, "two unmapped pages cause one fault each");
	p[3 * PAGE] = 1;
	is(faults, 2, "the neighbours of unmapped pages cause no fault");

	faults = 0;
	dune_pt_protect(root, va, 4 * PAGE, DUNE_PT_RO);
	p[0]++, p[PAGE]++, p[2 * PAGE]++, p[3 * PAGE]++;
	is(faults, 4, "four pages protected at once");
	is(dune_pt_protect(root, va + 1, PAGE, DUNE_PT_RO), -EINVAL,
	   "dune_pt_protect() of an unaligned address: EINVAL");
	is(dune_pt_protect(root, va, PAGE, DUNE_PTE_A), -EINVAL,
	   "dune_pt_protect() with a bit that is no right: EINVAL");
	is(dune_pt_protect(root, 1UL << 47, PAGE, 0), -EINVAL,
	   "dune_pt_protect() of an address that no process has: EINVAL");
	for (i = 47; i < 64; i++)
		wrong += dune_pt_protect(root, va | 1UL << i, PAGE, 0) != -EINVAL;
	is(wrong, 0, "dune_pt_protect() of an address whose lower bits are a page's: EINVAL");
	is(p[0], 3, "dune_pt_protect() that failed leaves the page as it was");
	is(dune_pt_unmap(root, (1UL << 47) - 2 * PAGE, 4 * PAGE), -EINVAL,
	   "dune_pt_unmap() of a range beyond user addresses: EINVAL");
	munmap((void *)p, 4 * PAGE);
}

static void test_map(void)
{
	dune_pte *root = dune_pt_root();
	char *memory = map(4 * MB2, NULL);
	char *aligned = (char *)(((uint64_t)memory + MB2 - 1) & ~(MB2 - 1));
	uint64_t window = 0x200000000000;

	strcpy(aligned, "first");
	strcpy(aligned + MB2, "second");
	is(dune_pt_map(root, window, MB2, (uint64_t)aligned, DUNE_PT_RW), 0,
	   "dune_pt_map() of 2 MB at another address");
	is(size_of((void *)window), MB2, "2 MB are mapped as one large page");
	ok(!strcmp((char *)window, "first"), "a window of 2 MB shows the memory it was mapped to");
	is(dune_pt_map(root, window, MB2, (uint64_t)aligned + MB2, DUNE_PT_RW), 0,
	   "dune_pt_map() of a window to other memory");
	ok(!strcmp((char *)window, "second"), "a window shows the other memory it was mapped to");
	is(dune_pt_map(root, window + PAGE, PAGE, (uint64_t)aligned, DUNE_PT_RW),
	   0, "dune_pt_map() of one page of a window to the first memory");
	is(size_of((void *)window), PAGE, "mapping one page of a window splits its large page");
	ok(!strcmp((char *)window, "second") &&
	   !strcmp((char *)window + PAGE,
		   "first"), "a window shows both memories after one page was changed");
	strcpy((char *)window + PAGE, "changed");
	ok(!strcmp(aligned, "changed"),
	   "a write through a window is seen at the memory's own address");
	is(dune_pt_map(root, window + GB, GB, 3 * GB, DUNE_PT_RW), 0, "dune_pt_map() of 1 GB");
	is(size_of((void *)(window + GB)), largest(), "1 GB is mapped in the largest pages");
	is(dune_pt_unmap(root, window, 2 * GB), 0, "dune_pt_unmap() of the windows");
	is(dune_pt_map(root, window, PAGE, 7, DUNE_PT_RW), -EINVAL,
	   "dune_pt_map() to an unaligned address: EINVAL");
	munmap(memory, 4 * MB2);
}

static int count_dirty(dune_pte *e, uint64_t va, uint64_t size, void *arg)
{
	(void)va;
	if (size == PAGE && (*e & DUNE_PTE_D))
		++*(int *)arg;
	return 0;
}

static int stop(dune_pte *e, uint64_t va, uint64_t size, void *arg)
{
	(void)e;
	(void)size;
	*(uint64_t *)arg = va;
	return 17;
}

static void test_dirty(void)
{
	dune_pte *root = dune_pt_root();
	volatile char *p = map(64 * PAGE, NULL);
	uint64_t va = (uint64_t)p, at = 0;
	int i, dirty = 0;

	is(dune_pt_split(root, va, 64 * PAGE, PAGE), 0, "dune_pt_split() of 64 pages");
	for (i = 0; i < 64; i++)
		dune_pte_clear(dune_pt_entry(root, va + i * PAGE, NULL),
			       DUNE_PTE_D | DUNE_PTE_A);
	dune_tlb_all();
	for (i = 0; i < 64; i += 4)
		p[i * PAGE] = 1;
	i = p[PAGE];
	is(dune_pt_walk(root, va, 64 * PAGE, count_dirty, &dirty), 0,
	   "dune_pt_walk() over 64 pages");
	is(dirty, 16, "dune_pt_walk() finds the pages that were written dirty, and no others");
	i = !!(*dune_pt_entry(root, va + PAGE, NULL) & DUNE_PTE_A);
	is(i, 1, "a page that was read has its accessed bit set");
	i = !!(*dune_pt_entry(root, va + 2 * PAGE, NULL) & DUNE_PTE_A);
	is(i, 0, "accessed bit of a page that was not read");
	is(dune_pte_clear(dune_pt_entry(root, va, NULL), DUNE_PTE_D), DUNE_PTE_D,
	   "clearing bits of an entry reports what was cleared");
	dune_tlb_page(va);
	is(!!(*dune_pt_entry(root, va, NULL) & DUNE_PTE_D), 0,
	   "a page whose dirty bit was cleared is clean");
	p[0] = 5;
	is(!!(*dune_pt_entry(root, va, NULL) & DUNE_PTE_D), 1,
	   "a clean page that is written is dirty again");
	is(dune_pt_walk(root, va, 64 * PAGE, stop, &at), 17,
	   "dune_pt_walk() returns what its function returned");
	is(at, va, "dune_pt_walk() stops at the first page");
	munmap((void *)p, 64 * PAGE);
}

static void test_clone(void)
{
	dune_pte *root = dune_pt_root(), *copy;
	volatile char *p = map(2 * PAGE, NULL), *q = map(2 * PAGE, NULL);
	uint64_t va = (uint64_t)p;
	struct dune_stats before, after;

	p[0] = 'p';
	q[0] = 'q';
	dune_pt_split(root, va, PAGE, PAGE);
	copy = dune_pt_clone(root);
	is(dune_pt_free(copy), 0, "a copy that is not used is freed");
	/*
	 * The first load of another root makes the arena grow to its full size. The first
	 * root keeps the tables for that, so it must happen before the tables are counted.
	 */
	copy = dune_pt_clone(root);
	if (dune_pt_load(copy, 0) || dune_pt_load(root, 0) || dune_pt_free(copy))
		bail("a copy cannot be loaded and freed");
	dune_stats(&before);
	copy = dune_pt_clone(root);
	ok(copy && copy != root, "dune_pt_clone() makes another root");
	is(dune_pt_map(copy, va, PAGE, (uint64_t)q, DUNE_PT_RW), 0,
	   "dune_pt_map() changes the copy");
	is(p[0], 'p', "a change of the copy does not change the first table");
	is(dune_pt_load(copy, 0), 0, "dune_pt_load() of the copy");
	is(p[0], 'q', "the loaded copy shows its own page");
	ok(dune_pt_root() == copy, "dune_pt_root() is the loaded copy");
	is(dune_pt_free(copy), -EBUSY, "dune_pt_free() of the loaded root: EBUSY");
	is(dune_pt_load(root, 0), 0, "dune_pt_load() of the first root");
	is(p[0], 'p', "the first root shows its own page again");
	is(dune_pt_free(copy), 0, "dune_pt_free() of the copy");
	is(dune_pt_load(NULL, 0), -EINVAL, "dune_pt_load() of no root: EINVAL");
	is(dune_pt_load((dune_pte *)((uint64_t)root + 8), 0), -EINVAL,
	   "dune_pt_load() of a root that is not aligned: EINVAL");
	is(dune_pt_load(root, 1U << 12), -EINVAL, "dune_pt_load() with a PCID too large: EINVAL");
	is(dune_pt_load(NULL, DUNE_PT_KEEP), -EINVAL,
	   "dune_pt_load() of no root, with its entries kept: EINVAL");
	ok(dune_pt_root() == root, "dune_pt_load() that failed leaves the root as it was");
	dune_stats(&after);
	is(after.table_bytes, before.table_bytes,
	   "dune_pt_free() gives all of the copy's tables back");
	munmap((void *)p, 2 * PAGE);
	munmap((void *)q, 2 * PAGE);
}

static void test_pcids(void)
{
	int flush = dune_tlb_pcid(1), load = dune_pt_load(dune_pt_root(), 1);

	/* PCIDs, and INVPCID with them or not. */
	ok(flush == 0 || flush == -EOPNOTSUPP, "flush by PCID: %d", flush);
	is(dune_tlb_pcid(5000), -EINVAL, "dune_tlb_pcid() of a PCID that is too large: EINVAL");
	ok(load == 0 || (load == -EOPNOTSUPP && flush), "load with a PCID: %d", load);
	dune_pt_load(dune_pt_root(), 0);
}

static void test_pages(void)
{
	char *a = dune_page_alloc(1), *b = dune_page_alloc(1), *c;
	int i, zero = 1;

	ok(a && b && a != b && !((uint64_t)a & (PAGE - 1)),
	   "dune_page_alloc() gives two different pages");
	memset(a, 1, PAGE);
	dune_page_free(a, 1);
	c = dune_page_alloc(1);
	ok(c == a, "a freed page is used again");
	for (i = 0; i < (int)PAGE; i++)
		zero &= !c[i];
	ok(zero, "a page that is used again is zero");
	ok(!dune_page_alloc(1U << 30), "dune_page_alloc() of 2^30 pages: NULL");
	ok(!dune_page_alloc(0), "dune_page_alloc() of no page: NULL");
	dune_page_free(b, 1);
	dune_page_free(c, 1);
}

/* Addresses all over: the identity is made when they are used. */
static void test_lazy(void)
{
	struct dune_stats stats;
	uint64_t at;
	int good = 0, n = 0;

	for (at = 0x10000000000; at < 0x7e0000000000; at += 0x0a0040000000) {
		volatile char *p = map(PAGE, (void *)at);

		p[9] = 3;
		good += p[9] == 3;
		n++;
	}
	is(good, n, "memory at addresses far apart can be used");
	dune_stats(&stats);
	ok(stats.table_bytes < 1 << 20, "tables: %lu KB",
	   (unsigned long)stats.table_bytes / 1024);
}

int main(void)
{
	struct dune_stats stats;

	must_enter(NULL);
	dune_stats(&stats);
	ok(stats.table_bytes <= 256 * 1024, "tables after entering: %lu KB",
	   (unsigned long)stats.table_bytes / 1024);
	test_first();
	test_protect();
	test_map();
	test_dirty();
	test_clone();
	test_pcids();
	test_pages();
	test_lazy();
	return done();
}

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

#define PAGE	4096UL
#define MB2	(512 * PAGE)
#define GB	(512 * MB2)

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
		exit(99);
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
	is(dune_pt_protect(root, (1UL << 50) - MB2, PAGE, 0), -EINVAL, "no address at all");
	is(dune_pt_unmap(root, 0, PAGE), 0, "unmap the page at 0");
	is(*dune_pt_entry(root, 0, NULL) & DUNE_PTE_P, 0, "which is gone");
	is(dune_pt_protect(root, 0, PAGE, DUNE_PT_RW), 0, "and comes back");
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
	is(size_of((void *)p), largest(), "the largest page at first");
	is(dune_pt_protect(root, va, PAGE, DUNE_PT_RO), 0, "protect one page");
	is(size_of((void *)p), PAGE, "split down to 4 KB");
	faults = 0;
	is(p[0], 1, "can be read");
	is(faults, 0, "without a fault");
	p[0] = 2;
	is(faults, 1, "a write faults");
	is(fault_addr, va, "at its address");
	is(fault_error & 3, 3, "error: present, write");
	is(p[0], 2, "and is done when the handler returns");
	p[1] = 3;
	is(faults, 1, "no more faults");
	is(dune_pt_unmap(root, va + PAGE, 2 * PAGE), 0, "unmap two pages");
	faults = 0;
	p[PAGE + 5] = 6;
	is(faults, 1, "fault on the first");
	is(fault_error & 1, 0, "error: not present");
	is(p[2 * PAGE], 0, "and the second");
	is(faults, 2, "one fault each");
	p[3 * PAGE] = 1;
	is(faults, 2, "none beside them");

	faults = 0;
	dune_pt_protect(root, va, 4 * PAGE, DUNE_PT_RO);
	p[0]++, p[PAGE]++, p[2 * PAGE]++, p[3 * PAGE]++;
	is(faults, 4, "four pages protected at once");
	is(dune_pt_protect(root, va + 1, PAGE, DUNE_PT_RO), -EINVAL, "unaligned");
	is(dune_pt_protect(root, va, PAGE, DUNE_PTE_A), -EINVAL, "not a right");
	is(dune_pt_protect(root, 1UL << 47, PAGE, 0), -EINVAL, "not a user address");
	for (i = 47; i < 64; i++)
		wrong += dune_pt_protect(root, va | 1UL << i, PAGE, 0) != -EINVAL;
	is(wrong, 0, "nor is one above, whose lower bits are the page's");
	is(p[0], 3, "which stays");
	is(dune_pt_unmap(root, (1UL << 47) - 2 * PAGE, 4 * PAGE), -EINVAL,
	   "not only user addresses");
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
	   "map 2 MB elsewhere");
	is(size_of((void *)window), MB2, "as one large page");
	ok(!strcmp((char *)window, "first"), "reads what is there");
	is(dune_pt_map(root, window, MB2, (uint64_t)aligned + MB2, DUNE_PT_RW), 0,
	   "map it to other memory");
	ok(!strcmp((char *)window, "second"), "reads that");
	is(dune_pt_map(root, window + PAGE, PAGE, (uint64_t)aligned, DUNE_PT_RW),
	   0, "one page of it to the first");
	is(size_of((void *)window), PAGE, "which splits it");
	ok(!strcmp((char *)window, "second") &&
	   !strcmp((char *)window + PAGE, "first"), "both are there");
	strcpy((char *)window + PAGE, "changed");
	ok(!strcmp(aligned, "changed"), "the same memory by two addresses");
	is(dune_pt_map(root, window + GB, GB, 3 * GB, DUNE_PT_RW), 0, "1 GB");
	is(size_of((void *)(window + GB)), largest(), "in the largest pages");
	is(dune_pt_unmap(root, window, 2 * GB), 0, "unmap all");
	is(dune_pt_map(root, window, PAGE, 7, DUNE_PT_RW), -EINVAL, "unaligned");
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

	is(dune_pt_split(root, va, 64 * PAGE, PAGE), 0, "split");
	for (i = 0; i < 64; i++)
		dune_pte_clear(dune_pt_entry(root, va + i * PAGE, NULL),
			       DUNE_PTE_D | DUNE_PTE_A);
	dune_tlb_all();
	for (i = 0; i < 64; i += 4)
		p[i * PAGE] = 1;
	i = p[PAGE];
	is(dune_pt_walk(root, va, 64 * PAGE, count_dirty, &dirty), 0, "walk");
	is(dirty, 16, "dirty pages");
	i = !!(*dune_pt_entry(root, va + PAGE, NULL) & DUNE_PTE_A);
	is(i, 1, "accessed bit of a page that was read");
	i = !!(*dune_pt_entry(root, va + 2 * PAGE, NULL) & DUNE_PTE_A);
	is(i, 0, "and of one that was not");
	is(dune_pte_clear(dune_pt_entry(root, va, NULL), DUNE_PTE_D), DUNE_PTE_D,
	   "clear says what it cleared");
	dune_tlb_page(va);
	is(!!(*dune_pt_entry(root, va, NULL) & DUNE_PTE_D), 0, "clean now");
	p[0] = 5;
	is(!!(*dune_pt_entry(root, va, NULL) & DUNE_PTE_D), 1, "dirty again");
	is(dune_pt_walk(root, va, 64 * PAGE, stop, &at), 17, "walk stops");
	is(at, va, "at the first page");
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
	dune_stats(&before);
	copy = dune_pt_clone(root);
	ok(copy && copy != root, "clone");
	is(dune_pt_map(copy, va, PAGE, (uint64_t)q, DUNE_PT_RW), 0, "change it");
	is(p[0], 'p', "the first is as before");
	is(dune_pt_load(copy, 0), 0, "load it");
	is(p[0], 'q', "now the other page");
	ok(dune_pt_root() == copy, "root");
	is(dune_pt_free(copy), -EBUSY, "not freed while in use");
	is(dune_pt_load(root, 0), 0, "back");
	is(p[0], 'p', "and the first page");
	is(dune_pt_free(copy), 0, "free");
	is(dune_pt_load(NULL, 0), -EINVAL, "load none");
	is(dune_pt_load((dune_pte *)((uint64_t)root + 8), 0), -EINVAL, "load one that is not aligned");
	is(dune_pt_load(root, 1U << 12), -EINVAL, "load with a tag too large");
	is(dune_pt_load(NULL, DUNE_PT_KEEP), -EINVAL, "load none, and keep its entries");
	ok(dune_pt_root() == root, "the root is as before");
	dune_stats(&after);
	is(after.table_bytes, before.table_bytes, "all tables are given back");
	munmap((void *)p, 2 * PAGE);
	munmap((void *)q, 2 * PAGE);
}

static void test_tags(void)
{
	int flush = dune_tlb_tag(1), load = dune_pt_load(dune_pt_root(), 1);

	/* PCIDs, and INVPCID with them or not. */
	ok(flush == 0 || flush == -EOPNOTSUPP, "flush by tag: %d", flush);
	is(dune_tlb_tag(5000), -EINVAL, "no such tag");
	ok(load == 0 || (load == -EOPNOTSUPP && flush), "load with a tag: %d", load);
	dune_pt_load(dune_pt_root(), 0);
}

static void test_pages(void)
{
	char *a = dune_page_alloc(1), *b = dune_page_alloc(1), *c;
	int i, zero = 1;

	ok(a && b && a != b && !((uint64_t)a & (PAGE - 1)), "two pages");
	memset(a, 1, PAGE);
	dune_page_free(a, 1);
	c = dune_page_alloc(1);
	ok(c == a, "a freed page is used again");
	for (i = 0; i < (int)PAGE; i++)
		zero &= !c[i];
	ok(zero, "and is zero");
	ok(!dune_page_alloc(1U << 30), "not too many");
	ok(!dune_page_alloc(0), "not none");
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
	is(good, n, "addresses far apart");
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
	test_tags();
	test_pages();
	test_lazy();
	return done();
}

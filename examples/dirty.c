// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dirty: which pages has the program written to? A garbage collector or a
 * checkpointer needs to know; in ring 0 the answer is in the page table.
 *
 * Prints "dirty: ok" at the end. Fails (status 1) if a page that was written is not dirty in
 * the next scan, or if one that was not written is. Status 77: Dune is not available here.
 */
#include <dune.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define PAGE	4096UL
#define PAGES	1024
/* The program writes every STEP-th page, and later one other. */
#define STEP	100
#define WRITTEN	((PAGES + STEP - 1) / STEP)
#define LATER	77

struct found {
	int count, last;
	uint64_t start;
};

/* Called for each entry. Clears the dirty bit, and notes the page if it was set. */
static int look(dune_pte *entry, uint64_t va, uint64_t size, void *arg)
{
	struct found *found = arg;

	(void)size;
	if (dune_pte_clear(entry, DUNE_PTE_D)) {
		found->count++;
		found->last = (va - found->start) / PAGE;
	}
	return 0;
}

static struct found scan(char *heap)
{
	struct found found = { .start = (uint64_t)heap };

	dune_pt_walk(dune_pt_root(), found.start, PAGES * PAGE, look, &found);
	dune_tlb_all();		/* so that the next write sets the bit again */
	return found;
}

int main(void)
{
	char *heap = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct found first, second;
	int err, i;

	if (heap == MAP_FAILED) {
		perror("dirty: mmap");
		return 1;
	}
	err = dune_enter(NULL);
	if (err == -ENOENT || err == -ENODEV) {
		fprintf(stderr, "dirty: SKIP: %s\n", dune_enter_error());
		return 77;
	}
	if (err) {
		fprintf(stderr, "dirty: dune_enter: %s\n", dune_enter_error());
		return 1;
	}
	err = dune_pt_split(dune_pt_root(), (uint64_t)heap, PAGES * PAGE, PAGE);
	if (err) {
		fprintf(stderr, "dirty: dune_pt_split: error %d\n", -err);
		return 1;
	}
	scan(heap);
	for (i = 0; i < PAGES; i += STEP)
		heap[i * PAGE] = 1;
	first = scan(heap);
	heap[LATER * PAGE] = 1;
	second = scan(heap);
	printf("dirty: %d pages written, then %d: page %d\n", first.count,
	       second.count, second.last);
	if (first.count != WRITTEN || second.count != 1 || second.last != LATER) {
		fprintf(stderr, "dirty: FAILED: expected %d, then 1: page %d\n", WRITTEN, LATER);
		return 1;
	}
	printf("dirty: ok\n");
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fault: a page-fault handler that maps on demand. A window of 16 pages at an
 * unused address shows the same page of memory in every place that the program
 * touches; the handler maps it there by a page-table entry.
 *
 * Prints "fault: ok" at the end. Fails (status 1) if a touched page faults more or less than
 * once, or if the pages are not the same memory. Status 77: Dune is not available here.
 */
#include <dune.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define PAGE	4096UL
#define PAGES	16
/* Far from where Linux places programs, heaps and libraries. */
#define WINDOW	0x300000000000UL

static char *memory;
static volatile int faults;

/* Runs in ring 0 at the fault, without libc or the FPU (see DUNE_TRAP_FPU). */
__attribute__((target("general-regs-only")))
static void on_page_fault(struct dune_tf *tf)
{
	uint64_t page = dune_cr2() & ~(PAGE - 1);

	if (page - WINDOW >= PAGES * PAGE) {
		dune_trap_default(tf);		/* not in the window: SIGSEGV */
		return;
	}
	faults++;
	/* Without memory for the page table the fault would come again without end. */
	if (dune_pt_map(dune_pt_root(), page, PAGE, (uint64_t)memory, DUNE_PT_RW))
		dune_trap_default(tf);
}

int main(void)
{
	volatile char *window = (volatile char *)WINDOW;
	int err, i, sum = 0, expected = 0;

	memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("fault: mmap");
		return 1;
	}
	err = dune_enter(NULL);
	if (err == -ENOENT || err == -ENODEV) {
		fprintf(stderr, "fault: SKIP: %s\n", dune_enter_error());
		return 77;
	}
	if (err) {
		fprintf(stderr, "fault: dune_enter: %s\n", dune_enter_error());
		return 1;
	}
	err = dune_pt_unmap(dune_pt_root(), WINDOW, PAGES * PAGE);
	if (!err)
		err = dune_trap_set(DUNE_VECTOR_PF, on_page_fault, 0);
	if (err) {
		fprintf(stderr, "fault: cannot prepare the window: error %d\n", -err);
		return 1;
	}
	for (i = 0; i < PAGES; i += 2) {
		window[i * PAGE + i] = i;
		expected += i;
	}
	for (i = 0; i < PAGES; i += 2)
		sum += window[i];		/* all in the first page */
	printf("fault: %d page faults, sum %d\n", faults, sum);
	if (faults != PAGES / 2 || sum != expected) {
		fprintf(stderr, "fault: FAILED: expected %d page faults, sum %d\n", PAGES / 2,
			expected);
		return 1;
	}
	printf("fault: ok\n");
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * TLB entries that dune_pt_load() keeps under a PCID. Fails when a view (page table) does
 * not show its own last change because the entries of its PCID were kept while another
 * view, or the same view under another PCID, was loaded.
 */
#include <errno.h>
#include <sys/mman.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

static volatile int faults;
static volatile char *page;

GPR_ONLY static void on_fault(struct dune_tf *tf)
{
	(void)tf;
	faults++;
	dune_pt_protect(dune_pt_root(), (uint64_t)page, PAGE, DUNE_PT_RW);
}

/*
 * A write under @pcid puts the page into the TLB. Then @load is loaded, and the view is
 * changed. Returns the number of faults of a write in the view, whose entries are kept.
 */
static int faults_after(dune_pte *view, unsigned int pcid, dune_pte *load,
			unsigned int load_pcid)
{
	dune_pt_protect(view, (uint64_t)page, PAGE, DUNE_PT_RW);
	dune_pt_load(view, pcid);
	*page = 1;
	dune_pt_load(load, load_pcid);
	*page = 2;
	dune_pt_protect(view, (uint64_t)page, PAGE, DUNE_PT_RO);
	dune_pt_load(view, pcid | DUNE_PT_KEEP);
	faults = 0;
	*page = 3;
	return faults;
}

int main(void)
{
	dune_pte *root, *other, *copy;

	must_enter(NULL);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	root = dune_pt_root();
	dune_pt_split(root, (uint64_t)page, PAGE, PAGE);
	other = dune_pt_clone(root);
	if (dune_pt_load(other, 1) == -EOPNOTSUPP) {
		skip("this processor has no PCIDs", "page tables with PCIDs");
		return done();
	}
	dune_trap_set(DUNE_VECTOR_PF, on_fault, 0);
	is(faults_after(other, 1, root, 0), 1,
	   "a change of a view that is not loaded takes effect");
	is(faults_after(root, 0, other, 1), 1,
	   "a change of the first view takes effect when it is loaded again");
	is(faults_after(root, 2, root, 3), 1,
	   "a change takes effect after the same view had another PCID");
	is(faults_after(other, 4, other, 5 | DUNE_PT_KEEP), 1,
	   "a change takes effect after the same view had another PCID, both kept");
	is(faults_after(other, 1, root, 1), 1,
	   "a change takes effect after another view had the same PCID");

	/* The memory of a root that is gone may be the next one's. */
	dune_pt_protect(other, (uint64_t)page, PAGE, DUNE_PT_RW);
	dune_pt_load(other, 7);
	*page = 1;
	dune_pt_load(root, 0);
	dune_pt_free(other);
	dune_pt_protect(root, (uint64_t)page, PAGE, DUNE_PT_RO);
	copy = dune_pt_clone(root);
	dune_pt_load(copy, 7 | DUNE_PT_KEEP);
	faults = 0;
	*page = 2;
	is(faults, 1, "a new view with the PCID of a freed one has its own translations");
	is(dune_pt_load(root, 0), 0, "dune_pt_load() of the first root");
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process before and after it enters Dune mode: the same system calls,
 * faults and mapping calls, first on Linux, then from ring 0.
 */
#define _GNU_SOURCE
#include "dune_mode.h"
#include "exits.h"
#include "ring0.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#define GB (1UL << 30)

struct costs {
	uint64_t getpid, touch, trap, cycle, mprotect, munmap;
};

static char *page;	/* the page that is protected */

static uint64_t munmap_of_1g(void)
{
	uint64_t sample[ROUNDS], nothing = overhead(), t;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		char *p = map(GB);

		p[GB / 2] = 1;
		t = now();
		munmap(p, GB);
		sample[i] = now() - t - nothing;
	}
	return median(sample, ROUNDS);
}

static void measure_common(struct costs *c)
{
	c->touch = first_touch();
	c->mprotect = MEASURE(mprotect(page, 4096, i & 1 ? PROT_READ | PROT_WRITE : PROT_READ));
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	c->munmap = munmap_of_1g();
}

/* ---- Linux: signals ---- */

static void step_over(int sig, siginfo_t *info, void *context)
{
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void unprotect(int sig, siginfo_t *info, void *context)
{
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void handle(void (*fn)(int sig, siginfo_t *info, void *context))
{
	struct sigaction action = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO };

	if (!fn)
		action.sa_handler = SIG_DFL;
	sigaction(SIGSEGV, &action, NULL);
}

static void measure_linux(struct costs *c)
{
	c->getpid = MEASURE(syscall(SYS_getpid));
	measure_common(c);
	mprotect(page, 4096, PROT_READ);
	handle(step_over);
	c->trap = MEASURE(store(page));
	handle(unprotect);
	c->cycle = MEASURE(mprotect(page, 4096, PROT_READ); *page = 1);
	handle(NULL);
}

/* ---- Dune: exceptions ---- */

__attribute__((target("general-regs-only")))
static void trap_unprotect(struct dune_tf *tf)
{
	dune_pt_protect(dune_pt_root(), (uint64_t)page, 4096, DUNE_PT_RW);
}

/* Of a forbidden write, after which the handler steps over it. */
static double exits_of_trap(void)
{
	double count;

	forbid_stores(page);
	count = EXITS(store(page));
	dune_trap_set(DUNE_VECTOR_PF, NULL, 0);
	return count;
}

/* A protection of the page, and a write, which the handler permits. Returns the exits. */
static double measure_cycle(uint64_t *cost)
{
	dune_pte *root = dune_pt_root();
	double count;

	dune_trap_set(DUNE_VECTOR_PF, trap_unprotect, 0);
	*cost = MEASURE(dune_pt_protect(root, (uint64_t)page, 4096, DUNE_PT_RO); *page = 1);
	count = EXITS(dune_pt_protect(root, (uint64_t)page, 4096, DUNE_PT_RO); *page = 1);
	dune_trap_set(DUNE_VECTOR_PF, NULL, 0);
	return count;
}

static void measure_dune(struct costs *c)
{
	c->getpid = getpid_in_ring0();
	measure_common(c);
	c->trap = trap_in_ring0(page);
}

int main(void)
{
	struct costs on_linux, in_dune;
	double call_exits, touch_exits, trap_exits, cycle_exits;
	char *fresh;

	page = page_in_middle();
	measure_linux(&on_linux);
	enter_dune_mode();
	measure_dune(&in_dune);
	call_exits = EXITS(dune_hypercall(SYS_getpid, 0, 0, 0, 0, 0, 0));
	fresh = map(ROUNDS * 4096);
	touch_exits = EXITS(fresh[i * 4096] = 1);
	trap_exits = exits_of_trap();
	cycle_exits = measure_cycle(&in_dune.cycle);

	figure("getpid_ring0", on_linux.getpid, in_dune.getpid, call_exits);
	figure("first_touch", on_linux.touch, in_dune.touch, touch_exits);
	figure("trap", on_linux.trap, in_dune.trap, trap_exits);
	figure("protect_cycle", on_linux.cycle, in_dune.cycle, cycle_exits);
	figure_of("mprotect", unit(), on_linux.mprotect, in_dune.mprotect, NO_FIGURE,
		  in_dune.getpid);
	figure("munmap_1g", on_linux.munmap, in_dune.munmap, NO_FIGURE);
	return 0;
}

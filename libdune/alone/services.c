// SPDX-License-Identifier: MIT OR Apache-2.0
/* The services (common/services.h) of a process without a host half. */
#include "alone.h"
#include "fork.h"
#include "table.h"
#include "tlb.h"

static void move(int fd)
{
	struct dune_thread *t = dune_self();

	dune_hypercall(DUNE_STUB_MOVE, fd, 0, 0, 0, 0, 0);
	WRITE_ONCE(t->vcpu, fd);
}

/* Such a process has no handlers of traps that save FPU registers, nor signals of ring 0. */
static void interrupt(void)
{
	dune_alone_fatal("a signal for ring 0", 0, SIGABRT);
}

/*
 * Implements @no_granule and @no_pages, which are called on the IST stack. To find out whether
 * memory is mapped there takes a probe, which can fault and take signals: fill() does it later.
 */
static void do_nothing(u64 va)
{
	(void)va;
}

static bool fill(u64 va)
{
	dune_pte *e;
	int level;

	if (va >= USER_END)
		return false;
	e = dune_table_leaf(table_of(read_cr3()), va, &level, NULL);
	if (e)
		return READ_ONCE(*e) & DUNE_PTE_P;
	if (!dune_alone_readable(dune_self(), va))
		return false;
	if (to_gpa(va) == NO_GPA)
		dune_print_no_granule(va);
	else
		dune_print_no_pages(va);
	dune_alone_die(SIGBUS);
}

static void __noreturn bad_stack(void)
{
	dune_alone_fatal("no usable stack for a trap in ring 0", 0, SIGSEGV);
}

static const struct dune_services alone = {
	.action = dune_alone_action,
	.sets_all_actions = true,
	.mask = dune_alone_mask,
	.forward_mask = dune_alone_forward_mask,
	.print = dune_alone_print,
	.special = dune_alone_special,
	.make_child = dune_alone_make_child,
	.execute = dune_alone_execute,
	.move = move,
	.settle = dune_alone_collect,
	.interrupt = interrupt,
	.no_threads = dune_fork_no_threads,
	.no_granule = do_nothing,
	.no_pages = do_nothing,
	.fill = fill,
	.die = dune_alone_die,
	.bad_stack = bad_stack,
};

const struct dune_services *const dune_services = &alone;

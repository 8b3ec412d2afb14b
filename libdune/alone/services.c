// SPDX-License-Identifier: MIT OR Apache-2.0
/* The services (common/services.h) of a process without a host half. */
#include "alone.h"
#include "fork.h"

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

static void no_granule(u64 va)
{
	if (!dune_alone_readable(dune_self(), va))
		return;
	dune_print_no_granule(va);
	dune_alone_die(SIGBUS);
}

static void no_pages(u64 va)
{
	if (!dune_alone_readable(dune_self(), va))
		return;
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
	.no_granule = no_granule,
	.no_pages = no_pages,
	.die = dune_alone_die,
	.bad_stack = bad_stack,
};

const struct dune_services *const dune_services = &alone;

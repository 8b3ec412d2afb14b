// SPDX-License-Identifier: MIT OR Apache-2.0
/* Ring 0 and ring 3: see rings.h. */
#include "rings.h"
#include "tap.h"

#include <string.h>
#include <sys/mman.h>

#define STACK_SIZE	(1UL << 20)

void must_enter(const struct dune_config *cfg)
{
	int err = dune_enter(cfg);

	if (err)
		bail("dune_enter: %s: %s", strerror(-err), dune_enter_error());
}

GPR_ONLY static void ring3_syscall(struct dune_tf *tf)
{
	if (tf->rax == NR_LEAVE)
		dune_ring3_leave(tf->rdi);
	dune_syscall_pass(tf);
}

static void ring3_start(void (*fn)(void))
{
	fn();
	__asm__ volatile("syscall" : : "a" (NR_LEAVE), "D" (42));
}

long in_ring3(void (*fn)(void))
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dune_tf tf = {
		.rip = (uint64_t)ring3_start,
		.rdi = (uint64_t)fn,
		.rsp = (uint64_t)stack + STACK_SIZE - 8,
	};
	long ret;

	dune_syscall_set(ring3_syscall);
	ret = dune_ring3(&tf);
	dune_syscall_set(NULL);
	return ret;
}

int in_all_rings(int argc, char **argv, void (*body)(void))
{
	struct dune_config cfg = {
		.size = sizeof(cfg),
		.flags = DUNE_ENTER_RING3_SIGNALS,
	};

	if (argc > 1 && !strcmp(argv[1], "native")) {
		tap_where = "native: ";
		body();
		return done();
	}
	must_enter(&cfg);
	dune_irq_enable();	/* the body's handlers run in ring 0, too */
	tap_where = "ring 0: ";
	body();
	tap_where = "ring 3: ";
	is(in_ring3(body), 42, "ran in ring 3");
	return done();
}

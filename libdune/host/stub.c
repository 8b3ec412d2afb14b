// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * How a process loses its host half (dune_stub_use()). Its threads execute the stub from then on
 * (struct dune_stub in <linux/dune.h>), a page of the module's in the arena, and no other code in
 * user mode. What the host half does for others, ring 0 does (alone/).
 */
#include "cpuid.h"
#include "dune_copies.h"
#include "host.h"

/* The stack of signal frames: siginfo, ucontext, and what the kernel aligns. */
#define FRAME_SIZE	1024

/* The stub, the window and the scratch (dune_copies.h) are in one piece, in this order. */
#define WINDOW_PAGES	(DUNE_WINDOW_SIZE / PAGE)
#define SCRATCH_PAGES	(DUNE_SCRATCH_SIZE / PAGE)

void dune_stub_use(void)
{
	dune_process.alone = 1;
}

/*
 * Maps the stub and the window by @vcpu. The pages are never given back, because unmapping them
 * ends the process. Returns 0 or an error.
 */
long dune_stub_map(int vcpu)
{
	void *stub = dune_process.stub ?: dune_page_alloc(1 + WINDOW_PAGES + SCRATCH_PAGES);
	long at;

	if (!stub)
		return -ENOMEM;
	at = sys6(__NR_mmap, (long)stub, (1 + WINDOW_PAGES) * PAGE, PROT_READ,
		  MAP_SHARED | MAP_FIXED, vcpu, DUNE_STUB_OFFSET);
	if (is_error(at))
		return at;
	dune_process.stub = stub;
	dune_process.handler = (u64)stub + DUNE_STUB_SIGNAL;
	dune_process.handler_flags = SA_ONSTACK;
	/* The kernel wants one. Nothing returns there. */
	dune_process.restorer = (u64)stub + DUNE_STUB_SIGNAL;
	return 0;
}

/* Gives the kernel a stack for signal frames. Returns 0 or an error. */
static long make_frames(struct dune_thread *t)
{
	u64 state = dune_process.info.xcr0 ? cpuid(CPUID_XSTATE, 0).ebx : 512;
	u64 pages = (state + FRAME_SIZE + PAGE - 1) / PAGE;
	struct kstack stack = { .size = pages * PAGE };

	t->frames = (u64)dune_page_alloc(pages);
	if (!t->frames)
		return -ENOMEM;
	stack.sp = t->frames;
	t->frames_end = t->frames + stack.size;
	return sys3(__NR_sigaltstack, (long)&stack, 0, 0);
}

/* Makes the pages of the window, and tells @t of both places for copies. Returns 0 or an error. */
static long make_copies(struct dune_thread *t)
{
	struct dune_private window = {
		.size = sizeof(window),
		.flags = DUNE_PRIVATE_SHOWN,
		.pages = WINDOW_PAGES,
	};
	u64 stub = (u64)dune_process.stub;
	long err = sys3(__NR_ioctl, t->vcpu, DUNE_ADD_PRIVATE, (long)&window);

	if (err)
		return err;
	t->copies.window = dune_private_at(window.guest);
	t->copies.window_shown = stub + PAGE;
	t->copies.scratch = (u8 *)stub + PAGE + DUNE_WINDOW_SIZE;
	return 0;
}

/*
 * Binds @t's vCPU to the stub, which continues in the guest with t->regs. All signals are blocked
 * from here on until t->mask is set there: a handler would begin in the stub. Returns 0 or an
 * error. Called by dune_host_leave().
 */
long dune_stub_start(struct dune_thread *t)
{
	struct dune_stub stub = {
		.size = sizeof(stub),
		.flags = DUNE_STUB_EVENTS,
		.address = (u64)dune_process.stub,
		.irq_vector = VEC_SIGNAL,
		.regs = t->regs,
	};
	u64 all = ~0ULL;
	long err;

	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&t->mask, SIGSET_SIZE);
	err = make_frames(t);
	if (!err)
		err = sys3(__NR_ioctl, t->vcpu, DUNE_SET_STUB, (long)&stub);
	if (!err)
		err = dune_private_show(stub.run);
	if (!err)
		err = make_copies(t);
	if (err) {
		sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&t->mask, 0, SIGSET_SIZE);
		return err;
	}
	dune_actions_import();
	t->run = dune_private_at(stub.run);
	return 0;
}

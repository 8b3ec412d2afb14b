// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests that act on their own process: they close their vCPU, run and change vCPUs from
 * within, execute, exit, kill themselves, and make calls with wild numbers. Each
 * runs in a child (isolated.h). Fails when the kernel uses a descriptor that is gone,
 * when a call has another effect than for a native thread, or when I/O permission of
 * the process holds in the guest.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "random.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static u64 close_fd(void *arg)
{
	struct guest *h = arg;

	if (hypercall3(SYS_close, h->fd, 0, 0) || hypercall3(SYS_close, h->dev, 0, 0))
		return 1;
	return (int)hypercall0(SYS_getpid) == (int)hypercall0(SYS_gettid) ? 0 : 2;
}

static void close_own_fd(void)
{
	struct guest h = g;

	must_end_within(2000);
	enum guest_end end = guest_call(&g, close_fd, &h);

	/* After a slow call the next DUNE_RUN fails. */
	bool good = (end == GUEST_DONE && g.value == 0) ||
		(end == GUEST_ERROR && g.error == -EBADF);

	if (guest_run(&g) != -EBADF)
		child_fails("DUNE_RUN of the closed descriptor is not EBADF");
	expect(end, good);
}

static u64 close_all(void *arg)
{
	return hypercall3(SYS_close_range, 3, ~0U, 0);
}

static void close_range_all(void)
{
	must_end_within(2000);
	enum guest_end end = guest_call(&g, close_all, NULL);

	expect(end,
	       (end == GUEST_DONE && g.value == 0) || (end == GUEST_ERROR && g.error == -EBADF));
}

/* A guest that runs itself: the ioctl is a system call like others. */
static u64 run_itself(void *arg)
{
	struct guest *h = arg;
	static struct dune_state s;
	long err;

	s.size = sizeof(s);
	err = hypercall3(SYS_ioctl, h->fd, DUNE_GET_STATE, (long)&s);
	if (!err) {
		s.cr3 = 0x1000;
		s.idtr.limit = 0;
	}
	return hypercall3(SYS_ioctl, h->fd, DUNE_RUN, 0);
}

static void run_from_within(void)
{
	struct guest h = g;

	must_end_within(1000);
	enum guest_end end = guest_call(&g, run_itself, &h);

	/*
	 * Dune's ioctls are slow calls, made between two runs. The inner run is the rest of
	 * the guest; the outer one continues after its end, at the UD2 there.
	 */
	expect(end, end == GUEST_TRAP && g.frame->vector == X86_TRAP_UD);
}

static u64 run_another(void *arg)
{
	struct guest *h = arg;

	return hypercall3(SYS_ioctl, h->fd, DUNE_RUN, 0);
}

/* Another vCPU of the same thread, run from within the first; the inner one makes calls. */
static void run_other_from_within(void)
{
	static struct guest inner;

	guest_open(&inner);
	guest_prepare(&inner, 0, five_getpids, NULL);
	must_end_within(1000);
	enum guest_end end = guest_call(&g, run_another, &inner);
	long value = g.value;

	diag("another run from within: %s", guest_end_name(&g, end));
	if (end == GUEST_DONE && value == 0 && inner.run->exit_reason != DUNE_EXIT_HOSTCALL &&
	    inner.run->exit_reason != DUNE_EXIT_INTR &&
	    inner.run->exit_reason != DUNE_EXIT_SYSCALL)
		child_fails("the inner guest ended with exit reason %u", inner.run->exit_reason);
	expect(end, end == GUEST_DONE);
}

static u64 set_state_within(void *arg)
{
	struct guest *h = arg;
	static struct dune_state s;

	s = h->state;
	s.cr3 = 0x1000;
	s.cs.base = 0x123456;
	return hypercall3(SYS_ioctl, h->fd, DUNE_SET_STATE, (long)&s);
}

static void state_from_within(void)
{
	struct guest h = g;

	must_end_within(1000);
	enum guest_end end = guest_call(&g, set_state_within, &h);

	/* The ioctl is a slow call and succeeds; nothing is mapped at the new CR3. */
	expect(end, false);
}

static u64 execs(void *arg)
{
	static char *argv[] = { "true", NULL };

	return hypercall3(SYS_execve, (long)"/bin/true", (long)argv, 0);
}

static void exec_true(void) { go(execs, NULL); }

static u64 exits(void *arg)
{
	hypercall3(SYS_exit, (long)arg, 0, 0);
	return 0;
}

static void exit_zero(void) { go(exits, NULL); }

static u64 kills_itself(void *arg)
{
	hypercall3(SYS_kill, hypercall0(SYS_getpid), (long)arg, 0);
	for (;;)
		;
	return 0;
}

static void kill_itself(void) { go(kills_itself, (void *)SIGKILL); }
static void abort_itself(void) { go(kills_itself, (void *)SIGABRT); }

static u64 sigreturns(void *arg)
{
	return hypercall0(SYS_rt_sigreturn);
}

static void sigreturn_of_nothing(void) { go(sigreturns, NULL); }

static u64 io_permission(void *arg)
{
	hypercall3(SYS_ioperm, PORT_POST, 1, 1);
	hypercall3(SYS_iopl, 3, 0, 0);
	asm volatile("outb %%al, %1" : : "a"(0), "i"(PORT_POST));
	return 0;
}

/* I/O permission of the process is not the guest's. */
static void iopl_then_out(void)
{
	must_end_within(2000);
	enum guest_end end = guest_call(&g, io_permission, NULL);

	expect(end, end == GUEST_TRAP && (g.frame->vector == X86_TRAP_GP ||
					  g.frame->vector == X86_TRAP_UD));
}

static u64 wild_numbers(void *arg)
{
	u64 x = (u64)arg;

	for (int i = 0; i < 3000; i++) {
		x = next_random(x);
		/* No kernel has these numbers: each must end in ENOSYS. */
		if (hypercall((x & 0x3fffffff) | 0x1000, x, x >> 3, x >> 5, x >> 7, x >> 9,
			      x >> 11) != -ENOSYS)
			return x;
		if (hypercall(0xffffffff - i, x, x, x, x, x, x) != -ENOSYS)
			return x;
	}
	return 0;
}

static void wild_hypercalls(void)
{
	must_end_within(10000);
	enum guest_end end = guest_call(&g, wild_numbers, (void *)0x123456789abcdef);

	expect(end, end == GUEST_DONE && g.value == 0);
}

static u64 wild_hostcall(void *arg)
{
	asm volatile(HYPERCALL : : "a"(arg) : "memory");
	return 0;
}

static void wild_hostcalls(void)
{
	static const u64 values[] = { 1UL << 63, ~0UL, 1UL << 32, 0xffffffff00000027, 0x100000027,
				      0x8000000000000000 };

	for (unsigned int i = 0; i < 6; i++) {
		enum guest_end end = guest_call(&g, wild_hostcall, (void *)values[i]);

		if (end != GUEST_EXIT || g.run->exit_reason != DUNE_EXIT_HOSTCALL ||
		    g.run->regs.rax != values[i])
			expect(end, false);
	}
	_exit(0);
}

static const struct isolated guests[] = {
	{ "closes its own vCPU", close_own_fd, 0 },
	{ "closes everything", close_range_all, 0 },
	{ "runs itself", run_from_within, 0 },
	{ "runs another vCPU", run_other_from_within, 0 },
	{ "sets its own state", state_from_within, SIGSEGV },
	{ "exec", exec_true, 0 },
	{ "exit", exit_zero, 0 },
	{ "kills itself", kill_itself, SIGKILL },
	{ "aborts itself", abort_itself, SIGABRT },
	{ "returns from no signal", sigreturn_of_nothing, SIGSEGV },
	{ "I/O after iopl(3)", iopl_then_out, 0 },
	{ "hypercalls with wild numbers", wild_hypercalls, 0 },
	{ "hostcalls with wild numbers", wild_hostcalls, 0 },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests that take away or change parts of their own process: its memory, the run
 * page, descriptors, the program itself; that run vCPUs from within, or make calls
 * with wild numbers; and threads that change the tables and the run page while
 * the guest runs. Each runs in a child (isolated.h). Fails when the kernel uses
 * what is gone, when it reads a field of the run page twice, or when a call has
 * another effect than for a native thread.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static u64 unmap(void *arg)
{
	u64 *what = arg;

	return hypercall3(SYS_munmap, what[0], what[1], 0);
}

static void unmap_code(void)
{
	/*
	 * mov $11, %eax (munmap); mov $4096, %esi; vmmcall; nop; nop; 1: jmp 1b.
	 * RDI is set below.
	 */
	CODE("\xb8\x0b\x00\x00\x00\xbe\x00\x10\x00\x00\x0f\x01\xd9\x90\x90\xeb\xfe");
	guest_prepare_code(&g, page);
	guest_set_state(&g, &g.state);
	g.run->regs.rdi = (u64)page;
	must_end_within(2000);
	guest_resume(&g);
}

static void unmap_tables(void)
{
	u64 what[2] = { (u64)g.mem, sizeof(*g.mem) };

	go(unmap, what);
}

static void unmap_run_page(void)
{
	u64 what[2] = { (u64)g.run, 4096 };

	go(unmap, what);
}

static void unmap_stack(void)
{
	u64 what[2] = { (u64)g.mem->stack, sizeof(g.mem->stack) };

	go(unmap, what);
}

static u64 zap(void *arg)
{
	struct guest *h = arg;

	hypercall3(SYS_madvise, (long)h->mem, sizeof(*h->mem) - 65536, MADV_DONTNEED);
	asm volatile("mov %%cr3, %%rax; mov %%rax, %%cr3; ud2" : : : "rax");
	return 0;
}

/* Tables of zeros: nothing is mapped, so neither is the handler: triple fault. */
static void zero_tables(void)
{
	must_end_within(2000);
	enum guest_end end = guest_call(&g, zap, &g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

static u64 over_run_page(void *arg)
{
	struct guest *h = arg;

	return hypercall(SYS_mmap, (long)h->run, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The kernel keeps its page, although the process has other memory at the address. */
static void replace_run_page(void)
{
	struct guest h = g;

	must_end_within(2000);
	guest_prepare(&g, 0, over_run_page, &h);
	int err = guest_run_to_exit(&g);

	if (err || g.run->exit_reason != DUNE_EXIT_NONE)
		diag("error %d, exit %u", err, g.run->exit_reason);
	_exit(err || g.run->exit_reason != DUNE_EXIT_NONE);
}

static u64 protect_all(void *arg)
{
	struct guest *h = arg;

	hypercall3(SYS_mprotect, (long)h->mem, sizeof(*h->mem), PROT_NONE);
	return 0;
}

static void protect_tables(void) { go(protect_all, &g); }

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
		_exit(2);
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
	if (end == GUEST_DONE && value == 0)
		_exit(inner.run->exit_reason == DUNE_EXIT_HOSTCALL ||
		      inner.run->exit_reason == DUNE_EXIT_INTR ||
		      inner.run->exit_reason == DUNE_EXIT_SYSCALL ? 0 : 3);
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
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
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

static u64 wild_message(void *arg)
{
	asm volatile(HYPERCALL : : "a"(arg) : "memory");
	return 0;
}

static void wild_messages(void)
{
	static const u64 values[] = { 1UL << 63, ~0UL, 1UL << 32, 0xffffffff00000027, 0x100000027,
				      0x8000000000000000 };

	for (unsigned int i = 0; i < 6; i++) {
		enum guest_end end = guest_call(&g, wild_message, (void *)values[i]);

		if (end != GUEST_EXIT || g.run->exit_reason != DUNE_EXIT_HOSTCALL ||
		    g.run->regs.rax != values[i])
			expect(end, false);
	}
	_exit(0);
}

/* ---- other threads change its memory while it runs ---- */

static void *scribble(void *arg)
{
	volatile u64 *p = arg;
	u64 x = 0x9e3779b97f4a7c15;

	for (;;) {
		for (int i = 0; i < 512; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			p[i] = x;
		}
	}
	return NULL;
}

/* The run page changes at every moment; the kernel must read each field once. */
static void scribbled_run_page(void)
{
	pthread_t t;

	pthread_create(&t, NULL, scribble, g.run);
	end_after(600);
	for (;;) {
		guest_set_state(&g, &g.state);
		guest_run(&g);
	}
}

static void *scribble_tables(void *arg)
{
	struct guest_memory *m = arg;
	u64 x = 0x9e3779b97f4a7c15;

	for (;;) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		m->pdpt[x % GUEST_PDPTS][x >> 10 & 511] = x ^ x << 20;
		m->gdt[x >> 20 & 15] = x * 3;
		m->idt[x >> 24 & 511] = x * 5;
	}
	return NULL;
}

static void scribbled_tables(void)
{
	pthread_t t;

	pthread_create(&t, NULL, scribble_tables, g.mem);
	end_after(600);
	for (;;) {
		guest_prepare(&g, 0, ud2, NULL);
		guest_run(&g);
	}
}

static void nx_page(void)
{
	u8 *p = map_page(PROT_READ | PROT_WRITE);

	memset(p, 0xcc, 4096);
	guest_prepare_code(&g, p);
	int err = guest_run_to_exit(&g);

	if (err || g.run->exit_reason != DUNE_EXIT_FAULT)
		_exit(1);
	if (!(g.run->fault_flags & DUNE_FAULT_EXEC) || (g.run->fault_address & -4096UL) != (u64)p)
		_exit(2);
	guest_resume(&g);
}

static void write_text(void) { go(write_byte, (void *)write_text); }

static void read_prot_none(void)
{
	u8 *p = map_page(PROT_NONE);

	go(read_byte, p);
}

static const struct isolated guests[] = {
	{ "unmaps its code", unmap_code, SIGSEGV },
	{ "unmaps its tables", unmap_tables, SIGSEGV },
	{ "unmaps its stack", unmap_stack, SIGSEGV },
	{ "unmaps the run page", unmap_run_page, SIGSEGV },
	{ "maps memory over the run page", replace_run_page, 0 },
	{ "drops its tables (DONTNEED)", zero_tables, 0 },
	{ "protects its tables", protect_tables, SIGSEGV },
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
	{ "messages with wild numbers", wild_messages, 0 },
	/* Random calls with random arguments may end it in any way. */
	{ "run page scribbled by a thread", scribbled_run_page, ANY_END },
	{ "tables scribbled by a thread", scribbled_tables, SIGALRM },
	{ "executes an NX page", nx_page, SIGSEGV },
	{ "writes its text", write_text, SIGSEGV },
	{ "reads a PROT_NONE page", read_prot_none, SIGSEGV },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}

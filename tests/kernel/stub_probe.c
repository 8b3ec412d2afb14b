// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest without a host half (struct dune_stub) asks the stub to probe an address that a nested
 * fault has reported: the kernel grows a stack, or sends the signal that the same access gets
 * natively, with the same siginfo and the same description of the exception. Fails when one of
 * these differs, when a probe changes the byte, or when the guest does not get the signal.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE	4096UL
/* An address around which the kernel maps nothing by itself. */
#define ROOM	((u8 *)0x30000000)

/* What an access did. */
static struct shared {
	long faults, probes, again;
	int signal, code;
	u64 address, trap, error, cr2;
	u8 byte;
	bool ended;
} *shared;

static const struct place {
	const char *name;
	u8 *(*make)(void);
	bool write;
	int signal;
} *place;

/* ---- places */

static u8 *map(int protection, int flags)
{
	u8 *p = mmap(ROOM, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags,
		     -1, 0);

	if (p != ROOM)
		child_fails("mmap: %m");
	return p;
}

static u8 *below_stack(void)
{
	u8 *stack = map(PROT_READ | PROT_WRITE, MAP_GROWSDOWN);

	stack[0] = 1;
	return stack - 3 * PAGE + 8;
}

static u8 *nothing(void)
{
	return ROOM + 5;
}

static u8 *forbidden(void)
{
	return map(PROT_NONE, 0) + 6;
}

static u8 *read_only(void)
{
	u8 *p = map(PROT_READ, 0);

	(void)*(volatile u8 *)p;
	return p + 7;
}

static u8 *after_file(void)
{
	int fd = memfd_create("short", 0);
	u8 *p;

	if (fd < 0 || ftruncate(fd, 100))
		child_fails("memfd: %m");
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		child_fails("mmap: %m");
	return p + PAGE + 9;
}

static const struct place places[] = {
	{ "below a stack", below_stack, false, 0 },
	{ "below a stack", below_stack, true, 0 },
	{ "where nothing is", nothing, false, SIGSEGV },
	{ "where nothing is", nothing, true, SIGSEGV },
	{ "without rights", forbidden, false, SIGSEGV },
	{ "without rights", forbidden, true, SIGSEGV },
	{ "that can be read only", read_only, true, SIGSEGV },
	{ "after the end of a file", after_file, false, SIGBUS },
	{ "after the end of a file", after_file, true, SIGBUS },
};

static void make_access(u8 *to)
{
	if (place->write)
		*(volatile u8 *)to = 0x5a;
	shared->byte = *(volatile u8 *)to;
	shared->ended = true;
}

/* ---- natively */

static void handler(int sig, siginfo_t *info, void *context)
{
	const greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	shared->signal = sig;
	shared->code = info->si_code;
	shared->address = (u64)info->si_addr;
	shared->trap = r[REG_TRAPNO];
	shared->error = r[REG_ERR];
	shared->cr2 = r[REG_CR2];
	_exit(0);
}

static void natively(void *arg)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	u8 *to = place->make();

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	make_access(to);
}

/* ---- in a guest */

static void take_signal(const struct dune_signal *signal)
{
	const siginfo_t *info = (const void *)signal->info;

	shared->signal = info->si_signo;
	shared->code = info->si_code;
	shared->address = (u64)info->si_addr;
	shared->trap = signal->trap;
	shared->error = signal->error;
	shared->cr2 = signal->cr2;
}

static void probe(struct guest_frame *frame, u64 cr2)
{
	long result, nr = frame->error & X86_PF_WRITE ? DUNE_PROBE_WRITE : DUNE_PROBE_READ;

	if (frame->vector != X86_TRAP_PF || !(frame->error & DUNE_PF_NESTED))
		hypercall3(SYS_exit_group, 100 + frame->vector, 0, 0);
	shared->faults++;
	result = hypercall3(nr, cr2, 0, 0);
	if (!alone_again()) {
		shared->probes++;
		if (result)
			hypercall3(SYS_exit_group, 90, 0, 0);
		return;
	}
	alone_take();
	hypercall3(SYS_exit_group, shared->signal ? 0 : 91, 0, 0);
}

static u8 *target;

static u64 access_it(void *arg)
{
	alone_stack();
	alone_catch(SIGSEGV, 0);
	alone_catch(SIGBUS, 0);
	make_access(target);
	return 0;
}

static void in_guest(void *arg)
{
	target = place->make();
	alone_on_fault = probe;
	alone_on_signal = take_signal;
	alone_start(0, access_it, NULL);
}

/* No handler: the kernel ends the process. */
static u64 access_without_handler(void *arg)
{
	make_access(target);
	return 0;
}

static void in_guest_without_handler(void *arg)
{
	target = place->make();
	alone_on_fault = probe;
	alone_start(0, access_without_handler, NULL);
}

/* Both probes of every byte of a page, which they do not change. */
static u64 probe_page(void *arg)
{
	static u8 page[PAGE];
	u64 wrong = 0;

	for (u64 i = 0; i < PAGE; i++) {
		page[i] = i * 7;
		wrong += hypercall3(DUNE_PROBE_READ, (long)&page[i], 0, 0) != 0;
		wrong += hypercall3(DUNE_PROBE_WRITE, (long)&page[i], 0, 0) != 0;
		wrong += page[i] != (u8)(i * 7);
	}
	return wrong + alone_again() ? 1 : 0;
}

static void probe_without_fault(void *arg)
{
	alone_start(0, probe_page, NULL);
}

static u64 probe_stub(void *arg)
{
	return hypercall3(DUNE_PROBE_READ, (long)alone_stub, 0, 0) ? 1 : 0;
}

/* The address is a program's: it may be the stub's, which can be read, but not written. */
static void probe_stub_itself(void *arg)
{
	alone_start(0, probe_stub, NULL);
}

static u64 write_stub(void *arg)
{
	hypercall3(DUNE_PROBE_WRITE, (long)alone_stub, 0, 0);
	return 0;
}

static void probe_stub_for_write(void *arg)
{
	alone_start(0, write_stub, NULL);
}

static void other_probes(void)
{
	struct outcome o = in_child(probe_without_fault, NULL, 20);

	ok(!o.code, "probes of memory that is there do not change it (%s)", outcome_text(o));
	o = in_child(probe_stub_itself, NULL, 20);
	ok(!o.code, "the stub itself can be probed (%s)", outcome_text(o));
	o = in_child(probe_stub_for_write, NULL, 20);
	ok(o.signal == SIGSEGV, "but not for writing (%s)", outcome_text(o));
}

static void compare(void)
{
	struct shared native;
	struct outcome o;

	memset(shared, 0, sizeof(*shared));
	o = in_child(natively, NULL, 20);
	native = *shared;
	if (o.code || native.signal != place->signal)
		bail("%s natively: %s, signal %d", place->name, outcome_text(o), native.signal);
	memset(shared, 0, sizeof(*shared));
	o = in_child(in_guest, NULL, 20);
	if (!place->signal) {
		ok(!o.code && shared->ended && shared->probes == 1 && !shared->signal &&
		   shared->byte == native.byte,
		   "%s %s grows it (%s, %ld faults, %ld probes, byte %#x)",
		   place->write ? "a write" : "a read", place->name, outcome_text(o),
		   shared->faults, shared->probes, shared->byte);
		return;
	}
	ok(!o.code && !shared->ended && shared->faults == 1 && !shared->probes &&
	   shared->signal == native.signal && shared->code == native.code &&
	   shared->address % PAGE == native.address % PAGE &&
	   shared->cr2 == shared->address && shared->trap == native.trap &&
	   shared->error == native.error,
	   "%s %s is signal %d with code %d (%s, %ld faults: signal %d, code %d, trap %lu, error %#lx; natively trap %lu, error %#lx)",
	   place->write ? "a write" : "a read", place->name, native.signal, native.code,
	   outcome_text(o), shared->faults, shared->signal, shared->code, shared->trap,
	   shared->error, native.trap, native.error);
}

static void die_of_it(void)
{
	struct outcome o = in_child(in_guest_without_handler, NULL, 20);

	ok(o.signal == place->signal, "without a handler %s %s ends the process (%s)",
	   place->write ? "a write" : "a read", place->name, outcome_text(o));
}

int main(void)
{
	struct klog log;

	begin(60);
	klog_begin(&log);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		place = &places[i];
		compare();
		if (place->signal)
			die_of_it();
	}
	other_probes();
	klog_end(&log);
	return done();
}

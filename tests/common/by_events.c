// SPDX-License-Identifier: MIT OR Apache-2.0
/* A vCPU without a host half: see by_events.h. */
#define _GNU_SOURCE
#include "by_events.h"
#include "child.h"
#include "private_show.h"
#include "rseq.h"
#include "tap.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE_PAGE	(2UL << 20)

struct dune_run *event_run;
struct guest event_guest;
char *event_stub;
bool event_keeps_fpu = true;
int event_on_open;
void (*event_before_bind)(void);
u32 event_flags;
void (*event_on_signal)(const struct dune_signal *signal);
void (*event_on_fault)(struct guest_frame *frame, u64 cr2);

void event_open(void)
{
	rseq_drop();
	guest_hides_run = true;
	guest_open(&event_guest);
	event_stub = stub_map(&event_guest);
	if (event_on_open && write(event_on_open, &event_stub, sizeof(event_stub)) < 0)
		child_fails("write: %s", strerror(errno));
}

long event_bind(struct dune_stub *argument, u32 flags, u32 vector)
{
	*argument = (struct dune_stub) {
		.size = sizeof(*argument), .flags = flags, .address = (u64)event_stub,
		.irq_vector = vector, .run = 1, .regs = event_guest.run->regs,
	};
	return ioctl(event_guest.fd, DUNE_SET_STUB, argument) ? -errno : 0;
}

/* Loads the FPU registers of the program, which the kernel has cleared for its handler. */
static void load_fpu(u64 state)
{
	if (read_xcr0())
		asm volatile("xrstor64 (%0)" : : "r"(state), "a"(-1), "d"(-1) : "memory");
	else
		asm volatile("fxrstor64 (%0)" : : "r"(state) : "memory");
}

static void on_trap(struct guest_frame *frame)
{
	u64 cr2;

	if (frame->vector == EVENT_VECTOR) {
		__atomic_store_n(&event_run->signal.waiting, 0, __ATOMIC_RELAXED);
		if (event_keeps_fpu)
			load_fpu(event_run->signal.fpstate);
		if (event_on_signal)
			event_on_signal(&event_run->signal);
		return;
	}
	asm volatile("mov %%cr2, %0" : "=r"(cr2));
	if (event_on_fault)
		event_on_fault(frame, cr2);
	else
		hypercall3(SYS_exit_group, 100 + frame->vector, 0, 0);
}

static u64 (*body)(void *arg);

/* Ring 3 makes calls by way of the guest's LSTAR. */
static u64 body_and_exit(void *arg)
{
	u64 status = body(arg);

	for (;;)
		raw_syscall(SYS_exit_group, status, 0, 0, 0, 0, 0);
	return 0;
}

static u64 body_and_exit0(void *arg)
{
	u64 status = body(arg);

	for (;;) {
		event_take();
		hypercall3(SYS_exit_group, status, 0, 0);
	}
	return 0;
}

int event_second(u64 (*fn)(void *arg), void *arg)
{
	static char stack[65536] __attribute__((aligned(64)));
	struct dune_create_vcpu create = { .size = sizeof(create) };
	struct guest second = event_guest;
	struct dune_stub argument = {
		.size = sizeof(argument), .address = (u64)event_stub, .irq_vector = EVENT_VECTOR,
		.regs = {
			.rip = (u64)guest_start0, .rbx = (u64)fn, .rdi = (u64)arg,
			.rsp = (u64)stack + sizeof(stack), .rflags = X86_EFLAGS_FIXED,
		},
	};

	second.fd = ioctl(event_guest.dev, DUNE_CREATE_VCPU, &create);
	if (second.fd < 0 || guest_set_state(&second, &second.state) ||
	    ioctl(second.fd, DUNE_SET_STUB, &argument))
		child_fails("no second vCPU: %s", strerror(errno));
	return second.fd;
}

void event_enter(unsigned int ring, u64 (*fn)(void *arg), void *arg)
{
	struct dune_stub argument;
	long err;

	guest_trap_handler = on_trap;
	body = fn;
	guest_prepare(&event_guest, ring, ring ? body_and_exit : body_and_exit0, arg);
	if (ring)
		event_guest.run->regs.rflags |= X86_EFLAGS_IF;
	/* The interrupt uses the current stack, or from ring 3 one that no exception uses. */
	guest_set_gate(&event_guest, EVENT_VECTOR, guest_stubs + EVENT_VECTOR * 16, 0, 0);
	event_guest.mem->tss.rsp[0] = (u64)event_guest.mem->trap_stack + 4096;
	if (event_before_bind)
		event_before_bind();
	err = event_bind(&argument, event_flags, EVENT_VECTOR);
	if (err == -ENOTTY)
		_exit(CHILD_SKIPS);
	if (err)
		child_fails("DUNE_SET_STUB: %s", strerror(-err));
	private_show(&event_guest, argument.run & -LARGE_PAGE);
	event_run = private_at(argument.run);
	stub_enter(event_stub, event_guest.fd);
}

void event_start(unsigned int ring, u64 (*fn)(void *arg), void *arg)
{
	event_open();
	event_enter(ring, fn, arg);
}

struct outcome event_in_child(u64 (*fn)(void *arg), void *arg, unsigned int seconds)
{
	int pid = checked_fork();

	if (!pid)
		event_start(0, fn, arg);
	return wait_child(pid, seconds);
}

bool event_vcpus(void)
{
	if (event_in_child(guest_return, NULL, 20).code != CHILD_SKIPS)
		return true;
	skip("this processor's guest-physical addresses are too narrow", "run pages");
	return false;
}

struct kernel_action {
	void *handler;
	u64 flags;
	void *restorer;
	u64 mask;
};

#define SA_RESTORER	0x04000000

/* The flags are read when a run begins. One begins after a privileged call. */
void event_slow(bool slow)
{
	event_run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
	privileged(SYS_getpid, 0, 0, 0, 0);
}

long event_catch(int nr, u64 flags)
{
	static struct kernel_action action;

	action.handler = event_stub + DUNE_STUB_SIGNAL;
	action.flags = SA_ONSTACK | SA_SIGINFO | SA_RESTORER | flags;
	action.restorer = event_stub;
	action.mask = ~0UL;
	return privileged(SYS_rt_sigaction, nr, (long)&action, 0, 8);
}

char *event_stack(void)
{
	static char stack[EVENT_STACK_SIZE] __attribute__((aligned(64)));
	static stack_t alternate = { .ss_sp = stack, .ss_size = EVENT_STACK_SIZE };

	privileged(SYS_sigaltstack, (long)&alternate, 0, 0, 0);
	return stack;
}

bool event_again(void)
{
	bool again = __atomic_load_n(&event_run->signal.again, __ATOMIC_RELAXED);

	__atomic_store_n(&event_run->signal.again, 0, __ATOMIC_RELAXED);
	return again;
}

void event_take(void)
{
	asm volatile("sti\n nop\n cli" : : : "memory");
}

void event_unblock(u64 mask)
{
	static u64 set;

	set = mask;
	hypercall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&set, 0, 8, 0, 0);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/* A vCPU without a host half: see by_alone.h. */
#define _GNU_SOURCE
#include "by_alone.h"
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

struct dune_run *alone_run;
struct guest alone_guest;
char *alone_stub;
bool alone_keeps_fpu = true;
int alone_on_open;
void (*alone_before_bind)(void);
u32 alone_flags;
void (*alone_on_signal)(const struct dune_signal *signal);
void (*alone_on_fault)(struct guest_frame *frame, u64 cr2);

void alone_open(void)
{
	rseq_drop();
	guest_hides_run = true;
	guest_open(&alone_guest);
	alone_stub = stub_map(&alone_guest);
	if (alone_on_open && write(alone_on_open, &alone_stub, sizeof(alone_stub)) < 0)
		child_fails("write: %s", strerror(errno));
}

long alone_bind(struct dune_stub *argument, u32 flags, u32 vector)
{
	*argument = (struct dune_stub) {
		.size = sizeof(*argument), .flags = flags, .address = (u64)alone_stub,
		.irq_vector = vector, .run = 1, .regs = alone_guest.run->regs,
	};
	return ioctl(alone_guest.fd, DUNE_SET_STUB, argument) ? -errno : 0;
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

	if (frame->vector == ALONE_VECTOR) {
		__atomic_store_n(&alone_run->signal.waiting, 0, __ATOMIC_RELAXED);
		if (alone_keeps_fpu)
			load_fpu(alone_run->signal.fpstate);
		if (alone_on_signal)
			alone_on_signal(&alone_run->signal);
		return;
	}
	asm volatile("mov %%cr2, %0" : "=r"(cr2));
	if (alone_on_fault)
		alone_on_fault(frame, cr2);
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
		alone_take();
		hypercall3(SYS_exit_group, status, 0, 0);
	}
	return 0;
}

int alone_second(u64 (*fn)(void *arg), void *arg)
{
	static char stack[65536] __attribute__((aligned(64)));
	struct dune_create_vcpu create = { .size = sizeof(create) };
	struct guest second = alone_guest;
	struct dune_stub argument = {
		.size = sizeof(argument), .address = (u64)alone_stub, .irq_vector = ALONE_VECTOR,
		.regs = {
			.rip = (u64)guest_start0, .rbx = (u64)fn, .rdi = (u64)arg,
			.rsp = (u64)stack + sizeof(stack), .rflags = X86_EFLAGS_FIXED,
		},
	};

	second.fd = ioctl(alone_guest.dev, DUNE_CREATE_VCPU, &create);
	if (second.fd < 0 || guest_set_state(&second, &second.state) ||
	    ioctl(second.fd, DUNE_SET_STUB, &argument))
		child_fails("no second vCPU: %s", strerror(errno));
	return second.fd;
}

void alone_enter(unsigned int ring, u64 (*fn)(void *arg), void *arg)
{
	struct dune_stub argument;
	long err;

	guest_trap_handler = on_trap;
	body = fn;
	guest_prepare(&alone_guest, ring, ring ? body_and_exit : body_and_exit0, arg);
	if (ring)
		alone_guest.run->regs.rflags |= X86_EFLAGS_IF;
	/* The interrupt uses the current stack, or from ring 3 one that no exception uses. */
	guest_set_gate(&alone_guest, ALONE_VECTOR, guest_stubs + ALONE_VECTOR * 16, 0, 0);
	alone_guest.mem->tss.rsp[0] = (u64)alone_guest.mem->trap_stack + 4096;
	if (alone_before_bind)
		alone_before_bind();
	err = alone_bind(&argument, alone_flags, ALONE_VECTOR);
	if (err == -ENOTTY)
		_exit(CHILD_SKIPS);
	if (err)
		child_fails("DUNE_SET_STUB: %s", strerror(-err));
	private_show(&alone_guest, argument.run & -LARGE_PAGE);
	alone_run = private_at(argument.run);
	stub_enter(alone_stub, alone_guest.fd);
}

void alone_start(unsigned int ring, u64 (*fn)(void *arg), void *arg)
{
	alone_open();
	alone_enter(ring, fn, arg);
}

struct outcome alone_in_child(u64 (*fn)(void *arg), void *arg, unsigned int seconds)
{
	int pid = checked_fork();

	if (!pid)
		alone_start(0, fn, arg);
	return wait_child(pid, seconds);
}

bool alone_vcpus(void)
{
	if (alone_in_child(guest_return, NULL, 20).code != CHILD_SKIPS)
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
void alone_slow(bool slow)
{
	alone_run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
	privileged(SYS_getpid, 0, 0, 0, 0);
}

long alone_catch(int nr, u64 flags)
{
	static struct kernel_action action;

	action.handler = alone_stub + DUNE_STUB_SIGNAL;
	action.flags = SA_ONSTACK | SA_SIGINFO | SA_RESTORER | flags;
	action.restorer = alone_stub;
	action.mask = ~0UL;
	return privileged(SYS_rt_sigaction, nr, (long)&action, 0, 8);
}

char *alone_stack(void)
{
	static char stack[ALONE_STACK_SIZE] __attribute__((aligned(64)));
	static stack_t alternate = { .ss_sp = stack, .ss_size = ALONE_STACK_SIZE };

	privileged(SYS_sigaltstack, (long)&alternate, 0, 0, 0);
	return stack;
}

bool alone_again(void)
{
	bool again = __atomic_load_n(&alone_run->signal.again, __ATOMIC_RELAXED);

	__atomic_store_n(&alone_run->signal.again, 0, __ATOMIC_RELAXED);
	return again;
}

void alone_take(void)
{
	asm volatile("sti\n nop\n cli" : : : "memory");
}

void alone_unblock(u64 mask)
{
	static u64 set;

	set = mask;
	hypercall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&set, 0, 8, 0, 0);
}

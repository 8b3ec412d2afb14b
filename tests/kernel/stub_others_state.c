// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Between a call that the stub makes and the run that resumes, the same thread asks for the state
 * of another vCPU: a native handler of a signal does, which the call itself has raised. Fails if
 * the run that resumes continues with something of the other vCPU's. On Intel that vCPU's VMCS was
 * then current, and the exit took the kernel's stack pointer from there: the machine crashed.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "tap.h"
#include "timing.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define CALLS	20

static struct guest other;
static volatile struct shared {
	u64 asked, errors;
} *shared;

static void ask(int sig)
{
	struct dune_state state = { .size = sizeof(state) };

	if (ioctl(other.fd, DUNE_GET_STATE, &state))
		shared->errors++;
	shared->asked++;
}

static u64 add_one(void *arg)
{
	return (u64)arg + 1;
}

static u64 kills(void *arg)
{
	long pid = hypercall0(SYS_getpid);
	u64 wrong = 0;

	alone_slow(true);
	for (int i = 0; i < CALLS; i++)
		wrong += hypercall3(SYS_kill, pid, SIGUSR1, 0) != 0 ||
			 hypercall0(SYS_getpid) != pid;
	return wrong;
}

static void body(void *arg)
{
	static char stack[ALONE_STACK_SIZE];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = ask, .sa_flags = SA_ONSTACK };

	/* Its VMCS is active on this CPU from now on. */
	guest_open(&other);
	if (guest_call(&other, add_one, (void *)41) != GUEST_DONE || other.value != 42)
		bail("the other vCPU does not run");
	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	alone_start(0, kills, NULL);
}

int main(void)
{
	struct outcome o;

	begin(60);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	o = in_child(body, NULL, 20);
	ok(outcome_is(o, 0), "a guest whose calls are followed by such requests (%s)",
	   outcome_text(o));
	is(shared->asked, CALLS, "each call was followed by one");
	is(shared->errors, 0, "and each was answered");
	return done();
}

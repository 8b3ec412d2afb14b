// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A tracer that comes while a guest's call is being filtered, changes the call where the filter
 * asks the tracer (SECCOMP_RET_TRACE), and is gone before the call is made. Fails when a call is
 * made that the filters forbid, when the changed call is not made, or when a call is made within
 * the run that must not be (DUNE_RUN).
 */
#define _GNU_SOURCE
#include "child.h"
#include "filter.h"
#include "guest.h"
#include "guest_calls.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	100
#define TRACED	0x3ffffff	/* first argument of the call that the filter asks about */

/* The guest's call, and the one that the tracer makes of it. */
struct change {
	long from, to, rsi;
	unsigned int otherwise;		/* the filter's answer to other calls @from */
};

/* Shared by the guest's process, the tracer and the test. */
static struct shared {
	volatile int ready, stop;
	volatile int vcpu;		/* another vCPU of the guest's process */
	volatile long forbidden;	/* result of the call that the filters forbid */
	volatile long denied;		/* results -ENOSYS: the filter found no tracer */
	volatile long nested;		/* results 0 of a call that the module made */
	volatile long parent;		/* results of getppid() */
} *shared;

static pid_t victim;
static struct guest g, other;

static u64 calls(void *arg)
{
	const struct change *change = arg;
	const volatile __u64 *slow_calls = &g.run->counters[DUNE_COUNT_SYSCALL_SLOW];

	shared->forbidden = hypercall3(SYS_kill, victim, SIGKILL, 0);
	shared->ready = 1;
	while (!shared->stop) {
		u64 before = *slow_calls;
		long ret = hypercall3(change->from, TRACED, 0, 0);

		shared->denied += ret == -ENOSYS;
		shared->nested += ret == 0 && *slow_calls == before;
		shared->parent += ret > 0;
	}
	return 0;
}

static void install(const struct change *change)
{
	struct sock_filter policy[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, change->from, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRACED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, change->otherwise),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_slowly(policy, FILTER_LEN(policy), change->from);
}

static void run_guest(const struct change *change)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	guest_open(&g);
	guest_open(&other);
	shared->vcpu = other.fd;
	install(change);
	if (guest_call(&g, calls, (void *)change) != GUEST_DONE)
		child_fails("the guest did not return");
}

/* Waits for the filter's question, and gives an answer. Returns whether it was asked. */
static bool change_one_call(pid_t pid, const struct change *change)
{
	struct user_regs_struct regs;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACESECCOMP) ||
	    waitpid(pid, &status, __WALL) != pid)
		return false;

	bool asked = status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8);

	if (asked) {
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		regs.orig_rax = change->to;
		regs.rdi = change->to == SYS_ioctl ? shared->vcpu : victim;
		regs.rsi = change->rsi;
		regs.rdx = 0;
		ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	}
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return asked;
}

/* A guest, of which a tracer changes calls. Returns how many it changed. */
static int trace_guest(const struct change *change)
{
	struct outcome o;
	int changed = 0;

	memset(shared, 0, sizeof(*shared));

	pid_t pid = checked_fork();

	if (!pid) {
		run_guest(change);
		_exit(0);
	}
	while (!shared->ready && !waitpid(pid, NULL, WNOHANG))
		sleep_ms(1);

	for (int i = 0; i < ROUNDS; i++) {
		sleep_ms(1);
		changed += change_one_call(pid, change);
	}
	shared->stop = 1;
	o = wait_child(pid, 20);
	ok(!o.code, "the guest continues after its tracers are gone (%s)", outcome_text(o));
	return changed;
}

static void wait_to_be_killed(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

int main(void)
{
	/* getppid() with the arguments of a call that the filters forbid */
	static const struct change to_getppid = {
		SYS_kill, SYS_getppid, SIGKILL, SECCOMP_RET_ERRNO | EPERM
	};
	static const struct change to_run = {
		SYS_ioctl, SYS_ioctl, DUNE_RUN, SECCOMP_RET_ALLOW
	};

	begin(120);
	shared = shared_alloc(sizeof(*shared));
	victim = checked_fork();
	if (!victim)
		wait_to_be_killed();

	int changed = trace_guest(&to_getppid);

	diag("%d calls were changed, %ld ran without a tracer", changed, shared->denied);
	ok(shared->forbidden == -EPERM, "the filters forbid the call without a tracer");
	ok(changed > ROUNDS / 2, "the tracer changes calls");
	ok(shared->parent > 0, "a changed call is made");
	ok(!waitpid(victim, NULL, WNOHANG), "no call is made that the filters forbid");

	changed = trace_guest(&to_run);
	ok(changed > ROUNDS / 2, "the tracer changes calls to DUNE_RUN");
	ok(!shared->nested, "DUNE_RUN is not made within a run");
	kill(victim, SIGKILL);
	return done();
}

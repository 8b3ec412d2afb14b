// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * seccomp holds for the calls of a guest: filters made before the guest runs,
 * made by the guest, and put on the thread by another one while the guest runs;
 * strict mode. Fails when the fast path executes a call without running the
 * thread's filters, shows them another call, ignores their decision, takes an errno of theirs
 * for a call that a signal interrupted, or when calls of a thread with a filter take the slow
 * path.
 */
#define _GNU_SOURCE
#include "child.h"
#include "filter.h"
#include "guest.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static struct guest g;

/* The arguments of the call that ordered_arguments() makes. */
static const u64 ordered[] = { 0x1122334455667788, 2, 3ULL << 32, ~0ULL, 5, 6 };

/* The filter's answer to getppid() is @action. */
static int install(u32 action, unsigned int flags)
{
	return filter_call(SYS_getppid, action, flags);
}

static u64 getppids(void *arg)
{
	long last = 0;

	for (long i = 0; i < (long)arg; i++)
		last = hypercall0(SYS_getppid);
	return last;
}

static void begin_guest(void)
{
	guest_open(&g);
	/* Once without a filter: anything that a module may cache is cached now. */
	if (guest_call(&g, getppids, (void *)10) != GUEST_DONE || (int)g.value != getppid())
		child_fails("the guest does not run without a filter");
}

static void errno_filter(void *arg)
{
	begin_guest();
	install(SECCOMP_RET_ERRNO | 123, 0);
	if (guest_call(&g, getppids, (void *)10) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != (u64)-123)
		child_fails("the guest has another result: %ld", (long)g.value);
}

/* No signal is pending: such a result is not a reason to make the call again. */
static void restart_errno_filter(void *arg)
{
	begin_guest();
	install(SECCOMP_RET_ERRNO | (long)arg, 0);
	if (guest_call(&g, getppids, (void *)10) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != -(u64)arg)
		child_fails("the guest has another result: %ld", (long)g.value);
	if (g.restarts)
		child_fails("a call that no signal interrupted was made again");
}

static void kill_filter(void *arg)
{
	begin_guest();
	install(SECCOMP_RET_KILL_PROCESS, 0);
	guest_call(&g, getppids, (void *)1);
}

static volatile int trapped;

/* The signal interrupts DUNE_RUN's ioctl: the call's result is in the guest's registers. */
static void sigsys(int sig, siginfo_t *info, void *context)
{
	trapped = info->si_syscall;
	g.run->regs.rax = 777;
}

static void trap_filter(void *arg)
{
	struct sigaction sa = { .sa_sigaction = sigsys, .sa_flags = SA_SIGINFO };

	begin_guest();
	sigaction(SIGSYS, &sa, NULL);
	install(SECCOMP_RET_TRAP, 0);
	if (guest_call(&g, getppids, (void *)1) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != 777 || trapped != SYS_getppid)
		child_fails("the guest has another result, or SIGSYS another number");
}

/* Adds to @f a filter that ends with errno 100 + n if argument n is not ordered[n]. */
static unsigned int compare_arguments(struct sock_filter *f)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 6; i++) {
		for (unsigned int half = 0; half < 2; half++) {
			u32 offset = offsetof(struct seccomp_data, args[i]) + 4 * half;
			u32 value = ordered[i] >> (32 * half);

			struct sock_filter compare[] = {
				BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
				BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0),
				BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (100 + i)),
			};

			memcpy(f + n, compare, sizeof(compare));
			n += sizeof(compare) / sizeof(compare[0]);
		}
	}
	return n;
}

static u64 ordered_arguments(void *arg)
{
	return hypercall(SYS_getppid, ordered[0], ordered[1], ordered[2], ordered[3], ordered[4],
			 ordered[5]);
}

static void argument_filter(void *arg)
{
	struct sock_filter f[64] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 99),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	unsigned int len;

	begin_guest();
	len = 6 + compare_arguments(f + 6);
	f[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 88);
	filter_install(f, len, 0);
	if (guest_call(&g, ordered_arguments, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != (u64)-88)
		child_fails("the filter saw another argument");
}

/* Calls that a filter permits: none may take the slow path. */
static void permitting_filter(void *arg)
{
	begin_guest();
	install(SECCOMP_RET_ALLOW, 0);
	g.slow = 0;
	if (guest_call(&g, getppids, (void *)1000) != GUEST_DONE)
		child_fails("the guest did not return");
	if ((int)g.value != getppid())
		child_fails("the guest has another result: %ld", (long)g.value);
	/* An interrupt of the host half's makes a call slow. */
	if (g.slow > 100)
		child_fails("calls took the slow path");
}

/* Answers one call of the process with the filter whose @listener this is. */
static int supervise(int listener)
{
	struct seccomp_notif request = { 0 };
	struct seccomp_notif_resp answer = { .val = 4242 };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) ||
	    request.data.nr != SYS_getppid || request.data.args[5] != ordered[5])
		return 1;
	answer.id = request.id;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0;
}

static void notify_filter(void *arg)
{
	int listener, status;

	begin_guest();
	listener = install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	pid_t pid = checked_fork();

	if (!pid)
		_exit(supervise(listener));
	if (guest_call(&g, ordered_arguments, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
	if (waitpid(pid, &status, 0) != pid || status)
		child_fails("the supervisor saw another call");
	if (g.value != 4242)
		child_fails("the guest has another result than the supervisor's");
}

/* The supervisor kills the process, whose call waits for its answer. */
static void killed_notify(void *arg)
{
	struct seccomp_notif request = { 0 };
	pid_t waiting = getpid();
	int listener;

	begin_guest();
	listener = install(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (!checked_fork()) {
		ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request);
		_exit(kill(waiting, SIGKILL));
	}
	guest_call(&g, getppids, (void *)1);
}

static void trace_filter(void *arg)
{
	begin_guest();
	install(SECCOMP_RET_TRACE, 0);
	guest_call(&g, getppids, (void *)1);
	if (g.value != (u64)-ENOSYS)
		child_fails("the guest has another result: %ld", (long)g.value);
}

static u64 guest_installs(void *program)
{
	if (hypercall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0))
		return 1;
	if (hypercall3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)program))
		return 2;
	return hypercall0(SYS_getppid);
}

static void guest_filter(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = FILTER_LEN(code), .filter = code };

	begin_guest();
	if (guest_call(&g, guest_installs, &program) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != (u64)-77)
		child_fails("the guest has another result: %ld", (long)g.value);
}

static u64 guest_strict(void *arg)
{
	hypercall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0, 0);
	hypercall0(SYS_getppid);
	return 0;
}

static void strict_mode(void *arg)
{
	begin_guest();
	guest_call(&g, guest_strict, NULL);
}

static u64 strict_write(void *arg)
{
	hypercall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0, 0);
	/* write() is allowed in strict mode; the ioctl that runs a guest is not. */
	hypercall3(SYS_write, (long)arg, (long)"x", 1);
	return 0;
}

static void strict_allowed(void *arg)
{
	begin_guest();
	guest_call(&g, strict_write, arg);
}

static volatile int filtered, running;

static u64 until_filtered(void *arg)
{
	running = 1;
	for (;;) {
		long v = hypercall0(SYS_getppid);

		if (v == -55)
			return 1;
		/* The filter was on before this was set: the call had to see it. */
		if (__atomic_load_n(&filtered, __ATOMIC_SEQ_CST) == 2)
			return 0;
		if (filtered == 1)
			filtered = 2;
	}
}

static void *other_thread(void *arg)
{
	while (!running)
		sleep_ms(1);
	sleep_ms(20);
	if (install(SECCOMP_RET_ERRNO | 55, SECCOMP_FILTER_FLAG_TSYNC))
		child_fails("a thread cannot have the filter");
	__atomic_store_n(&filtered, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void tsync(void *arg)
{
	pthread_t t;

	begin_guest();
	pthread_create(&t, NULL, other_thread, NULL);
	if (guest_call(&g, until_filtered, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != 1)
		child_fails("a call after the filter was not filtered");
}

static u64 kill_in_a_row(void *arg)
{
	hypercall0(SYS_getpid);
	hypercall0(SYS_getppid);
	hypercall3(SYS_exit_group, 55, 0, 0);
	return 0;
}

static void kill_thread(void *arg)
{
	begin_guest();
	install(SECCOMP_RET_KILL_THREAD, 0);
	guest_call(&g, kill_in_a_row, NULL);
}

static void *exits_later(void *arg)
{
	sleep_ms(500);
	_exit(33);
}

/* The filter ends only the guest's thread. */
static void kill_one_thread(void *arg)
{
	pthread_t t;

	begin_guest();
	pthread_create(&t, NULL, exits_later, NULL);
	install(SECCOMP_RET_KILL_THREAD, 0);
	guest_call(&g, kill_in_a_row, NULL);
}

/* A child that runs @fn exits with 0, or @signal ends it. */
static const struct {
	void (*fn)(void *arg);
	int signal;
	const char *name;
} cases[] = {
	{ errno_filter, 0, "a filter's errno is the guest's result" },
	{ kill_filter, SIGSYS, "a filter that kills the process kills it by SIGSYS" },
	{ kill_thread, SIGSYS, "a filter that kills the thread kills it by SIGSYS" },
	{ trap_filter, 0, "a filter that traps sends SIGSYS with the guest's number" },
	{ argument_filter, 0, "a filter sees the call's architecture and arguments" },
	{ permitting_filter, 0, "calls that a filter permits take the fast path" },
	{ notify_filter, 0, "a supervisor's answer is the guest's result" },
	{ killed_notify, SIGKILL, "a call that waits for a supervisor can be killed" },
	{ trace_filter, 0, "a filter that asks a tracer gives ENOSYS where there is none" },
	{ guest_filter, 0, "a filter that the guest installs holds for its next call" },
	{ tsync, 0, "a filter that another thread puts on a running guest (TSYNC) holds" },
	{ strict_mode, SIGKILL, "strict mode kills at the guest's next call" },
};

/* The numbers by which the kernel asks for a restart, and ENOIOCTLCMD, which is among them. */
static void restart_numbers(void)
{
	for (long n = 512; n <= 516; n++) {
		struct outcome o = in_child(restart_errno_filter, (void *)n, 30);

		ok(outcome_is(o, 0), "a filter's errno %ld is the guest's result (%s)", n,
		   outcome_text(o));
	}
}

static void one_thread_of_two(void)
{
	long before = dune_users_now(), after;
	struct outcome o = in_child(kill_one_thread, NULL, 20);

	ok(o.code == 33, "a filter that kills the thread spares the process's other thread (%s)",
	   outcome_text(o));
	after = module_users("dune", before);
	ok(before >= 0 && after == before,
	   "the killed thread leaves no reference to the module (%ld, before %ld)", after, before);
}

static void allowed_in_strict_mode(void)
{
	struct outcome o;
	int p[2];
	char c = 0;

	if (pipe2(p, O_NONBLOCK))
		bail("pipe: %m");
	o = in_child(strict_allowed, (void *)(long)p[1], 20);
	ok(o.signal == SIGKILL, "strict mode kills after write, which it allows (%s)",
	   outcome_text(o));
	/*
	 * An interrupt between the two calls means an ioctl between them: killed
	 * before the write.
	 */
	diag("the write %s", read(p[0], &c, 1) == 1 && c == 'x' ? "was made" : "came too late");
}

int main(void)
{
	begin(90);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o = in_child(cases[i].fn, NULL, 30);

		ok(outcome_is(o, cases[i].signal), "%s (%s)", cases[i].name, outcome_text(o));
	}
	restart_numbers();
	one_thread_of_two();
	allowed_in_strict_mode();
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * User mode runs a vCPU by the stub (struct dune_stub): the guest's slow calls are made in the
 * stub, with their number, arguments and result. A debugger and seccomp decide about such a call,
 * and it can be killed, as any call. Nobody but the stub's own lseek() enters the guest, a failed
 * one ends the process, and the guest is refused the calls that concern user mode. Fails when one
 * of these rules of dune.h does not hold.
 */
#define _GNU_SOURCE
#include "child.h"
#include "by_alone.h"
#include "filter.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS	20

/* What children leave for the parent. */
static volatile struct shared {
	char *stub;
	long result[64];
	bool again[64];
	u64 slow;	/* DUNE_COUNT_SYSCALL_SLOW */
	u64 wrong;
	bool nested;	/* a second vCPU has run */
	bool sleeps;
} *shared;

static struct outcome in_new_child(void (*fn)(void *arg), void *arg)
{
	memset((void *)shared, 0, sizeof(*shared));
	return in_child(fn, arg, 20);
}

static u64 slow_calls(void)
{
	return alone_run->counters[DUNE_COUNT_SYSCALL_SLOW];
}

/* Counts the results that are not @arg. */
static u64 getppids(void *arg)
{
	u64 before;

	before = slow_calls();
	for (int i = 0; i < CALLS; i++)
		shared->wrong += hypercall0(SYS_getppid) != (long)arg;
	shared->slow = slow_calls() - before;
	return 0;
}

static u64 slow_getppids(void *arg)
{
	alone_slow(true);
	return getppids(arg);
}

static void calls_in_child(void *slow)
{
	alone_start(0, slow ? slow_getppids : getppids, (void *)(long)getppid());
}

static void calls(bool slow)
{
	struct outcome o = in_new_child(calls_in_child, slow ? "" : NULL);

	ok(!o.code && !shared->wrong && shared->slow == (slow ? CALLS : 0),
	   "calls in the %s have their results (%s, %lu wrong, %lu slow)",
	   slow ? "stub" : "module", outcome_text(o), shared->wrong, shared->slow);
}

/* ---- entering */

static u64 be_nested(void *arg)
{
	for (;;) {
		shared->nested = true;
		privileged(SYS_exit_group, 99, 0, 0, 0);
	}
	return 0;
}

static u64 seek(void *fd)
{
	return hypercall3(SYS_lseek, (long)fd, 0, 0);
}

/* Makes a system call by the instruction with which the stub enters. Returns its result. */
static long entering_syscall(long nr, long a, long b, long c)
{
	struct sigaction sa = { .sa_sigaction = stub_leave, .sa_flags = SA_SIGINFO }, old;
	long ret = nr;

	sigaction(SIGILL, &sa, &old);
	asm volatile("call *%[syscall]"
		     : "+a"(ret)
		     : [syscall] "r"(alone_stub + STUB_ENTERED - 2), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory", "cc");
	sigaction(SIGILL, &old, NULL);
	return ret;
}

static u64 seeks(void *fd)
{
	shared->result[0] = seek(fd);
	shared->result[1] = seek((void *)(long)alone_guest.fd);
	shared->slow = slow_calls();
	alone_slow(true);
	shared->result[2] = seek(fd);
	shared->result[3] = privileged(SYS_lseek, (long)fd, 0, 0, 0);
	shared->result[4] = seek((void *)(long)alone_guest.fd);
	return 0;
}

static void seeks_in_child(void *filtered)
{
	int second;

	alone_open();
	second = alone_second(be_nested, NULL);
	if (filtered)
		filter_call(SYS_getppid, SECCOMP_RET_ERRNO | 77, 0);
	alone_enter(0, seeks, (void *)(long)second);
}

/* A guest that runs by DUNE_RUN, in the same thread. */
static void run_in_child(void *arg)
{
	static struct guest other;
	int second;

	alone_open();
	second = alone_second(be_nested, NULL);
	guest_hides_run = false;
	guest_open(&other);
	shared->result[0] = guest_call(&other, seek, (void *)(long)second);
	shared->result[1] = other.value;
	guest_prepare(&other, 0, seek, (void *)(long)second);
	shared->result[2] = entering_syscall(SYS_ioctl, other.fd, DUNE_RUN, 0);
	shared->result[3] = other.run->exit_reason;
	shared->result[4] = other.run->regs.rdi;
	/* Not in the stub. */
	shared->result[5] = raw_syscall(SYS_lseek, second, 0, 0, 0, 0, 0);
	_exit(0);
}

static void nested(void)
{
	struct outcome o = in_new_child(seeks_in_child, NULL);

	ok(!o.code && shared->result[0] == -EPERM && !shared->slow && !shared->nested,
	   "a guest's lseek() does not run another vCPU (%s, %ld)", outcome_text(o),
	   shared->result[0]);
	is(shared->result[1], -EPERM, "a guest's lseek() does not run its own vCPU");
	ok(shared->result[2] == -EPERM && shared->result[3] == -EPERM &&
	   shared->result[4] == -EPERM,
	   "nor do they as calls in the stub (%ld, %ld, %ld)", shared->result[2],
	   shared->result[3], shared->result[4]);
	o = in_new_child(seeks_in_child, "");
	ok(!o.code && shared->result[0] == -EPERM && shared->result[1] == -EPERM &&
	   !shared->slow && !shared->nested,
	   "nor do they with a seccomp filter (%s, %ld, %ld)", outcome_text(o),
	   shared->result[0], shared->result[1]);
	o = in_new_child(run_in_child, NULL);
	ok(!o.code && shared->result[0] == GUEST_DONE && shared->result[1] == -EPERM &&
	   !shared->nested,
	   "nor does it in a run by DUNE_RUN (%s, %ld)", outcome_text(o), shared->result[1]);
	ok(!shared->result[2] && shared->result[3] == DUNE_EXIT_HOSTCALL &&
	   shared->result[4] == -EPERM,
	   "nor does it in a DUNE_RUN that has the RIP of the stub's lseek() (%ld, %ld)",
	   shared->result[2], shared->result[4]);
	is(shared->result[5], -EPERM, "lseek() outside of the stub does not enter the guest");
}

static void enter_by(int fd)
{
	alone_open();
	stub_enter(alone_stub, fd);
}

static void enter_other_file(void *arg)
{
	enter_by(open("/dev/null", O_RDWR));
}

static void enter_no_file(void *arg)
{
	enter_by(1000);
}

static void enter_unbound(void *arg)
{
	alone_open();
	stub_enter(alone_stub, alone_guest.fd);
}

/* The child of a process with a vCPU inherits the stub and the vCPU's descriptor. */
static void enter_of_other_process(void *arg)
{
	int status, pid, second;

	alone_open();
	second = alone_second(be_nested, NULL);
	pid = checked_fork();
	if (!pid)
		stub_enter(alone_stub, second);
	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		raise(WTERMSIG(status));
}

static void wrong_descriptors(void)
{
	static const struct {
		const char *name;
		void (*fn)(void *arg);
	} wrong[] = {
		{ "another file", enter_other_file }, { "no file", enter_no_file },
		{ "a vCPU without a stub", enter_unbound },
		{ "another process's vCPU", enter_of_other_process },
	};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct outcome o = in_new_child(wrong[i].fn, NULL);

		ok(o.signal == SIGILL && !shared->nested, "UD2 follows lseek() of %s (%s)",
		   wrong[i].name, outcome_text(o));
	}
}

/* ---- what is refused */

#define X32	0x40000000

static u64 argument[32];

/* The first argument of ioctl is the vCPU's descriptor, that of madvise the stub's address. */
static const struct attempt {
	const char *name;
	long nr, arg[4];
	long error;
} attempts[] = {
	{ "rt_sigaction", SYS_rt_sigaction, { SIGUSR1 }, -EPERM },
	{ "sigaltstack", SYS_sigaltstack, { 0 }, -EPERM },
	{ "rt_sigreturn", SYS_rt_sigreturn, { 0 }, -EPERM },
	{ "rseq", SYS_rseq, { (long)argument, 32 }, -EPERM },
	{ "clone", SYS_clone, { SIGCHLD }, -EPERM },
	{ "clone3", SYS_clone3, { (long)argument, 64 }, -EPERM },
	{ "fork", SYS_fork, { 0 }, -EPERM },
	{ "vfork", SYS_vfork, { 0 }, -EPERM },
	{ "execve", SYS_execve, { (long)"/bin/true" }, -EPERM },
	{ "execveat", SYS_execveat, { AT_FDCWD, (long)"/bin/true" }, -EPERM },
	{ "ptrace", SYS_ptrace, { PTRACE_TRACEME }, -EPERM },
	{ "prctl(PR_SET_SYSCALL_USER_DISPATCH)", SYS_prctl,
	  { PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF }, -EPERM },
	{ "prctl(PR_SET_MM)", SYS_prctl,
	  { PR_SET_MM, PR_SET_MM_MAP_SIZE, (long)argument }, -EPERM },
	{ "user dispatch with more bits in its option", SYS_prctl,
	  { PR_SET_SYSCALL_USER_DISPATCH | 1L << 32, PR_SYS_DISPATCH_OFF }, -EPERM },
	{ "DUNE_GET_STATE", SYS_ioctl, { 0, DUNE_GET_STATE, (long)argument }, -EPERM },
	{ "DUNE_RUN", SYS_ioctl, { 0, DUNE_RUN }, -EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 1, (long)argument }, -EPERM },
	{ "io_uring_enter", SYS_io_uring_enter, { -1 }, -EPERM },
	{ "io_uring_register", SYS_io_uring_register, { -1 }, -EPERM },
	{ "madvise(MADV_DONTFORK) of the stub", SYS_madvise, { 0, 4096, MADV_DONTFORK }, -EPERM },
	{ "process_madvise(MADV_DONTFORK)", SYS_process_madvise,
	  { -1, (long)argument, 1, MADV_DONTFORK }, -EPERM },
	{ "x32's rt_sigaction", X32 | 512, { 0 }, -ENOSYS },
	{ "a number without a call", 5000, { 0 }, -ENOSYS },
};

#define ATTEMPTS	((int)(sizeof(attempts) / sizeof(attempts[0])))

enum how { FAST, SLOW, WAITING, WAYS };

static long make_attempt(const struct attempt *a)
{
	long first = a->arg[0];

	if (a->nr == SYS_ioctl)
		first = alone_guest.fd;
	if (a->nr == SYS_madvise)
		first = (long)alone_stub;
	return hypercall(a->nr, first, a->arg[1], a->arg[2], a->arg[3], 0, 0);
}

static u64 attempt(void *way)
{
	enum how how = (long)way;

	shared->result[ATTEMPTS] = hypercall3(SYS_prctl, PR_GET_DUMPABLE, 0, 0);
	if (how == SLOW)
		alone_slow(true);
	if (how == WAITING) {
		alone_stack();
		alone_catch(SIGUSR1, 0);
		hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGUSR1, 0);
	}
	for (int i = 0; i < ATTEMPTS; i++) {
		shared->result[i] = make_attempt(&attempts[i]);
		shared->again[i] = alone_again();
	}
	return 0;
}

static void attempt_in_child(void *way)
{
	alone_start(0, attempt, way);
}

static void refused(enum how how)
{
	static const char *const names[WAYS] = {
		"is refused on the fast path", "is refused on the slow path",
		"is not made while the guest has not taken its interrupt",
	};
	struct outcome o = in_new_child(attempt_in_child, (void *)(long)how);

	ok(!o.code && shared->result[ATTEMPTS] == prctl(PR_GET_DUMPABLE),
	   "another option of prctl is permitted (%s, %ld)", outcome_text(o),
	   shared->result[ATTEMPTS]);
	for (int i = 0; i < ATTEMPTS; i++) {
		const struct attempt *a = &attempts[i];
		bool waits = how == WAITING;

		ok(shared->result[i] == (waits ? a->nr : a->error) && shared->again[i] == waits,
		   "%s %s (%ld)", a->name, names[how], shared->result[i]);
	}
}

/*
 * Calls that take the slow path, if they do, because a stub may refuse them. For io_uring_register
 * -1 means no ring since 6.13, so -2 is the descriptor that does not exist.
 */
static const struct attempt made[] = {
	{ "rt_sigaction", SYS_rt_sigaction, { SIGUSR1 }, -EINVAL },
	{ "io_uring_enter", SYS_io_uring_enter, { -1 }, -EBADF },
	{ "io_uring_register", SYS_io_uring_register, { -2 }, -EBADF },
	{ "madvise(MADV_DONTFORK)", SYS_madvise, { 0, 4096, MADV_DONTFORK }, -ENOMEM },
	{ "process_madvise(MADV_DONTFORK)", SYS_process_madvise,
	  { -1, (long)argument, 0, MADV_DONTFORK }, -EBADF },
};

static u64 make(void *attempt)
{
	return make_attempt(attempt);
}

/* Without a stub nothing of this is refused, and the module dispatches it. */
static void unbound(void)
{
	static struct guest other;

	guest_open(&other);
	for (unsigned int i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		u64 before = other.run->counters[DUNE_COUNT_SYSCALL_SLOW];
		enum guest_end end = guest_call(&other, make, (void *)&made[i]);

		ok(end == GUEST_DONE && other.value == (u64)made[i].error &&
		   other.run->counters[DUNE_COUNT_SYSCALL_SLOW] == before,
		   "%s without a stub is made in the module (%s, %ld)", made[i].name,
		   guest_end_name(&other, end), other.value);
	}
	guest_close(&other);
}

/* ---- the interface; kernel/stub_alone has the rest */

static void interface(void)
{
	struct dune_stub s = { .size = sizeof(s) };
	static struct guest fresh;
	char *page;

	guest_open(&fresh);
	ok(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fresh.fd, DUNE_STUB_OFFSET) ==
	   MAP_FAILED && errno == EINVAL, "a writable stub: EINVAL");
	ok(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fresh.fd, DUNE_STUB_OFFSET) == MAP_FAILED &&
	   errno == EINVAL, "a private stub: EINVAL");
	page = stub_map(&fresh);
	is(call(fresh.fd, DUNE_SET_STUB, NULL), -EFAULT, "DUNE_SET_STUB without an argument");
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "no stub at address 0");
	s.address = (u64)page + 1;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "an address within the stub");
	s.address = (u64)fresh.run;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "another mapping of the vCPU");
	s.address = (u64)page;
	s.size--;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "a wrong size");
	guest_close(&fresh);
}

/* ---- calls of a thread that a filter or a tracer watches */

static void filter_in_child(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	alone_open();
	code[3].k = (u32)(u64)(alone_stub + DUNE_STUB_CALL + 2);
	filter_install(code, FILTER_LEN(code), 0);
	alone_enter(0, slow_getppids, (void *)-77L);
}

static void filtered(void)
{
	struct outcome o = in_new_child(filter_in_child, NULL);

	ok(!o.code && !shared->wrong && shared->slow == CALLS,
	   "a filter sees a call in the stub, and its address (%s, %lu wrong)", outcome_text(o),
	   shared->wrong);
}

static u64 ordered_calls(void *arg)
{
	for (int i = 0; i < 4; i++)
		shared->result[i] = hypercall(SYS_getpriority, 0x1000 + i, 2, 3, 4, 5, 6);
	return 7;
}

static void be_traced(void)
{
	alone_open();
	shared->stub = alone_stub;
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	alone_enter(0, ordered_calls, NULL);
}

static void traced(bool steps)
{
	int entries = 0, exits = 0, wrong = 0, status, pid;
	struct __ptrace_syscall_info info;
	bool mine = false;

	memset((void *)shared, 0, sizeof(*shared));
	pid = checked_fork();
	if (!pid)
		be_traced();
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (int n = 0; WIFSTOPPED(status); n++) {
		ptrace(steps && n < 2000 && n & 1 ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			mine = info.entry.nr == SYS_getpriority;
			if (!mine)
				continue;
			wrong += info.entry.args[0] != 0x1000u + entries ||
				 info.entry.args[1] != 2 || info.entry.args[2] != 3 ||
				 info.entry.args[3] != 4 || info.entry.args[4] != 5 ||
				 info.entry.args[5] != 6 ||
				 info.instruction_pointer !=
					 (u64)(shared->stub + DUNE_STUB_CALL + 2);
			entries++;
		} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && mine) {
			mine = false;
			if (++exits == 2)
				ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rax),
				       4242L);
		}
	}
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7 && !wrong &&
	   (steps || (entries == 4 && exits == 4)),
	   "a tracer %s sees each call, its arguments and the stub (%d, %d, %d wrong, status %#x)",
	   steps ? "in single steps" : "of calls", entries, exits, wrong, status);
	ok(shared->result[0] == -EINVAL && (steps || shared->result[1] == 4242),
	   "the guest has the results that the tracer left (%ld, %ld)", shared->result[0],
	   shared->result[1]);
}

static u64 sleep_long(void *arg)
{
	static struct timespec ts = { .tv_sec = 1000 };

	alone_slow(true);
	shared->sleeps = true;
	return hypercall3(SYS_nanosleep, (long)&ts, 0, 0);
}

static void killed(void)
{
	struct outcome o;
	int pid;

	memset((void *)shared, 0, sizeof(*shared));
	pid = checked_fork();
	if (!pid)
		alone_start(0, sleep_long, NULL);
	WAIT_FOR(shared->sleeps, 5);
	sleep_ms(50);
	kill(pid, SIGKILL);
	o = wait_child(pid, 20);
	ok(shared->sleeps && o.signal == SIGKILL, "a call in the stub can be killed (%s)",
	   outcome_text(o));
}

int main(void)
{
	begin(120);
	shared = shared_alloc(sizeof(*shared));
	interface();
	unbound();
	if (!alone_vcpus())
		return done();
	calls(false);
	calls(true);
	nested();
	wrong_descriptors();
	for (enum how how = 0; how < WAYS; how++)
		refused(how);
	filtered();
	traced(false);
	traced(true);
	killed();
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * User mode runs a vCPU by the stub (struct dune_stub): the guest's slow calls are made in the
 * stub, with their number, arguments and result; all other exits leave it. A debugger and seccomp
 * decide about such a call, and signals interrupt it, as any call. Nobody but the stub's own
 * lseek() enters the guest, a failed one ends the process, and the guest is refused the calls
 * that concern user mode. Fails when one of these rules of dune.h does not hold.
 */
#define _GNU_SOURCE
#include "child.h"
#include "by_stub.h"
#include "filter.h"
#include "rseq.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <asm/processor-flags.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static struct guest g;
static char *stub;

#define CALLS	20

/* The offset of the instruction after the stub's lseek(). */
#define ENTERED	7

/* Counts the results that are not @arg. */
static u64 getppids(void *arg)
{
	u64 wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += hypercall0(SYS_getppid) != (long)arg;
	return wrong;
}

static unsigned long slow_calls(void)
{
	return g.run->counters[DUNE_COUNT_SYSCALL_SLOW];
}

static void calls(u32 flags, const char *how, unsigned int slow)
{
	unsigned long before = slow_calls();
	enum guest_end end;

	g.run->flags = flags;
	end = stub_call(&g, stub, getppids, (void *)(long)getppid());
	ok(end == GUEST_DONE && !g.value && slow_calls() - before == slow,
	   "calls %s have their results (%s, %lu slow)", how, guest_end_name(&g, end),
	   slow_calls() - before);
	g.run->flags = 0;
}

/* ---- leaving the stub */

static u64 one_call(void *arg)
{
	return hypercall3((long)arg, 0, 0, 0);
}

static void interrupt_waits(void)
{
	guest_prepare(&g, 0, one_call, (void *)SYS_getppid);
	g.run->irq_vector = 32;

	long err = stub_enter(stub, g.fd);

	ok(!err && g.run->exit_reason == DUNE_EXIT_SYSCALL &&
	   g.run->regs.rax == SYS_getppid && g.run->irq_vector == 32,
	   "a call while the guest has not taken its interrupt leaves the stub (reason %u, rax %lld)",
	   g.run->exit_reason, g.run->regs.rax);
	g.run->irq_vector = 0;
}

static void bad_run(void)
{
	long err;

	guest_prepare(&g, 0, one_call, (void *)SYS_getppid);
	g.run->reserved0 = 1;
	err = stub_enter(stub, g.fd);
	g.run->reserved0 = 0;
	is(err, -EINVAL, "an error of DUNE_RUN leaves the stub with its number");
}

static void no_handler(int sig)
{
}

static u64 wait_long(void *arg)
{
	struct timespec ts = { .tv_sec = 1000 };

	return hypercall3(SYS_nanosleep, (long)&ts, 0, 0);
}

/* A signal's handler interrupts a call in the module and in the stub. */
static void interrupted(u32 flags)
{
	struct sigaction sa = { .sa_handler = no_handler };
	struct itimerval soon = { .it_value.tv_usec = 50000 };
	enum guest_end end;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	g.run->flags = flags;
	end = stub_call(&g, stub, wait_long, NULL);
	g.run->flags = 0;
	if (flags)
		ok(end == GUEST_DONE && g.value == (u64)-EINTR,
		   "a call in the stub is interrupted by a signal (%s)", guest_end_name(&g, end));
	else
		ok(end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SYSCALL &&
		   g.run->restart == ERESTART_RESTARTBLOCK,
		   "a call that was interrupted in the module leaves the stub (%s, restart %u)",
		   guest_end_name(&g, end), g.run->restart);
}

static volatile u64 at_call, elsewhere;
static volatile bool moves;

/* Counts where signals come, and moves a thread that is at a call out of the stub. */
static void count_place(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (r[REG_RIP] != (greg_t)(stub + DUNE_STUB_CALL)) {
		elsewhere++;
		return;
	}
	at_call++;
	if (moves) {
		r[REG_RIP] = (greg_t)(stub + DUNE_STUB_LEAVE);
		r[REG_RAX] = 0;
	}
}

static u64 many_calls(void *arg)
{
	u64 wrong = 0;

	for (u64 n = 0; n < 200000 && at_call < 3; n++)
		wrong += hypercall0(SYS_getppid) != (long)arg;
	return wrong;
}

/*
 * Signals come at any instruction of the stub, also before a call: the call is then made
 * afterwards, or by us.
 */
static void signals(void)
{
	struct sigaction sa = { .sa_sigaction = count_place, .sa_flags = SA_SIGINFO };
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };
	enum guest_end end;
	u64 left = 0;

	sigaction(SIGALRM, &sa, NULL);
	for (int i = 0; i < 2; i++) {
		moves = i;
		at_call = 0;
		setitimer(ITIMER_REAL, &often, NULL);
		guest_prepare(&g, 0, many_calls, (void *)(long)getppid());
		g.run->flags = DUNE_RUN_SLOW_SYSCALL;
		while ((end = stub_resume(&g, stub)) == GUEST_EXIT && moves &&
		       g.run->exit_reason == DUNE_EXIT_SYSCALL) {
			left++;
			g.run->regs.rax = getppid();
		}
		setitimer(ITIMER_REAL, &never, NULL);
		g.run->flags = 0;
		ok(end == GUEST_DONE && !g.value && at_call && (!moves || left == at_call),
		   "%s (%s, %lu signals at a call, %lu elsewhere)",
		   moves ? "a handler can move the thread from a call out of the stub" :
			   "calls before which signals come have their results",
		   guest_end_name(&g, end), at_call, elsewhere);
	}
}

/* ---- entering */

static u64 seek(void *fd)
{
	return hypercall3(SYS_lseek, (long)fd, 0, 0);
}

/* Skips the UD2 after a system call that entering_syscall() makes. */
static void leave_stub(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (r[REG_RIP] == (greg_t)(stub + ENTERED))
		r[REG_RIP] = (greg_t)(stub + DUNE_STUB_LEAVE);
}

/* Makes a system call by the instruction with which the stub enters. Returns its result. */
static long entering_syscall(long nr, long a, long b, long c)
{
	struct sigaction sa = { .sa_sigaction = leave_stub, .sa_flags = SA_SIGINFO }, old;
	long ret = nr;

	sigaction(SIGILL, &sa, &old);
	asm volatile("call *%[syscall]"
		     : "+a"(ret)
		     : [syscall] "r"(stub + ENTERED - 2), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory", "cc");
	sigaction(SIGILL, &old, NULL);
	return ret;
}

/* In a child: its guest makes an lseek() of another vCPU in the module, after a filter. */
static void nested_filtered(void *arg)
{
	static struct guest mine, other;
	enum guest_end end;

	stub = stub_open(&mine);
	guest_open(&other);
	if (stub_bind(&other, stub))
		child_fails("a second vCPU cannot be bound to the stub");
	guest_prepare(&other, 0, guest_return, (void *)1);
	filter_call(SYS_getppid, SECCOMP_RET_ERRNO | 77, 0);
	end = stub_call(&mine, stub, seek, (void *)(long)other.fd);
	if (end != GUEST_DONE || mine.value != (u64)-EPERM || other.run->exit_reason ||
	    mine.run->counters[DUNE_COUNT_SYSCALL_SLOW])
		child_fails("%s, %ld", guest_end_name(&mine, end), mine.value);
}

static void nested(void)
{
	static struct guest other;
	enum guest_end end;
	struct outcome o;
	long ret;

	guest_open(&other);
	if (stub_bind(&other, stub))
		bail("a second vCPU cannot be bound to the stub");
	guest_prepare(&other, 0, guest_return, (void *)1);
	end = stub_call(&g, stub, seek, (void *)(long)other.fd);
	ok(end == GUEST_DONE && g.value == (u64)-EPERM && !other.run->exit_reason,
	   "a guest's lseek() does not run another vCPU (%s)", guest_end_name(&g, end));
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	end = stub_call(&g, stub, seek, (void *)(long)other.fd);
	g.run->flags = 0;
	ok(end == GUEST_DONE && g.value == (u64)-EPERM && !other.run->exit_reason,
	   "nor does it as a call in the stub (%s)", guest_end_name(&g, end));
	end = guest_call(&g, seek, (void *)(long)other.fd);
	ok(end == GUEST_DONE && g.value == (u64)-EPERM && !other.run->exit_reason,
	   "nor does it in a run by DUNE_RUN (%s)", guest_end_name(&g, end));
	guest_prepare(&g, 0, seek, (void *)(long)other.fd);
	ret = entering_syscall(SYS_ioctl, g.fd, DUNE_RUN, 0);
	ok(!ret && g.run->exit_reason == DUNE_EXIT_HOSTCALL && g.run->regs.rdi == (u64)-EPERM &&
	   !other.run->exit_reason,
	   "nor does it in a DUNE_RUN that has the RIP of the stub's lseek() (%ld, %lld)", ret,
	   g.run->regs.rdi);
	o = in_child(nested_filtered, NULL, 20);
	ok(!o.code, "nor does it with a seccomp filter (%s)", outcome_text(o));
	end = stub_call(&g, stub, seek, (void *)(long)g.fd);
	ok(end == GUEST_DONE && g.value == (u64)-EPERM,
	   "a guest's lseek() does not run its own vCPU (%s)", guest_end_name(&g, end));
	guest_close(&other);
}

static void enter_with(void *fd)
{
	stub_enter(stub, (long)fd);
	_exit(0);
}

static void wrong_descriptors(void)
{
	int null = open("/dev/null", O_RDWR);
	static struct guest unbound;
	struct outcome o;

	guest_open(&unbound);
	const struct {
		const char *name;
		int fd;
	} wrong[] = {
		{ "another file", null }, { "no file", 1000 },
		{ "a vCPU without a stub", unbound.fd },
		/* In the child, which is another process. */
		{ "another process's vCPU", g.fd },
	};

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		/* The child has inherited the stub. */
		o = in_child(enter_with, (void *)(long)wrong[i].fd, 20);
		ok(o.signal == SIGILL, "UD2 follows lseek() of %s (%s)", wrong[i].name,
		   outcome_text(o));
	}
	close(null);
	guest_close(&unbound);
}

static void elsewhere_in_process(void)
{
	is(raw_syscall(SYS_lseek, g.fd, 0, 0, 0, 0, 0), -EPERM,
	   "lseek() outside of the stub does not enter the guest");
}

static void rseq(void)
{
	static struct rseq area __attribute__((aligned(32)));

	guest_prepare(&g, 0, guest_return, (void *)5);
	if (syscall(SYS_rseq, &area, 32, 0, RSEQ_SIG)) {
		skip("rseq cannot be registered", "a thread with rseq");
		return;
	}
	is(stub_enter(stub, g.fd), -EPERM, "a thread with rseq cannot run a vCPU by the stub");
	syscall(SYS_rseq, &area, 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
	ok(stub_resume(&g, stub) == GUEST_DONE && g.value == 5, "and can when it has none");
}

/* ---- what is refused */

struct attempt {
	const char *name;
	long nr, arg[3];
	long result;	/* what the guest got */
};

static u64 attempt(void *arg)
{
	struct attempt *a = arg;

	a->result = hypercall3(a->nr, a->arg[0], a->arg[1], a->arg[2]);
	return 0;
}

#define X32	0x40000000

static void refused(u32 flags, const char *how)
{
	static u64 argument[32];
	struct attempt attempts[] = {
		{ "rt_sigaction", SYS_rt_sigaction, { SIGUSR1 }, 0 },
		{ "sigaltstack", SYS_sigaltstack, { 0 }, 0 },
		{ "rt_sigreturn", SYS_rt_sigreturn, { 0 }, 0 },
		{ "rseq", SYS_rseq, { (long)argument, 32 }, 0 },
		{ "clone", SYS_clone, { SIGCHLD }, 0 },
		{ "clone3", SYS_clone3, { (long)argument, 64 }, 0 },
		{ "fork", SYS_fork, { 0 }, 0 },
		{ "vfork", SYS_vfork, { 0 }, 0 },
		{ "execve", SYS_execve, { (long)"/bin/true" }, 0 },
		{ "execveat", SYS_execveat, { AT_FDCWD, (long)"/bin/true" }, 0 },
		{ "ptrace", SYS_ptrace, { PTRACE_TRACEME }, 0 },
		{ "prctl(PR_SET_SYSCALL_USER_DISPATCH)", SYS_prctl,
		  { PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF }, 0 },
		{ "prctl(PR_SET_MM)", SYS_prctl, { PR_SET_MM, PR_SET_MM_MAP_SIZE,
		  (long)argument }, 0 },
		{ "user dispatch with more bits in its option", SYS_prctl,
		  { PR_SET_SYSCALL_USER_DISPATCH | 1L << 32, PR_SYS_DISPATCH_OFF }, 0 },
		{ "DUNE_GET_STATE", SYS_ioctl, { g.fd, DUNE_GET_STATE, (long)argument }, 0 },
		{ "DUNE_RUN", SYS_ioctl, { g.fd, DUNE_RUN }, 0 },
		{ "x32's rt_sigaction", X32 | 512, { 0 }, 0 },
		{ "a number without a call", 5000, { 0 }, 0 },
	};
	const int n = sizeof(attempts) / sizeof(attempts[0]);

	for (int i = 0; i < n; i++) {
		struct attempt *a = &attempts[i];
		long error = i < n - 2 ? -EPERM : -ENOSYS;
		enum guest_end end;

		a->result = 1;
		g.run->flags = flags;
		end = stub_call(&g, stub, attempt, a);
		g.run->flags = 0;
		ok(end == GUEST_DONE && a->result == error, "%s is refused %s (%s, %ld)", a->name,
		   how, guest_end_name(&g, end), a->result);
	}
}

/* An interrupt that waits for the guest sends each call to the host half. */
static void refused_with_interrupt(void)
{
	struct attempt a = { .nr = SYS_fork, .result = 1 };

	guest_prepare(&g, 0, attempt, &a);
	g.run->irq_vector = 32;

	long err = stub_enter(stub, g.fd);

	ok(!err && g.run->exit_reason == DUNE_EXIT_HOSTCALL && a.result == -EPERM,
	   "fork is refused while the guest has not taken its interrupt (%ld)", a.result);
	g.run->irq_vector = 0;
}

static void permitted(void)
{
	struct attempt message = { .nr = DUNE_HOSTCALL | SYS_fork };
	struct attempt option = { .nr = SYS_prctl, .arg = { PR_GET_DUMPABLE } };
	enum guest_end end = stub_call(&g, stub, attempt, &message);

	ok(end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_HOSTCALL &&
	   g.run->regs.rax == (DUNE_HOSTCALL | SYS_fork),
	   "a message to the host half leaves the stub (%s)", guest_end_name(&g, end));
	end = stub_call(&g, stub, attempt, &option);
	ok(end == GUEST_DONE && option.result == prctl(PR_GET_DUMPABLE),
	   "another option of prctl is permitted (%ld)", option.result);
}

/* Without a stub nothing of this is refused. */
static void unbound(void)
{
	struct attempt a = { .nr = SYS_rt_sigaction, .arg = { SIGUSR1 } };
	static struct guest other;
	enum guest_end end;

	guest_open(&other);
	end = guest_call(&other, attempt, &a);
	/* A size of 0 is wrong. */
	ok(end == GUEST_DONE && a.result == -EINVAL, "rt_sigaction without a stub is made (%ld)",
	   a.result);
	guest_close(&other);
}

/* ---- the interface */

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
	s.flags = 2;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "an unknown flag");
	s.flags = 0;
	s.size--;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "a wrong size");
	s.size++;
	s.run = 1;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "a run page without DUNE_STUB_EVENTS");
	s.run = 0;
	s.regs.rflags = 1UL << 40;
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EINVAL, "registers without DUNE_STUB_EVENTS");
	s.regs.rflags = 0;
	is(call(fresh.fd, DUNE_SET_STUB, &s), 0, "a vCPU is bound to its stub");
	is(call(fresh.fd, DUNE_SET_STUB, &s), -EBUSY, "and not bound again");
	ok(stub_call(&fresh, page, guest_return, (void *)6) == GUEST_DONE && fresh.value == 6,
	   "it runs");
	guest_close(&fresh);
}

/* ---- calls of a thread that a filter or a tracer watches */

static void errno_filter(void *arg)
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
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	stub = stub_open(&g);
	code[3].k = (u32)(u64)(stub + DUNE_STUB_CALL + 2);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		child_fails("seccomp: %m");
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	if (stub_call(&g, stub, getppids, (void *)-77L) != GUEST_DONE || g.value)
		child_fails("%lu calls had another result", g.value);
}

static u64 ordered_calls(void *arg)
{
	long *results = arg;

	for (int i = 0; i < 4; i++)
		results[i] = hypercall(SYS_getpriority, 0x1000 + i, 2, 3, 4, 5, 6);
	return 0;
}

struct traced {
	char *stub;
	long results[4];
};

static void be_traced(struct traced *shared)
{
	shared->stub = stub_open(&g);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	stub_call(&g, shared->stub, ordered_calls, shared->results);
	_exit(7);
}

static void traced(bool steps)
{
	struct traced *shared = shared_alloc(sizeof(*shared));
	int entries = 0, exits = 0, wrong = 0, status, pid = fork();
	struct __ptrace_syscall_info info;
	bool mine = false;

	if (!pid)
		be_traced(shared);
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
	ok(shared->results[0] == -EINVAL && (steps || shared->results[1] == 4242),
	   "the guest has the results that the tracer left (%ld, %ld)", shared->results[0],
	   shared->results[1]);
	munmap(shared, sizeof(*shared));
}

static u64 sleep_long(void *arg)
{
	*(volatile int *)arg = 1;
	return wait_long(NULL);
}

static void killed(void)
{
	volatile int *sleeps = shared_alloc(4096);
	int pid = fork();

	if (!pid) {
		stub = stub_open(&g);
		g.run->flags = DUNE_RUN_SLOW_SYSCALL;
		stub_call(&g, stub, sleep_long, (void *)sleeps);
		_exit(0);
	}
	WAIT_FOR(*sleeps, 5);
	sleep_ms(50);
	kill(pid, SIGKILL);

	struct outcome o = wait_child(pid, 20);

	ok(*sleeps && o.signal == SIGKILL, "a call in the stub can be killed (%s)",
	   outcome_text(o));
}

int main(void)
{
	struct outcome o;

	begin(120);
	rseq_drop();
	stub = stub_open(&g);
	calls(0, "in the module", 0);
	calls(DUNE_RUN_SLOW_SYSCALL, "in the stub", CALLS);
	interrupt_waits();
	bad_run();
	interrupted(0);
	interrupted(DUNE_RUN_SLOW_SYSCALL);
	signals();
	nested();
	elsewhere_in_process();
	wrong_descriptors();
	rseq();
	refused(0, "on the fast path");
	refused(DUNE_RUN_SLOW_SYSCALL, "on the slow path");
	refused_with_interrupt();
	permitted();
	unbound();
	interface();
	o = in_child(errno_filter, NULL, 20);
	ok(!o.code, "a filter sees a call in the stub, and its address (%s)", outcome_text(o));
	traced(false);
	traced(true);
	killed();
	return done();
}

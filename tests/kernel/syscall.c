// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A hypercall is a system call: results, error numbers, memory effects and
 * registers are those of the native call, on the fast path (in the kernel)
 * and on the slow one (by the host half). Fails when a call is dispatched
 * with wrong arguments, when an error is lost, when an interrupted call is
 * reported wrongly, or when the counters do not count what happened.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct guest g;
static char memory[4096] __attribute__((aligned(4096)));	/* what calls write to */
static int ends[2];

struct request {
	const char *name;
	long nr;
	long arg[6];
	long result;
};

#define M ((long)memory)

static struct request requests[] = {
	{ "getpid", SYS_getpid, {0}, 0 },
	{ "getppid", SYS_getppid, {0}, 0 },
	{ "gettid", SYS_gettid, {0}, 0 },
	{ "getuid", SYS_getuid, {0}, 0 },
	{ "geteuid", SYS_geteuid, {0}, 0 },
	{ "getgid", SYS_getgid, {0}, 0 },
	{ "getpgid(0)", SYS_getpgid, {0}, 0 },
	{ "getsid(0)", SYS_getsid, {0}, 0 },
	{ "getsid(-1): ESRCH", SYS_getsid, {-1}, 0 },
	{ "uname", SYS_uname, {M}, 0 },
	{ "uname at 0: EFAULT", SYS_uname, {0}, 0 },
	{ "uname in the kernel: EFAULT", SYS_uname, {(long)0xffff888000000000}, 0 },
	{ "getcwd", SYS_getcwd, {M, 4096}, 0 },
	{ "getcwd too small: ERANGE", SYS_getcwd, {M, 1}, 0 },
	{ "open of nothing: ENOENT", SYS_open, {(long)"/nothing/at/all", O_RDONLY}, 0 },
	{ "openat: ENOTDIR", SYS_openat, {AT_FDCWD, (long)"/dev/null/x", O_RDONLY}, 0 },
	{ "open a bad path: EFAULT", SYS_open, {1, O_RDONLY}, 0 },
	{ "access /", SYS_access, {(long)"/", R_OK}, 0 },
	{ "stat /dev/null", SYS_stat, {(long)"/dev/null", M}, 0 },
	{ "fstat(-1): EBADF", SYS_fstat, {-1, M}, 0 },
	{ "read(-1): EBADF", SYS_read, {-1, M, 1}, 0 },
	{ "write(-1): EBADF", SYS_write, {-1, M, 1}, 0 },
	{ "close(-1): EBADF", SYS_close, {-1}, 0 },
	{ "lseek on a pipe: ESPIPE", SYS_lseek, {100, 0, SEEK_SET}, 0 },
	{ "fcntl(F_GETFL)", SYS_fcntl, {100, F_GETFL}, 0 },
	{ "fcntl of nonsense: EINVAL", SYS_fcntl, {100, 4711}, 0 },
	{ "ioctl: ENOTTY", SYS_ioctl, {100, 0x5401, M}, 0 },
	{ "dup2 onto itself", SYS_dup2, {100, 100}, 0 },
	{ "dup3 onto itself: EINVAL", SYS_dup3, {100, 100, 0}, 0 },
	{ "umask", SYS_umask, {022}, 0 },
	{ "umask again", SYS_umask, {022}, 0 },
	{ "mmap: EINVAL", SYS_mmap, {0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}, 0 },
	{ "mmap of fd -1: EBADF", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, -1, 0}, 0 },
	{ "mmap, sixth argument: EINVAL", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, 100, 1}, 0 },
	{ "mmap fixed", SYS_mmap, {0x10000000, 8192, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0}, 0 },
	{ "mprotect", SYS_mprotect, {0x10000000, 4096, PROT_READ}, 0 },
	{ "uname into read-only memory: EFAULT", SYS_uname, {0x10000000}, 0 },
	{ "munmap", SYS_munmap, {0x10000000, 8192}, 0 },
	{ "munmap odd: EINVAL", SYS_munmap, {0x10000001, 8192}, 0 },
	{ "mprotect of nothing: ENOMEM", SYS_mprotect, {0x10000000, 4096, PROT_READ}, 0 },
	{ "mprotect of the kernel: ENOMEM", SYS_mprotect,
		{(long)0xffffc00000000000, 4096, PROT_READ}, 0 },
	{ "brk(0)", SYS_brk, {0}, 0 },
	{ "kill(0 signal)", SYS_kill, {0, 0}, 0 },
	{ "kill nonsense: EINVAL", SYS_kill, {0, 100}, 0 },
	{ "nanosleep: EINVAL", SYS_nanosleep, {M + 2048}, 0 },
	{ "clock_getres", SYS_clock_getres, {CLOCK_MONOTONIC, M}, 0 },
	{ "clock_gettime of nonsense: EINVAL", SYS_clock_gettime, {4711, M}, 0 },
	{ "futex: EAGAIN", SYS_futex, {M + 1024, FUTEX_WAIT, 1}, 0 },
	{ "futex wakes none", SYS_futex, {M + 1024, FUTEX_WAKE, 1}, 0 },
	{ "wait4: ECHILD", SYS_wait4, {-1, 0, WNOHANG, 0}, 0 },
	{ "sched_getaffinity", SYS_sched_getaffinity, {0, 128, M}, 0 },
	{ "sched_yield", SYS_sched_yield, {0}, 0 },
	{ "prlimit64", SYS_prlimit64, {0, RLIMIT_NOFILE, 0, M}, 0 },
	{ "getrlimit of nonsense: EINVAL", SYS_getrlimit, {4711, M}, 0 },
	{ "getrandom: EINVAL", SYS_getrandom, {M, 1, 4711}, 0 },
	{ "rt_sigprocmask", SYS_rt_sigprocmask, {SIG_BLOCK, 0, M, 8}, 0 },
	{ "rt_sigprocmask: EINVAL", SYS_rt_sigprocmask, {SIG_BLOCK, 0, M, 4}, 0 },
	{ "rt_sigpending", SYS_rt_sigpending, {M, 8}, 0 },
	{ "pread64: ESPIPE", SYS_pread64, {100, M, 1, 0}, 0 },
	{ "poll of nothing", SYS_poll, {0, 0, 0}, 0 },
	{ "select: EINVAL", SYS_select, {-1, 0, 0, 0, 0}, 0 },
	{ "getpriority", SYS_getpriority, {0, 0}, 0 },
	{ "personality", SYS_personality, {0xffffffff}, 0 },
	{ "prctl(PR_GET_DUMPABLE)", SYS_prctl, {3}, 0 },
	{ "prctl of nonsense: EINVAL", SYS_prctl, {4711}, 0 },
	{ "arch_prctl of nonsense: EINVAL", SYS_arch_prctl, {4711}, 0 },
	{ "readlink", SYS_readlink, {(long)"/proc/self/exe", M, 4096}, 0 },
	{ "setrlimit: EFAULT", SYS_setrlimit, {RLIMIT_CORE, 1}, 0 },
	{ "mincore", SYS_mincore, {M, 4096, M + 100}, 0 },
	{ "msync", SYS_msync, {M, 4096, MS_SYNC}, 0 },
	{ "madvise: EINVAL", SYS_madvise, {M, 4096, 4711}, 0 },
	{ "mremap: EFAULT", SYS_mremap, {0x10000000, 4096, 8192, 0}, 0 },
	{ "shmctl: EINVAL", SYS_shmctl, {-1, 0, 0}, 0 },
	{ "getitimer", SYS_getitimer, {0, M}, 0 },
	{ "membarrier query", SYS_membarrier, {0, 0, 0}, 0 },
	{ "rseq of nonsense: EINVAL", SYS_rseq, {1, 4711, 0, 0}, 0 },
	{ "number 1000: ENOSYS", 1000, {0}, 0 },
	{ "number 400: ENOSYS", 400, {0}, 0 },
	{ "x32 getpid: as the kernel was built", 0x40000000 | SYS_getpid, {0}, 0 },
	{ "number 0xffffffff: ENOSYS", 0xffffffff, {0}, 0 },
	{ "number 0x80000000: ENOSYS", 0x80000000, {0}, 0 },
};

#define COUNT ((int)(sizeof(requests) / sizeof(requests[0])))

static u64 make_request(void *arg)
{
	struct request *r = arg;

	r->result = hypercall(r->nr, r->arg[0], r->arg[1], r->arg[2], r->arg[3], r->arg[4],
			      r->arg[5]);
	return 0;
}

static void fill(void)
{
	memset(memory, 0xa5, sizeof(memory));
	memset(memory + 1024, 0, 64);
	((long *)(memory + 2048))[0] = 0;
	((long *)(memory + 2048))[1] = 2000000000;
}

static void compare(bool slow)
{
	static char expected[4096];
	const char *path = slow ? "slow" : "fast";

	for (int i = 0; i < COUNT; i++) {
		struct request *r = &requests[i];

		fill();
		long native = raw_syscall(r->nr, r->arg[0], r->arg[1], r->arg[2],
					  r->arg[3], r->arg[4], r->arg[5]);

		memcpy(expected, memory, sizeof(memory));
		fill();
		g.run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
		enum guest_end end = guest_call(&g, make_request, r);

		ok(end == GUEST_DONE && r->result == native &&
		   !memcmp(memory, expected, sizeof(memory)) && (!slow || g.slow == 1),
		   "%s: %s (%ld)", path, r->name, native);
		if (end != GUEST_DONE)
			diag("%s", guest_end_name(&g, end));
		else if (r->result != native)
			diag("guest %ld native %ld", r->result, native);
	}
	g.run->flags = 0;
}

/* A transfer through a pipe and a file, both ends in the guest. */
static u64 transfer(void *arg)
{
	char *from = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int p[2];

	if (from == MAP_FAILED || pipe(p))
		return 1;
	for (int i = 0; i < 32768; i++)
		from[i] = i * 7;
	if (write(p[1], from, 32768) != 32768 || read(p[0], from + 32768, 32768) != 32768)
		return 2;
	if (memcmp(from, from + 32768, 32768))
		return 3;
	close(p[1]);
	if (read(p[0], from, 1))	/* end of file: the delayed fput ran */
		return 4;
	close(p[0]);

	int fd = memfd_create("x", 0);

	if (write(fd, from, 32768) != 32768 || pread(fd, from + 32768, 100, 777) != 100 ||
	    memcmp(from + 777, from + 32768, 100))
		return 5;
	close(fd);
	munmap(from, 65536);

	struct stat st;

	if (stat("/dev/null", &st) || !S_ISCHR(st.st_mode) || stat("/nothing", &st) != -1 ||
	    errno != ENOENT)
		return 6;
	return 0;
}

/* All registers but RAX survive a hypercall. */
static u64 registers_kept(void *arg)
{
	u64 bad = 0;

	asm volatile("mov $0x1111, %%rcx; mov $0x2222, %%r11; mov $0x3333, %%rbx\n"
		     "mov $0x4444, %%r12; mov $0x5555, %%r13\n"
		     "mov $0x6666, %%r14; mov $0x7777, %%r15\n"
		     "mov $0x88, %%rdi; mov $0x99, %%rsi; mov $0xaa, %%rdx; mov $0xbb, %%r10\n"
		     "mov $0xcc, %%r8; mov $0xdd, %%r9; mov $39, %%eax\n"
		     "std; stc\n"
		     HYPERCALL
		     "setnc %%al; pushfq; cld; btq $10, (%%rsp); lea 8(%%rsp), %%rsp\n"
		     "setnc %%ah; movzwl %%ax, %%eax\n"
		     "sub $0x1111, %%rcx; or %%rcx, %%rax; sub $0x2222, %%r11; or %%r11, %%rax\n"
		     "sub $0x3333, %%rbx; or %%rbx, %%rax; sub $0x4444, %%r12; or %%r12, %%rax\n"
		     "sub $0x5555, %%r13; or %%r13, %%rax; sub $0x6666, %%r14; or %%r14, %%rax\n"
		     "sub $0x7777, %%r15; or %%r15, %%rax; sub $0x88, %%rdi; or %%rdi, %%rax\n"
		     "sub $0x99, %%rsi; or %%rsi, %%rax; sub $0xaa, %%rdx; or %%rdx, %%rax\n"
		     "sub $0xbb, %%r10; or %%r10, %%rax; sub $0xcc, %%r8; or %%r8, %%rax\n"
		     "sub $0xdd, %%r9; or %%r9, %%rax\n"
		     : "=a"(bad) : : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
		     "r12", "r13", "r14", "r15", "cc", "memory");
	return bad;
}

static u64 many_getpids(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		if (hypercall0(SYS_getpid) != *(volatile int *)memory)
			return 1;
	}
	return 0;
}

static void counters(void)
{
	u64 before[DUNE_COUNT_MAX], d[DUNE_COUNT_MAX];
	const long n = 500;

	*(int *)memory = getpid();
	guest_call(&g, many_getpids, (void *)1);
	for (int slow = 0; slow < 2; slow++) {
		for (int i = 0; i < DUNE_COUNT_MAX; i++)
			before[i] = g.run->counters[i];
		g.run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
		guest_call(&g, many_getpids, (void *)n);
		for (int i = 0; i < DUNE_COUNT_MAX; i++)
			d[i] = g.run->counters[i] - before[i];

		long fast_calls = d[DUNE_COUNT_SYSCALL_FAST];
		long slow_calls = d[DUNE_COUNT_SYSCALL_SLOW];

		ok(fast_calls + slow_calls == n,
		   "counters: %ld calls are counted as %ld fast, %ld slow",
		   n, fast_calls, slow_calls);
		if (slow)
			ok(slow_calls == n && g.slow == n,
			   "counters: with DUNE_RUN_SLOW_SYSCALL all calls are slow");
		else
			ok(slow_calls <= n / 10, "counters: nearly all calls are fast (%ld slow)",
			   slow_calls);
		ok(d[DUNE_COUNT_HOSTCALL] == 1,
		   "counters: the guest's end is one message (%s calls)", slow ? "slow" : "fast");

		u64 sum = d[DUNE_COUNT_SYSCALL_FAST] + d[DUNE_COUNT_SYSCALL_SLOW] +
			  d[DUNE_COUNT_FAULT] + d[DUNE_COUNT_INTERRUPT] +
			  d[DUNE_COUNT_EXCEPTION] + d[DUNE_COUNT_HOSTCALL] +
			  d[DUNE_COUNT_OTHER];

		ok(sum == d[DUNE_COUNT_EXITS],
		   "counters: exits are the sum of their kinds (%lu, %lu)", sum,
		   d[DUNE_COUNT_EXITS]);
	}
	g.run->flags = 0;
}

static volatile sig_atomic_t signals;

static void handler(int sig)
{
	signals++;
}

struct blocking {
	const char *name;
	struct request request;
	/* dune_run.restart of a fast call that a signal interrupts; 0: rax is -EINTR. */
	int restart;
};

static struct timespec long_time = { 1000, 0 };
static struct pollfd nothing_to_poll = { .fd = 101, .events = POLLIN };

static struct blocking blockings[] = {
	{ "read of an empty pipe", { "", SYS_read, {101, M, 1}, 0 }, ERESTARTSYS },
	{ "wait4", { "", SYS_wait4, {-1, 0, 0, 0}, 0 }, ERESTARTSYS },
	{ "futex", { "", SYS_futex, {M + 1024, FUTEX_WAIT, 0, 0}, 0 }, ERESTARTSYS },
	{ "futex with a timeout", { "", SYS_futex, {M + 1024, FUTEX_WAIT, 0, (long)&long_time}, 0 },
		ERESTART_RESTARTBLOCK },
	{ "pause", { "", SYS_pause, {0}, 0 }, ERESTARTNOHAND },
	{ "rt_sigsuspend", { "", SYS_rt_sigsuspend, {M + 1024, 8}, 0 }, ERESTARTNOHAND },
	{ "nanosleep", { "", SYS_nanosleep, {(long)&long_time, M}, 0 }, ERESTART_RESTARTBLOCK },
	{ "clock_nanosleep, absolute", { "", SYS_clock_nanosleep,
		{CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&long_time, 0}, 0 }, ERESTARTNOHAND },
	{ "poll", { "", SYS_poll, {(long)&nothing_to_poll, 1, 1000000}, 0 },
		ERESTART_RESTARTBLOCK },
	{ "ppoll", { "", SYS_ppoll, {(long)&nothing_to_poll, 1, 0, 0, 0}, 0 }, ERESTARTNOHAND },
	{ "epoll_wait", { "", SYS_epoll_wait, {102, M, 1, -1}, 0 }, 0 },
};

/* A signal every @ms: on a busy machine the first may come before the call. */
static void timer(unsigned int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	struct itimerval it = { tv, tv };

	setitimer(ITIMER_REAL, &it, NULL);
}

/* As guest_resume(), but stops at the first exit for a call. */
static int until_syscall(void)
{
	for (int i = 0; i < 10000; i++) {
		int err = guest_run(&g);

		if (err && err != -EINTR)
			return err;
		if (err || g.run->exit_reason == DUNE_EXIT_INTR)
			continue;
		if (g.run->exit_reason == DUNE_EXIT_FAULT) {
			(void)*(volatile char *)g.run->fault_address;
			continue;
		}
		return g.run->exit_reason;
	}
	return -ETIME;
}

/* A signal interrupts one call: first on the fast path, then on the slow one. */
static void interrupt_call(struct blocking *b)
{
	fill();
	memset(memory + 1024, 0, 64);
	/* The fast path. */
	signals = 0;
	guest_prepare(&g, 0, make_request, &b->request);
	timer(60);
	int end = until_syscall();

	if (b->restart) {
		ok(end == DUNE_EXIT_SYSCALL && (int)g.run->restart == b->restart &&
		   signals >= 1,
		   "%s, interrupted: restart %d (exit %d restart %u signals %d)", b->name,
		   b->restart, end, g.run->restart, signals);
		ok(g.run->regs.rax == (u64)b->request.nr,
		   "%s, interrupted: RAX still has the number, to make the call again",
		   b->name);
		g.run->regs.rax = -EINTR;
		end = until_syscall();
		ok(end == DUNE_EXIT_HOSTCALL && b->request.result == -EINTR,
		   "%s, interrupted: the call ends with the host half's result (%ld)",
		   b->name, b->request.result);
	} else {
		ok(end == DUNE_EXIT_HOSTCALL && b->request.result == -EINTR && signals >= 1,
		   "%s, interrupted: EINTR (exit %d, %ld)", b->name, end,
		   b->request.result);
	}

	/* The slow path: the host's own system call and its restart. */
	fill();
	memset(memory + 1024, 0, 64);
	signals = 0;
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	guest_prepare(&g, 0, make_request, &b->request);
	timer(60);
	enum guest_end ge = guest_resume(&g);

	ok(ge == GUEST_DONE && b->request.result == -EINTR && signals >= 1 &&
	   g.restarts == 0,
	   "%s, slow, interrupted: EINTR (%ld)", b->name, b->request.result);
	g.run->flags = 0;
}

/* A signal without a handler (SIGWINCH, SIGCHLD) interrupts no call visibly. */
static void ignored_signal(void)
{
	struct request r = { "", SYS_read, {101, M, 1}, 0 };
	int self = getpid();
	int pid = fork();

	if (!pid) {
		sleep_ms(50);
		kill(self, SIGWINCH);
		sleep_ms(50);
		(void)!write(100, "z", 1);
		_exit(0);
	}
	enum guest_end end = guest_call(&g, make_request, &r);

	ok(end == GUEST_DONE && r.result == 1 && memory[0] == 'z',
	   "an ignored signal does not end a read (%ld)", r.result);
	waitpid(pid, NULL, 0);
}

/* The time left of a sleep that restart_syscall continues is right. */
static void restarted_sleep(void)
{
	struct timespec half = { 0, 300000000 };
	struct request sleep = { "", SYS_nanosleep, {(long)&half, 0}, 0 };
	struct sigaction ign = { .sa_handler = SIG_DFL };
	int self = getpid();
	int pid;

	sigaction(SIGWINCH, &ign, NULL);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 5; i++) {
			sleep_ms(30);
			kill(self, SIGWINCH);
		}
		_exit(0);
	}
	unsigned long start = now_us();
	enum guest_end end = guest_call(&g, make_request, &sleep);
	unsigned long took = now_us() - start;

	ok(end == GUEST_DONE && !sleep.result && took >= 300000,
	   "a sleep interrupted five times lasts as long as asked for (%lu us)", took);
	waitpid(pid, NULL, 0);
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = handler };
	int epoll = epoll_create1(0);
	int kid = fork();

	if (!kid) {
		pause();
		_exit(0);
	}
	dup2(epoll, 102);
	sigaction(SIGALRM, &sa, NULL);
	clock_gettime(CLOCK_MONOTONIC, &long_time);
	long_time.tv_sec += 1000;
	for (unsigned int i = 0; i < sizeof(blockings) / sizeof(blockings[0]); i++)
		interrupt_call(&blockings[i]);
	timer(0);
	ignored_signal();
	kill(kid, SIGKILL);
	waitpid(kid, NULL, 0);
	restarted_sleep();
}

/* SYSCALL in ring 3 arrives at the guest's own LSTAR, and its hypercall is a system call. */
static u64 ring3_calls(void *arg)
{
	for (int i = 0; i < 100; i++) {
		if (raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != *(volatile int *)memory)
			return 1;
	}
	return raw_syscall(SYS_close, -1, 0, 0, 0, 0, 0) != -EBADF;
}

static u64 guest_exits(void *arg)
{
	hypercall3(SYS_exit_group, (long)arg, 0, 0);
	return 0;
}

static void exiting(void *arg)
{
	struct guest own;

	guest_open(&own);
	guest_call(&own, guest_exits, arg);
	_exit(1);
}

/* fork is a slow call: the host half makes it, while the vCPU exists. */
static u64 guest_forks(void *arg)
{
	return hypercall0(SYS_fork);
}

#define KVM_RUN	0xae80

static u64 guest_asks_kvm(void *arg)
{
	return hypercall3(SYS_ioctl, -1, KVM_RUN, 0);
}

int main(void)
{
	begin(120);
	guest_open(&g);
	if (pipe(ends))
		bail("pipe");
	dup2(ends[1], 100);
	dup2(ends[0], 101);
	ok(g.info.features & DUNE_FEATURE_FAST_SYSCALL, "this kernel has the fast path");
	compare(false);
	compare(true);
	for (int slow = 0; slow < 2; slow++) {
		g.run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
		enum guest_end end = guest_call(&g, transfer, NULL);

		ok(end == GUEST_DONE && g.value == 0, "%s: pipes, files and libc (%s)",
		   slow ? "slow" : "fast",
		   guest_end_name(&g, end));
		end = guest_call(&g, registers_kept, NULL);
		ok(end == GUEST_DONE && g.value == 0,
		   "%s: a hypercall keeps all registers and flags (%s)",
		   slow ? "slow" : "fast", guest_end_name(&g, end));
	}
	g.run->flags = 0;
	counters();

	enum guest_end end = guest_call3(&g, ring3_calls, NULL);

	ok(end == GUEST_DONE && g.value == 0,
	   "SYSCALL from ring 3 enters at the guest's LSTAR (%s)", guest_end_name(&g, end));
	interrupted();

	struct outcome o = in_child(exiting, (void *)37, 20);

	ok(o.code == 37, "exit_group by a guest ends the process with its status (%s)",
	   outcome_text(o));

	/* The child of a fork by the slow path is in the host half, with no vCPU. */
	guest_prepare(&g, 0, guest_forks, NULL);
	int reason = until_syscall();

	ok(reason == DUNE_EXIT_SYSCALL && g.run->regs.rax == SYS_fork && !g.run->restart,
	   "fork is always slow (exit %d)", reason);
	int pid = fork();

	if (!pid)
		_exit(guest_run(&g) == -EPERM ? 5 : 6);
	o = wait_child(pid, 20);
	ok(o.code == 5, "the child of a fork by a guest cannot run the vCPU (%s)", outcome_text(o));
	g.run->regs.rax = pid;
	end = guest_resume(&g);
	ok(end == GUEST_DONE && (int)g.value == pid,
	   "the parent of a fork by a guest continues (%s)", guest_end_name(&g, end));

	/* A KVM guest entered from this call would change the CPU's state unnoticed. */
	guest_prepare(&g, 0, guest_asks_kvm, NULL);
	reason = until_syscall();
	ok(reason == DUNE_EXIT_SYSCALL && g.run->regs.rax == SYS_ioctl,
	   "an ioctl with KVM_RUN's number is always slow (exit %d)", reason);
	guest_close(&g);
	return done();
}

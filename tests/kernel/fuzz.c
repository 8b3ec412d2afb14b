// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random states, random code, random hypercalls and random ioctls. The guests'
 * processes may die of any signal. Fails when the machine, a healthy guest that
 * runs at the same time or the kernel log is affected.
 *
 * A batch is STATES states in one process; its number and FUZZ_SEED (1; 0: the
 * clock) determine every state of it. FUZZ_CHILDREN (240) batches are run,
 * from number FUZZ_FIRST (0) on, or as many as FUZZ_SECONDS allow. With
 * FUZZ_SAY=1 each is named before it begins, for a reader who sees the machine
 * die of it. "fuzz.t NUMBER" repeats one batch of FUZZ_SEED alone.
 *
 * Three kinds of processes:
 *  - main() counts the endings, and runs the healthy guest in each round;
 *  - one warden for each usable CPU, the init of a PID namespace: it makes the
 *    guest's tables once, and starts a child for each batch. Where the child
 *    ends early, another one continues after the state that ended it;
 *  - the child. Hypercalls with random numbers are real system calls: the child
 *    runs as user nobody in the warden's namespaces with tight limits, so its
 *    random system calls can reach only itself. The warden is root and kills
 *    what a child leaves.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REASONS	(DUNE_EXIT_UNKNOWN + 1)
#define SEGMENTS	10	/* of struct dune_state, from cs on */
#define STATES	200	/* in a batch */
#define RUNS	6	/* of a state at most: one for each exit that allows another */
#define CODE	128	/* bytes; zeroes follow */
#define RENEW	64	/* batches in one set of namespaces */
#define WARDENS	8	/* at most */

/*
 * A spinning guest is left by the next signal. Each costs as much as a run
 * and each wait is lost: this interval makes the sum smallest in QEMU.
 */
#define TICK_US	800

/* A state that takes longer has blocked its signals: the child is killed. */
#define STUCK_MS	60	/* for time_limit() */

static u64 state;
static struct guest g;
static u8 *code;

/*
 * The counts of a child since it was started. The guest may overwrite them, as
 * any memory of its process: the warden adds up only counts that can be true.
 */
static struct shared {
	u64 next;	/* the state to come, or STATES */
	u64 states, runs, reasons[REASONS], errors, ioctls;
	/* The last run of the last child, to be seen when it hangs. */
	struct dune_state state;
	struct dune_regs regs;
	u8 code[CODE];
} *count;

/* The sums over all children, which do not have them mapped (MADV_DONTFORK). */
static struct total {
	u64 next, end;		/* batches */
	u64 deadline;		/* now_us(), or 0 */
	bool say;
	u64 batches, processes, states, runs, reasons[REASONS], errors, ioctls, scribbled, stuck;
} *total;

static u64 seed;

/* The finalizer of splitmix64: neighbouring numbers become unrelated ones. */
static u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static u64 rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

/* @n up to 2^32. No division: it is a call in an emulator. */
static u64 below(u64 n)
{
	return (rnd() >> 32) * n >> 32;
}

static bool chance(unsigned int one_in)
{
	return !below(one_in);
}

/* A number that a check may have missed. */
static u64 value(void)
{
	static const u64 some[] = {
		0, 1, 2, 0xfff, 0x1000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		0x7fffffffffff,
		0x800000000000, 0x7ffffffff000, 0xffff800000000000, 0xffff888000000000,
		0xffffffff81000000,
		0xffffffffff600000, 0xfffffe0000000000, 0x8000000000000000, ~0UL, 0x888000000000,
	};

	switch (below(7)) {
	case 0:
		return some[below(sizeof(some) / sizeof(some[0]))];
	case 1:
		return rnd();
	case 2:
		return 1UL << below(64);
	case 3:
		return (u64)g.mem + below(sizeof(*g.mem) + 4096);
	case 4:
		return (u64)code + below(4096);
	case 5:
		return guest_gpa(&g, (u64)g.mem) + below(sizeof(*g.mem) + 4096);
	default:
		return below(1 << below(20));
	}
}

static void random_code(void)
{
#define P(text) { sizeof(text) - 1, text }
	static const struct {
		u8 length;
		char bytes[3];
	} pieces[] = {
		P("\x0f\x01\xd9"),	/* vmmcall */
		P("\x0f\x01\xc1"),	/* vmcall */
		P("\xf4"),		/* hlt */
		P("\x0f\x22\xd8"),	/* mov %rax, %cr3 */
		P("\x0f\x22\xc0"),	/* mov %rax, %cr0 */
		P("\x0f\x22\xe0"),	/* mov %rax, %cr4 */
		P("\x0f\x30"),		/* wrmsr */
		P("\x0f\x32"),		/* rdmsr */
		P("\xcd\x80"),		/* int $0x80 */
		P("\xcc"),		/* int3 */
		P("\x0f\x0b"),		/* ud2 */
		P("\xec"),		/* in (%dx), %al */
		P("\xee"),		/* out %al, (%dx) */
		P("\x0f\x01\xd8"),	/* vmrun */
		P("\x0f\x01\xda"),	/* vmload */
		P("\x0f\x01\xdd"),	/* clgi */
		P("\x48\xcf"),		/* iretq */
		P("\xfb"),		/* sti */
		P("\xfa"),		/* cli */
		P("\x9d"),		/* popfq */
		P("\x9c"),		/* pushfq */
		P("\x0f\x05"),		/* syscall */
		P("\x48\x0f\x07"),	/* sysretq */
		P("\x0f\x34"),		/* sysenter */
		P("\x0f\x01\xf8"),	/* swapgs */
		P("\x0f\x01\x17"),	/* lgdt (%rdi) */
		P("\x0f\x01\x1f"),	/* lidt (%rdi) */
		P("\x8e\xd8"),		/* mov %eax, %ds */
		P("\x8e\xd0"),		/* mov %eax, %ss */
		P("\x8e\xe0"),		/* mov %eax, %fs */
		P("\x0f\xa2"),		/* cpuid */
		P("\x0f\x31"),		/* rdtsc */
		P("\x0f\x01\x3f"),	/* invlpg (%rdi) */
		P("\x0f\x23\xf8"),	/* mov %rax, %dr7 */
		P("\x0f\x01\xd1"),	/* xsetbv */
		P("\x0f\x08"),		/* invd */
		P("\x0f\x09"),		/* wbinvd */
		P("\x0f\x00\xd0"),	/* lldt %ax */
		P("\xff\x2f"),		/* ljmp *(%rdi) */
		P("\xcb"),		/* lret */
		P("\xf3\x90"),		/* pause */
		P("\x50"),		/* push %rax */
		P("\x58"),		/* pop %rax */
		P("\x89\x07"),		/* mov %eax, (%rdi) */
		P("\x8b\x07"),		/* mov (%rdi), %eax */
		P("\x48\x94"),		/* xchg %rax, %rsp */
		P("\x48\xab"),		/* stosq */
		P("\xf3\x48\xab"),	/* rep stosq */
		P("\x0f\xae\x07"),	/* fxsave (%rdi) */
		P("\x0f\xae\x0f"),	/* fxrstor (%rdi) */
		P("\xeb\xfe"),		/* 1: jmp 1b */
		P("\xf1"),		/* icebp */
		P("\x0f\x33"),		/* rdpmc */
		P("\x0f\x01\xdf"),	/* invlpga */
		P("\x0f\x20\xd8"),	/* mov %cr3, %rax */
		P("\x0f"),		/* the first byte of a two-byte opcode */
		P("\x31\xc0"),		/* xor %eax, %eax */
		P("\xb0\x27"),		/* mov $39, %al */
		P("\x48\xff\xc0"),	/* inc %rax */
	};
#undef P

	for (int i = 0; i < CODE; i += 8)
		*(u64 *)(code + i) = rnd();
	/*
	 * No VEX and EVEX prefixes: TCG ends with an assertion in its decoder
	 * at some of them (PINSR with 256 bits), as any program could make it.
	 */
	for (int i = 0; i < CODE; i++)
		if (code[i] == 0xc4 || code[i] == 0xc5 || code[i] == 0x62)
			code[i] = 0x90;
	for (int n = 0; n < CODE - 28;) {
		u64 r = rnd();

		if (!(r >> 30 & 3)) {
			n += r >> 28 & 3;
			continue;
		}
		unsigned int piece = (r >> 32) * (sizeof(pieces) / sizeof(pieces[0])) >> 32;

		for (int i = 0; i < pieces[piece].length; i++)
			code[n++] = pieces[piece].bytes[i];
	}
}

static void random_segment(struct dune_segment *s)
{
	switch (below(4)) {
	case 0:
		s->selector = rnd();
		break;
	case 1:
		s->attributes = rnd();
		break;
	case 2:
		s->limit = value();
		break;
	default:
		s->base = value();
	}
}

static void random_state(struct dune_state *s)
{
	struct dune_segment *segments = &s->cs;
	__u64 *msrs = &s->star;

	*s = g.state;
	for (u64 n = below(4); n; n--) {
		switch (below(8)) {
		case 0:
			s->cpl = below(5);
			break;
		case 1:
			s->cr3 = value();
			break;
		case 2:
		case 3:
			random_segment(&segments[below(SEGMENTS)]);
			break;
		case 4:
			msrs[below(8)] = value();
			break;
		case 5:
			s->idtr.limit = below(4096);
			break;
		case 6:
			s->gdtr.limit = below(128);
			break;
		case 7:
			if (chance(20))
				s->reserved[below(8)] = value();
		}
	}
}

static void random_tables(void)
{
	struct guest_memory *m = g.mem;

	switch (below(8)) {
	case 0:
		m->idt[below(512)] = chance(2) ? rnd() : value();
		break;
	case 1:
		m->gdt[below(16)] = chance(2) ? rnd() : value();
		break;
	case 2:
		m->pml4[below(512)] = value() | PTE_P | PTE_W;
		break;
	case 3:
		m->pdpt[below(GUEST_PDPTS)][below(512)] = value() |
			(chance(2) ? PTE_P | PTE_W | PTE_PS : 0);
		break;
	case 4:
		m->tss.ist[0] = value();
		break;
	case 5:
		((u8 *)&m->tss)[below(sizeof(m->tss))] = rnd();
		break;
	}
}

/*
 * Continue after the instruction whose exception trap.S reports, so that each
 * run of a state executes other code. The guest may have made that hypercall
 * itself, with any RDI.
 */
static void skip_instruction(void)
{
	u64 offset = g.run->regs.rdi - (u64)g.mem;

	if (offset <= sizeof(*g.mem) - sizeof(struct guest_frame))
		((struct guest_frame *)((u8 *)g.mem + offset))->rip += 1 + below(3);
}

/* Whether another run of the same state can differ from the last one. */
static bool can_continue(void)
{
	switch (g.run->exit_reason) {
	case DUNE_EXIT_SYSCALL:
		g.run->regs.rax = -ENOSYS;	/* not ours to make */
		return true;
	case DUNE_EXIT_HOSTCALL:
		if (!chance(4))
			skip_instruction();
		return true;
	case DUNE_EXIT_HLT:
		return true;
	case DUNE_EXIT_INTR:
		return chance(3);
	default:
		return false;
	}
}

static void random_run(void)
{
	struct dune_regs *r = &g.run->regs;
	struct dune_state s;

	random_code();
	if (chance(3))
		random_tables();
	random_state(&s);
	raw_syscall(SYS_ioctl, g.fd, DUNE_SET_STATE, (long)&s, 0, 0, 0);
	for (int i = 0; i < 16; i++)
		((u64 *)r)[i] = value();
	/* Calls that end or stop the child find nothing new. */
	if (chance(2))
		r->rax = below(470);
	r->rip = chance(10) ? value() : (u64)code + below(32);
	r->rsp = chance(4) ? value() : (u64)g.mem->stack + 32768;
	r->rflags = chance(2) ? 2 : rnd() & 0x3fffff;
	g.run->flags = chance(20) ? rnd() : below(2);
	g.run->irq_vector = chance(3) ? below(260) : 0;
	count->state = s;
	count->regs = *r;
	memcpy(count->code, code, sizeof(count->code));
	for (int i = 0; i < RUNS; i++) {
		long err = guest_run(&g);

		count->runs++;
		if (err) {
			count->errors++;
			/* The guest has closed its own vCPU: no later state could run. */
			if (err == -EBADF || err == -ENOTTY)
				_exit(0);
			break;
		}
		if (g.run->exit_reason < REASONS)
			count->reasons[g.run->exit_reason]++;
		if (!can_continue())
			break;
	}
	g.run->flags = 0;
	g.run->irq_vector = 0;
	g.run->reserved0 = 0;
	memset(g.run->reserved1, 0, sizeof(g.run->reserved1));
}

static void random_ioctl(void)
{
	static const unsigned int known[] = {
		DUNE_GET_INFO, DUNE_CREATE_VCPU, DUNE_GET_STATE, DUNE_SET_STATE, DUNE_RUN,
		DUNE_MAP_GRANULE, DUNE_RENEW_VCPU,
	};
	static u64 buffer[64];
	unsigned int request = known[below(sizeof(known) / sizeof(known[0]))];
	u64 argument = chance(4) ? value() : (u64)buffer;
	int fd = chance(2) ? g.fd : g.dev;

	for (int i = 0; i < 64; i++)
		buffer[i] = chance(2) ? value() : 0;
	if (!chance(3))
		buffer[0] = (buffer[0] & ~0xffffffffUL) | (request >> 16 & 0x3fff);
	if (chance(4))
		request ^= 1U << below(32);
	long ret = raw_syscall(SYS_ioctl, fd, request, argument, 0, 0, 0);

	count->ioctls++;
	if (ret > 2)
		raw_syscall(SYS_close, ret, 0, 0, 0, 0, 0);
	if (chance(20))
		raw_syscall(SYS_mmap, 0, below(4) * 4096, below(8),
			    chance(2) ? MAP_SHARED : MAP_PRIVATE, fd,
			    below(3) * 4096);
}

static void tick(int sig)
{
}

static void limit(int what, unsigned long n)
{
	struct rlimit r = { n, n };

	setrlimit(what, &r);
}

/* A vCPU of this process for the guest that the warden made. */
static void adopt_guest(void)
{
	struct guest own;
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0U, 0);
	if (guest_vcpu(&own))
		_exit(1);
	own.mem = g.mem;
	own.state = g.state;
	g = own;
}

/* The states of batch @own from @first on. */
static void child(u64 own, u64 first)
{
	struct itimerval it = { { 0, TICK_US }, { 0, TICK_US } };

	adopt_guest();
	limit(RLIMIT_AS, 256UL << 20);
	limit(RLIMIT_FSIZE, 1 << 20);
	limit(RLIMIT_NPROC, 50);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, 10);
	(void)!setgroups(0, NULL);
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(1);
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &it, NULL);
	for (u64 i = first; i < STATES; i++) {
		count->next = i + 1;
		state = mix(own ^ mix(i)) ?: 1;
		if (chance(5))
			random_ioctl();
		else
			random_run();
		count->states++;
	}
	_exit(0);
}

static void add(u64 *to, u64 n)
{
	__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static void add_up(void)
{
	bool sane = count->states <= STATES && count->runs <= STATES * RUNS &&
		    count->errors <= STATES * RUNS && count->ioctls <= STATES;

	for (int i = 0; i < REASONS; i++)
		sane &= count->reasons[i] <= STATES * RUNS;
	add(&total->processes, 1);
	if (!sane) {
		add(&total->scribbled, 1);
		return;
	}
	add(&total->states, count->states);
	add(&total->runs, count->runs);
	add(&total->errors, count->errors);
	add(&total->ioctls, count->ioctls);
	for (int i = 0; i < REASONS; i++)
		add(&total->reasons[i], count->reasons[i]);
}

static void show(void)
{
	const struct dune_segment *segments = &count->state.cs;
	char text[600];
	int n = 0;

	diag("before state %lu: cpl %u cr3 %#llx rip %#llx rsp %#llx rflags %#llx rax %#llx "
	     "rcx %#llx rdx %#llx rdi %#llx",
	     count->next, count->state.cpl, count->state.cr3, count->regs.rip, count->regs.rsp,
	     count->regs.rflags, count->regs.rax, count->regs.rcx, count->regs.rdx,
	     count->regs.rdi);
	for (int i = 0; i < SEGMENTS; i++)
		diag("segment %d: %#x %#x %#x %#llx", i, segments[i].selector,
		     segments[i].attributes,
		     segments[i].limit, segments[i].base);
	for (int i = 0; i < CODE; i++)
		n += snprintf(text + n, sizeof(text) - n, "%02x", count->code[i]);
	diag("code %s", text);
}

/* Waits while the child makes progress, and then kills it. */
static void await(int pid, u64 number)
{
	struct pollfd pfd = { .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	u64 seen;

	do {
		seen = count->next;
	} while (!poll(&pfd, 1, time_limit(STUCK_MS)) && count->next != seen);
	close(pfd.fd);
	if (waitpid(pid, NULL, WNOHANG) == pid)
		return;
	add(&total->stuck, 1);

	unsigned long began = now_us();

	kill(pid, SIGKILL);
	struct outcome o = wait_child(pid, 20);

	/* A guest that SIGKILL does not end at once keeps its CPU from the kernel. */
	if (o.hung || now_us() - began > time_limit(6) * 1000000UL) {
		diag("batch %lu: a process was killed, and ended after %lu us", number,
		     now_us() - began);
		show();
		_exit(3);
	}
}

static void batch(u64 number)
{
	for (u64 first = 0; first < STATES;) {
		memset(count, 0, sizeof(*count));
		int pid = fork();

		if (pid < 0)
			bail("fork: %s", strerror(errno));
		if (!pid)
			child(mix(mix(seed) ^ number), first);
		await(pid, number);
		/* Processes that it has left: this namespace has no others that can be killed. */
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
		add_up();
		first = count->next > first && count->next < STATES ? count->next : STATES;
	}
	add(&total->batches, 1);
}

static bool take(u64 *number)
{
	if (total->deadline && now_us() >= total->deadline)
		return false;
	*number = __atomic_fetch_add(&total->next, 1, __ATOMIC_RELAXED);
	return *number < total->end;
}

/* Returns whether there is more to do, in new namespaces. */
static bool warden(void)
{
	u64 number;

	count = shared_alloc(sizeof(*count));
	madvise(total, sizeof(*total), MADV_DONTFORK);
	guest_open(&g);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	for (int i = 0; i < RENEW; i++) {
		if (!take(&number))
			return false;
		if (total->say)
			diag("batch %lu", number);
		batch(number);
	}
	return true;
}

static int exit_status(int pid)
{
	int status;

	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 2;
	return WEXITSTATUS(status);
}

/* A process makes one PID namespace only, of which its first child is the init. */
static void namespaces(void)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS))
		bail("unshare: %s", strerror(errno));
	int pid = fork();

	if (!pid)
		_exit(warden() ? 1 : 0);
	_exit(exit_status(pid));
}

/* One warden after another. */
static void wardens(void)
{
	int status;

	do {
		int pid = fork();

		if (!pid)
			namespaces();
		status = exit_status(pid);
	} while (status == 1);
	_exit(status);
}

/* Wait until all wardens have ended. Returns whether they and the healthy guest did well. */
static bool watch(struct guest *health, int *pids, int n)
{
	bool well = true;

	for (u64 round = 0; n; round++) {
		int status, pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			n--;
			if (status) {
				diag("a warden ended with %#x", status);
				well = false;
			}
		} else {
			sleep_ms(20);
		}
		if (guest_call(health, guest_return, (void *)round) != GUEST_DONE ||
		    health->value != round) {
			diag("the healthy guest: %s", guest_end_name(health, GUEST_EXIT));
			well = false;
		}
		if (!well)
			break;
	}
	for (int i = 0; n && pids[i]; i++)
		kill(pids[i], SIGKILL);
	return well;
}

int main(int argc, char **argv)
{
	long seconds = env_number("FUZZ_SECONDS", 0);
	u64 first = env_number("FUZZ_FIRST", 0);
	long children = env_number("FUZZ_CHILDREN", seconds ? LONG_MAX : 240);
	int pids[WARDENS + 1] = { 0 };
	cpu_set_t cpus;
	struct guest health;
	struct klog log;
	bool well;
	int n;

	begin(seconds ? seconds + 120 : 300);
	seed = env_number("FUZZ_SEED", 1) ?: time(NULL) ^ (long)getpid() << 32;
	if (argc > 1) {
		first = strtoull(argv[1], NULL, 0);
		children = 1;
	}
	klog_begin(&log);
	file_write("/proc/sys/debug/exception-trace", "0");
	guest_open(&health);
	total = shared_alloc(sizeof(*total));
	total->next = first;
	total->end = first + children;
	total->deadline = seconds ? now_us() + seconds * 1000000UL : 0;
	total->say = env_number("FUZZ_SAY", 0);
	diag("FUZZ_SEED=%#lx FUZZ_FIRST=%lu", seed, first);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (n = 0; n < CPU_COUNT(&cpus) && n < WARDENS && n < children; n++) {
		pids[n] = fork();
		if (pids[n] < 0)
			bail("fork: %s", strerror(errno));
		if (!pids[n])
			wardens();
	}

	unsigned long began = now_us();

	well = watch(&health, pids, n);
	ok(well, "%lu states with %lu runs and %lu ioctls in %lu batches left the healthy guest "
	   "and the kernel intact",
	   total->states, total->runs, total->ioctls, total->batches);
	diag("exits: intr %lu, syscall %lu, hostcall %lu, fault %lu, hlt %lu, shutdown %lu, "
	     "invalid %lu, unknown %lu",
	     total->reasons[DUNE_EXIT_INTR], total->reasons[DUNE_EXIT_SYSCALL],
	     total->reasons[DUNE_EXIT_HOSTCALL], total->reasons[DUNE_EXIT_FAULT],
	     total->reasons[DUNE_EXIT_HLT],
	     total->reasons[DUNE_EXIT_SHUTDOWN], total->reasons[DUNE_EXIT_INVALID],
	     total->reasons[DUNE_EXIT_UNKNOWN]);
	diag("DUNE_RUN refused %lu times; %lu processes, of which %lu wrote over their own count "
	     "and %lu were stuck",
	     total->errors, total->processes, total->scribbled, total->stuck);
	diag("%lu ms", (now_us() - began) / 1000);
	/* for tools/suite */
	diag("counts: next=%lu states=%lu runs=%lu ioctls=%lu batches=%lu",
	     total->next < total->end ? total->next : total->end, total->states, total->runs,
	     total->ioctls, total->batches);
	if (argc < 2)
		ok(total->runs > total->batches * 20 &&
		   total->reasons[DUNE_EXIT_SHUTDOWN] + total->reasons[DUNE_EXIT_FAULT] > 0 &&
		   total->scribbled <= total->processes / 2, "the random states were really run");
	klog_end(&log);
	ok(log.lines <= 20, "the kernel log hardly grew (%u lines)", log.lines);
	guest_close(&health);
	return done();
}

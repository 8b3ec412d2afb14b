// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random states, random code, random hypercalls and random ioctls, for
 * FUZZ_SECONDS (20), from seed FUZZ_SEED (1; 0: the clock). The guests'
 * processes may die as they like; the machine, a healthy guest beside them
 * and the kernel log may not care. Each child has its own seed, printed when
 * something goes wrong; "fuzz.t SEED" repeats one child alone.
 *
 * Hypercalls with random numbers are real system calls: the children are
 * nobody, in namespaces of their own, with tight limits.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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

#define RUNS	200

static u64 state;
static struct guest g;
static u8 *code;

/*
 * What a child did. The guest may write over it, as over anything of its
 * process: the parent adds up only what can be true.
 */
static struct shared {
	u64 runs, reasons[10], errors, ioctls;
	/* The last run of the last child, to be seen when it hangs. */
	struct dune_state state;
	struct dune_regs regs;
	u8 code[256];
	u64 iteration;
} *count;

static u64 rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

static u64 below(u64 n)
{
	return (rnd() >> 11) % n;
}

static bool chance(unsigned int one_in)
{
	return !below(one_in);
}

/* A number that someone may have forgotten. */
static u64 value(void)
{
	static const u64 some[] = {
		0, 1, 2, 0xfff, 0x1000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffff,
		0x800000000000, 0x7ffffffff000, 0xffff800000000000, 0xffff888000000000, 0xffffffff81000000,
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
	static const char *const pieces[] = {
		"\x0f\x01\xd9", "\x0f\x01\xc1", "\xf4", "\x0f\x22\xd8", "\x0f\x22\xc0", "\x0f\x22\xe0", "\x0f\x30", "\x0f\x32",
		"\xcd\x80", "\xcc", "\x0f\x0b", "\xec", "\xee", "\x0f\x01\xd8", "\x0f\x01\xda", "\x0f\x01\xdd",
		"\x48\xcf", "\xfb", "\xfa", "\x9d", "\x9c", "\x0f\x05", "\x48\x0f\x07", "\x0f\x34", "\x0f\x01\xf8",
		"\x0f\x01\x17", "\x0f\x01\x1f", "\x8e\xd8", "\x8e\xd0", "\x8e\xe0", "\x0f\xa2", "\x0f\x31",
		"\x0f\x01\x3f", "\x0f\x23\xf8", "\x0f\x01\xd1", "\x0f\x08", "\x0f\x09", "\x0f\x00\xd0", "\xff\x2f",
		"\xcb", "\xf3\x90", "\x50", "\x58", "\x89\x07", "\x8b\x07", "\x48\x94", "\x48\xab", "\xf3\x48\xab",
		"\x0f\xae\x07", "\x0f\xae\x0f", "\xeb\xfe", "\xf1", "\x0f\x33", "\x0f\x01\xdf", "\x0f\x20\xd8",
		"\x31\xc0", "\xb0\x27", "\x48\xff\xc0",
	};
	int n = 0;

	for (int i = 0; i < 256; i += 8)
		*(u64 *)(code + i) = rnd();
	/*
	 * No VEX and EVEX prefixes: TCG ends with an assertion in its decoder
	 * at some of them (PINSR with 256 bits), as any program could make it.
	 */
	for (int i = 0; i < 256; i++)
		if (code[i] == 0xc4 || code[i] == 0xc5 || code[i] == 0x62)
			code[i] = 0x90;
	while (n < 200) {
		if (chance(4)) {
			n += below(4);
			continue;
		}
		const char *p = pieces[below(sizeof(pieces) / sizeof(pieces[0]))];
		size_t len = strlen(p);

		memcpy(code + n, p, len ? len : 3);
		n += len ? len : 3;
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
			random_segment(&segments[below(10)]);
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
		m->pdpt[below(GUEST_PDPTS)][below(512)] = value() | (chance(2) ? PTE_P | PTE_W | PTE_PS : 0);
		break;
	case 4:
		m->tss.ist[0] = value();
		break;
	case 5:
		((u8 *)&m->tss)[below(sizeof(m->tss))] = rnd();
		break;
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
	/* Calls that end or stop us tell nothing new. */
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
	for (int i = 0; i < 6; i++) {
		long err = guest_run(&g);

		count->runs++;
		if (err) {
			count->errors++;
			break;
		}
		u32 reason = g.run->exit_reason;

		if (reason < 10)
			count->reasons[reason]++;
		if (reason == DUNE_EXIT_SYSCALL)
			r->rax = -ENOSYS;	/* not ours to make */
		else if (reason != DUNE_EXIT_INTR && reason != DUNE_EXIT_HLT && reason != DUNE_EXIT_HOSTCALL)
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
		DUNE_GET_INFO, DUNE_CREATE_VCPU, DUNE_GET_STATE, DUNE_SET_STATE, DUNE_RUN, DUNE_MAP_GRANULE,
		DUNE_RENEW_VCPU,
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
		raw_syscall(SYS_mmap, 0, below(4) * 4096, below(8), chance(2) ? MAP_SHARED : MAP_PRIVATE, fd,
			    below(3) * 4096);
}

static void tick(int sig)
{
	(void)sig;
}

static void limit(int what, unsigned long n)
{
	struct rlimit r = { n, n };

	setrlimit(what, &r);
}

static void child(void *arg)
{
	struct itimerval it = { { 0, 4000 }, { 0, 4000 } };

	state = (u64)arg;
	guest_open(&g);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	limit(RLIMIT_AS, 256UL << 20);
	limit(RLIMIT_FSIZE, 1 << 20);
	limit(RLIMIT_NPROC, 50);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, 10);
	unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS);
	(void)!setgroups(0, NULL);
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(1);
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &it, NULL);
	for (int i = 0; i < RUNS; i++) {
		count->iteration = i;
		if (chance(5))
			random_ioctl();
		else
			random_run();
	}
	_exit(0);
}

/* kill(-1) of a child may reach only itself: it is the first of a PID namespace. */
static void parent_of_one(void *arg)
{
	if (unshare(CLONE_NEWPID))
		_exit(2);
	int pid = fork();

	if (!pid)
		child(arg);

	unsigned long began = now_us();

	/* The child of a namespace dies with it when we are killed. */
	for (unsigned long end = now_us() + 2000000; now_us() < end;) {
		int status;

		if (waitpid(pid, &status, WNOHANG) == pid)
			_exit(0);
		sleep_ms(2);
	}
	kill(pid, SIGKILL);
	struct outcome o = wait_child(pid, 20);

	/* A guest that SIGKILL does not end at once keeps its CPU from the kernel. */
	if (now_us() - began > 2000000 + 6000000UL * env_number("TEST_PATIENCE", 4))
		_exit(4);
	_exit(o.hung ? 3 : 0);
}

static u64 nothing(void *arg)
{
	return (u64)arg;
}

static struct total {
	u64 runs, reasons[10], errors, ioctls, scribbled;
} total;

static void add_up(void)
{
	bool sane = count->runs <= RUNS * 6 && count->errors <= RUNS * 6 && count->ioctls <= RUNS;

	for (int i = 0; i < 10; i++)
		sane &= count->reasons[i] <= RUNS * 6;
	if (!sane) {
		total.scribbled++;
		return;
	}
	total.runs += count->runs;
	total.errors += count->errors;
	total.ioctls += count->ioctls;
	for (int i = 0; i < 10; i++)
		total.reasons[i] += count->reasons[i];
}

static void show(void)
{
	const struct dune_segment *segments = &count->state.cs;
	char text[600];
	int n = 0;

	diag("iteration %lu: cpl %u cr3 %#llx rip %#llx rsp %#llx rflags %#llx rax %#llx rcx %#llx rdx %#llx rdi %#llx",
	     count->iteration, count->state.cpl, count->state.cr3, count->regs.rip, count->regs.rsp,
	     count->regs.rflags, count->regs.rax, count->regs.rcx, count->regs.rdx, count->regs.rdi);
	for (int i = 0; i < 10; i++)
		diag("segment %d: %#x %#x %#x %#llx", i, segments[i].selector, segments[i].attributes,
		     segments[i].limit, segments[i].base);
	for (int i = 0; i < 256; i++)
		n += snprintf(text + n, sizeof(text) - n, "%02x", count->code[i]);
	diag("code %s", text);
}

int main(int argc, char **argv)
{
	long seconds = env_number("FUZZ_SECONDS", 20);
	u64 seed = env_number("FUZZ_SEED", 1) ?: time(NULL) ^ (long)getpid() << 32;
	struct guest health;
	struct klog log;
	bool well = true;

	begin(seconds + 120);
	klog_begin(&log);
	file_write("/proc/sys/debug/exception-trace", "0");
	count = shared_alloc(sizeof(*count));
	guest_open(&health);
	if (argc > 1) {
		seed = strtoull(argv[1], NULL, 0);
		seconds = 0;
	}
	if (argc > 1)
		diag("one child, of seed %#lx", seed);
	else
		diag("FUZZ_SEED=%#lx FUZZ_SECONDS=%ld", seed, seconds);

	unsigned long end = now_us() + seconds * 1000000UL;
	u64 n = 0;

	do {
		u64 own = argc > 1 ? seed : (seed + n) * 0x9e3779b97f4a7c15 | 1;

		memset(count, 0, sizeof(*count));
		struct outcome o = in_child(parent_of_one, (void *)own, 60);

		n++;
		add_up();
		if (o.hung || o.code >= 3 || guest_call(&health, nothing, (void *)n) != GUEST_DONE || health.value != n) {
			diag("child %#lx: %d, %d", own, o.code, o.signal);
			show();
			well = false;
			break;
		}
	} while (now_us() < end);
	ok(well, "%lu children with %lu runs and %lu ioctls harmed nobody", n, total.runs, total.ioctls);
	diag("exits: intr %lu, syscall %lu, hostcall %lu, fault %lu, hlt %lu, shutdown %lu, invalid %lu, unknown %lu",
	     total.reasons[1], total.reasons[2], total.reasons[3], total.reasons[4], total.reasons[5],
	     total.reasons[6], total.reasons[7], total.reasons[8]);
	diag("DUNE_RUN refused %lu times; %lu children wrote over their own count", total.errors, total.scribbled);
	if (argc < 2)
		ok(total.runs > n * 20 && total.reasons[DUNE_EXIT_SHUTDOWN] + total.reasons[DUNE_EXIT_FAULT] > 0 &&
		   total.scribbled <= n / 2, "and were really run");
	klog_read(&log);
	ok(!log.complaint, "the kernel log has no complaint %s", log.first);
	ok(log.lines <= 20, "and hardly grew (%u lines)", log.lines);
	guest_close(&health);
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/* Random states: see states.h. */
#define _GNU_SOURCE
#include "states.h"
#include "by_stub.h"
#include "private.h"
#include "random.h"
#include "rseq.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEGMENTS	10	/* of struct dune_state, from cs on */

static struct guest *g;
static u8 *code;
static struct state_counts *counts;
static u64 state;	/* of the random numbers */

void states_begin(struct guest *guest, u8 *page, struct state_counts *c)
{
	g = guest;
	code = page;
	counts = c;
}

u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static u64 rnd(void)
{
	state = next_random(state);
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
		return (u64)g->mem + below(sizeof(*g->mem) + 4096);
	case 4:
		return (u64)code + below(4096);
	case 5:
		return guest_gpa(g, (u64)g->mem) + below(sizeof(*g->mem) + 4096);
	default:
		return below(1 << below(20));
	}
}

/* Instructions that a guest may not execute, or only in its own way, and some others. */
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

static void random_code(void)
{
	for (int i = 0; i < STATE_CODE; i += 8)
		*(u64 *)(code + i) = rnd();
	/*
	 * No VEX and EVEX prefixes: TCG ends with an assertion in its decoder
	 * at some of them (PINSR with 256 bits), as any program could make it.
	 */
	for (int i = 0; i < STATE_CODE; i++)
		if (code[i] == 0xc4 || code[i] == 0xc5 || code[i] == 0x62)
			code[i] = 0x90;
	for (int n = 0; n < STATE_CODE - 28;) {
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

	*s = g->state;
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
	struct guest_memory *m = g->mem;

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
	u64 offset = g->run->regs.rdi - (u64)g->mem;

	if (offset <= sizeof(*g->mem) - sizeof(struct guest_frame))
		((struct guest_frame *)((u8 *)g->mem + offset))->rip += 1 + below(3);
}

/* Whether another run of the same state can differ from the last one. */
static bool can_continue(void)
{
	switch (g->run->exit_reason) {
	case DUNE_EXIT_SYSCALL:
		g->run->regs.rax = -ENOSYS;	/* not ours to make */
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
	struct dune_regs *r = &g->run->regs;
	struct dune_state s;

	random_code();
	if (chance(3))
		random_tables();
	random_state(&s);
	raw_syscall(SYS_ioctl, g->fd, DUNE_SET_STATE, (long)&s, 0, 0, 0);
	for (int i = 0; i < 16; i++)
		((u64 *)r)[i] = value();
	/* Calls that end or stop the child find nothing new. */
	if (chance(2))
		r->rax = below(470);
	r->rip = chance(10) ? value() : (u64)code + below(32);
	r->rsp = chance(4) ? value() : (u64)g->mem->stack + 32768;
	r->rflags = chance(2) ? 2 : rnd() & 0x3fffff;
	g->run->flags = chance(20) ? rnd() : below(2);
	g->run->irq_vector = chance(3) ? below(260) : 0;
	counts->state = s;
	counts->regs = *r;
	memcpy(counts->code, code, sizeof(counts->code));
	for (int i = 0; i < STATE_RUNS; i++) {
		long err = guest_run(g);

		counts->runs++;
		if (err) {
			counts->errors++;
			/* The guest has closed its own vCPU: no later state could run. */
			if (err == -EBADF || err == -ENOTTY)
				_exit(0);
			break;
		}
		if (g->run->exit_reason < REASONS)
			counts->reasons[g->run->exit_reason]++;
		if (!can_continue())
			break;
	}
	g->run->flags = 0;
	g->run->irq_vector = 0;
	g->run->reserved0 = 0;
	memset(g->run->reserved1, 0, sizeof(g->run->reserved1));
}

static void random_ioctl(void)
{
	static const unsigned int known[] = {
		DUNE_GET_INFO, DUNE_CREATE_VCPU, DUNE_GET_STATE, DUNE_SET_STATE, DUNE_RUN,
		DUNE_MAP_GRANULE, DUNE_ADD_PRIVATE, DUNE_RENEW_VCPU, DUNE_SET_STUB,
	};
	static u64 buffer[64];
	unsigned int request = known[below(sizeof(known) / sizeof(known[0]))];
	u64 argument = chance(4) ? value() : (u64)buffer;
	int fd = chance(2) ? g->fd : g->dev;

	for (int i = 0; i < 64; i++)
		buffer[i] = chance(2) ? value() : 0;
	if (!chance(3))
		buffer[0] = (buffer[0] & ~0xffffffffUL) | (request >> 16 & 0x3fff);
	if (chance(4))
		request ^= 1U << below(32);
	if (request == DUNE_ADD_PRIVATE && chance(2)) {
		u64 flag = chance(4) ? DUNE_PRIVATE_SHOWN : DUNE_PRIVATE_SEALED;

		buffer[0] = sizeof(struct dune_private) | flag << 32;
		buffer[1] = below(20);
		buffer[3] = flag == DUNE_PRIVATE_SHOWN ? 0 : value();
	}
	long ret = raw_syscall(SYS_ioctl, fd, request, argument, 0, 0, 0);

	counts->ioctls++;
	if (ret > 2)
		raw_syscall(SYS_close, ret, 0, 0, 0, 0, 0);
	if (chance(20))
		raw_syscall(SYS_mmap, 0, below(4) * 4096, below(8),
			    chance(2) ? MAP_SHARED : MAP_PRIVATE, fd,
			    below(3) * 4096);
}

/* Returns the process's stub, which @fd maps if there is none yet, or NULL. */
static char *stub_page(int fd)
{
	static char *page;

	if (page)
		return page;
	page = mmap(NULL, (1 + below(4)) * 4096, PROT_READ, MAP_SHARED, fd, DUNE_STUB_OFFSET);
	if (page == MAP_FAILED)
		page = NULL;
	return page;
}

/* The first of these signals enters the guest by the stub. All are blocked from then on. */
static void catch_by_stub(char *at)
{
	static const int caught[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	stack_t stack = { .ss_sp = g->mem->stack, .ss_size = 32768 };
	struct sigaction sa = {
		.sa_sigaction = (void *)(at + DUNE_STUB_SIGNAL),
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	sigfillset(&sa.sa_mask);
	sigaltstack(&stack, NULL);
	for (unsigned int i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &sa, NULL);
}

static u8 *put_mov(u8 *at, u8 opcode, u64 value)
{
	*at++ = 0x48;
	*at++ = opcode;
	memcpy(at, &value, 8);
	return at + 8;
}

static u8 *put_hypercall(u8 *at)
{
	memcpy(at, guest_vmx ? "\x0f\x01\xc1" : "\x0f\x01\xd9", 3);
	return at + 3;
}

/* RAX of a hypercall that a guest without a host half can make. */
static u64 message(void)
{
	static const u64 calls[] = { 0, DUNE_HOSTCALL, DUNE_HOSTCALL_NOW };
	static const u64 others[] = {
		DUNE_PROBE_READ, DUNE_PROBE_WRITE, DUNE_MAKE_CHILD, DUNE_MAKE_SHARED_CHILD,
		DUNE_STUB_MOVE, DUNE_ADD_PAGES, DUNE_IGNORED_SIGNALS,
	};

	if (chance(3))
		return others[below(sizeof(others) / sizeof(others[0]))];
	return calls[below(sizeof(calls) / sizeof(calls[0]))] | below(470);
}

/*
 * Puts code before the random code that makes a vCPU for a child, and then a child, which begins in
 * the random code. It may be of the wrong kind, and begin somewhere else.
 */
static void put_fork(void)
{
	static const u64 flags[] = {
		SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD, CLONE_FILES | SIGCHLD, CLONE_VM,
		CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FILES,
	};
	static const struct rlimit limit = { 40, 40 };
	u8 *at = code;

	setrlimit(RLIMIT_NPROC, &limit);
	at = put_mov(at, 0xb8, chance(3) ? DUNE_MAKE_SHARED_CHILD : DUNE_MAKE_CHILD);
	at = put_mov(at, 0xbf, chance(20) ? value() : (u64)code + 64 + below(32));
	at = put_hypercall(at);
	at = put_mov(at, 0xb8, DUNE_HOSTCALL | SYS_clone);
	at = put_mov(at, 0xbf, flags[below(sizeof(flags) / sizeof(flags[0]))]);
	at = put_mov(at, 0xbe, chance(4) ? value() : 0);
	put_hypercall(at);
}

/*
 * Runs a state without a host half (struct dune_stub), on a vCPU of its own, whose run page the
 * guest can write. Only the end of the process ends it.
 */
static void run_to_the_end(void)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	struct dune_stub argument = { .size = sizeof(argument) };
	u64 *r = (u64 *)&argument.regs;
	struct dune_state s;
	char *at;
	int fd;

	rseq_drop();
	fd = raw_syscall(SYS_ioctl, g->dev, DUNE_CREATE_VCPU, (long)&create, 0, 0, 0);
	if (fd < 0)
		return;
	at = stub_page(fd);
	if (!at) {
		raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
		return;
	}
	random_code();
	random_state(&s);
	raw_syscall(SYS_ioctl, fd, DUNE_SET_STATE, (long)&s, 0, 0, 0);
	argument.address = (u64)at;
	argument.irq_vector = 32 + below(224);
	for (int i = 0; i < 16; i++)
		r[i] = chance(3) ? PRIVATE_AT + below(sizeof(struct dune_run)) : value();
	if (!chance(3))
		argument.regs.rax = message();
	if (argument.regs.rax == DUNE_STUB_MOVE && !chance(3))
		argument.regs.rdi = chance(2) ? fd : g->fd;
	if (argument.regs.rax == DUNE_ADD_PAGES && !chance(3))
		argument.regs.rdi = below(20);
	argument.regs.rip = (u64)code + below(32);
	if (chance(3)) {
		put_fork();
		argument.regs.rip = (u64)code;
	}
	argument.regs.rsp = chance(4) ? value() : (u64)g->mem->stack + 65536;
	argument.regs.rflags = chance(2) ? 2 : rnd() & 0x3fffff;
	counts->state = s;
	counts->regs = argument.regs;
	memcpy(counts->code, code, sizeof(counts->code));
	if (raw_syscall(SYS_ioctl, fd, DUNE_SET_STUB, (long)&argument, 0, 0, 0)) {
		raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
		return;
	}
	private_show(g, argument.run & -(2UL << 20));
	catch_by_stub(at);
	counts->runs++;
	counts->states++;
	stub_enter(at, fd);
}

void states_run(u64 seed)
{
	state = mix(seed) ?: 1;
	if (chance(100))
		run_to_the_end();
	if (chance(5))
		random_ioctl();
	else
		random_run();
	counts->states++;
}

void states_show(const struct state_counts *c)
{
	const struct dune_segment *segments = &c->state.cs;
	char text[600];
	int n = 0;

	diag("cpl %u cr3 %#llx rip %#llx rsp %#llx rflags %#llx "
	     "rax %#llx rcx %#llx rdx %#llx rdi %#llx",
	     c->state.cpl, c->state.cr3, c->regs.rip, c->regs.rsp, c->regs.rflags, c->regs.rax,
	     c->regs.rcx, c->regs.rdx, c->regs.rdi);
	for (int i = 0; i < SEGMENTS; i++)
		diag("segment %d: %#x %#x %#x %#llx", i, segments[i].selector,
		     segments[i].attributes, segments[i].limit, segments[i].base);
	for (int i = 0; i < STATE_CODE; i++)
		n += snprintf(text + n, sizeof(text) - n, "%02x", c->code[i]);
	diag("code %s", text);
}

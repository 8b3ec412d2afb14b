// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * After every run all of the processor's state is the host's again: segment
 * registers and bases, LDTR and TR, descriptor tables, flags, debug
 * registers, FPU modes, MSRs. Each is read, a guest sets it to another value,
 * and it is read again; also after another process ran on the CPU in between,
 * and with a guest that is interrupted while its values are loaded. Fails for
 * each register that the module forgets to switch back.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"

#include <asm/prctl.h>
#include <asm/processor-flags.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;

struct host {
	u16 cs, ss, ds, es, fs, gs, ldt, tr;
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) gdt, idt;
	u64 fs_base, gs_base, flags;
	u32 mxcsr;
	u16 fcw;
	u64 xcr0;
	u64 msr[8];
};

static int msr_file = -1;

static const struct {
	const char *name;
	u32 number;
} msrs[] = {
	{ "STAR", 0xc0000081 }, { "LSTAR", 0xc0000082 }, { "CSTAR", 0xc0000083 },
	{ "SFMASK", 0xc0000084 }, { "SYSENTER_CS", 0x174 }, { "SYSENTER_EIP", 0x176 },
	{ "EFER", 0xc0000080 }, { "PAT", 0x277 },
};

static void read_host(struct host *h)
{
	memset(h, 0, sizeof(*h));
	asm volatile("mov %%cs, %0" : "=r"(h->cs));
	asm volatile("mov %%ss, %0" : "=r"(h->ss));
	asm volatile("mov %%ds, %0" : "=r"(h->ds));
	asm volatile("mov %%es, %0" : "=r"(h->es));
	asm volatile("mov %%fs, %0" : "=r"(h->fs));
	asm volatile("mov %%gs, %0" : "=r"(h->gs));
	/* With UMIP, user mode may not execute these: Linux emulates them with constants. */
	asm volatile("sldt %0" : "=r"(h->ldt));
	asm volatile("str %0" : "=r"(h->tr));
	asm volatile("sgdt %0" : "=m"(h->gdt));
	asm volatile("sidt %0" : "=m"(h->idt));
	raw_syscall(SYS_arch_prctl, ARCH_GET_FS, (long)&h->fs_base, 0, 0, 0, 0);
	raw_syscall(SYS_arch_prctl, ARCH_GET_GS, (long)&h->gs_base, 0, 0, 0, 0);
	h->flags = read_flags() & ~0x8d5UL;	/* without the arithmetic ones */
	asm volatile("stmxcsr %0" : "=m"(h->mxcsr));
	asm volatile("fnstcw %0" : "=m"(h->fcw));
	h->xcr0 = read_xcr0();
	for (int i = 0; i < 8; i++) {
		if (msr_file >= 0 && pread(msr_file, &h->msr[i], 8, msrs[i].number) != 8)
			h->msr[i] = ~0UL;
	}
}

static bool same(const struct host *a, const struct host *b, const char **what)
{
#define SAME(m) do { if (a->m != b->m) { *what = #m; return false; } } while (0)
	SAME(cs);
	SAME(ss);
	SAME(ds);
	SAME(es);
	SAME(fs);
	SAME(gs);
	SAME(ldt);
	SAME(tr);
	SAME(gdt.limit);
	SAME(gdt.base);
	SAME(idt.limit);
	SAME(idt.base);
	SAME(fs_base);
	SAME(gs_base);
	SAME(flags);
	SAME(mxcsr);
	SAME(fcw);
	SAME(xcr0);
	for (int i = 0; i < 8; i++) {
		if (a->msr[i] != b->msr[i]) {
			*what = msrs[i].name;
			return false;
		}
	}
	return true;
}

static void wrmsr(u32 number, u64 value)
{
	asm volatile("wrmsr" : : "c"(number), "a"((u32)value), "d"((u32)(value >> 32)));
}

static u64 rdmsr(u32 number)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
	return (u64)high << 32 | low;
}

/* ---- guests: each sets one thing ---- */

static u64 load_segments(void *arg)
{
	asm volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%fs; mov %0, %%gs" : : "r"(GUEST_SS3));
	return 0;
}

static u64 load_ldt(void *arg)
{
	g.mem->gdt[8] = 0x0000820000000fff | ((u64)g.mem->idt & 0xffffff) << 16 |
			((u64)g.mem->idt >> 24 & 0xff) << 56;
	g.mem->gdt[9] = (u64)g.mem->idt >> 32;
	asm volatile("lldt %w0" : : "r"(0x40));
	return 0;
}

static u64 load_tr(void *arg)
{
	/* Available again, at another place in the table. */
	g.mem->gdt[10] = g.mem->gdt[GUEST_TR >> 3] & ~(2UL << 40);
	g.mem->gdt[11] = g.mem->gdt[(GUEST_TR >> 3) + 1];
	asm volatile("ltr %w0" : : "r"(0x50));
	return 0;
}

static u64 load_tables(void *arg)
{
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) table = { 0x5f, (u64)g.mem->gdt };

	asm volatile("lgdt %0" : : "m"(table));
	table.base = (u64)g.mem->idt;
	table.limit = 0x1ff;
	asm volatile("lidt %0" : : "m"(table));
	return 0;
}

static u64 write_bases(void *arg)
{
	wrmsr(0xc0000101, 0x123456789000);
	asm volatile("swapgs");
	wrmsr(0xc0000101, 0x234567890000);
	rdmsr(0xc0000100);
	wrmsr(0xc0000100, 0x345678900000);
	u64 read = rdmsr(0xc0000100);

	asm volatile("wrfsbase %0; wrgsbase %0" : : "r"(0x456789000000));
	return read == 0x345678900000 ? 0 : 1;
}

static u64 write_syscall_msrs(void *arg)
{
	for (u32 m = 0xc0000081; m <= 0xc0000083; m++)
		wrmsr(m, 0x1111111100 + m % 16 * 8);
	wrmsr(0xc0000084, 0x11111120);	/* Intel's has 32 bits */
	wrmsr(0xc0000102, 0x7777777000);
	for (u32 m = 0x174; m <= 0x176; m++)
		wrmsr(m, m == 0x174 ? 0x18 : 0x22222000);
	if (rdmsr(0xc0000082) != 0x1111111110)
		return 1;
	/* On purpose not restored: hypercalls and exits happen with these loaded. */
	return hypercall0(SYS_getpid) == 0;
}

static u64 set_flags(void *arg)
{
	/* DF, AC, ID, NT, IOPL 3, IF; TF would trap. */
	asm volatile("pushq $0x277602; popfq; mov $0x100000001, %%rax; xor %%edi, %%edi\n" HYPERCALL
		     : : : "memory");
	return 1;
}

static u64 set_fpu(void *arg)
{
	static const u32 mxcsr = 0x5f80;
	static const u16 fcw = 0x0b7f;

	asm volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(fcw));
	return 0;
}

static u64 spin_100ms(void *arg)
{
	u64 (*fn)(void *arg) = arg;

	fn(NULL);
	/* Long enough for ticks and switches with the guest's values loaded. */
	for (volatile long i = 0; i < 3000000; i++)
		;
	return 0;
}

/* LTR may be intercepted, where an emulator cannot be trusted with it. */
static bool well(enum guest_end end, u64 (*fn)(void *arg))
{
	return end == GUEST_DONE || (fn == load_tr && end == GUEST_TRAP && g.frame->vector == 13);
}

static void check(const char *name, u64 (*fn)(void *arg), void *arg)
{
	struct host before, after;
	const char *what = "";

	read_host(&before);
	enum guest_end end = guest_call(&g, fn, arg);

	read_host(&after);
	if (!well(end, fn))
		diag("%s: the guest ended with %d: exit %u, the hardware's %#llx, %#llx, at %#llx",
		     name, end, g.run->exit_reason, g.run->hw_exit, g.run->hw_info1,
		     g.run->regs.rip);
	/* The guest's FPU registers are the thread's own: a change of modes stays on purpose. */
	if (fn == set_fpu) {
		ok(after.mxcsr == 0x5f80 && after.fcw == 0x0b7f,
		   "%s: the guest's FPU is the thread's", name);
		after.mxcsr = before.mxcsr;
		after.fcw = before.fcw;
		asm volatile("ldmxcsr %0; fldcw %1" : : "m"(before.mxcsr), "m"(before.fcw));
	}
	bool good = same(&before, &after, &what);

	ok(good && well(end, fn), "after a guest with %s all is the host's %s", name, what);
	if (end != GUEST_DONE)
		diag("%s", guest_end_name(&g, end));
}

/* Another process on the same CPU, which checks its own state all the time. */
static void neighbour(volatile int *bad)
{
	struct host first, now;
	const char *what;

	read_host(&first);
	u32 mxcsr = 0x3f80;

	asm volatile("ldmxcsr %0" : : "m"(mxcsr));
	first.mxcsr = mxcsr;
	for (;;) {
		u64 x[2] = { 0x1122334455667788, getpid() }, y[2];

		asm volatile("movups %1, %%xmm7; mov $200, %%ecx\n"
			     "1: pause; dec %%ecx; jnz 1b; movups %%xmm7, %0"
			     : "=m"(y) : "m"(x) : "ecx");
		if (x[0] != y[0] || x[1] != y[1])
			*bad = 1;
		read_host(&now);
		if (!same(&first, &now, &what))
			*bad = 2;
		sched_yield();
	}
}

static void on_one_cpu(void)
{
	static u64 (*const fns[])(void *arg) = {
		load_segments, load_ldt, load_tr, write_bases, write_syscall_msrs, set_fpu,
		load_tables,
	};
	static const char *const names[] = {
		"segment registers", "LDTR", "TR", "bases", "system call MSRs", "FPU modes",
		"descriptor tables",
	};
	volatile int *bad = shared_alloc(4096);

	int pid = fork();

	if (!pid)
		neighbour(bad);
	for (int i = 0; i < 7; i++) {
		struct host before, after;
		const char *what = "";

		*bad = 0;
		read_host(&before);
		enum guest_end end = guest_call(&g, spin_100ms, (void *)fns[i]);

		read_host(&after);
		asm volatile("ldmxcsr %0; fldcw %1" : : "m"(before.mxcsr), "m"(before.fcw));
		after.mxcsr = before.mxcsr;
		after.fcw = before.fcw;
		bool good = same(&before, &after, &what);

		ok(good && well(end, fns[i]), "switched in and out with %s: %s", names[i],
		   *what ? what : "all is the host's");
		ok(!*bad, "switched in and out with %s: the neighbour's state is its own (%d)",
		   names[i], *bad);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The guest's vector registers survive exits, switches and a neighbour that dirties them. */
static u64 keep_vectors(void *avx)
{
	static const u64 a[2] = { 0xdeadbeefcafebabe, 0x0123456789abcdef };
	u64 b[2], bad = 0;

	for (int round = 0; round < 30; round++) {
		asm volatile("movups %0, %%xmm3; movups %0, %%xmm15" : : "m"(a));
		if (avx)
			asm volatile("vinsertf128 $1, %0, %%ymm3, %%ymm3" : : "m"(a));
		asm volatile("fninit; fldpi\n"
			     "mov $39, %%eax\n" HYPERCALL
			     "mov $60000, %%ecx; 1: dec %%ecx; jnz 1b\n"
			     "mov $24, %%eax\n" HYPERCALL
			     : : : "eax", "ecx", "edi", "memory");
		if (avx) {
			asm volatile("vextractf128 $1, %%ymm3, %0" : "=m"(b));
			bad += b[0] != a[0] || b[1] != a[1];
		}
		asm volatile("movups %%xmm3, %0" : "=m"(b));
		bad += b[0] != a[0] || b[1] != a[1];
		asm volatile("movups %%xmm15, %0" : "=m"(b));
		bad += b[0] != a[0] || b[1] != a[1];
		u64 pi[2] = {0};

		asm volatile("fstpt %0; fninit" : "=m"(pi));
		bad += pi[0] != 0xc90fdaa22168c235;
	}
	return bad;
}

static void dirty(bool avx)
{
	for (;;) {
		asm volatile("fninit; fldz; fld1; pxor %xmm3, %xmm3; pcmpeqd %xmm15, %xmm15");
		if (avx)
			asm volatile("vpxor %ymm3, %ymm3, %ymm3\n"
				     "vcmpps $15, %ymm15, %ymm15, %ymm15");
	}
}

static void fpu(void)
{
	bool avx = read_xcr0() & 1 << 2;
	int pid = fork();

	if (!pid)
		dirty(avx);
	for (int slow = 0; slow < 2; slow++) {
		g.run->flags = slow;
		enum guest_end end = guest_call(&g, keep_vectors, (void *)avx);

		ok(end == GUEST_DONE && g.value == 0,
		   "%s: the guest's vector and x87 registers survive (%s)",
		   slow ? "slow calls" : "fast calls", guest_end_name(&g, end));
	}
	g.run->flags = 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- debug registers ---- */

static volatile u64 watched;
static volatile int traps;

static void on_trap(int sig)
{
	traps++;
}

static u64 guest_writes(void *arg)
{
	watched = 7;
	for (volatile int i = 0; i < 1000; i++)
		;
	return 0;
}

static void watched_child(volatile int *state)
{
	struct guest own;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	guest_open(&own);
	raise(SIGSTOP);		/* the tracer sets DR0 */
	watched = 1;		/* trap 1 */
	state[0] = 1;
	guest_call(&own, guest_writes, NULL);
	state[1] = 1;
	watched = 2;		/* trap 2 */
	guest_call(&own, guest_writes, NULL);
	watched = 3;		/* trap 3 */
	_exit(0);
}

static void debug_registers(void)
{
	volatile int *state = shared_alloc(4096);
	int status, count = 0, pid = fork();

	if (!pid)
		watched_child(state);
	waitpid(pid, &status, 0);
	long err = ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), &watched);

	err |= ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]),
		      0xd0001L);	/* write, 8 bytes */
	ok(!err, "a tracer sets a watchpoint");
	while (ptrace(PTRACE_CONT, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != SIGTRAP)
			break;
		count++;
	}
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the watched child ends (%#x)", status);
	ok(count >= 3, "the watchpoint works before and after guest runs (%d)", count);

	/* The same by perf, on the thread itself. */
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr), .bp_type = HW_BREAKPOINT_W,
		.bp_addr = (u64)&watched, .bp_len = HW_BREAKPOINT_LEN_8, .exclude_kernel = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	u64 before = 0, after = 0;

	if (fd < 0) {
		skip("no hardware breakpoints by perf", "perf breakpoint");
		return;
	}
	watched = 1;
	(void)!read(fd, &before, 8);
	guest_call(&g, guest_writes, NULL);
	watched = 2;
	(void)!read(fd, &after, 8);
	ok(before == 1 && after >= 2,
	   "a perf breakpoint counts before and after a guest (%lu, %lu)", before, after);
	close(fd);
}

/* Bochs steps into the kernel instead of over SYSCALL, of which Linux warns. */
static bool steps_into_kernel(void)
{
	char version[6] = "";
	int fd = open("/sys/class/dmi/id/bios_version", O_RDONLY);

	if (fd >= 0) {
		(void)!read(fd, version, 5);
		close(fd);
	}
	return !strcmp(version, "Bochs");
}

/*
 * The four system-call MSRs are loaded before VMRUN refuses the state. The host's
 * values must be back.
 */
static void refused(void)
{
	struct dune_state state = g.state;
	struct host before, after;
	const char *what = "";

	state.star = 0x1111111100;
	state.lstar = 0x2222222000;
	state.cstar = 0x3333333000;
	state.sfmask = 0x44444444;
	state.cs.attributes = CS_LONG_AND_32BIT;
	guest_set_state(&g, &state);
	read_host(&before);
	int err = guest_run(&g);

	read_host(&after);
	bool good = same(&before, &after, &what);

	ok(good && !err && g.run->exit_reason == DUNE_EXIT_INVALID,
	   "after a state that is refused all is the host's %s (%d, exit %u)", what, err,
	   g.run->exit_reason);
}

/* The guest's flags stay in the guest, and the host's trap flag stays out of it. */
static void flags(void)
{
	struct host before, after;
	const char *what = "";
	struct sigaction sa = { .sa_handler = on_trap };

	read_host(&before);
	enum guest_end end = guest_call(&g, set_flags, NULL);

	read_host(&after);
	bool good = same(&before, &after, &what);

	ok(good && end == GUEST_DONE, "flags (DF, AC, NT, IOPL, IF, ID) stay in the guest %s",
	   what);
	ok((g.run->regs.rflags & (X86_EFLAGS_DF | X86_EFLAGS_AC | X86_EFLAGS_NT | X86_EFLAGS_IOPL)) ==
	   (X86_EFLAGS_DF | X86_EFLAGS_AC | X86_EFLAGS_NT | X86_EFLAGS_IOPL),
		   "flags that a guest set are in dune_run.regs (%#llx)", g.run->regs.rflags);

	/* The host half steps itself over a run. */
	if (steps_into_kernel()) {
		skip("Bochs steps into SYSCALL, and Linux warns",
		     "single-stepping the host half over a run");
		return;
	}
	sigaction(SIGTRAP, &sa, NULL);
	guest_prepare(&g, 0, guest_return, NULL);
	/* Repeated when one of the host's interrupts comes first. */
	for (int i = 0; i < 20; i++) {
		traps = 0;
		asm volatile("pushfq; orq $0x100, (%%rsp); popfq; syscall\n"
			     "pushfq; andq $~0x100, (%%rsp); popfq"
			     : : "a"(SYS_ioctl), "D"(g.fd), "S"(DUNE_RUN), "d"(0) : "rcx", "r11",
			       "memory");
		if (g.run->exit_reason != DUNE_EXIT_INTR)
			break;
	}
	ok(traps >= 1 && traps < 8 && g.run->exit_reason == DUNE_EXIT_HOSTCALL,
	   "single-stepping the host half over a run (%d traps, exit %u)", traps,
	   g.run->exit_reason);
}

/* The thread's GS: a 64-bit process does not use it, so an error would go unnoticed. */
static void gs_base(void)
{
	u64 gs = 0;

	raw_syscall(SYS_arch_prctl, ARCH_SET_GS, 0x5500001000, 0, 0, 0, 0);
	guest_call(&g, write_bases, NULL);
	asm volatile("rdgsbase %0" : "=r"(gs));
	ok(gs == 0x5500001000,
	   "the thread's GS base is its own after a guest's SWAPGS and WRGSBASE (%#lx)", gs);
	guest_call(&g, spin_100ms, (void *)write_bases);
	asm volatile("rdgsbase %0" : "=r"(gs));
	ok(gs == 0x5500001000,
	   "the thread's GS base is its own after switches during a guest (%#lx)", gs);
	raw_syscall(SYS_arch_prctl, ARCH_SET_GS, 0, 0, 0, 0, 0);
}

/* modify_ldt: a process with an LDT finds it after a guest with another. */
static void ldt(void)
{
	struct {
		u32 entry, base, limit, flags;
	} d = { 1, 0x1000, 0xfff, 0x51 };
	u16 fs = 0;

	if (raw_syscall(SYS_modify_ldt, 1, (long)&d, sizeof(d), 0, 0, 0)) {
		skip("no modify_ldt", "LDT");
		return;
	}
	guest_call(&g, load_ldt, NULL);
	guest_call(&g, spin_100ms, (void *)load_ldt);
	asm volatile("mov %1, %%gs; mov %%gs, %0; mov %2, %%gs" : "=&r"(fs) : "r"(0xf), "r"(0));
	ok(fs == 0xf, "the process's LDT is loaded after a guest with its own");
}

int main(void)
{
	struct klog log;
	char device[40];

	begin(120);
	klog_begin(&log);
	/* Each CPU has a GDT of its own, and MSRs, which are read through a file. */
	pin_to(usable_cpu(0));
	guest_open(&g);
	snprintf(device, sizeof(device), "/dev/cpu/%d/msr", usable_cpu(0));
	msr_file = open(device, O_RDONLY);
	if (msr_file < 0 && !access("/sbin/modprobe", X_OK)) {
		if (!fork()) {
			execl("/sbin/modprobe", "modprobe", "-q", "msr", NULL);
			_exit(1);
		}
		wait(NULL);
		msr_file = open(device, O_RDONLY);
	}
	if (msr_file < 0)
		skip("no msr module", "MSRs read from outside");
	else
		ok(true, "the host's MSRs can be read through a file");
	check("nothing", guest_return, NULL);
	check("segment registers", load_segments, NULL);
	check("an LDTR", load_ldt, NULL);
	check("a TR", load_tr, NULL);
	check("descriptor tables", load_tables, NULL);
	check("FS and GS bases", write_bases, NULL);
	check("system call MSRs", write_syscall_msrs, NULL);
	refused();
	check("FPU modes", set_fpu, NULL);
	flags();
	gs_base();
	ldt();
	debug_registers();
	on_one_cpu();
	fpu();
	klog_end(&log);
	return done();
}

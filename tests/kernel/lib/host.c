// SPDX-License-Identifier: MIT OR Apache-2.0
/* The host's state before and after a run: see host.h. */
#define _GNU_SOURCE
#include "host.h"
#include "cpu.h"
#include "klog.h"
#include "modules.h"
#include "msr.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <asm/prctl.h>
#include <asm/processor-flags.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Arithmetic instructions change these. */
#define STATUS_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | \
			 X86_EFLAGS_SF | X86_EFLAGS_OF)

static struct klog log;
static int msr_file = -1;

static const struct {
	const char *name;
	u32 number;
} msrs[HOST_MSRS] = {
	{ "STAR", MSR_STAR }, { "LSTAR", MSR_LSTAR }, { "CSTAR", MSR_CSTAR },
	{ "SFMASK", MSR_SYSCALL_MASK }, { "SYSENTER_CS", MSR_IA32_SYSENTER_CS },
	{ "SYSENTER_EIP", MSR_IA32_SYSENTER_EIP }, { "EFER", MSR_EFER }, { "PAT", MSR_IA32_CR_PAT },
};

void host_begin(struct guest *g)
{
	begin(120);
	klog_begin(&log);
	pin_to(usable_cpu(0));
	guest_open(g);
}

void host_open_msrs(void)
{
	msr_file = msr_open(usable_cpu(0), O_RDONLY);
	if (msr_file < 0)
		skip("no msr module", "MSRs read from outside");
	else
		ok(true, "the host's MSRs can be read through a file");
}

int host_end(void)
{
	klog_end(&log);
	return done();
}

void host_read(struct host *h)
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
	h->flags = read_flags() & ~STATUS_FLAGS;
	asm volatile("stmxcsr %0" : "=m"(h->mxcsr));
	asm volatile("fnstcw %0" : "=m"(h->fcw));
	h->xcr0 = read_xcr0();
	for (int i = 0; i < HOST_MSRS; i++) {
		if (msr_file >= 0 && pread(msr_file, &h->msr[i], 8, msrs[i].number) != 8)
			h->msr[i] = ~0UL;
	}
}

const char *host_difference(const struct host *a, const struct host *b)
{
#define COMPARE(member) do { if (a->member != b->member) return #member; } while (0)
	COMPARE(cs);
	COMPARE(ss);
	COMPARE(ds);
	COMPARE(es);
	COMPARE(fs);
	COMPARE(gs);
	COMPARE(ldt);
	COMPARE(tr);
	COMPARE(gdt.limit);
	COMPARE(gdt.base);
	COMPARE(idt.limit);
	COMPARE(idt.base);
	COMPARE(fs_base);
	COMPARE(gs_base);
	COMPARE(flags);
	COMPARE(mxcsr);
	COMPARE(fcw);
	COMPARE(xcr0);
	for (int i = 0; i < HOST_MSRS; i++) {
		if (a->msr[i] != b->msr[i])
			return msrs[i].name;
	}
	return NULL;
}

static host_load_fn load;

static u64 load_and_wait(void *guest)
{
	load(guest);
	/* Long enough for ticks and switches with the guest's values loaded. */
	for (volatile long i = 0; i < 3000000; i++)
		;
	return 0;
}

enum guest_end host_call_long(struct guest *g, host_load_fn fn)
{
	load = fn;
	return guest_call(g, load_and_wait, g);
}

void host_run(struct guest *g, host_load_fn fn, bool is_long, struct host_run *r)
{
	host_read(&r->before);
	r->end = is_long ? host_call_long(g, fn) : guest_call(g, fn, g);
	host_read(&r->after);
	/* LTR may be intercepted, where an emulator cannot be trusted with it. */
	r->good = r->end == GUEST_DONE || (fn == load_tr && r->end == GUEST_TRAP &&
					   g->frame->vector == X86_TRAP_GP);
}

void host_check(struct guest *g, const char *name, host_load_fn fn)
{
	struct host_run r;

	host_run(g, fn, false, &r);

	const char *other = host_difference(&r.before, &r.after);

	ok(!other && r.good, "after a guest with %s every register has the host's value%s%s", name,
	   other ? ", but not " : "", other ? other : "");
	if (r.end != GUEST_DONE)
		diag("%s: %s", name, guest_end_name(g, r.end));
}

/* ---- called inside the guest ---- */

u64 load_segments(void *guest)
{
	asm volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%fs; mov %0, %%gs" : : "r"(GUEST_SS3));
	return 0;
}

u64 load_ldt(void *guest)
{
	struct guest *g = guest;

	g->mem->gdt[8] = 0xfff | ((u64)g->mem->idt & 0xffffff) << 16 |
			 (DESC_P | DESC_LDT) << 40 | ((u64)g->mem->idt >> 24 & 0xff) << 56;
	g->mem->gdt[9] = (u64)g->mem->idt >> 32;
	asm volatile("lldt %w0" : : "r"(8 << 3));
	return 0;
}

u64 load_tr(void *guest)
{
	struct guest *g = guest;

	/* Available again, at another place in the table. */
	g->mem->gdt[10] = g->mem->gdt[GUEST_TR >> 3] & ~((DESC_TSS_BUSY ^ DESC_TSS) << 40);
	g->mem->gdt[11] = g->mem->gdt[(GUEST_TR >> 3) + 1];
	asm volatile("ltr %w0" : : "r"(10 << 3));
	return 0;
}

u64 load_tables(void *guest)
{
	struct guest *g = guest;
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) table = { 0x5f, (u64)g->mem->gdt };

	asm volatile("lgdt %0" : : "m"(table));
	table.base = (u64)g->mem->idt;
	table.limit = 0x1ff;
	asm volatile("lidt %0" : : "m"(table));
	return 0;
}

u64 load_bases(void *guest)
{
	wrmsr(MSR_GS_BASE, 0x123456789000);
	asm volatile("swapgs");
	wrmsr(MSR_GS_BASE, 0x234567890000);
	rdmsr(MSR_FS_BASE);
	wrmsr(MSR_FS_BASE, 0x345678900000);
	u64 read = rdmsr(MSR_FS_BASE);

	asm volatile("wrfsbase %0; wrgsbase %0" : : "r"(0x456789000000));
	return read == 0x345678900000 ? 0 : 1;
}

u64 load_syscall_msrs(void *guest)
{
	wrmsr(MSR_STAR, 0x1111111108);
	wrmsr(MSR_LSTAR, 0x1111111110);
	wrmsr(MSR_CSTAR, 0x1111111118);
	wrmsr(MSR_SYSCALL_MASK, 0x11111120);	/* Intel's has 32 bits */
	wrmsr(MSR_KERNEL_GS_BASE, 0x7777777000);
	wrmsr(MSR_IA32_SYSENTER_CS, 0x18);
	wrmsr(MSR_IA32_SYSENTER_ESP, 0x22222000);
	wrmsr(MSR_IA32_SYSENTER_EIP, 0x22222000);
	if (rdmsr(MSR_LSTAR) != 0x1111111110)
		return 1;
	/* They stay, so that hypercalls and exits happen with these values loaded. */
	return hypercall0(SYS_getpid) == 0;
}

u64 load_fpu_modes(void *guest)
{
	static const u32 mxcsr = GUEST_MXCSR;
	static const u16 fcw = GUEST_FCW;

	asm volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(fcw));
	return 0;
}

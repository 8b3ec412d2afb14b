// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests that mean harm. Each runs in a child; the worst that may come of it
 * is the death of that child by a signal. After each the parent's own guest
 * must still run, and at the end the kernel log must hardly have grown.
 *
 * A case fails when an instruction is not intercepted (the guest returns),
 * when an address of the kernel can be reached (no signal), when the child
 * cannot be killed (hung), or when the machine dies.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define CODE_AT		0x8000000000UL	/* slot 1 of the tables, its own mapping */
#define KERNEL_PML4	272		/* a slot of the guest's for wild entries */

static struct guest g;
static u8 *page;	/* one page of guest code, writable and executable */

static void *map_page(int prot)
{
	void *p = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(80);
	return p;
}

/*
 * Let SIGALRM end the process after @ms. A limit of a second or more is for a
 * guest that should end by itself: it is multiplied for slow machines.
 */
static void bounded(unsigned int ms)
{
	if (ms >= 1000)
		ms = patience(ms);

	struct itimerval it = { .it_value = { ms / 1000, ms % 1000 * 1000 } };

	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &it, NULL);
}

/* ---- single instructions ---- */

#define ANY	(-1)	/* any end but a hang */
#define GP_UD	(-2)	/* #GP or #UD */
#define HALT	(-3)	/* DUNE_EXIT_HLT */
/* #GP or #UD; or, where an emulator does not intercept it, an XCR0 put right at the exit. */
#define HOST_XCR0 (-4)
/* #GP or #UD on AMD; nothing on Intel, where only a change of CR0 leaves the guest, and there is none. */
#define NO_CHANGE (-5)
/* #GP; or, where an emulator does not intercept it, the guest's own virtual task priority. */
#define ZERO_PRIORITY (-7)
/* #UD of VMCALL on AMD, of VMMCALL on Intel */
#define OTHER_VENDOR (-6)

struct instruction {
	const char *name;
	const char *bytes;
	int len;
	int ring;
	int vector;
	u64 rax, rcx, rdx;
};

#define I(name, ring, vector, bytes, ...) { name, bytes, sizeof(bytes) - 1, ring, vector, __VA_ARGS__ }

static const struct instruction instructions[] = {
	I("IN", 0, GP_UD, "\xec", 0, 0, 0x80),
	I("IN, 32 bits", 0, GP_UD, "\xed", 0, 0, 0xcf8),
	I("IN, immediate", 0, GP_UD, "\xe4\x60", 0, 0, 0),
	I("OUT", 0, GP_UD, "\xee", 0, 0, 0x80),
	I("OUT to the reset port", 0, GP_UD, "\xee", 6, 0, 0xcf9),
	I("INS", 0, GP_UD, "\x6c", 0, 0, 0x80),
	I("REP OUTS", 0, GP_UD, "\xf3\x6e", 0, 0x1000, 0x80),
	I("IN", 3, 13, "\xec", 0, 0, 0x80),
	I("OUT", 3, 13, "\xee", 0, 0, 0x80),
	I("RDMSR EFER", 0, 13, "\x0f\x32", 0, 0xc0000080, 0),
	I("RDMSR APIC_BASE", 0, 13, "\x0f\x32", 0, 0x1b, 0),
	I("RDMSR TSC", 0, 13, "\x0f\x32", 0, 0x10, 0),
	I("RDMSR PAT", 0, 13, "\x0f\x32", 0, 0x277, 0),
	I("RDMSR SPEC_CTRL", 0, 13, "\x0f\x32", 0, 0x48, 0),
	I("RDMSR VM_HSAVE_PA", 0, 13, "\x0f\x32", 0, 0xc0010117, 0),
	I("RDMSR TSC_AUX", 0, 13, "\x0f\x32", 0, 0xc0000103, 0),
	I("RDMSR of nonsense", 0, 13, "\x0f\x32", 0, 0x12345678, 0),
	I("WRMSR EFER", 0, 13, "\x0f\x30", 0, 0xc0000080, 0),
	I("WRMSR EFER with SVME", 0, 13, "\x0f\x30", 0x1d01, 0xc0000080, 0),
	I("WRMSR APIC_BASE", 0, 13, "\x0f\x30", 0, 0x1b, 0),
	I("WRMSR SPEC_CTRL", 0, 13, "\x0f\x30", 1, 0x48, 0),
	I("WRMSR PRED_CMD", 0, 13, "\x0f\x30", 1, 0x49, 0),
	I("WRMSR TSC", 0, 13, "\x0f\x30", 0, 0x10, 0),
	I("WRMSR VM_HSAVE_PA", 0, 13, "\x0f\x30", 0, 0xc0010117, 0),
	I("WRMSR DEBUGCTL", 0, 13, "\x0f\x30", 1, 0x1d9, 0),
	I("WRMSR MISC_ENABLE", 0, 13, "\x0f\x30", 1, 0x1a0, 0),
	I("WRMSR PERF_EVTSEL", 0, 13, "\x0f\x30", 1, 0xc0010000, 0),
	I("WRMSR XSS", 0, 13, "\x0f\x30", 1, 0xda0, 0),
	I("WRMSR LSTAR, not canonical", 0, ANY, "\x0f\x30", 0, 0xc0000082, 0x80000000),
	I("WRMSR KERNEL_GS_BASE, not canonical", 0, ANY, "\x0f\x30", 0, 0xc0000102, 0x80000000),
	I("RDMSR", 3, 13, "\x0f\x32", 0, 0xc0000100, 0),
	I("MOV CR0: paging off", 0, GP_UD, "\x0f\x22\xc0", 0x11, 0, 0),
	I("MOV CR0: all set", 0, GP_UD, "\x0f\x22\xc0", ~0UL, 0, 0),
	I("MOV CR4: nothing", 0, GP_UD, "\x0f\x22\xe0", 0, 0, 0),
	I("MOV CR4: VMXE", 0, GP_UD, "\x0f\x22\xe0", 0x26a0, 0, 0),
	I("MOV CR8", 0, GP_UD, "\x44\x0f\x22\xc0", 0xf, 0, 0),
	I("MOV from CR8", 0, ZERO_PRIORITY, "\x44\x0f\x20\xc0", 1, 0, 0),
	I("MOV CR3", 3, 13, "\x0f\x22\xd8", 0, 0, 0),
	I("MOV CR3, reserved bits", 0, ANY, "\x0f\x22\xd8", 1UL << 60, 0, 0),
	I("MOV CR1", 0, 6, "\x0f\x22\xc8", 0, 0, 0),
	I("MOV DR0", 0, GP_UD, "\x0f\x23\xc0", 0x1000, 0, 0),
	I("MOV DR7", 0, GP_UD, "\x0f\x23\xf8", 0x401, 0, 0),
	I("MOV from DR6", 0, GP_UD, "\x0f\x21\xf0", 0, 0, 0),
	I("MOV DR0", 3, 13, "\x0f\x23\xc0", 0x1000, 0, 0),
	I("LMSW", 0, GP_UD, "\x0f\x01\xf0", 0x1, 0, 0),
	I("CLTS", 0, NO_CHANGE, "\x0f\x06", 0, 0, 0),
	I("HLT", 0, HALT, "\xf4", 0, 0, 0),
	I("HLT", 3, 13, "\xf4", 0, 0, 0),
	I("CLI", 3, 13, "\xfa", 0, 0, 0),
	I("INVD", 0, GP_UD, "\x0f\x08", 0, 0, 0),
	I("WBINVD", 0, GP_UD, "\x0f\x09", 0, 0, 0),
	I("WBNOINVD", 0, GP_UD, "\xf3\x0f\x09", 0, 0, 0),
	I("MONITOR", 0, GP_UD, "\x0f\x01\xc8", CODE_AT, 0, 0),
	I("MWAIT", 0, GP_UD, "\x0f\x01\xc9", 0, 0, 0),
	I("MWAIT, wake on masked interrupts", 0, GP_UD, "\x0f\x01\xc9", 0, 1, 0),
	I("MONITORX", 0, ANY, "\x0f\x01\xfa", CODE_AT, 0, 0),
	I("MWAITX", 0, ANY, "\x0f\x01\xfb", 0, 0, 0),
	I("XSETBV", 0, HOST_XCR0, "\x0f\x01\xd1", 1, 0, 0),
	I("XSETBV, the present value", 0, HOST_XCR0, "\x0f\x01\xd1", 7, 0, 0),
	I("XSETBV", 3, GP_UD, "\x0f\x01\xd1", 7, 0, 0),
	I("VMRUN", 0, GP_UD, "\x0f\x01\xd8", 0x1000, 0, 0),
	I("VMLOAD", 0, GP_UD, "\x0f\x01\xda", 0x1000, 0, 0),
	I("VMSAVE", 0, GP_UD, "\x0f\x01\xdb", 0x1000, 0, 0),
	I("STGI", 0, GP_UD, "\x0f\x01\xdc", 0, 0, 0),
	I("CLGI", 0, GP_UD, "\x0f\x01\xdd", 0, 0, 0),
	I("SKINIT", 0, GP_UD, "\x0f\x01\xde", 0, 0, 0),
	I("INVLPGA", 0, GP_UD, "\x0f\x01\xdf", 0, 0, 0),
	I("INVLPGB", 0, GP_UD, "\x0f\x01\xfe", 0, 0, 0),
	I("TLBSYNC", 0, GP_UD, "\x0f\x01\xff", 0, 0, 0),
	I("VMMCALL", 3, 6, "\x0f\x01\xd9", 39, 0, 0),
	I("VMCALL", 3, 6, "\x0f\x01\xc1", 39, 0, 0),
	I("the other vendor's hypercall", 0, OTHER_VENDOR, "\x0f\x01\xd9", 39, 0, 0),
	I("INVEPT", 0, GP_UD, "\x66\x0f\x38\x80\x07", 1, 0, 0),
	I("INVVPID", 0, GP_UD, "\x66\x0f\x38\x81\x07", 1, 0, 0),
	I("VMPTRLD", 0, GP_UD, "\x0f\xc7\x37", 0, 0, 0),
	I("VMPTRST", 0, GP_UD, "\x0f\xc7\x3f", 0, 0, 0),
	I("VMCLEAR", 0, GP_UD, "\x66\x0f\xc7\x37", 0, 0, 0),
	I("VMREAD", 0, GP_UD, "\x0f\x78\xc0", 0x4000, 0, 0),
	I("VMWRITE", 0, GP_UD, "\x0f\x79\xc0", 0x4000, 0, 0),
	I("VMRESUME", 0, GP_UD, "\x0f\x01\xc3", 0, 0, 0),
	I("VMXOFF", 0, GP_UD, "\x0f\x01\xc4", 0, 0, 0),
	I("VMFUNC", 0, GP_UD, "\x0f\x01\xd4", 0, 0, 0),
	I("VMXON", 0, GP_UD, "\xf3\x0f\xc7\x30", CODE_AT, 0, 0),
	I("VMLAUNCH", 0, GP_UD, "\x0f\x01\xc2", 0, 0, 0),
	I("RSM", 0, GP_UD, "\x0f\xaa", 0, 0, 0),
	I("RDPMC", 0, GP_UD, "\x0f\x33", 0, 0, 0),
	I("GETSEC", 0, GP_UD, "\x0f\x37", 0, 0, 0),
	I("ENCLS", 0, GP_UD, "\x0f\x01\xcf", 0, 0, 0),
	I("SYSENTER", 0, GP_UD, "\x0f\x34", 0, 0, 0),
	I("SYSEXIT", 0, GP_UD, "\x0f\x35", 0, 0, 0),
	I("INT 0x80", 0, 0x80, "\xcd\x80", 1, 0, 0),
	I("INT 0x80", 3, 0x80, "\xcd\x80", 1, 0, 0),
	I("INT 2", 0, 2, "\xcd\x02", 0, 0, 0),
	I("INT 18", 0, 18, "\xcd\x12", 0, 0, 0),
	I("INT 0xff", 0, 0xff, "\xcd\xff", 0, 0, 0),
	I("INT 14", 3, 13, "\xcd\x0e", 0, 0, 0),
	I("INT3", 3, 3, "\xcc", 0, 0, 0),
	I("ICEBP", 0, ANY, "\xf1", 0, 0, 0),
	I("ICEBP", 3, ANY, "\xf1", 0, 0, 0),
	I("UD2", 0, 6, "\x0f\x0b", 0, 0, 0),
	I("DIV by zero", 0, 0, "\xf7\xf1", 1, 0, 0),
	I("LTR of a null selector", 0, 13, "\x0f\x00\xd8", 0, 0, 0),
	I("LTR of a code segment", 0, 13, "\x0f\x00\xd8", GUEST_CS0, 0, 0),
	I("LLDT out of the table", 0, 13, "\x0f\x00\xd0", 0x1000, 0, 0),
	I("MOV SS of a system segment", 0, 13, "\x8e\xd0", GUEST_TR, 0, 0),
	I("SWAPGS", 3, GP_UD, "\x0f\x01\xf8", 0, 0, 0),
	I("INVLPG", 3, 13, "\x0f\x01\x38", 0, 0, 0),
	I("INVPCID, bad type", 0, GP_UD, "\x66\x0f\x38\x82\x08", CODE_AT, 99, 0),
	I("far jump through a TSS", 0, 13,
	  "\xff\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x30\x00", 0, 0, 0),
};

static void run_instruction(void *arg)
{
	const struct instruction *i = arg;
	u64 xcr0 = read_xcr0();

	guest_open(&g);
	guest_cover(&g, CODE_AT);
	page = mmap((void *)CODE_AT, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		_exit(80);
	memset(page, 0xcc, 4096);
	memcpy(page, i->bytes, i->len);
	if (i->vector == OTHER_VENDOR)
		page[2] = guest_vmx ? 0xd9 : 0xc1;
	memcpy(page + i->len, "\xcd\x77", 2);	/* INT 0x77 in ring 0, #GP in ring 3 */
	guest_prepare(&g, i->ring, NULL, NULL);
	g.run->regs.rip = (u64)page;
	g.run->regs.rax = i->rax;
	g.run->regs.rcx = i->rcx;
	g.run->regs.rdx = i->rdx;
	g.run->regs.rdi = CODE_AT + 2048;
	g.run->regs.rsi = CODE_AT + 2048;
	bounded(3000);
	enum guest_end end = guest_resume(&g);
	bool trap = end == GUEST_TRAP;
	/* INT n and similar traps leave RIP after the instruction, faults at it. */
	bool behind = i->bytes[0] == '\xcd' || i->bytes[0] == '\xcc' || i->bytes[0] == '\xf1';
	bool here = trap && (g.frame->rip == (u64)page || (behind && g.frame->rip == (u64)page + i->len));
	bool good = false;

	switch (i->vector) {
	case ANY:
		good = true;
		break;
	case GP_UD:
		good = here && (g.frame->vector == 13 || g.frame->vector == 6);
		break;
	case NO_CHANGE:
		good = guest_vmx ? trap && g.frame->vector == 0x77 :
				   here && (g.frame->vector == 13 || g.frame->vector == 6);
		break;
	case OTHER_VENDOR:
		good = here && g.frame->vector == 6;
		break;
	case HOST_XCR0:
		good = trap && read_xcr0() == xcr0;
		break;
	case ZERO_PRIORITY:
		good = (here && g.frame->vector == 13) ||
		       (trap && g.frame->vector == 0x77 && !g.frame->rax);
		break;
	case HALT:
		good = end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_HLT &&
		       g.run->regs.rip == (u64)page + 1;
		break;
	default:
		good = here && (int)g.frame->vector == i->vector;
	}
	if (!good) {
		diag("%s", guest_end_name(&g, end));
		_exit(1);
	}
}

/* ---- guests ---- */

/* Make the VMMCALLs of a code VMCALLs where the processor wants that. */
static void intel(u8 *text, int len)
{
	for (int i = 0; guest_vmx && i + 3 <= len; i++)
		if (!memcmp(text + i, "\x0f\x01\xd9", 3))
			text[i + 2] = 0xc1;
}

/* Code for a guest that executes @bytes, and INT3 after them. */
static void code(const void *bytes, int len)
{
	page = map_page(PROT_READ | PROT_WRITE | PROT_EXEC);
	memset(page, 0xcc, 4096);
	memcpy(page, bytes, len);
	intel(page, len);
}

static void expect(enum guest_end end, bool good)
{
	if (!good)
		diag("%s", guest_end_name(&g, end));
	_exit(!good);
}

static void go(u64 (*fn)(void *arg), void *arg)
{
	enum guest_end end;

	bounded(2000);
	end = guest_call(&g, fn, arg);
	expect(end, false);
}

static u64 ud2(void *arg)
{
	asm volatile("ud2");
	return 0;
}

static u64 read_byte(void *arg)
{
	return *(volatile u8 *)arg;
}

static u64 write_byte(void *arg)
{
	*(volatile u8 *)arg = 1;
	return 0;
}

static u64 jump(void *arg)
{
	((void (*)(void))arg)();
	return 0;
}

static void triple_fault(void)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, ud2, NULL);
	s.idtr.limit = 0;
	guest_set_state(&g, &s);
	enum guest_end end = guest_resume(&g);
	bool dead = end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN;

	/* Again and again: no better, no worse. */
	for (int i = 0; i < 100; i++)
		guest_run(&g);
	expect(end, dead);
}

static void shutdown_in_ring3(void)
{
	struct dune_state s;

	guest_prepare(&g, 3, ud2, NULL);
	guest_get_state(&g, &s);
	s.idtr.base = 0x1000;		/* nothing there */
	s.idtr.limit = 0;
	guest_set_state(&g, &s);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

static void with_cr3(u64 cr3)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, guest_return, NULL);
	s.cr3 = cr3;
	bounded(2000);
	if (guest_set_state(&g, &s))
		raise(SIGSEGV);		/* refused: as good */
	enum guest_end end = guest_resume(&g);

	if (end == GUEST_EXIT || end == GUEST_ERROR)
		raise(SIGSEGV);
	expect(end, false);
}

/*
 * An address as page-table entries name it: of memory of the process the one
 * that leads there; else itself, or what of it the processor does not reserve.
 */
static u64 named(u64 address)
{
	if (address < 1UL << 47)
		return guest_gpa(&g, address);
	if (g.info.granules)
		return address % ((u64)g.info.granules << 30);
	return address;
}

static void cr3_not_canonical(void) { with_cr3(0x8000000000001000); }
static void cr3_kernel(void) { with_cr3(0xffff888000001000); }
static void cr3_kernel_48(void) { with_cr3(0x0000888000001000); }
static void cr3_unmapped(void) { with_cr3(named(0x1000)); }
static void cr3_top(void) { with_cr3(named(0x7ffffffff000)); }
static void cr3_hole(void) { with_cr3(0x800000000000); }
static void cr3_readonly(void) { with_cr3(named((u64)with_cr3 & -4096UL)); }
static void cr3_null_page(void) { with_cr3(named(0)); }
static void cr3_run_page(void) { with_cr3(named((u64)g.run)); }
/* Without granules these are addresses like others, where nothing is. */
static void cr3_granule_0(void) { with_cr3(0x2000); }
static void cr3_no_granule(void) { with_cr3(0xffffff000); }
static void cr3_far(void) { with_cr3(1UL << 46); }

static u64 load_cr3(void *arg)
{
	write_cr3((u64)arg);
	return 0;
}

static void mov_cr3_kernel(void) { go(load_cr3, (void *)named(0x0000888000001000)); }
static void mov_cr3_unmapped(void) { go(load_cr3, (void *)named(0x1000)); }

/* A 2 MB page of the guest that names a guest-physical address. */
static void *wild_named(u64 address)
{
	u64 *pdpt = map_page(PROT_READ | PROT_WRITE), *pd = map_page(PROT_READ | PROT_WRITE);

	g.mem->pml4[KERNEL_PML4] = guest_gpa(&g, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
	pdpt[0] = guest_gpa(&g, (u64)pd) | PTE_P | PTE_W | PTE_U;
	pd[0] = (address & 0xfffffffe00000) | PTE_P | PTE_W | PTE_U | PTE_PS;
	return (void *)(0xffff000000000000 | (u64)KERNEL_PML4 << 39 | (address & 0x1fffff));
}

static void *wild(u64 address) { return wild_named(named(address)); }
static void read_granule_0(void) { go(read_byte, wild_named(0x2000)); }
static void write_no_granule(void) { go(write_byte, wild_named(0xffffff000)); }
static void read_direct_map(void) { go(read_byte, wild(0x0000888000001000)); }
static void write_direct_map(void) { go(write_byte, wild(0x0000888000001000)); }
static void read_kernel_text(void) { go(read_byte, wild(0x0000ffff81000000)); }
static void jump_kernel_text(void) { go(jump, wild(0x0000ffff81000000)); }
static void read_47(void) { go(read_byte, wild(1UL << 47)); }
static void write_entry_area(void) { go(write_byte, wild(0x0000fe0000001000)); }
static void read_vmalloc(void) { go(read_byte, wild(0x0000c90000000000)); }
static void read_hole(void) { go(read_byte, wild(0x0000800000000000)); }
static void read_null(void) { go(read_byte, wild(0)); }

/* The vsyscall page may be readable, emulated or gone; it may not be written. */
static void write_vsyscall(void) { go(write_byte, wild(0x0000ffffff600000)); }
static void jump_vsyscall(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, jump, wild(0x0000ffffff600000));

	diag("%s", guest_end_name(&g, end));
	_exit(0);
}

/* Bits of an address above the processor's width: a reserved-bit fault in the guest. */
static void reserved_bits(void)
{
	void *p = wild_named(1UL << 51 | 0x1000);
	enum guest_end end;

	bounded(2000);
	end = guest_call(&g, read_byte, p);
	expect(end, end == GUEST_TRAP && g.frame->vector == 14 && (g.frame->error & 8));
}

/* A table whose next level is in the kernel. */
static void table_in_kernel(void)
{
	g.mem->pml4[KERNEL_PML4] = named(0x0000888000001000) | PTE_P | PTE_W | PTE_U;
	go(read_byte, (void *)(0xffff000000000000 | (u64)KERNEL_PML4 << 39));
}

/* A table that is its own next level, four times. */
static void recursive_table(void)
{
	g.mem->pml4[KERNEL_PML4] = guest_gpa(&g, (u64)g.mem->pml4) | PTE_P | PTE_W | PTE_U;
	u64 base = 0xffff000000000000 | (u64)KERNEL_PML4 * 0x8040201000;
	enum guest_end end = guest_call(&g, read_byte, (void *)base);

	expect(end, end == GUEST_DONE);
}

static void table_in_file(void)
{
	int fd = memfd_create("table", 0);
	u64 *p;

	if (ftruncate(fd, 4096))
		_exit(80);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(p, g.mem->pml4, 4096);
	if (ftruncate(fd, 0))
		_exit(80);
	with_cr3(named((u64)p));
}

static void tables(struct dune_segment dune_segment, int which)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, which == 1 ? jump : ud2, (void *)page);
	if (which == 0)
		s.idtr = dune_segment;
	else if (which == 1)
		s.gdtr = dune_segment;
	else
		s.tr.base = dune_segment.base;
	bounded(2000);
	if (guest_set_state(&g, &s))
		raise(SIGSEGV);
	enum guest_end end = guest_resume(&g);

	/* Where the guest's own tables do not map it, the end is a triple fault. */
	if (end == GUEST_EXIT)
		raise(SIGSEGV);
	expect(end, false);
}

static struct dune_segment at(u64 base)
{
	return (struct dune_segment){ .base = base, .limit = 4095 };
}

static void idt_unmapped(void) { tables(at(0x1000), 0); }
static void idt_kernel(void) { tables(at(0xffff888000000000), 0); }
static void idt_wild(void) { tables(at((u64)wild(0x0000888000001000)), 0); }
static void idt_top(void) { tables(at(0xfffffffffffff800), 0); }
/* mov $0x10, %eax; mov %eax, %ds: the load reads the table. */
static void gdt(u64 base) { code("\xb8\x10\x00\x00\x00\x8e\xd8\x0f\x0b", 9); tables(at(base), 1); }
static void gdt_unmapped(void) { gdt(0x1000); }
static void gdt_wild(void) { gdt((u64)wild(0x0000888000001000)); }
/* The accessed bit must be written. */
static void gdt_readonly(void)
{
	u64 *p = map_page(PROT_READ | PROT_WRITE);

	memcpy(p, g.mem->gdt, sizeof(g.mem->gdt));
	p[GUEST_SS0 >> 3] &= ~(1UL << 40);
	mprotect(p, 4096, PROT_READ);
	gdt((u64)p);
}

static void tss_unmapped(void) { tables(at(0x1000), 2); }
static void tss_wild(void) { tables(at((u64)wild(0x0000888000001000)), 2); }

static void stack(u64 rsp)
{
	bounded(2000);
	guest_prepare(&g, 0, guest_return, NULL);
	g.run->regs.rsp = rsp;
	enum guest_end end = guest_resume(&g);

	if (end == GUEST_TRAP && g.frame->vector >= 12 && g.frame->vector <= 14)
		raise(SIGSEGV);
	expect(end, false);
}

static void stack_unmapped(void) { stack(0x2000); }
static void stack_not_canonical(void) { stack(0x8000000000000000); }
static void stack_kernel(void) { stack(0xffff888000001000); }
static void stack_wild(void) { stack((u64)wild(0x0000888000001000) + 512); }
static void stack_readonly(void) { stack(((u64)stack & -4096UL) + 4096); }

/* The stack of the exception entry itself. */
static void trap_stack(u64 rsp)
{
	g.mem->tss.ist[0] = rsp;
	bounded(2000);
	enum guest_end end = guest_call(&g, ud2, NULL);

	if (end == GUEST_EXIT)		/* double, then triple fault */
		raise(SIGSEGV);
	expect(end, false);
}

static void trap_stack_unmapped(void) { trap_stack(0x2000); }
static void trap_stack_kernel(void) { trap_stack(0xffff888000001000); }
static void trap_stack_wild(void) { trap_stack((u64)wild(0x0000888000001000) + 512); }
static void trap_stack_not_canonical(void) { trap_stack(0x8000000000000000); }

/* Memory that is mapped but not yet present, at each point of delivering an exception. */
static void trap_stack_absent(void)
{
	u8 *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	g.mem->tss.ist[0] = (u64)p + 65536;
	enum guest_end end = guest_call(&g, ud2, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == 6 && g.frame->rip - (u64)ud2 < 64);
}

static void tables_absent(void)
{
	struct guest_memory *m = g.mem;
	int fd = memfd_create("tables", 0);

	/* The same bytes in a file: nothing of it is present in the new mapping. */
	if (write(fd, m, sizeof(*m)) != sizeof(*m))
		_exit(80);
	mmap(m, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
	enum guest_end end = guest_call(&g, ud2, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == 6 && g.frame->error == 0);
}

/* A handler that faults at once, on the same stack, below and below. */
static void falling_handler(void)
{
	guest_cover(&g, CODE_AT);
	u8 *p = mmap((void *)CODE_AT, 1 << 20, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	u64 at = (u64)ud2;

	for (int v = 0; v < 32; v++)
		g.mem->idt[v * 2] = (at & 0xffff) | GUEST_CS0 << 16 | 0x8eUL << 40 |
				    (at >> 16 & 0xffff) << 48;
	guest_prepare(&g, 0, ud2, NULL);
	g.run->regs.rsp = (u64)p + (1 << 20);
	bounded(5000);
	enum guest_end end = guest_resume(&g);

	if (end == GUEST_EXIT)
		raise(SIGSEGV);
	expect(end, false);
}

/* The same on an IST stack: an endless loop of exceptions without an exit. */
static void storm(int vector, const void *handler)
{
	u64 at = (u64)handler;

	g.mem->idt[vector * 2] = (at & 0xffff) | GUEST_CS0 << 16 | 1UL << 32 | 0x8eUL << 40 |
				 (at >> 16 & 0xffff) << 48;
	g.mem->idt[vector * 2 + 1] = at >> 32;
}

static void ud_storm(void)
{
	storm(6, ud2);
	bounded(300);
	guest_call(&g, ud2, NULL);
}

static void gp_storm(void)
{
	code("\xf4\x0f\x32\x0f\x32", 5);
	storm(13, page + 1);
	bounded(300);
	guest_prepare_code(&g, page + 1);
	g.run->regs.rcx = 0xc0000080;
	guest_resume(&g);
}

static void db_storm(void)
{
	code("\x48\xcf", 2);		/* iretq, with TF in the frame */
	storm(1, page);
	bounded(300);
	guest_prepare(&g, 0, guest_return, NULL);
	code("\xeb\xfe", 2);
	g.run->regs.rip = (u64)page;
	g.run->regs.rflags |= FLAG_TF;
	guest_resume(&g);
}

static void single_step_all(void)
{
	bounded(5000);
	guest_prepare(&g, 0, read_byte, &g);
	g.run->regs.rflags |= FLAG_TF;
	int steps = 0;

	for (;;) {
		enum guest_end end = guest_resume(&g);

		/* The handler's IRETQ steps on. */
		if (end == GUEST_TRAP && g.frame->vector == 1 && steps++ < 1000)
			continue;
		expect(end, end == GUEST_DONE && steps >= 5);
	}
}

static u64 step_hypercalls(void *arg)
{
	u64 sum = 0;

	for (int i = 0; i < 5; i++)
		sum += hypercall0(SYS_getpid);
	return sum;
}

/* A step over a hypercall: one #DB after it and one result. */
static void single_step_hypercall(void)
{
	bounded(5000);
	guest_prepare(&g, 0, step_hypercalls, NULL);
	g.run->regs.rflags |= FLAG_TF;
	int steps = 0;

	for (;;) {
		enum guest_end end = guest_resume(&g);

		if (end == GUEST_TRAP && g.frame->vector == 1 && steps++ < 1000)
			continue;
		expect(end, end == GUEST_DONE && (long)g.value == 5L * getpid());
	}
}

/* #AC in ring 3, its handler misaligned as well. */
static void ac_storm(void)
{
	code("\x48\x89\x44\x24\x01\xeb\xf9", 7);
	guest_prepare(&g, 3, guest_return, NULL);
	g.run->regs.rip = (u64)page;
	g.run->regs.rsp -= 64;
	g.run->regs.rflags |= FLAG_AC;
	storm(17, page);
	bounded(300);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_TRAP && g.frame->vector == 17);
}

static void loop_of(const char *bytes, int len, int ring, u64 flags)
{
	u8 text[64];

	memcpy(text, bytes, len);
	text[len] = 0xeb;
	text[len + 1] = -(len + 2);
	code(text, len + 2);
	guest_prepare(&g, ring, guest_return, NULL);
	g.run->regs.rip = (u64)page;
	g.run->regs.rflags |= flags;
	g.run->regs.rdi = (u64)page;
	bounded(200);
	for (;;) {
		enum guest_end end = guest_resume(&g);

		/* Loops of HLT, exceptions of a loop: on and on until the signal. */
		if (end == GUEST_TRAP || (end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_HLT))
			continue;
		expect(end, false);
	}
}

static void spin_quiet(void) { loop_of("", 0, 0, 0); }
static void spin_cli(void) { loop_of("\xfa", 1, 0, 0); }
static void spin_sti(void) { loop_of("\xfb", 1, 0, FLAG_IF); }
static void spin_ring3(void) { loop_of("\x90", 1, 3, FLAG_IF); }
static void spin_ring3_cli(void) { loop_of("\xfa", 1, 3, FLAG_IOPL); }
static void spin_pause(void) { loop_of("\xf3\x90", 2, 0, 0); }
static void spin_hlt(void) { loop_of("\xf4", 1, 0, 0); }
static void spin_sti_hlt(void) { loop_of("\xfb\xf4", 2, 0, 0); }
static void spin_cpuid(void) { loop_of("\x0f\xa2", 2, 0, 0); }
static void spin_rdtsc(void) { loop_of("\x0f\x31", 2, 0, 0); }
static void spin_invlpg(void) { loop_of("\x0f\x01\x3f", 3, 0, 0); }
static void spin_mov_ss(void) { loop_of("\x8c\xd0\x8e\xd0", 4, 0, 0); }
/* mov %cr3, %rax; mov %rax, %cr3 */
static void spin_cr3(void) { loop_of("\x0f\x20\xd8\x0f\x22\xd8", 6, 0, 0); }
/* xor %eax, %eax; mov $39, %al; vmmcall */
static void spin_hypercall(void) { loop_of("\x31\xc0\xb0\x27\x0f\x01\xd9", 7, 0, 0); }
/* VMMCALL with any registers: the result becomes the next number. */
static void spin_wild_hypercall(void) { loop_of("\x48\xff\xc8\x0d\x00\x00\x00\x70\x25\xff\xff\xff\x7f\x0f\x01\xd9", 16, 0, 0); }

static void irq_storm(void)
{
	guest_prepare(&g, 0, guest_return, NULL);
	code("\xfb\xeb\xfe", 3);
	g.run->regs.rip = (u64)page;
	code("\x48\xcf", 2);
	for (int v = 32; v < 256; v++)
		storm(v, page);
	bounded(400);
	for (u32 v = 32;; v = v == 255 ? 32 : v + 1) {
		g.run->irq_vector = v;
		int err = guest_run(&g);

		if (err && err != -EINTR)
			_exit(1);
		if (!err && g.run->exit_reason == DUNE_EXIT_SHUTDOWN)
			_exit(2);
	}
}

/* The task priority decides on virtual interrupts; emulators stumble over that. */
static void cr8_with_irq(void)
{
	/* mov %rax, %cr8; int3 */
	code("\x44\x0f\x22\xc0", 4);
	guest_prepare_code(&g, page);
	guest_set_state(&g, &g.state);
	g.run->irq_vector = 0x60;
	bounded(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_TRAP);
}

static void irq_without_idt(void)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, guest_return, NULL);
	code("\xfb\xeb\xfe", 3);
	g.run->regs.rip = (u64)page;
	s.idtr.limit = 0;
	guest_set_state(&g, &s);
	g.run->irq_vector = 0x40;
	bounded(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

/* ---- the process pulled away below the guest ---- */

static u64 unmap(void *arg)
{
	u64 *what = arg;

	return hypercall3(SYS_munmap, what[0], what[1], 0);
}

static void unmap_code(void)
{
	/* mov $11, %eax; mov $4096, %esi; lea of this page in rdi; vmmcall */
	code("\xb8\x0b\x00\x00\x00\xbe\x00\x10\x00\x00\x0f\x01\xd9\x90\x90\xeb\xfe", 17);
	guest_prepare_code(&g, page);
	guest_set_state(&g, &g.state);
	g.run->regs.rdi = (u64)page;
	bounded(2000);
	guest_resume(&g);
}

static void unmap_tables(void)
{
	u64 what[2] = { (u64)g.mem, sizeof(*g.mem) };

	go(unmap, what);
}

static void unmap_run_page(void)
{
	u64 what[2] = { (u64)g.run, 4096 };

	go(unmap, what);
}

static void unmap_stack(void)
{
	u64 what[2] = { (u64)g.mem->stack, sizeof(g.mem->stack) };

	go(unmap, what);
}

static u64 zap(void *arg)
{
	struct guest *h = arg;

	hypercall3(SYS_madvise, (long)h->mem, sizeof(*h->mem) - 65536, MADV_DONTNEED);
	asm volatile("mov %%cr3, %%rax; mov %%rax, %%cr3; ud2" : : : "rax");
	return 0;
}

/* Tables of zeros: nothing is mapped, so neither is the handler: triple fault. */
static void zero_tables(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, zap, &g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

static u64 over_run_page(void *arg)
{
	struct guest *h = arg;

	return hypercall(SYS_mmap, (long)h->run, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The kernel keeps its page; what the process sees instead is its own affair. */
static void replace_run_page(void)
{
	struct guest h = g;

	bounded(2000);
	guest_prepare(&g, 0, over_run_page, &h);
	int err;

	do
		err = guest_run(&g);
	while (err == -EINTR || g.run->exit_reason == DUNE_EXIT_INTR);
	if (err || g.run->exit_reason != DUNE_EXIT_NONE)
		diag("error %d, exit %u", err, g.run->exit_reason);
	_exit(err || g.run->exit_reason != DUNE_EXIT_NONE);
}

static u64 protect_all(void *arg)
{
	struct guest *h = arg;

	hypercall3(SYS_mprotect, (long)h->mem, sizeof(*h->mem), PROT_NONE);
	return 0;
}

static void protect_tables(void) { go(protect_all, &g); }

static u64 close_fd(void *arg)
{
	struct guest *h = arg;

	if (hypercall3(SYS_close, h->fd, 0, 0) || hypercall3(SYS_close, h->dev, 0, 0))
		return 1;
	return (int)hypercall0(SYS_getpid) == (int)hypercall0(SYS_gettid) ? 0 : 2;
}

static void close_own_fd(void)
{
	struct guest h = g;

	bounded(2000);
	enum guest_end end = guest_call(&g, close_fd, &h);

	/* With slow calls on the way the next DUNE_RUN cannot be. */
	bool good = (end == GUEST_DONE && g.value == 0) || (end == GUEST_ERROR && g.error == -EBADF);

	if (guest_run(&g) != -EBADF)
		_exit(2);
	expect(end, good);
}

static u64 close_all(void *arg)
{
	return hypercall3(SYS_close_range, 3, ~0U, 0);
}

static void close_range_all(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, close_all, NULL);

	expect(end, (end == GUEST_DONE && g.value == 0) || (end == GUEST_ERROR && g.error == -EBADF));
}

/* A guest that runs itself: the ioctl is a system call like others. */
static u64 run_itself(void *arg)
{
	struct guest *h = arg;
	static struct dune_state s;
	long err;

	s.size = sizeof(s);
	err = hypercall3(SYS_ioctl, h->fd, DUNE_GET_STATE, (long)&s);
	if (!err) {
		s.cr3 = 0x1000;
		s.idtr.limit = 0;
	}
	return hypercall3(SYS_ioctl, h->fd, DUNE_RUN, 0) ? 1 : 2;
}

static void run_from_within(void)
{
	struct guest h = g;

	bounded(1000);
	enum guest_end end = guest_call(&g, run_itself, &h);

	diag("a run from within: %s", guest_end_name(&g, end));
	_exit(0);
}

static u64 run_another(void *arg)
{
	struct guest *h = arg;

	return hypercall3(SYS_ioctl, h->fd, DUNE_RUN, 0);
}

/* Another vCPU of the same thread, run from within the first; the inner one makes calls. */
static void run_other_from_within(void)
{
	static struct guest inner;

	guest_open(&inner);
	guest_prepare(&inner, 0, step_hypercalls, NULL);
	bounded(1000);
	enum guest_end end = guest_call(&g, run_another, &inner);
	long value = g.value;

	diag("another run from within: %s", guest_end_name(&g, end));
	if (end == GUEST_DONE && value == 0)
		_exit(inner.run->exit_reason == DUNE_EXIT_HOSTCALL ||
		      inner.run->exit_reason == DUNE_EXIT_INTR ||
		      inner.run->exit_reason == DUNE_EXIT_SYSCALL ? 0 : 3);
	expect(end, end == GUEST_DONE);
}

static u64 set_state_within(void *arg)
{
	struct guest *h = arg;
	static struct dune_state s;

	s = h->state;
	s.cr3 = 0x1000;
	s.cs.base = 0x123456;
	return hypercall3(SYS_ioctl, h->fd, DUNE_SET_STATE, (long)&s);
}

static void state_from_within(void)
{
	struct guest h = g;

	bounded(1000);
	enum guest_end end = guest_call(&g, set_state_within, &h);

	diag("a state from within: %s", guest_end_name(&g, end));
	_exit(0);
}

static u64 execs(void *arg)
{
	static char *argv[] = { "true", NULL };

	return hypercall3(SYS_execve, (long)"/bin/true", (long)argv, 0);
}

static void exec_true(void) { go(execs, NULL); }

static u64 exits(void *arg)
{
	hypercall3(SYS_exit, (long)arg, 0, 0);
	return 0;
}

static void exit_zero(void) { go(exits, NULL); }

static u64 kills_itself(void *arg)
{
	hypercall3(SYS_kill, hypercall0(SYS_getpid), (long)arg, 0);
	for (;;)
		;
	return 0;
}

static void kill_itself(void) { go(kills_itself, (void *)SIGKILL); }
static void abort_itself(void) { go(kills_itself, (void *)SIGABRT); }

static u64 sigreturns(void *arg)
{
	return hypercall0(SYS_rt_sigreturn);
}

static void sigreturn_of_nothing(void) { go(sigreturns, NULL); }

static u64 io_permission(void *arg)
{
	hypercall3(SYS_ioperm, 0x80, 1, 1);
	hypercall3(SYS_iopl, 3, 0, 0);
	asm volatile("outb %%al, $0x80" : : "a"(0));
	return 0;
}

/* I/O permission of the process is not the guest's. */
static void iopl_then_out(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, io_permission, NULL);

	expect(end, end == GUEST_TRAP && (g.frame->vector == 13 || g.frame->vector == 6));
}

static u64 wild_numbers(void *arg)
{
	u64 x = (u64)arg;

	for (int i = 0; i < 3000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		/* Numbers no kernel has: none may do anything but ENOSYS. */
		if (hypercall((x & 0x3fffffff) | 0x1000, x, x >> 3, x >> 5, x >> 7, x >> 9, x >> 11) != -ENOSYS)
			return x;
		if (hypercall(0xffffffff - i, x, x, x, x, x, x) != -ENOSYS)
			return x;
	}
	return 0;
}

static void wild_hypercalls(void)
{
	bounded(10000);
	enum guest_end end = guest_call(&g, wild_numbers, (void *)0x123456789abcdef);

	expect(end, end == GUEST_DONE && g.value == 0);
}

static u64 wild_message(void *arg)
{
	asm volatile(HYPERCALL : : "a"(arg) : "memory");
	return 0;
}

static void wild_messages(void)
{
	static const u64 values[] = { 1UL << 63, ~0UL, 1UL << 32, 0xffffffff00000027, 0x100000027, 0x8000000000000000 };

	for (unsigned int i = 0; i < 6; i++) {
		enum guest_end end = guest_call(&g, wild_message, (void *)values[i]);

		if (end != GUEST_EXIT || g.run->exit_reason != DUNE_EXIT_HOSTCALL || g.run->regs.rax != values[i])
			expect(end, false);
	}
	_exit(0);
}

/* ---- others meddle while it runs ---- */

static void *scribble(void *arg)
{
	volatile u64 *p = arg;
	u64 x = 0x9e3779b97f4a7c15;

	for (;;) {
		for (int i = 0; i < 512; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			p[i] = x;
		}
	}
	return NULL;
}

/* The run page changes at every moment; the kernel must read each field once. */
static void scribbled_run_page(void)
{
	pthread_t t;

	pthread_create(&t, NULL, scribble, g.run);
	bounded(600);
	for (;;) {
		guest_set_state(&g, &g.state);
		guest_run(&g);
	}
}

static void *scribble_tables(void *arg)
{
	struct guest_memory *m = arg;
	u64 x = 0x9e3779b97f4a7c15;

	for (;;) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		m->pdpt[x % GUEST_PDPTS][x >> 10 & 511] = x ^ x << 20;
		m->gdt[x >> 20 & 15] = x * 3;
		m->idt[x >> 24 & 511] = x * 5;
	}
	return NULL;
}

static void scribbled_tables(void)
{
	pthread_t t;

	pthread_create(&t, NULL, scribble_tables, g.mem);
	bounded(600);
	for (;;) {
		guest_prepare(&g, 0, ud2, NULL);
		if (!guest_run(&g) && g.run->exit_reason == DUNE_EXIT_FAULT)
			continue;
	}
}

static void nx_page(void)
{
	u8 *p = map_page(PROT_READ | PROT_WRITE);

	memset(p, 0xcc, 4096);
	guest_prepare_code(&g, p);
	int err;

	do
		err = guest_run(&g);
	while (err == -EINTR || g.run->exit_reason == DUNE_EXIT_INTR);
	if (err || g.run->exit_reason != DUNE_EXIT_FAULT)
		_exit(1);
	if (!(g.run->fault_flags & DUNE_FAULT_EXEC) || (g.run->fault_address & -4096UL) != (u64)p)
		_exit(2);
	guest_resume(&g);
}

static void write_text(void) { go(write_byte, (void *)write_text); }

static void write_only_what_is_there(void)
{
	u8 *p = map_page(PROT_NONE);

	go(read_byte, p);
}

/* ---- strange modes ---- */

static void compat_code(u16 attributes)
{
	struct dune_state s = g.state;

	page = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	memset(page, 0x90, 4096);
	memcpy(page + 16, "\xb8\x27\x00\x00\x00\x0f\x01\xd9\xeb\xf6", 10);
	intel(page, 26);
	guest_prepare_code(&g, page);
	s.cs.attributes = attributes;
	bounded(200);
	if (guest_set_state(&g, &s))
		raise(SIGALRM);
	enum guest_end end;

	do
		end = guest_resume(&g);
	while (end == GUEST_TRAP);
	diag("%s", guest_end_name(&g, end));
	raise(SIGALRM);
}

static void compat_32(void) { compat_code(0xc9b); }
static void compat_16(void) { compat_code(0x09b); }
static void long_and_big(void) { compat_code(CS_LONG_AND_32BIT); }
static void not_code(void) { compat_code(0xa93); }

/*
 * A state that the processor refuses: the exit reports it, the registers are
 * those that went in, and nothing of the host shows. A later good state runs.
 */
static void refused_state(void)
{
	struct dune_state s = g.state, after;
	struct dune_regs before;

	guest_prepare(&g, 0, guest_return, (void *)5);
	s.cs.attributes = CS_LONG_AND_32BIT;
	if (guest_set_state(&g, &s))
		_exit(0);
	before = g.run->regs;
	int err;

	do
		err = guest_run(&g);
	while (err == -EINTR || g.run->exit_reason == DUNE_EXIT_INTR);
	if (err || g.run->exit_reason != DUNE_EXIT_INVALID)
		_exit(1);
	if (g.run->regs.rip != before.rip || g.run->regs.rsp != before.rsp || g.run->regs.rax != before.rax)
		_exit(2);
	guest_get_state(&g, &after);
	/* What was set, or nothing. */
	u64 shown[] = { after.cr3, after.gdtr.base, after.idtr.base, after.gs.base, after.fs.base,
			after.tr.base, after.lstar, after.kernel_gs_base };
	u64 set[] = { s.cr3, s.gdtr.base, s.idtr.base, s.gs.base, s.fs.base,
		      s.tr.base, s.lstar, s.kernel_gs_base };

	for (int i = 0; i < 8; i++) {
		if (shown[i] && shown[i] != set[i])
			_exit(3);
	}
	enum guest_end end = guest_call(&g, guest_return, (void *)5);

	expect(end, end == GUEST_DONE && g.value == 5);
}

/* Nor does it change who masks the host's interrupts. */
static void spin_after_refusal(void)
{
	struct dune_state s = g.state;

	guest_prepare(&g, 0, guest_return, NULL);
	s.cs.attributes = CS_LONG_AND_32BIT;
	guest_set_state(&g, &s);
	guest_resume(&g);
	guest_set_state(&g, &g.state);
	spin_cli();
}

static u64 bad_iret(void *arg)
{
	asm volatile("push $0x10; push %0; push $0x2; push $8; push %0; iretq" : : "r"(arg) : "memory");
	return 0;
}

static void iret_not_canonical(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, bad_iret, (void *)0x8000000000000000);

	expect(end, end == GUEST_TRAP && (g.frame->vector == 13 || g.frame->vector == 12));
}

static u64 bad_sysret(void *arg)
{
	asm volatile("mov %0, %%rcx; mov $2, %%r11; sysretq" : : "r"(arg) : "rcx", "r11", "memory");
	return 0;
}

static void sysret_not_canonical(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, bad_sysret, (void *)0x800000000000);

	expect(end, end == GUEST_TRAP);
}

static u64 nested_task(void *arg)
{
	asm volatile("pushfq; orq $0x4000, (%%rsp); popfq; push $0x10; push %%rsp; push $2; push $8; push $1; iretq"
		     : : : "memory");
	return 0;
}

static void iret_nested_task(void)
{
	bounded(2000);
	enum guest_end end = guest_call(&g, nested_task, NULL);

	expect(end, end == GUEST_TRAP && g.frame->vector == 13);
}

static void task_gate(void)
{
	g.mem->idt[0x50 * 2] = (u64)GUEST_TR << 16 | 0x85UL << 40;
	code("\xcd\x50", 2);
	guest_prepare_code(&g, page);
	bounded(2000);
	enum guest_end end = guest_resume(&g);

	expect(end, end == GUEST_TRAP && g.frame->vector == 13);
}

static u64 use_fpu_after_ts(void *arg)
{
	asm volatile("fninit; fld1; fldpi; fdivp; fstp %%st(0); pxor %%xmm0, %%xmm0" : : : "memory");
	return 0;
}

static void fpu(void)
{
	enum guest_end end = guest_call(&g, use_fpu_after_ts, NULL);

	expect(end, end == GUEST_DONE);
}

#define OK	0
struct hostile {
	const char *name;
	void (*fn)(void);
	int signal;	/* the end: this signal, or exit status 0 */
};

static const struct hostile guests[] = {
	{ "triple fault", triple_fault, OK },
	{ "triple fault from ring 3", shutdown_in_ring3, OK },
	{ "CR3 not canonical", cr3_not_canonical, SIGSEGV },
	{ "CR3 in the kernel", cr3_kernel, SIGSEGV },
	{ "CR3 in the kernel's half, 48 bits", cr3_kernel_48, SIGSEGV },
	{ "CR3 unmapped", cr3_unmapped, SIGSEGV },
	{ "CR3 on the last page", cr3_top, SIGSEGV },
	{ "CR3 behind the last page", cr3_hole, SIGSEGV },
	{ "CR3 in read-only memory", cr3_readonly, SIGSEGV },
	{ "CR3 0", cr3_null_page, SIGSEGV },
	{ "CR3 on the run page", cr3_run_page, SIGSEGV },
	{ "CR3 in the granule that nobody has", cr3_granule_0, SIGSEGV },
	{ "CR3 in the last granule", cr3_no_granule, SIGSEGV },
	{ "CR3 beyond the processor's addresses", cr3_far, SIGSEGV },
	{ "MOV CR3 into the kernel's half", mov_cr3_kernel, SIGSEGV },
	{ "MOV CR3 to nowhere", mov_cr3_unmapped, SIGSEGV },
	{ "page table: read the granule that nobody has", read_granule_0, SIGSEGV },
	{ "page table: write the last granule", write_no_granule, SIGSEGV },
	{ "page table: read the direct map", read_direct_map, SIGSEGV },
	{ "page table: write the direct map", write_direct_map, SIGSEGV },
	{ "page table: read the kernel's text", read_kernel_text, SIGSEGV },
	{ "page table: execute the kernel's text", jump_kernel_text, SIGSEGV },
	{ "page table: read at 2^47", read_47, SIGSEGV },
	{ "page table: write the entry area", write_entry_area, SIGSEGV },
	{ "page table: read vmalloc memory", read_vmalloc, SIGSEGV },
	{ "page table: read the hole", read_hole, SIGSEGV },
	{ "page table: read page 0", read_null, SIGSEGV },
	{ "page table: write the vsyscall page", write_vsyscall, SIGSEGV },
	{ "page table: execute the vsyscall page", jump_vsyscall, -1 },
	{ "page table: reserved bits", reserved_bits, OK },
	{ "page table: a table in the kernel", table_in_kernel, SIGSEGV },
	{ "page table: a table in itself", recursive_table, OK },
	{ "page table: in a truncated file", table_in_file, SIGBUS },
	{ "IDT unmapped", idt_unmapped, SIGSEGV },
	{ "IDT in the kernel", idt_kernel, SIGSEGV },
	{ "IDT on a page that names the kernel", idt_wild, SIGSEGV },
	{ "IDT over the end of memory", idt_top, SIGSEGV },
	{ "GDT unmapped", gdt_unmapped, SIGSEGV },
	{ "GDT on a page that names the kernel", gdt_wild, SIGSEGV },
	{ "GDT read-only, accessed bit clear", gdt_readonly, SIGSEGV },
	{ "TSS unmapped", tss_unmapped, SIGSEGV },
	{ "TSS on a page that names the kernel", tss_wild, SIGSEGV },
	{ "stack unmapped", stack_unmapped, SIGSEGV },
	{ "stack not canonical", stack_not_canonical, SIGSEGV },
	{ "stack in the kernel", stack_kernel, SIGSEGV },
	{ "stack on a page that names the kernel", stack_wild, SIGSEGV },
	{ "stack in read-only memory", stack_readonly, SIGSEGV },
	{ "exception stack unmapped", trap_stack_unmapped, SIGSEGV },
	{ "exception stack in the kernel", trap_stack_kernel, SIGSEGV },
	{ "exception stack on a page that names the kernel", trap_stack_wild, SIGSEGV },
	{ "exception stack not canonical", trap_stack_not_canonical, SIGSEGV },
	{ "exception stack not present yet", trap_stack_absent, OK },
	{ "all tables not present yet", tables_absent, OK },
	{ "handlers that fault, down the stack", falling_handler, SIGSEGV },
	{ "storm of #UD", ud_storm, SIGALRM },
	{ "storm of #GP by intercepts", gp_storm, SIGALRM },
	{ "storm of #DB", db_storm, SIGALRM },
	{ "single-step everything", single_step_all, OK },
	{ "single-step over hypercalls", single_step_hypercall, OK },
	{ "storm of #AC", ac_storm, -1 },
	{ "endless loop, interrupts off", spin_quiet, SIGALRM },
	{ "endless CLI", spin_cli, SIGALRM },
	{ "endless loop, interrupts on", spin_sti, SIGALRM },
	{ "endless loop in ring 3", spin_ring3, SIGALRM },
	{ "endless loop in ring 3 with CLI", spin_ring3_cli, SIGALRM },
	{ "endless PAUSE", spin_pause, SIGALRM },
	{ "endless HLT", spin_hlt, SIGALRM },
	{ "endless STI, HLT", spin_sti_hlt, SIGALRM },
	{ "endless CPUID", spin_cpuid, SIGALRM },
	{ "endless RDTSC", spin_rdtsc, SIGALRM },
	{ "endless INVLPG", spin_invlpg, SIGALRM },
	{ "endless MOV SS", spin_mov_ss, SIGALRM },
	{ "endless MOV CR3", spin_cr3, SIGALRM },
	{ "endless hypercalls", spin_hypercall, SIGALRM },
	{ "endless wild hypercalls", spin_wild_hypercall, -1 },
	{ "storm of injected interrupts", irq_storm, SIGALRM },
	{ "MOV CR8 with an interrupt pending", cr8_with_irq, OK },
	{ "injected interrupt without an IDT", irq_without_idt, OK },
	{ "unmaps its code", unmap_code, SIGSEGV },
	{ "unmaps its tables", unmap_tables, SIGSEGV },
	{ "unmaps its stack", unmap_stack, SIGSEGV },
	{ "unmaps the run page", unmap_run_page, SIGSEGV },
	{ "maps memory over the run page", replace_run_page, OK },
	{ "drops its tables (DONTNEED)", zero_tables, OK },
	{ "protects its tables", protect_tables, SIGSEGV },
	{ "closes its own vCPU", close_own_fd, OK },
	{ "closes everything", close_range_all, OK },
	{ "runs itself", run_from_within, -1 },
	{ "runs another vCPU", run_other_from_within, OK },
	{ "sets its own state", state_from_within, -1 },
	{ "exec", exec_true, OK },
	{ "exit", exit_zero, OK },
	{ "kills itself", kill_itself, SIGKILL },
	{ "aborts itself", abort_itself, SIGABRT },
	{ "returns from no signal", sigreturn_of_nothing, SIGSEGV },
	{ "I/O after iopl(3)", iopl_then_out, OK },
	{ "hypercalls with wild numbers", wild_hypercalls, OK },
	{ "messages with wild numbers", wild_messages, OK },
	{ "run page scribbled by a thread", scribbled_run_page, -1 },
	{ "tables scribbled by a thread", scribbled_tables, -1 },
	{ "executes an NX page", nx_page, SIGSEGV },
	{ "writes its text", write_text, SIGSEGV },
	{ "reads a PROT_NONE page", write_only_what_is_there, SIGSEGV },
	{ "32-bit code", compat_32, SIGALRM },
	{ "16-bit code", compat_16, -1 },
	{ "CS both L and D", long_and_big, SIGALRM },
	{ "CS of a data segment", not_code, SIGALRM },
	{ "a refused state shows nothing of the host", refused_state, OK },
	{ "endless loop, interrupts off, after a refused state", spin_after_refusal, SIGALRM },
	{ "IRETQ to nowhere", iret_not_canonical, OK },
	{ "SYSRETQ to nowhere", sysret_not_canonical, OK },
	{ "IRETQ with NT", iret_nested_task, OK },
	{ "INT through a task gate", task_gate, OK },
	{ "floating point", fpu, OK },
};

static void run_guest(void *arg)
{
	const struct hostile *h = arg;

	guest_open(&g);
	h->fn();
}

static bool healthy(struct guest *h)
{
	return guest_call(h, guest_return, (void *)4711) == GUEST_DONE && h->value == 4711;
}

int main(int argc, char **argv)
{
	struct guest health;
	struct klog log;
	struct outcome o;

	begin(240);
	klog_begin(&log);
	/* Linux's own line for each SIGSEGV is not the module's. */
	file_write("/proc/sys/debug/exception-trace", "0");
	guest_open(&health);
	for (unsigned int i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		const struct instruction *in = &instructions[i];

		if (argc > 1 && strcmp(argv[1], in->name))
			continue;
		o = in_child(run_instruction, (void *)in, 20);
		ok(o.code == 0 && healthy(&health), "ring %d: %s (%d, %d)", in->ring, in->name, o.code, o.signal);
	}
	for (unsigned int i = 0; i < sizeof(guests) / sizeof(guests[0]); i++) {
		const struct hostile *h = &guests[i];

		if (argc > 1 && strcmp(argv[1], h->name))
			continue;
		o = in_child(run_guest, (void *)h, 30);
		bool good = h->signal < 0 ? !o.hung : h->signal ? o.signal == h->signal && !o.hung : o.code == 0;

		ok(good && healthy(&health), "%s (%s%d, %d)", h->name, o.hung ? "hung, " : "", o.code, o.signal);
	}
	klog_end(&log);
	ok(log.lines <= 10, "the kernel log hardly grew (%u lines)", log.lines);
	guest_close(&health);
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Single instructions that a guest must not execute, or only in its own way. Each
 * runs in a guest of a child (isolated.h). Fails when an instruction is not
 * intercepted, when it causes another exception than it must, or when it changes
 * anything of the host.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "tap.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VECTOR_AFTER	0x77	/* the INT after the tested instruction: this was executed */

enum expected {
	EXPECT_VECTOR,		/* the exception in @vector */
	EXPECT_GP_OR_UD,
	EXPECT_HLT,		/* DUNE_EXIT_HLT */
	/* #GP or #UD; an emulator may execute it: XCR0 is the host's after the exit. */
	EXPECT_HOST_XCR0,
	/*
	 * AMD: #GP or #UD. Intel: nothing, since CLTS exits only if it would change
	 * CR0 (SDM vol. 3, 26.1.3), which it does not.
	 */
	EXPECT_NO_CHANGE,
	/* AMD: nothing; TCG has no extension of MWAIT: #GP if RCX is not 0. Intel: #UD. */
	EXPECT_NO_WAIT,
	/* Nothing, in any ring; #UD if the processor does not have the instruction. */
	EXPECT_NO_WAITX,
	/* #UD: VMCALL on AMD, VMMCALL on Intel. */
	EXPECT_OTHER_VENDOR,
	/* #GP; an emulator may give the guest's own virtual task priority. */
	EXPECT_ZERO_PRIORITY,
	/*
	 * The MSR is passed through: #GP on hardware; TCG stores the value. host_msrs.c
	 * checks that the host's MSR is unchanged.
	 */
	EXPECT_GP_OR_AFTER,
	/* #GP; TCG loads the value, and the next VMRUN refuses it. */
	EXPECT_GP_OR_INVALID,
	/* #DB after the instruction; TCG does not have the instruction: #UD. */
	EXPECT_DB,
};

struct instruction {
	const char *name;
	const char *bytes;
	int len;
	int ring;
	enum expected expected;
	unsigned int vector;
	u64 rax, rcx, rdx;
};

#define I(name, ring, expected, bytes, ...) \
	{ name, bytes, sizeof(bytes) - 1, ring, expected, 0, __VA_ARGS__ }
#define VECTOR(name, ring, vector, bytes, ...) \
	{ name, bytes, sizeof(bytes) - 1, ring, EXPECT_VECTOR, vector, __VA_ARGS__ }

static const struct instruction instructions[] = {
	I("IN", 0, EXPECT_GP_OR_UD, "\xec", 0, 0, PORT_POST),
	I("IN, 32 bits", 0, EXPECT_GP_OR_UD, "\xed", 0, 0, PORT_PCI_ADDRESS),
	I("IN, immediate", 0, EXPECT_GP_OR_UD, "\xe4\x60", 0, 0, 0),
	I("OUT", 0, EXPECT_GP_OR_UD, "\xee", 0, 0, PORT_POST),
	I("OUT to the reset port", 0, EXPECT_GP_OR_UD, "\xee", 6, 0, PORT_RESET),
	I("INS", 0, EXPECT_GP_OR_UD, "\x6c", 0, 0, PORT_POST),
	I("REP OUTS", 0, EXPECT_GP_OR_UD, "\xf3\x6e", 0, 0x1000, PORT_POST),
	VECTOR("IN", 3, X86_TRAP_GP, "\xec", 0, 0, PORT_POST),
	VECTOR("OUT", 3, X86_TRAP_GP, "\xee", 0, 0, PORT_POST),
	VECTOR("RDMSR EFER", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_EFER, 0),
	VECTOR("RDMSR APIC_BASE", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_IA32_APICBASE, 0),
	VECTOR("RDMSR TSC", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_IA32_TSC, 0),
	VECTOR("RDMSR PAT", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_IA32_CR_PAT, 0),
	VECTOR("RDMSR SPEC_CTRL", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_IA32_SPEC_CTRL, 0),
	VECTOR("RDMSR VM_HSAVE_PA", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_VM_HSAVE_PA, 0),
	VECTOR("RDMSR TSC_AUX", 0, X86_TRAP_GP, "\x0f\x32", 0, MSR_TSC_AUX, 0),
	VECTOR("RDMSR of nonsense", 0, X86_TRAP_GP, "\x0f\x32", 0, 0x12345678, 0),
	VECTOR("WRMSR EFER", 0, X86_TRAP_GP, "\x0f\x30", 0, MSR_EFER, 0),
	VECTOR("WRMSR EFER with SVME", 0, X86_TRAP_GP, "\x0f\x30",
	       EFER_SVME | EFER_NX | EFER_LMA | EFER_LME | EFER_SCE, MSR_EFER, 0),
	VECTOR("WRMSR APIC_BASE", 0, X86_TRAP_GP, "\x0f\x30", 0, MSR_IA32_APICBASE, 0),
	VECTOR("WRMSR SPEC_CTRL", 0, X86_TRAP_GP, "\x0f\x30", 1, MSR_IA32_SPEC_CTRL, 0),
	VECTOR("WRMSR PRED_CMD", 0, X86_TRAP_GP, "\x0f\x30", 1, MSR_IA32_PRED_CMD, 0),
	VECTOR("WRMSR TSC", 0, X86_TRAP_GP, "\x0f\x30", 0, MSR_IA32_TSC, 0),
	VECTOR("WRMSR VM_HSAVE_PA", 0, X86_TRAP_GP, "\x0f\x30", 0, MSR_VM_HSAVE_PA, 0),
	VECTOR("WRMSR DEBUGCTL", 0, X86_TRAP_GP, "\x0f\x30", 1, MSR_IA32_DEBUGCTLMSR, 0),
	VECTOR("WRMSR MISC_ENABLE", 0, X86_TRAP_GP, "\x0f\x30", 1, MSR_IA32_MISC_ENABLE, 0),
	VECTOR("WRMSR PERF_EVTSEL", 0, X86_TRAP_GP, "\x0f\x30", 1, MSR_K7_EVNTSEL0, 0),
	VECTOR("WRMSR XSS", 0, X86_TRAP_GP, "\x0f\x30", 1, MSR_IA32_XSS, 0),
	I("WRMSR LSTAR, not canonical", 0, EXPECT_GP_OR_AFTER, "\x0f\x30", 0, MSR_LSTAR,
	  0x80000000),
	I("WRMSR KERNEL_GS_BASE, not canonical", 0, EXPECT_GP_OR_AFTER, "\x0f\x30", 0,
	  MSR_KERNEL_GS_BASE, 0x80000000),
	VECTOR("RDMSR", 3, X86_TRAP_GP, "\x0f\x32", 0, MSR_FS_BASE, 0),
	I("MOV CR0: paging off", 0, EXPECT_GP_OR_UD, "\x0f\x22\xc0", X86_CR0_PE | X86_CR0_ET, 0, 0),
	I("MOV CR0: all set", 0, EXPECT_GP_OR_UD, "\x0f\x22\xc0", ~0UL, 0, 0),
	I("MOV CR4: nothing", 0, EXPECT_GP_OR_UD, "\x0f\x22\xe0", 0, 0, 0),
	I("MOV CR4: VMXE", 0, EXPECT_GP_OR_UD, "\x0f\x22\xe0",
	  X86_CR4_VMXE | X86_CR4_OSXMMEXCPT | X86_CR4_OSFXSR | X86_CR4_PGE | X86_CR4_PAE, 0, 0),
	I("MOV CR8", 0, EXPECT_GP_OR_UD, "\x44\x0f\x22\xc0", 0xf, 0, 0),
	I("MOV from CR8", 0, EXPECT_ZERO_PRIORITY, "\x44\x0f\x20\xc0", 1, 0, 0),
	VECTOR("MOV CR3", 3, X86_TRAP_GP, "\x0f\x22\xd8", 0, 0, 0),
	I("MOV CR3, reserved bits", 0, EXPECT_GP_OR_INVALID, "\x0f\x22\xd8", 1UL << 60, 0, 0),
	VECTOR("MOV CR1", 0, X86_TRAP_UD, "\x0f\x22\xc8", 0, 0, 0),
	I("MOV DR0", 0, EXPECT_GP_OR_UD, "\x0f\x23\xc0", 0x1000, 0, 0),
	I("MOV DR7", 0, EXPECT_GP_OR_UD, "\x0f\x23\xf8", 0x401, 0, 0),
	I("MOV from DR6", 0, EXPECT_GP_OR_UD, "\x0f\x21\xf0", 0, 0, 0),
	VECTOR("MOV DR0", 3, X86_TRAP_GP, "\x0f\x23\xc0", 0x1000, 0, 0),
	I("LMSW", 0, EXPECT_GP_OR_UD, "\x0f\x01\xf0", 0x1, 0, 0),
	I("CLTS", 0, EXPECT_NO_CHANGE, "\x0f\x06", 0, 0, 0),
	I("HLT", 0, EXPECT_HLT, "\xf4", 0, 0, 0),
	VECTOR("HLT", 3, X86_TRAP_GP, "\xf4", 0, 0, 0),
	VECTOR("CLI", 3, X86_TRAP_GP, "\xfa", 0, 0, 0),
	I("INVD", 0, EXPECT_GP_OR_UD, "\x0f\x08", 0, 0, 0),
	I("WBINVD", 0, EXPECT_GP_OR_UD, "\x0f\x09", 0, 0, 0),
	I("WBNOINVD", 0, EXPECT_GP_OR_UD, "\xf3\x0f\x09", 0, 0, 0),
	I("MONITOR", 0, EXPECT_NO_WAIT, "\x0f\x01\xc8", CODE_AT, 0, 0),
	I("MWAIT", 0, EXPECT_NO_WAIT, "\x0f\x01\xc9", 0, 0, 0),
	I("MWAIT, wake on masked interrupts", 0, EXPECT_NO_WAIT, "\x0f\x01\xc9", 0, 1, 0),
	I("MONITOR", 3, EXPECT_GP_OR_UD, "\x0f\x01\xc8", CODE_AT, 0, 0),
	I("MWAIT", 3, EXPECT_GP_OR_UD, "\x0f\x01\xc9", 0, 0, 0),
	I("MONITORX", 0, EXPECT_NO_WAITX, "\x0f\x01\xfa", CODE_AT, 0, 0),
	I("MWAITX", 0, EXPECT_NO_WAITX, "\x0f\x01\xfb", 0, 0, 0),
	I("MONITORX", 3, EXPECT_NO_WAITX, "\x0f\x01\xfa", CODE_AT, 0, 0),
	I("MWAITX", 3, EXPECT_NO_WAITX, "\x0f\x01\xfb", 0, 0, 0),
	I("XSETBV", 0, EXPECT_HOST_XCR0, "\x0f\x01\xd1", 1, 0, 0),
	I("XSETBV, the present value", 0, EXPECT_HOST_XCR0, "\x0f\x01\xd1", 7, 0, 0),
	I("XSETBV", 3, EXPECT_GP_OR_UD, "\x0f\x01\xd1", 7, 0, 0),
	I("VMRUN", 0, EXPECT_GP_OR_UD, "\x0f\x01\xd8", 0x1000, 0, 0),
	I("VMLOAD", 0, EXPECT_GP_OR_UD, "\x0f\x01\xda", 0x1000, 0, 0),
	I("VMSAVE", 0, EXPECT_GP_OR_UD, "\x0f\x01\xdb", 0x1000, 0, 0),
	I("STGI", 0, EXPECT_GP_OR_UD, "\x0f\x01\xdc", 0, 0, 0),
	I("CLGI", 0, EXPECT_GP_OR_UD, "\x0f\x01\xdd", 0, 0, 0),
	I("SKINIT", 0, EXPECT_GP_OR_UD, "\x0f\x01\xde", 0, 0, 0),
	I("INVLPGA", 0, EXPECT_GP_OR_UD, "\x0f\x01\xdf", 0, 0, 0),
	I("INVLPGB", 0, EXPECT_GP_OR_UD, "\x0f\x01\xfe", 0, 0, 0),
	I("TLBSYNC", 0, EXPECT_GP_OR_UD, "\x0f\x01\xff", 0, 0, 0),
	VECTOR("VMMCALL", 3, X86_TRAP_UD, "\x0f\x01\xd9", 39, 0, 0),
	VECTOR("VMCALL", 3, X86_TRAP_UD, "\x0f\x01\xc1", 39, 0, 0),
	I("the other vendor's hypercall", 0, EXPECT_OTHER_VENDOR, "\x0f\x01\xd9", 39, 0, 0),
	I("INVEPT", 0, EXPECT_GP_OR_UD, "\x66\x0f\x38\x80\x07", 1, 0, 0),
	I("INVVPID", 0, EXPECT_GP_OR_UD, "\x66\x0f\x38\x81\x07", 1, 0, 0),
	I("VMPTRLD", 0, EXPECT_GP_OR_UD, "\x0f\xc7\x37", 0, 0, 0),
	I("VMPTRST", 0, EXPECT_GP_OR_UD, "\x0f\xc7\x3f", 0, 0, 0),
	I("VMCLEAR", 0, EXPECT_GP_OR_UD, "\x66\x0f\xc7\x37", 0, 0, 0),
	I("VMREAD", 0, EXPECT_GP_OR_UD, "\x0f\x78\xc0", 0x4000, 0, 0),
	I("VMWRITE", 0, EXPECT_GP_OR_UD, "\x0f\x79\xc0", 0x4000, 0, 0),
	I("VMRESUME", 0, EXPECT_GP_OR_UD, "\x0f\x01\xc3", 0, 0, 0),
	I("VMXOFF", 0, EXPECT_GP_OR_UD, "\x0f\x01\xc4", 0, 0, 0),
	I("VMFUNC", 0, EXPECT_GP_OR_UD, "\x0f\x01\xd4", 0, 0, 0),
	I("VMXON", 0, EXPECT_GP_OR_UD, "\xf3\x0f\xc7\x30", CODE_AT, 0, 0),
	I("VMLAUNCH", 0, EXPECT_GP_OR_UD, "\x0f\x01\xc2", 0, 0, 0),
	I("RSM", 0, EXPECT_GP_OR_UD, "\x0f\xaa", 0, 0, 0),
	I("RDPMC", 0, EXPECT_GP_OR_UD, "\x0f\x33", 0, 0, 0),
	I("GETSEC", 0, EXPECT_GP_OR_UD, "\x0f\x37", 0, 0, 0),
	I("ENCLS", 0, EXPECT_GP_OR_UD, "\x0f\x01\xcf", 0, 0, 0),
	I("SYSENTER", 0, EXPECT_GP_OR_UD, "\x0f\x34", 0, 0, 0),
	I("SYSEXIT", 0, EXPECT_GP_OR_UD, "\x0f\x35", 0, 0, 0),
	VECTOR("INT 0x80", 0, IA32_SYSCALL_VECTOR, "\xcd\x80", 1, 0, 0),
	VECTOR("INT 0x80", 3, IA32_SYSCALL_VECTOR, "\xcd\x80", 1, 0, 0),
	VECTOR("INT 2", 0, X86_TRAP_NMI, "\xcd\x02", 0, 0, 0),
	VECTOR("INT 18", 0, X86_TRAP_MC, "\xcd\x12", 0, 0, 0),
	VECTOR("INT 0xff", 0, 0xff, "\xcd\xff", 0, 0, 0),
	VECTOR("INT 14", 3, X86_TRAP_GP, "\xcd\x0e", 0, 0, 0),
	VECTOR("INT3", 3, X86_TRAP_BP, "\xcc", 0, 0, 0),
	I("ICEBP", 0, EXPECT_DB, "\xf1", 0, 0, 0),
	I("ICEBP", 3, EXPECT_DB, "\xf1", 0, 0, 0),
	VECTOR("UD2", 0, X86_TRAP_UD, "\x0f\x0b", 0, 0, 0),
	VECTOR("DIV by zero", 0, X86_TRAP_DE, "\xf7\xf1", 1, 0, 0),
	VECTOR("LTR of a null selector", 0, X86_TRAP_GP, "\x0f\x00\xd8", 0, 0, 0),
	VECTOR("LTR of a code segment", 0, X86_TRAP_GP, "\x0f\x00\xd8", GUEST_CS0, 0, 0),
	VECTOR("LLDT out of the table", 0, X86_TRAP_GP, "\x0f\x00\xd0", 0x1000, 0, 0),
	VECTOR("MOV SS of a system segment", 0, X86_TRAP_GP, "\x8e\xd0", GUEST_TR, 0, 0),
	I("SWAPGS", 3, EXPECT_GP_OR_UD, "\x0f\x01\xf8", 0, 0, 0),
	VECTOR("INVLPG", 3, X86_TRAP_GP, "\x0f\x01\x38", 0, 0, 0),
	I("INVPCID, bad type", 0, EXPECT_GP_OR_UD, "\x66\x0f\x38\x82\x08", CODE_AT, 99, 0),
	VECTOR("far jump through a TSS", 0, X86_TRAP_GP,
	       "\xff\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x30\x00", 0, 0, 0),
};

/* MONITORX and MWAITX, which every ring may execute (APM vol. 3, CPUID Fn8000_0001_ECX). */
static bool has_mwaitx(void)
{
	unsigned int eax, ebx, ecx, edx;

	__cpuid(0x80000001, eax, ebx, ecx, edx);
	return ecx >> 29 & 1;
}

static void run_instruction(void *arg)
{
	const struct instruction *i = arg;
	u64 xcr0 = read_xcr0();

	guest_open(&g);
	guest_cover(&g, CODE_AT);
	page = mmap((void *)CODE_AT, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		child_fails("mmap() of a page failed");
	memset(page, 0xcc, 4096);
	memcpy(page, i->bytes, i->len);
	if (i->expected == EXPECT_OTHER_VENDOR)
		page[2] = guest_vmx ? 0xd9 : 0xc1;
	/* Else INT3 follows, as it does everywhere in the page. */
	if (i->expected != EXPECT_NO_WAIT && i->expected != EXPECT_NO_WAITX) {
		page[i->len] = 0xcd;		/* INT: in ring 3, #GP */
		page[i->len + 1] = VECTOR_AFTER;
	}
	guest_prepare(&g, i->ring, NULL, NULL);
	g.run->regs.rip = (u64)page;
	g.run->regs.rax = i->rax;
	g.run->regs.rcx = i->rcx;
	g.run->regs.rdx = i->rdx;
	g.run->regs.rdi = CODE_AT + 2048;
	g.run->regs.rsi = CODE_AT + 2048;
	must_end_within(3000);
	enum guest_end end = guest_resume(&g);
	bool trap = end == GUEST_TRAP;
	/* INT n and similar traps leave RIP after the instruction, faults at it. */
	bool after = i->bytes[0] == '\xcd' || i->bytes[0] == '\xcc' || i->bytes[0] == '\xf1';
	bool here = trap && (g.frame->rip == (u64)page ||
			     (after && g.frame->rip == (u64)page + i->len));
	bool gp = here && g.frame->vector == X86_TRAP_GP;
	bool ud = here && g.frame->vector == X86_TRAP_UD;
	bool passed = trap && g.frame->vector == X86_TRAP_BP &&
		      g.frame->rip == (u64)page + i->len + 1;
	bool good = false;

	switch (i->expected) {
	case EXPECT_NO_WAIT:
		good = guest_vmx ? ud : passed || (gp && i->rcx);
		break;
	case EXPECT_NO_WAITX:
		good = has_mwaitx() ? passed : ud;
		break;
	case EXPECT_GP_OR_AFTER:
		good = gp || (trap && g.frame->vector == VECTOR_AFTER);
		break;
	case EXPECT_GP_OR_UD:
		good = gp || ud;
		break;
	case EXPECT_GP_OR_INVALID:
		good = gp || (end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_INVALID);
		break;
	case EXPECT_DB:
		good = ud || (trap && g.frame->vector == X86_TRAP_DB &&
			      g.frame->rip == (u64)page + i->len);
		break;
	case EXPECT_NO_CHANGE:
		good = guest_vmx ? trap && g.frame->vector == VECTOR_AFTER : gp || ud;
		break;
	case EXPECT_OTHER_VENDOR:
		good = ud;
		break;
	case EXPECT_HOST_XCR0:
		good = trap && read_xcr0() == xcr0;
		break;
	case EXPECT_ZERO_PRIORITY:
		good = gp || (trap && g.frame->vector == VECTOR_AFTER && !g.frame->rax);
		break;
	case EXPECT_HLT:
		good = end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_HLT &&
		       g.run->regs.rip == (u64)page + 1;
		break;
	case EXPECT_VECTOR:
		good = here && g.frame->vector == i->vector;
		break;
	}
	expect(end, good);
}

int main(int argc, char **argv)
{
	isolated_begin(argc, argv, 240);
	for (unsigned int i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		const struct instruction *in = &instructions[i];
		char name[80];

		snprintf(name, sizeof(name), "ring %d: %s", in->ring, in->name);
		isolated_case(name, run_instruction, (void *)in, 0);
	}
	return isolated_end();
}

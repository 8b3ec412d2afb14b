// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that VT-x has to intercept and to allow, with the reasons: the controls in one
 * table (controls), the exceptions (VMX_EXCEPTIONS), the MSRs (msr_bitmap_init()), and in a second
 * table (answers) the exceptions that forbidden instructions raise. dune/exit.h has the rule.
 * (SDM 25.6 to 25.8, 26.1; exit reasons are in its appendix C.)
 *
 * Exits without any control: CPUID (carried out, exit.c), GETSEC, INVD, XSETBV, every
 * VT-x instruction, task switches and triple faults. MOV to CR0 and CR4 causes an exit
 * if a bit would change: all bits are in the masks (vmx_write_setup()).
 *
 * RDTSC and RDTSCP are intercepted only for a thread that has forbidden them to itself
 * (vmx_forbid()).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/msr.h>
#include <asm/trapnr.h>
#include <asm/tsc.h>

#include "dune/compat.h"
#include "dune/vmx/vmx.h"

enum need {
	NEEDED,
	OPTIONAL,	/* for an instruction that this processor may not have */
	NEVER,		/* it must be possible to turn it off */
};

struct control {
	u32 bit;
	u8 word;	/* enum vmx_control */
	u8 need;
	const char *name;
};

static const struct control controls[] = {
	/* The host's own events: they end the guest, the host takes them. */
	{ PIN_BASED_EXT_INTR_MASK, VMX_PIN, NEEDED, "external-interrupt exiting" },
	{ PIN_BASED_NMI_EXITING, VMX_PIN, NEEDED, "NMI exiting" },
	/*
	 * At an entry with RFLAGS.IF clear, Bochs masks the host's interrupts until
	 * the guest changes IF: a loop that does not would never end
	 * (docs/emulators.md).
	 */
	{ PIN_BASED_VMX_PREEMPTION_TIMER, VMX_PIN, OPTIONAL, "preemption timer" },
	/* The way to the kernel, besides VMCALL. */
	{ CPU_BASED_HLT_EXITING, VMX_CPU, NEEDED, "HLT exiting" },
	/* The task priority, which means nothing here. */
	{ CPU_BASED_CR8_LOAD_EXITING, VMX_CPU, NEEDED, "CR8-load exiting" },
	{ CPU_BASED_CR8_STORE_EXITING, VMX_CPU, NEEDED, "CR8-store exiting" },
	/* Debug registers 0 to 3 are not switched: they hold the host's breakpoints. */
	{ CPU_BASED_MOV_DR_EXITING, VMX_CPU, NEEDED, "MOV-DR exiting" },
	/* Devices and the machine. The bitmap permits the guest's own MSRs. */
	{ CPU_BASED_UNCOND_IO_EXITING, VMX_CPU, NEEDED, "I/O exiting" },
	{ CPU_BASED_USE_MSR_BITMAPS, VMX_CPU, NEEDED, "MSR bitmaps" },
	{ CPU_BASED_RDPMC_EXITING, VMX_CPU, NEEDED, "RDPMC exiting" },
	/* Caches are shared: writing them back costs everybody. */
	{ SECONDARY_EXEC_WBINVD_EXITING, VMX_CPU2, NEEDED, "WBINVD exiting" },
	/* They could stop the CPU for long. */
	{ CPU_BASED_MWAIT_EXITING, VMX_CPU, NEEDED, "MWAIT exiting" },
	{ CPU_BASED_MONITOR_EXITING, VMX_CPU, NEEDED, "MONITOR exiting" },
	/*
	 * An enclave's page is not the guest's to manage. (ENCLV is #UD as long
	 * as its control is 0.)
	 */
	{ SECONDARY_EXEC_ENCLS_EXITING, VMX_CPU2, OPTIONAL, "ENCLS exiting" },
	/*
	 * ENQCMDS sends work to a device in the name of an address space of the
	 * guest's choice. It gets none to choose from (vmcs.c).
	 */
	{ SECONDARY_EXEC_PASID_TRANSLATION, VMX_CPU2, OPTIONAL, "PASID translation" },
	/*
	 * A locked access that crosses cache lines, if #AC does not catch it
	 * (split_lock_detect=ratelimit:N): a trap, in every ring.
	 */
	{ SECONDARY_EXEC_BUS_LOCK_DETECTION, VMX_CPU2, OPTIONAL,
	  "bus-lock detection" },
	/* The guest's own page table and its TLB. */
	{ CPU_BASED_CR3_LOAD_EXITING, VMX_CPU, NEVER, "CR3-load exiting" },
	{ CPU_BASED_CR3_STORE_EXITING, VMX_CPU, NEVER, "CR3-store exiting" },
	{ CPU_BASED_INVLPG_EXITING, VMX_CPU, NEVER, "INVLPG exiting" },
	{ SECONDARY_EXEC_ENABLE_INVPCID, VMX_CPU2, OPTIONAL, "INVPCID" },
	/* Allowed in user mode; without these controls they would raise #UD. */
	{ SECONDARY_EXEC_ENABLE_RDTSCP, VMX_CPU2, OPTIONAL, "RDTSCP" },
	{ SECONDARY_EXEC_ENABLE_USR_WAIT_PAUSE, VMX_CPU2, OPTIONAL, "TPAUSE" },
	/* Needed by every guest. */
	{ CPU_BASED_ACTIVATE_SECONDARY_CONTROLS, VMX_CPU, NEEDED,
	  "secondary controls" },
	{ SECONDARY_EXEC_ENABLE_EPT, VMX_CPU2, NEEDED, "EPT" },
	{ SECONDARY_EXEC_ENABLE_VPID, VMX_CPU2, NEEDED, "VPID" },
	{ VM_EXIT_HOST_ADDR_SPACE_SIZE, VMX_EXIT, NEEDED, "64-bit host" },
	{ VM_ENTRY_IA32E_MODE, VMX_ENTRY, NEEDED, "64-bit guest" },
	/* DR7 and DEBUGCTL of the host do not act in the guest. */
	{ VM_ENTRY_LOAD_DEBUG_CONTROLS, VMX_ENTRY, NEEDED, "debug controls" },
};

/* The capability MSRs of each word, and those of processors that allow more choices. */
static const u32 capability_msrs[][2] = {
	[VMX_PIN] = { MSR_IA32_VMX_PINBASED_CTLS, MSR_IA32_VMX_TRUE_PINBASED_CTLS },
	[VMX_CPU] = { MSR_IA32_VMX_PROCBASED_CTLS,
		  MSR_IA32_VMX_TRUE_PROCBASED_CTLS },
	[VMX_CPU2] = { MSR_IA32_VMX_PROCBASED_CTLS2, MSR_IA32_VMX_PROCBASED_CTLS2 },
	[VMX_EXIT] = { MSR_IA32_VMX_EXIT_CTLS, MSR_IA32_VMX_TRUE_EXIT_CTLS },
	[VMX_ENTRY] = { MSR_IA32_VMX_ENTRY_CTLS, MSR_IA32_VMX_TRUE_ENTRY_CTLS },
};

/*
 * The tick of a kernel with HZ=250, which ends a guest as often by itself, so that the
 * timer adds no exit. With a slower tick, or without one (nohz_full), it adds one
 * exit every 4 ms of the guest's time.
 */
#define TIMER_MS	4

u32 vmx_controls[VMX_CONTROLS] __ro_after_init;
u32 vmx_timer __ro_after_init;

/* Returns TIMER_MS in units of the timer, which are 2^n of the TSC's (SDM appendix A.6). */
static u32 timer_value(void)
{
	u64 misc;

	rdmsrq(MSR_IA32_VMX_MISC, misc);
	return (u64)tsc_khz * TIMER_MS >> vmx_misc_preemption_timer_rate(misc);
}

/*
 * Sets the bit of @control in @word, if the processor allows it. @capability: the low half has the
 * bits that must be 1, the high half those that may be 1. Returns 0, or -ENODEV after a line in
 * the log if a control that is NEEDED is missing, or one that is NEVER used cannot be off.
 */
static int choose(const struct control *control, u64 capability, u32 *word)
{
	if (control->need == NEVER) {
		if (!((u32)capability & control->bit))
			return 0;
		pr_err("this CPU cannot run without %s\n", control->name);
		return -ENODEV;
	}
	if (capability >> 32 & control->bit) {
		*word |= control->bit;
		return 0;
	}
	if (control->need == OPTIONAL)
		return 0;
	pr_err("this CPU's VT-x has no %s\n", control->name);
	return -ENODEV;
}

/* Fills in vmx_controls[]. Returns 0, or -ENODEV after a line in the log about what is missing. */
static int choose_controls(void)
{
	u64 basic, capabilities[VMX_CONTROLS];
	int i, err;

	rdmsrq(MSR_IA32_VMX_BASIC, basic);
	for (i = 0; i < VMX_CONTROLS; i++) {
		/* The secondary controls' MSR may not exist. */
		if (rdmsrq_safe(capability_msrs[i][!!(basic & VMX_BASIC_TRUE_CTLS)],
				&capabilities[i]))
			capabilities[i] = 0;
		vmx_controls[i] = capabilities[i];
	}
	for (i = 0; i < ARRAY_SIZE(controls); i++) {
		err = choose(&controls[i], capabilities[controls[i].word],
			     &vmx_controls[controls[i].word]);
		if (err)
			return err;
	}
	if (boot_cpu_has(X86_FEATURE_SGX) &&
	    !(vmx_controls[VMX_CPU2] & SECONDARY_EXEC_ENCLS_EXITING)) {
		pr_err("this CPU's VT-x has SGX but no ENCLS exiting\n");
		return -ENODEV;
	}
	/* The kernel's flag is not used: it is cleared if no IOMMU serves ENQCMD. */
	if (cpuid_ecx(7) & BIT(X86_FEATURE_ENQCMD & 31) &&
	    !(vmx_controls[VMX_CPU2] & SECONDARY_EXEC_PASID_TRANSLATION)) {
		pr_err("this CPU has ENQCMDS but no PASID translation in VT-x\n");
		return -ENODEV;
	}
	vmx_timer = timer_value();
	return 0;
}

/* The MSRs of SYSCALL, which host.c switches. */
const u32 vmx_msr_numbers[VMX_MSRS] = {
	[VMX_MSR_STAR] = MSR_STAR,
	[VMX_MSR_LSTAR] = MSR_LSTAR,
	[VMX_MSR_CSTAR] = MSR_CSTAR,
	[VMX_MSR_SFMASK] = MSR_SYSCALL_MASK,
};

u64 vmx_msr_bitmap __ro_after_init;
static void *msr_bitmap __ro_after_init;

/*
 * Allows reads of @msr, and also writes if @write. The bitmap has four parts of 1 KB: reads of
 * the lower MSRs, reads of the upper ones, then writes of each (SDM 25.6.9).
 */
static void msr_allow(u32 msr, bool write)
{
	u32 bit = msr & 0x1fff;

	if (msr >= 0xc0000000)
		bit += 1024 * BITS_PER_BYTE;
	__clear_bit(bit, msr_bitmap);
	if (write)
		__clear_bit(bit + 2048 * BITS_PER_BYTE, msr_bitmap);
}

/*
 * Allows the MSRs that the guest has for itself: it reads and writes those for which the VMCS has
 * a field. It only reads the system-call MSRs; a write is an exit (vmx_set_msr()), so that their
 * values are known here. Returns 0 or -ENOMEM.
 */
static int msr_bitmap_init(void)
{
	static const u32 in_vmcs[] = {
		MSR_FS_BASE, MSR_GS_BASE, MSR_KERNEL_GS_BASE,
		MSR_IA32_SYSENTER_CS, MSR_IA32_SYSENTER_ESP,
		MSR_IA32_SYSENTER_EIP,
	};
	int i;

	msr_bitmap = (void *)__get_free_page(GFP_KERNEL);
	if (!msr_bitmap)
		return -ENOMEM;
	vmx_msr_bitmap = __pa(msr_bitmap);
	memset(msr_bitmap, 0xff, PAGE_SIZE);
	for (i = 0; i < ARRAY_SIZE(in_vmcs); i++)
		msr_allow(in_vmcs[i], true);
	for (i = 0; i < VMX_MSRS; i++)
		msr_allow(vmx_msr_numbers[i], false);
	return 0;
}

/* Fills in vmx_controls[] and makes the MSR bitmap. May sleep. Returns 0, -ENODEV or -ENOMEM. */
int vmx_intercepts_init(void)
{
	int err = choose_controls();

	if (err)
		return err;
	return msr_bitmap_init();
}

/* Frees what vmx_intercepts_init() allocated, also if vmx_intercepts_init() failed. */
void vmx_intercepts_cleanup(void)
{
	free_page((unsigned long)msr_bitmap);
}

/* Implements @forbid of struct vcpu_ops. */
void vmx_forbid(struct dune_vcpu *vcpu, bool notsc, bool nocpuid)
{
	struct vcpu_hw *hw = vcpu->hw;

	hw->controls &= ~CPU_BASED_RDTSC_EXITING;
	if (notsc)
		hw->controls |= CPU_BASED_RDTSC_EXITING;
	hw->pending |= VMX_PENDING_CONTROLS;
	hw->no_cpuid = nocpuid;
}

/* The answers to exits for which the handler has no case. */
static const u8 answers[] = {
	/* Modes of the processor: fixed by the kernel. Includes LMSW, CLTS. */
	[EXIT_REASON_CR_ACCESS] = ANSWER_GP,
	[EXIT_REASON_XSETBV] = ANSWER_GP,
	[EXIT_REASON_DR_ACCESS] = ANSWER_GP,
	/* Devices and the machine; MSRs that are not the guest's. */
	[EXIT_REASON_IO_INSTRUCTION] = ANSWER_GP,
	[EXIT_REASON_MSR_READ] = ANSWER_GP,
	[EXIT_REASON_RDPMC] = ANSWER_GP,
	[EXIT_REASON_INVD] = ANSWER_GP,
	[EXIT_REASON_WBINVD] = ANSWER_GP,
	[EXIT_REASON_TASK_SWITCH] = ANSWER_GP,
	/* Forbidden to this thread by prctl(). */
	[EXIT_REASON_RDTSC] = ANSWER_GP,
	[EXIT_REASON_RDTSCP] = ANSWER_GP,
	[EXIT_REASON_UMWAIT] = ANSWER_GP,
	[EXIT_REASON_TPAUSE] = ANSWER_GP,
	/* They could stop the CPU for long, or need what a guest does not have. */
	[EXIT_REASON_MONITOR_INSTRUCTION] = ANSWER_UD,
	[EXIT_REASON_MWAIT_INSTRUCTION] = ANSWER_UD,
	[EXIT_REASON_RSM] = ANSWER_UD,
	[EXIT_REASON_GETSEC] = ANSWER_UD,
	[EXIT_REASON_ENCLS] = ANSWER_UD,
	[EXIT_REASON_ENQCMD] = ANSWER_UD,
	[EXIT_REASON_ENQCMDS] = ANSWER_UD,
	/* Virtualization itself, and the TLB tags of others. */
	/* VMCLEAR, VMLAUNCH, VMPTRLD, VMPTRST, VMREAD, VMRESUME, VMWRITE, VMXOFF, VMXON */
	[EXIT_REASON_VMCLEAR ... EXIT_REASON_VMON] = ANSWER_UD,
	[EXIT_REASON_INVEPT] = ANSWER_UD,
	[EXIT_REASON_INVVPID] = ANSWER_UD,
	[EXIT_REASON_VMFUNC] = ANSWER_UD,
};

/* Returns the answer to an exit, ANSWER_NONE also if it is not in the table. For any context. */
enum answer vmx_intercept_answer(u32 reason)
{
	if (reason >= ARRAY_SIZE(answers))
		return ANSWER_NONE;
	return answers[array_index_nospec(reason, ARRAY_SIZE(answers))];
}

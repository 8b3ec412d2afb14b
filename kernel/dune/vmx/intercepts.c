// SPDX-License-Identifier: GPL-2.0-only
/*
 * What VT-x is told to intercept and to allow, in one table with the reason,
 * and what a forbidden instruction raises, in another. The rule is that of
 * svm_intercepts.c: an instruction that the process could not execute as an
 * ordinary process raises the exception that it would raise there; what
 * belongs to the host alone ends the run. (SDM 25.6 to 25.8, 26.1; exit
 * reasons are in its appendix C.)
 *
 * Left for without any control: CPUID (carried out, vmx_exit.c), GETSEC, INVD,
 * XSETBV, every VT-x instruction, task switches and triple faults. MOV to CR0
 * and CR4 leaves where a bit would change: all bits are in the masks.
 *
 * Not intercepted, on purpose: RDTSC and RDTSCP are free in user mode (but for
 * a thread that has them forbidden); MOV CR2, MOV CR3, INVLPG, INVPCID, the
 * descriptor table and task register instructions, SWAPGS and IRET are what a
 * Dune process is for, and act on its own state; PAUSE and a guest that spins
 * are ended by the host's timer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/nospec.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "virt/compat.h"
#include "dune/vendor.h"
#include "dune/vmx/vmx.h"

enum word { PIN, CPU, CPU2, EXIT, ENTRY };

enum need {
	NEEDED,
	IF_THERE,	/* an instruction that this processor may not have */
	NEVER,		/* must be possible to turn off */
};

struct control {
	u32 bit;
	u8 word;
	u8 need;
	const char *name;
};

static const struct control table[] = {
	/* The host's own events: they end the guest, the host takes them. */
	{ PIN_BASED_EXT_INTR_MASK, PIN, NEEDED, "external-interrupt exiting" },
	{ PIN_BASED_NMI_EXITING, PIN, NEEDED, "NMI exiting" },
	/*
	 * Bochs masks the host's interrupts at an entry with RFLAGS.IF clear,
	 * until the guest changes IF: a loop that does not would never end.
	 */
	{ PIN_BASED_VMX_PREEMPTION_TIMER, PIN, IF_THERE, "preemption timer" },
	/* The way to the kernel, besides VMCALL. */
	{ CPU_BASED_HLT_EXITING, CPU, NEEDED, "HLT exiting" },
	/* The task priority, which means nothing here. */
	{ CPU_BASED_CR8_LOAD_EXITING, CPU, NEEDED, "CR8-load exiting" },
	{ CPU_BASED_CR8_STORE_EXITING, CPU, NEEDED, "CR8-store exiting" },
	/* Debug registers are not switched and are the host's. */
	{ CPU_BASED_MOV_DR_EXITING, CPU, NEEDED, "MOV-DR exiting" },
	/* Devices and the machine. The bitmap opens what is the guest's. */
	{ CPU_BASED_UNCOND_IO_EXITING, CPU, NEEDED, "I/O exiting" },
	{ CPU_BASED_USE_MSR_BITMAPS, CPU, NEEDED, "MSR bitmaps" },
	{ CPU_BASED_RDPMC_EXITING, CPU, NEEDED, "RDPMC exiting" },
	/* Caches are everybody's: writing them back costs all. */
	{ SECONDARY_EXEC_WBINVD_EXITING, CPU2, NEEDED, "WBINVD exiting" },
	/* They could stop the CPU for long. */
	{ CPU_BASED_MWAIT_EXITING, CPU, NEEDED, "MWAIT exiting" },
	{ CPU_BASED_MONITOR_EXITING, CPU, NEEDED, "MONITOR exiting" },
	/*
	 * An enclave's page is not the guest's to manage. (ENCLV is #UD as long
	 * as its control is 0.)
	 */
	{ SECONDARY_EXEC_ENCLS_EXITING, CPU2, IF_THERE, "ENCLS exiting" },
	/*
	 * ENQCMDS sends work to a device in the name of an address space of
	 * its choice: those it may choose from are none (vmx_state.c).
	 */
	{ VMX_PASID_TRANSLATION, CPU2, IF_THERE, "PASID translation" },
	/*
	 * A locked access that crosses cache lines, where #AC does not catch it
	 * (split_lock_detect=ratelimit:N): a trap, in every ring.
	 */
	{ SECONDARY_EXEC_BUS_LOCK_DETECTION, CPU2, IF_THERE,
	  "bus-lock detection" },
	/* The guest's own page table and its TLB. */
	{ CPU_BASED_CR3_LOAD_EXITING, CPU, NEVER, "CR3-load exiting" },
	{ CPU_BASED_CR3_STORE_EXITING, CPU, NEVER, "CR3-store exiting" },
	{ CPU_BASED_INVLPG_EXITING, CPU, NEVER, "INVLPG exiting" },
	{ SECONDARY_EXEC_ENABLE_INVPCID, CPU2, IF_THERE, "INVPCID" },
	/* Free in user mode; without these they would raise #UD. */
	{ SECONDARY_EXEC_ENABLE_RDTSCP, CPU2, IF_THERE, "RDTSCP" },
	{ SECONDARY_EXEC_ENABLE_USR_WAIT_PAUSE, CPU2, IF_THERE, "TPAUSE" },
	/* What it all stands on. */
	{ CPU_BASED_ACTIVATE_SECONDARY_CONTROLS, CPU, NEEDED,
	  "secondary controls" },
	{ SECONDARY_EXEC_ENABLE_EPT, CPU2, NEEDED, "EPT" },
	{ SECONDARY_EXEC_ENABLE_VPID, CPU2, NEEDED, "VPID" },
	{ VM_EXIT_HOST_ADDR_SPACE_SIZE, EXIT, NEEDED, "64-bit host" },
	{ VM_ENTRY_IA32E_MODE, ENTRY, NEEDED, "64-bit guest" },
	/* DR7 and DEBUGCTL of the host do not act in the guest. */
	{ VM_ENTRY_LOAD_DEBUG_CONTROLS, ENTRY, NEEDED, "debug controls" },
};

/* By word: the capability MSRs, and those of processors with a choice more. */
static const u32 capability_msrs[][2] = {
	[PIN] = { MSR_IA32_VMX_PINBASED_CTLS, MSR_IA32_VMX_TRUE_PINBASED_CTLS },
	[CPU] = { MSR_IA32_VMX_PROCBASED_CTLS,
		  MSR_IA32_VMX_TRUE_PROCBASED_CTLS },
	[CPU2] = { MSR_IA32_VMX_PROCBASED_CTLS2, MSR_IA32_VMX_PROCBASED_CTLS2 },
	[EXIT] = { MSR_IA32_VMX_EXIT_CTLS, MSR_IA32_VMX_TRUE_EXIT_CTLS },
	[ENTRY] = { MSR_IA32_VMX_ENTRY_CTLS, MSR_IA32_VMX_TRUE_ENTRY_CTLS },
};

/* A tick of the host's: what ends a guest anyway, so it costs nothing. */
#define TIMER_MS	4

struct vmx_controls vmx_controls;

/* In units of the timer, which are 2^n of the TSC's (SDM appendix A.6). */
static u32 timer_value(void)
{
	u64 misc;

	rdmsrq(MSR_IA32_VMX_MISC, misc);
	return (u64)tsc_khz * TIMER_MS >> (misc & 0x1f);
}

/* The low half of a capability: bits that must be 1; the high: may be 1. */
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
	if (control->need == IF_THERE)
		return 0;
	pr_err("this CPU's VT-x has no %s\n", control->name);
	return -ENODEV;
}

/* Fills in vmx_controls. Says in one line what is missing: -ENODEV. */
int vmx_controls_init(void)
{
	u64 basic, capabilities[ARRAY_SIZE(capability_msrs)];
	u32 words[ARRAY_SIZE(capability_msrs)];
	int i, err;

	rdmsrq(MSR_IA32_VMX_BASIC, basic);
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		/* The secondary controls' MSR may not be there. */
		if (rdmsrq_safe(capability_msrs[i][!!(basic & VMX_BASIC_TRUE_CTLS)],
				&capabilities[i]))
			capabilities[i] = 0;
		words[i] = capabilities[i];
	}
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		err = choose(&table[i], capabilities[table[i].word],
			     &words[table[i].word]);
		if (err)
			return err;
	}
	if (boot_cpu_has(X86_FEATURE_SGX) &&
	    !(words[CPU2] & SECONDARY_EXEC_ENCLS_EXITING)) {
		pr_err("this CPU's VT-x has SGX but no ENCLS exiting\n");
		return -ENODEV;
	}
	/* Not the kernel's flag: it is cleared where no IOMMU serves it. */
	if (cpuid_ecx(7) & BIT(29) && !(words[CPU2] & VMX_PASID_TRANSLATION)) {
		pr_err("this CPU has ENQCMDS but no PASID translation in VT-x\n");
		return -ENODEV;
	}
	vmx_controls = (struct vmx_controls){
		.pin = words[PIN],
		.cpu = words[CPU],
		.cpu2 = words[CPU2],
		.exit = words[EXIT],
		.entry = words[ENTRY],
		.timer = timer_value(),
	};
	return 0;
}

/* These have no name in the kernel's header. */
#define EXIT_REASON_GETSEC	11
#define EXIT_REASON_RSM		17
#define EXIT_REASON_ENQCMD	72
#define EXIT_REASON_ENQCMDS	73

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
	/* They could stop the CPU for long, or need what is not there. */
	[EXIT_REASON_MONITOR_INSTRUCTION] = ANSWER_UD,
	[EXIT_REASON_MWAIT_INSTRUCTION] = ANSWER_UD,
	[EXIT_REASON_RSM] = ANSWER_UD,
	[EXIT_REASON_GETSEC] = ANSWER_UD,
	[EXIT_REASON_ENCLS] = ANSWER_UD,
	[EXIT_REASON_ENQCMD] = ANSWER_UD,
	[EXIT_REASON_ENQCMDS] = ANSWER_UD,
	/* Virtualization itself, and the TLB tags of others. */
	[EXIT_REASON_VMCLEAR] = ANSWER_UD,
	[EXIT_REASON_VMLAUNCH] = ANSWER_UD,
	[EXIT_REASON_VMPTRLD] = ANSWER_UD,
	[EXIT_REASON_VMPTRST] = ANSWER_UD,
	[EXIT_REASON_VMREAD] = ANSWER_UD,
	[EXIT_REASON_VMRESUME] = ANSWER_UD,
	[EXIT_REASON_VMWRITE] = ANSWER_UD,
	[EXIT_REASON_VMOFF] = ANSWER_UD,
	[EXIT_REASON_VMON] = ANSWER_UD,
	[EXIT_REASON_INVEPT] = ANSWER_UD,
	[EXIT_REASON_INVVPID] = ANSWER_UD,
	[EXIT_REASON_VMFUNC] = ANSWER_UD,
};

/* 0 where the table has no such exit reason. */
enum answer vmx_answer(u32 reason)
{
	if (reason >= ARRAY_SIZE(answers))
		return 0;
	return answers[array_index_nospec(reason, ARRAY_SIZE(answers))];
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that SVM has to intercept, in one table with the reasons; dune/exit.h has the rule.
 * (APM 15.9 and 15.13; exit codes are in its appendix C.)
 */
#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/mem_encrypt.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>

#include "dune/svm/svm.h"

#define MSRPM_ORDER	1	/* 8 KB, APM 15.11 */
#define IOPM_ORDER	2	/* 12 KB, APM 15.10.1 */
#define INTERCEPT_BITS	(BITS_PER_BYTE * sizeof_field(struct vmcb_control_area, intercepts))

/*
 * Registers that the guest has for itself, switched by VMLOAD and VMSAVE: it
 * reads and writes them at will. All other MSRs belong to the host.
 */
static const u32 guest_msrs[] = {
	MSR_FS_BASE, MSR_GS_BASE, MSR_KERNEL_GS_BASE, MSR_STAR, MSR_LSTAR,
	MSR_CSTAR, MSR_SYSCALL_MASK, MSR_IA32_SYSENTER_CS,
	MSR_IA32_SYSENTER_ESP, MSR_IA32_SYSENTER_EIP,
};

enum when {
	ALWAYS,			/* also for rows without this member */
	UNDER_HYPERVISOR,	/* the host is itself a guest, perhaps of an emulator */
	TSC_FORBIDDEN,		/* to the thread, by prctl(PR_SET_TSC) */
	CPUID_FORBIDDEN,	/* to the thread, by arch_prctl(ARCH_SET_CPUID) */
};

struct intercept {
	u16 bit;	/* position in the VMCB's intercept words */
	u16 exit_code;
	u8 count;	/* of consecutive bits and exit codes */
	u8 answer;
	u8 when;
};

static const struct intercept intercepts[] = {
	/* The host's own events: they end the guest, the host takes them. */
	{ INTERCEPT_INTR, SVM_EXIT_INTR, 1, ANSWER_NONE },
	{ INTERCEPT_NMI, SVM_EXIT_NMI, 1, ANSWER_NONE },
	{ INTERCEPT_SMI, SVM_EXIT_SMI, 1, ANSWER_NONE },
	{ INTERCEPT_INIT, SVM_EXIT_INIT, 1, ANSWER_NONE },
	/* The host handles a machine check, but SVM does not keep it pending for the host. */
	{ INTERCEPT_EXCEPTION_OFFSET + X86_TRAP_MC,
	  SVM_EXIT_EXCP_BASE + X86_TRAP_MC, 1, ANSWER_NONE },
	/* Their delivery could be without end: dune/exit.h. */
	{ INTERCEPT_EXCEPTION_OFFSET + X86_TRAP_DB,
	  SVM_EXIT_EXCP_BASE + X86_TRAP_DB, 1, ANSWER_NONE },
	{ INTERCEPT_EXCEPTION_OFFSET + X86_TRAP_AC,
	  SVM_EXIT_EXCP_BASE + X86_TRAP_AC, 1, ANSWER_NONE },
	{ INTERCEPT_ICEBP, SVM_EXIT_ICEBP, 1, ANSWER_NONE },
	/* The way to the kernel. */
	{ INTERCEPT_VMMCALL, SVM_EXIT_VMMCALL, 1, ANSWER_NONE },
	{ INTERCEPT_HLT, SVM_EXIT_HLT, 1, ANSWER_NONE },
	/* The end of the vCPU. */
	{ INTERCEPT_SHUTDOWN, SVM_EXIT_SHUTDOWN, 1, ANSWER_NONE },
	/* Modes of the processor: fixed by the kernel. Includes LMSW, CLTS. */
	{ INTERCEPT_CR0_WRITE, SVM_EXIT_WRITE_CR0, 1, ANSWER_GP },
	{ INTERCEPT_CR4_WRITE, SVM_EXIT_WRITE_CR4, 1, ANSWER_GP },
	/*
	 * The task priority, which means nothing here; TCG stops the machine
	 * when it is written while an interrupt waits for the guest (docs/emulators.md).
	 */
	{ INTERCEPT_CR8_READ, SVM_EXIT_READ_CR8, 1, ANSWER_GP },
	{ INTERCEPT_CR8_WRITE, SVM_EXIT_WRITE_CR8, 1, ANSWER_GP },
	{ INTERCEPT_XSETBV, SVM_EXIT_XSETBV, 1, ANSWER_GP },
	/* Debug registers 0 to 3 are not switched: they hold the host's breakpoints. */
	{ INTERCEPT_DR0_READ, SVM_EXIT_READ_DR0, 16, ANSWER_GP },
	{ INTERCEPT_DR0_WRITE, SVM_EXIT_WRITE_DR0, 16, ANSWER_GP },
	/* Devices and the machine. */
	{ INTERCEPT_IOIO_PROT, SVM_EXIT_IOIO, 1, ANSWER_GP },
	{ INTERCEPT_MSR_PROT, SVM_EXIT_MSR, 1, ANSWER_GP },
	{ INTERCEPT_RDPMC, SVM_EXIT_RDPMC, 1, ANSWER_GP },
	/* Caches are shared: writing them back costs everybody, INVD loses data. */
	{ INTERCEPT_INVD, SVM_EXIT_INVD, 1, ANSWER_GP },
	{ INTERCEPT_WBINVD, SVM_EXIT_WBINVD, 1, ANSWER_GP },
	/* They could stop the CPU for long: the handler carries them out as no operation. */
	{ INTERCEPT_MONITOR, SVM_EXIT_MONITOR, 1, ANSWER_NONE },
	{ INTERCEPT_MWAIT, SVM_EXIT_MWAIT, 1, ANSWER_NONE },
	{ INTERCEPT_MWAIT_COND, SVM_EXIT_MWAIT_COND, 1, ANSWER_NONE },
	/* They need what a guest does not have. */
	{ INTERCEPT_RSM, SVM_EXIT_RSM, 1, ANSWER_UD },
	{ INTERCEPT_TASK_SWITCH, SVM_EXIT_TASK_SWITCH, 1, ANSWER_GP },
	{ INTERCEPT_FERR_FREEZE, SVM_EXIT_FERR_FREEZE, 1, ANSWER_NONE },
	/* Virtualization itself, the TLB tags of others, and MCOMMIT, which EFER turns off. */
	{ INTERCEPT_VMRUN, SVM_EXIT_VMRUN, 1, ANSWER_UD },
	{ INTERCEPT_VMLOAD, SVM_EXIT_VMLOAD, 1, ANSWER_UD },
	{ INTERCEPT_VMSAVE, SVM_EXIT_VMSAVE, 1, ANSWER_UD },
	{ INTERCEPT_STGI, SVM_EXIT_STGI, 1, ANSWER_UD },
	{ INTERCEPT_CLGI, SVM_EXIT_CLGI, 1, ANSWER_UD },
	{ INTERCEPT_SKINIT, SVM_EXIT_SKINIT, 1, ANSWER_UD },
	{ INTERCEPT_INVLPGA, SVM_EXIT_INVLPGA, 1, ANSWER_UD },
	{ INTERCEPT_INVLPGB, VMEXIT_INVLPGB, 1, ANSWER_UD },
	{ INTERCEPT_INVLPGB_ILLEGAL, VMEXIT_INVLPGB_ILLEGAL, 1, ANSWER_UD },
	{ INTERCEPT_MCOMMIT, VMEXIT_MCOMMIT, 1, ANSWER_UD },
	{ INTERCEPT_TLBSYNC, VMEXIT_TLBSYNC, 1, ANSWER_UD },
	/*
	 * LTR is allowed on hardware, which refuses a null selector. QEMU's TCG loads
	 * one, and stops the whole machine at the next exception (docs/emulators.md).
	 * There the guest keeps the TR that DUNE_SET_STATE gave it.
	 */
	{ INTERCEPT_LOAD_TR, SVM_EXIT_TR_WRITE, 1, ANSWER_GP, UNDER_HYPERVISOR },
	/* User mode may execute them, unless the thread has forbidden them to itself. */
	{ INTERCEPT_RDTSC, SVM_EXIT_RDTSC, 1, ANSWER_GP, TSC_FORBIDDEN },
	{ INTERCEPT_RDTSCP, SVM_EXIT_RDTSCP, 1, ANSWER_GP, TSC_FORBIDDEN },
	/* The same, but it raises #UD (APM vol. 3, RDPRU). */
	{ INTERCEPT_RDPRU, SVM_EXIT_RDPRU, 1, ANSWER_UD, TSC_FORBIDDEN },
	{ INTERCEPT_CPUID, SVM_EXIT_CPUID, 1, ANSWER_GP, CPUID_FORBIDDEN },
};

/* The intercept words of a new VMCB: all rows but those that depend on the thread. */
static DECLARE_BITMAP(new_intercepts, INTERCEPT_BITS) __ro_after_init;
static void *msrpm __ro_after_init;
static void *iopm __ro_after_init;

/*
 * Allows reads and writes of @msr. The map has two bits for each MSR, in ranges of 0x2000 MSRs,
 * 2 KB each (APM 15.11).
 */
static void msr_allow(u32 msr)
{
	u32 bit = 2 * (msr & 0x1fff);

	if (msr >= 0xc0000000)
		bit += 0x800 * BITS_PER_BYTE;
	__clear_bit(bit, msrpm);
	__clear_bit(bit + 1, msrpm);
}

/* Sets or clears the bits of the rows for @when, a set of enum when, in the intercept words. */
static void assign_intercepts(unsigned long *words, unsigned long when, bool on)
{
	int i, j;

	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		for (j = 0; when & BIT(intercepts[i].when) && j < intercepts[i].count; j++)
			__assign_bit(intercepts[i].bit + j, words, on);
}

/* Makes the intercept words and the permission maps. May sleep. Returns 0 or -ENOMEM. */
int svm_intercepts_init(void)
{
	unsigned long when = BIT(ALWAYS);
	int i;

	if (boot_cpu_has(X86_FEATURE_HYPERVISOR))
		when |= BIT(UNDER_HYPERVISOR);
	assign_intercepts(new_intercepts, when, true);
	msrpm = (void *)__get_free_pages(GFP_KERNEL, MSRPM_ORDER);
	iopm = (void *)__get_free_pages(GFP_KERNEL, IOPM_ORDER);
	if (!msrpm || !iopm)
		return -ENOMEM;
	memset(msrpm, 0xff, PAGE_SIZE << MSRPM_ORDER);
	memset(iopm, 0xff, PAGE_SIZE << IOPM_ORDER);
	for (i = 0; i < ARRAY_SIZE(guest_msrs); i++)
		msr_allow(guest_msrs[i]);
	return 0;
}

/* Frees what svm_intercepts_init() allocated, also if svm_intercepts_init() failed. */
void svm_intercepts_cleanup(void)
{
	free_pages((unsigned long)iopm, IOPM_ORDER);
	free_pages((unsigned long)msrpm, MSRPM_ORDER);
}

/* Sets the intercepts and the permission maps of a new VMCB. For any context. */
void svm_set_intercepts(struct vmcb_control_area *control)
{
	memcpy(control->intercepts, new_intercepts, sizeof(control->intercepts));
	control->iopm_base_pa = __sme_pa(iopm);
	control->msrpm_base_pa = __sme_pa(msrpm);
}

/* Implements @forbid of struct vcpu_ops. */
void svm_forbid(struct dune_vcpu *vcpu, bool notsc, bool nocpuid)
{
	struct vmcb_control_area *control = &vcpu->hw->vmcb->control;
	unsigned long *words = (unsigned long *)control->intercepts;

	assign_intercepts(words, BIT(TSC_FORBIDDEN), notsc);
	assign_intercepts(words, BIT(CPUID_FORBIDDEN), nocpuid);
	control->clean &= ~SVM_CLEAN_INTERCEPTS;
}

/* Returns the answer to an exit, ANSWER_NONE also if it is not in the table. For any context. */
enum answer svm_intercept_answer(u32 exit_code)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		if (exit_code - intercepts[i].exit_code < intercepts[i].count)
			return intercepts[i].answer;
	return ANSWER_NONE;
}

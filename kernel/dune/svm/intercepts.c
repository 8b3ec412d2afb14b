// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that SVM has to intercept, in one table with the reasons.
 * The rule: an instruction that the process could not execute as an ordinary
 * process raises the exception that it would raise there; an event that belongs to
 * the host alone ends the run. (APM 15.9 and 15.13; exit codes are
 * in its appendix C.)
 *
 * Not intercepted, on purpose: CPUID, RDTSC, RDTSCP and RDPRU are allowed in user
 * mode (all are intercepted for a thread that is forbidden to execute them, see
 * svm_filter()); MOV CR2, MOV CR3, INVLPG, INVPCID, the descriptor table and task
 * register instructions, SWAPGS and IRET are what a Dune process is for, and act on
 * its own state; PAUSE and a guest that spins are ended by the host's timer.
 */
#include <linux/gfp.h>
#include <asm/cpufeature.h>
#include <asm/mem_encrypt.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>

#include "dune/svm/svm.h"

#define MSRPM_ORDER	1	/* 8 KB, APM 15.11 */
#define IOPM_ORDER	2	/* 12 KB, APM 15.10.1 */

/*
 * Registers that the guest has for itself, switched by VMLOAD and VMSAVE: it
 * reads and writes them at will. All other MSRs belong to the host.
 */
static const u32 guest_msrs[] = {
	MSR_FS_BASE, MSR_GS_BASE, MSR_KERNEL_GS_BASE, MSR_STAR, MSR_LSTAR,
	MSR_CSTAR, MSR_SYSCALL_MASK, MSR_IA32_SYSENTER_CS,
	MSR_IA32_SYSENTER_ESP, MSR_IA32_SYSENTER_EIP,
};

struct intercept {
	u16 bit;	/* position in the VMCB's intercept words */
	u16 exit_code;
	u8 count;	/* of consecutive bits and exit codes */
	u8 answer;
};

static const struct intercept intercepts[] = {
	/* The host's own events: they end the guest, the host takes them. */
	{ INTERCEPT_INTR, SVM_EXIT_INTR, 1, ANSWER_EXIT },
	{ INTERCEPT_NMI, SVM_EXIT_NMI, 1, ANSWER_EXIT },
	{ INTERCEPT_SMI, SVM_EXIT_SMI, 1, ANSWER_EXIT },
	{ INTERCEPT_INIT, SVM_EXIT_INIT, 1, ANSWER_EXIT },
	/* The host handles a machine check, but SVM does not keep it pending for the host. */
	{ INTERCEPT_EXCEPTION_OFFSET + X86_TRAP_MC,
	  SVM_EXIT_EXCP_BASE + X86_TRAP_MC, 1, ANSWER_EXIT },
	/*
	 * Delivery of #DB and #AC can raise them again without end, inside one
	 * instruction that no interrupt ends (CVE-2015-5307, -8104). The handler
	 * injects them one at a time, so that each is an instruction boundary.
	 */
	{ INTERCEPT_EXCEPTION_OFFSET + X86_TRAP_DB,
	  SVM_EXIT_EXCP_BASE + X86_TRAP_DB, 1, ANSWER_EXIT },
	{ INTERCEPT_EXCEPTION_OFFSET + X86_TRAP_AC,
	  SVM_EXIT_EXCP_BASE + X86_TRAP_AC, 1, ANSWER_EXIT },
	{ INTERCEPT_ICEBP, SVM_EXIT_ICEBP, 1, ANSWER_EXIT },
	/* The way to the kernel. */
	{ INTERCEPT_VMMCALL, SVM_EXIT_VMMCALL, 1, ANSWER_EXIT },
	{ INTERCEPT_HLT, SVM_EXIT_HLT, 1, ANSWER_EXIT },
	/* The end of the vCPU. */
	{ INTERCEPT_SHUTDOWN, SVM_EXIT_SHUTDOWN, 1, ANSWER_EXIT },
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
	/* They could stop the CPU for long, or need what a guest does not have. */
	{ INTERCEPT_MONITOR, SVM_EXIT_MONITOR, 1, ANSWER_UD },
	{ INTERCEPT_MWAIT, SVM_EXIT_MWAIT, 1, ANSWER_UD },
	{ INTERCEPT_MWAIT_COND, SVM_EXIT_MWAIT_COND, 1, ANSWER_UD },
	{ INTERCEPT_RSM, SVM_EXIT_RSM, 1, ANSWER_UD },
	{ INTERCEPT_TASK_SWITCH, SVM_EXIT_TASK_SWITCH, 1, ANSWER_GP },
	{ INTERCEPT_FERR_FREEZE, SVM_EXIT_FERR_FREEZE, 1, ANSWER_EXIT },
	/* Virtualization itself, and the TLB tags of others. */
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
};

static void *msrpm __ro_after_init;
static void *iopm __ro_after_init;

/* Two bits an MSR, read and write; ranges of 0x2000 MSRs, 2 KB each (APM 15.11). */
static void msr_allow(u32 msr)
{
	u32 bit = 2 * (msr & 0x1fff);

	if (msr >= 0xc0000000)
		bit += 0x800 * BITS_PER_BYTE;
	__clear_bit(bit, msrpm);
	__clear_bit(bit + 1, msrpm);
}

/* Makes the permission maps. Returns 0 or -ENOMEM. */
int svm_intercepts_init(void)
{
	int i;

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

/* Sets the intercepts and the permission maps of a new VMCB. */
void svm_set_intercepts(struct vmcb_control_area *control)
{
	int i, j;

	control->iopm_base_pa = __sme_pa(iopm);
	control->msrpm_base_pa = __sme_pa(msrpm);
	/*
	 * LTR is allowed on hardware, which refuses a null selector. QEMU's TCG loads
	 * one, and stops the whole machine at the next exception (docs/emulators.md).
	 * There the guest keeps the TR that DUNE_SET_STATE gave it.
	 */
	if (boot_cpu_has(X86_FEATURE_HYPERVISOR))
		__set_bit(INTERCEPT_LOAD_TR,
			  (unsigned long *)control->intercepts);

	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		for (j = 0; j < intercepts[i].count; j++)
			__set_bit(intercepts[i].bit + j,
				  (unsigned long *)control->intercepts);
}

/* Returns ANSWER_NONE if the table has no such exit. */
enum answer svm_intercept_answer(u32 exit_code)
{
	int i;

	if (exit_code == SVM_EXIT_TR_WRITE)
		return ANSWER_GP;
	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		if (exit_code - intercepts[i].exit_code < intercepts[i].count)
			return intercepts[i].answer;
	return ANSWER_NONE;
}

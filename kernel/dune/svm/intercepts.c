// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that SVM is told to intercept, in one table with the reason.
 * The rule: an instruction that the process could not execute as an ordinary
 * process raises the exception that it would raise there; what belongs to
 * the host alone ends the run. (APM vol. 2, 15.9 and 15.13; exit codes are
 * in its appendix C.)
 *
 * Not intercepted, on purpose: CPUID, RDTSC, RDTSCP and RDPRU are free in
 * user mode (all are intercepted for a thread that has them forbidden,
 * see svm_filter()); MOV CR2, MOV CR3, INVLPG, INVPCID,
 * the descriptor table and task register instructions, SWAPGS and IRET are
 * what a Dune process is for, and act on its own state; PAUSE and a guest
 * that spins are ended by the host's timer.
 */
#include "dune/svm/svm.h"
#include "dune/vendor.h"

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
	/* A machine check is the host's, but SVM does not keep it pending. */
	{ INTERCEPT_EXCEPTION_OFFSET + 18, SVM_EXIT_EXCP_BASE + 18, 1,
	  ANSWER_EXIT },
	/*
	 * Their delivery can raise them again without end, inside one
	 * instruction that no interrupt ends (CVE-2015-5307, -8104). Passed
	 * on one at a time, each is an instruction boundary.
	 */
	{ INTERCEPT_EXCEPTION_OFFSET + 1, SVM_EXIT_EXCP_BASE + 1, 1,
	  ANSWER_EXIT },
	{ INTERCEPT_EXCEPTION_OFFSET + 17, SVM_EXIT_EXCP_BASE + 17, 1,
	  ANSWER_EXIT },
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
	 * when it is written while an interrupt waits for the guest.
	 */
	{ INTERCEPT_CR8_READ, SVM_EXIT_READ_CR8, 1, ANSWER_GP },
	{ INTERCEPT_CR8_WRITE, SVM_EXIT_WRITE_CR8, 1, ANSWER_GP },
	{ INTERCEPT_XSETBV, SVM_EXIT_XSETBV, 1, ANSWER_GP },
	/* Debug registers: 0 to 3 are not switched and are the host's. */
	{ INTERCEPT_DR0_READ, SVM_EXIT_READ_DR0, 16, ANSWER_GP },
	{ INTERCEPT_DR0_WRITE, SVM_EXIT_WRITE_DR0, 16, ANSWER_GP },
	/* Devices and the machine. */
	{ INTERCEPT_IOIO_PROT, SVM_EXIT_IOIO, 1, ANSWER_GP },
	{ INTERCEPT_MSR_PROT, SVM_EXIT_MSR, 1, ANSWER_GP },
	{ INTERCEPT_RDPMC, SVM_EXIT_RDPMC, 1, ANSWER_GP },
	/* Caches are everybody's: writing them back costs all, INVD loses data. */
	{ INTERCEPT_INVD, SVM_EXIT_INVD, 1, ANSWER_GP },
	{ INTERCEPT_WBINVD, SVM_EXIT_WBINVD, 1, ANSWER_GP },
	/* They could stop the CPU for long, or need what is not there. */
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
	{ INTERCEPT_INVLPGB, 0xa0, 1, ANSWER_UD },
	{ INTERCEPT_INVLPGB_ILLEGAL, 0xa1, 1, ANSWER_UD },
	{ INTERCEPT_MCOMMIT, 0xa3, 1, ANSWER_UD },
	{ INTERCEPT_TLBSYNC, 0xa4, 1, ANSWER_UD },
};

/*
 * LTR is free on hardware, which refuses a null selector. QEMU's TCG loads
 * it and gives up, with the whole machine, at the next exception: there TR is
 * what DUNE_SET_STATE made it.
 */
#define EXIT_TR_WRITE	0x6d

void svm_intercepts_init(struct vmcb_control_area *control)
{
	int i, j;

	if (boot_cpu_has(X86_FEATURE_HYPERVISOR))
		__set_bit(INTERCEPT_LOAD_TR,
			  (unsigned long *)control->intercepts);

	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		for (j = 0; j < intercepts[i].count; j++)
			__set_bit(intercepts[i].bit + j,
				  (unsigned long *)control->intercepts);
}

/* 0 where the table has no such exit code. */
enum answer svm_intercept_answer(u32 exit_code)
{
	int i;

	if (exit_code == EXIT_TR_WRITE)
		return ANSWER_GP;
	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		if (exit_code - intercepts[i].exit_code < intercepts[i].count)
			return intercepts[i].answer;
	return 0;
}

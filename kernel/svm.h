/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the SVM files share: svm.c (machine, VMCB, state), svm_exit.c (why
 * the guest was left), svm_intercepts.c (what it may not do) and
 * svm_switch.S (the world switch).
 */
#ifndef DUNE_SVM_H
#define DUNE_SVM_H

#include <asm/svm.h>

#include "dune.h"

/**
 * struct vcpu_hw - the SVM part of a vCPU
 * @vmcb:	one page; the processor's own between VMRUN and #VMEXIT
 * @vmcb_pa:	its physical address
 * @host_pa:	where this CPU keeps what VMLOAD must restore for the host
 * @asid_generation: generation of the CPU's counter that the ASID is from
 */
struct vcpu_hw {
	struct vmcb *vmcb;
	u64 vmcb_pa;
	u64 host_pa;
	u64 asid_generation;
};

enum svm_answer {
	SVM_ANSWER_GP = 1,	/* #GP(0) */
	SVM_ANSWER_UD,		/* #UD */
	SVM_ANSWER_EXIT,	/* svm_exit.c has a case of its own */
};

extern bool svm_has_nrips;

/* svm.c */
void svm_fix_state(struct vmcb_save_area *save);

/* svm_intercepts.c */
void svm_intercepts_init(struct vmcb_control_area *control);
enum svm_answer svm_intercept_answer(u32 exit_code);

/* svm_switch.S */
void svm_switch(u64 vmcb_pa, struct dune_regs *regs, u64 host_pa);
void svm_fill_return_buffer(void);

#endif /* DUNE_SVM_H */

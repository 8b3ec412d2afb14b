// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the handlers of exits do to the guest.
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>
#include <uapi/asm/debugreg.h>
#include <uapi/asm/processor-flags.h>

#include "guard/hv/hv.h"
#include "x86/svm/vmcb.h"

/* A double fault is the guard's own (hv_panic()): the guest's exception is not raised for it. */
void hv_inject(struct hv_cpu *cpu, unsigned int vector, bool has_error)
{
	struct vmcb_control_area *control = &hv_vmcb(cpu)->control;

	if (hv_panics(control))
		return;
	control->event_inj = vector | SVM_EVTINJ_TYPE_EXEPT | SVM_EVTINJ_VALID;
	if (has_error)
		control->event_inj |= SVM_EVTINJ_VALID_ERR;
	control->event_inj_err = 0;
}

/* Whether TF traps at branches only (APM 13.1.1): no instruction that the guard executes is one. */
static bool traps_branches(void)
{
	u64 debugctl;

	return hv_rdmsr(MSR_IA32_DEBUGCTLMSR, &debugctl) && debugctl & DEBUGCTLMSR_BTF;
}

/*
 * The guest's instruction is executed, and ends before @rip. RF holds breakpoints back for that
 * instruction only, and a single step of the guest's own ends (APM 13.1.3, 13.1.4).
 */
void hv_skip_to(struct hv_cpu *cpu, u64 rip)
{
	struct vmcb *vmcb = hv_vmcb(cpu);

	vmcb->save.rip = rip;
	vmcb->control.int_state = 0;
	vmcb->save.rflags &= ~X86_EFLAGS_RF;
	if (vmcb->save.rflags & X86_EFLAGS_TF && !traps_branches()) {
		vmcb->save.dr6 |= DR_STEP;
		vmcb->control.clean = 0;
		hv_inject(cpu, X86_TRAP_DB, false);
	}
}

/* The same for an instruction of @length bytes and prefixes. Newer processors report its end. */
void hv_skip(struct hv_cpu *cpu, unsigned int length)
{
	struct vmcb *vmcb = hv_vmcb(cpu);

	hv_skip_to(cpu, vmcb->control.next_rip ?: vmcb->save.rip + hv_prefixes(cpu) + length);
}

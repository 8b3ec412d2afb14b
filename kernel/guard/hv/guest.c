// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the handlers of exits do to the guest.
 */
#include <linux/types.h>
#include <asm/svm.h>

#include "guard/hv/hv.h"

void hv_inject(struct hv_cpu *cpu, unsigned int vector, bool has_error)
{
	struct vmcb_control_area *control = &hv_vmcb(cpu)->control;

	control->event_inj = vector | SVM_EVTINJ_TYPE_EXEPT | SVM_EVTINJ_VALID;
	if (has_error)
		control->event_inj |= SVM_EVTINJ_VALID_ERR;
	control->event_inj_err = 0;
}

/* The guest continues at @rip: the instruction is executed. */
void hv_skip_to(struct hv_cpu *cpu, u64 rip)
{
	struct vmcb *vmcb = hv_vmcb(cpu);

	vmcb->save.rip = rip;
	vmcb->control.int_state = 0;
}

/* The same, after an instruction of @length bytes; newer processors report its end. */
void hv_skip(struct hv_cpu *cpu, unsigned int length)
{
	struct vmcb *vmcb = hv_vmcb(cpu);

	hv_skip_to(cpu, vmcb->control.next_rip ?: vmcb->save.rip + length);
}

/*
 * The computer is about to be reset or switched off, and its memory may keep its contents. What
 * must not be found there then has to be cleared, and caches written back, which a reset may drop.
 * No memory of the guard's has such contents: what it has can be known from outside.
 */
void hv_before_reset(void)
{
	asm volatile("wbinvd" : : : "memory");
}

/* Resets the computer, as the shutdown that a triple fault causes does (APM 15.14.3). */
void hv_reset(void)
{
	hv_before_reset();
	hv_fatal();
}

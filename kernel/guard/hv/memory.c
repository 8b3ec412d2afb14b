// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guard's memory as the guest sees it. Until the seal it is memory like any other. From then
 * on each of its pages reads as zeros, and what is written there is dropped. The private frames of
 * guarded modules (views.h) are hidden in the same way, before the seal, too.
 *
 * The nested page directory has an entry for each 2 MB of the block. The seal lets all of them
 * lead to one table whose 512 entries are read-only and lead to one page of zeros. A write faults,
 * and the CPU then executes the guest's instruction alone, with another nested page table, whose
 * entries lead to the sink, a page that nobody needs: decoding the instruction is thus left to the
 * processor. What such an instruction writes besides, to other pages that are hidden or to a
 * module's text, does not fault any more: the step's page table tells of it afterwards.
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>
#include <uapi/asm/debugreg.h>
#include <uapi/asm/processor-flags.h>

#include "guard/hv/lock.h"
#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

/* What ends a step, besides exceptions. */
#define STEP_INTERCEPTS	(BIT(INTERCEPT_INTR % 32) | BIT(INTERCEPT_NMI % 32) | \
			 BIT(INTERCEPT_INTn % 32))

/* Of the page directory's entries. */
static u8 lock;

/* The next VMRUN of this CPU drops all translations that it has (APM 15.16). */
static void flush(struct hv_cpu *cpu)
{
	hv_vmcb(cpu)->control.tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
}

/*
 * HV_CALL_SEAL: called on every CPU. A CPU that has not called yet may still use translations to
 * the guard's memory; Linux reports the seal when all have.
 */
void hv_memory_hide(struct hv_cpu *cpu)
{
	u64 i;

	hv_lock(&lock);
	if (!hv_sealed) {
		for (i = 0; i < hv_config.memory_size / HV_LARGE_PAGE; i++)
			__atomic_store_n(&hv_config.memory_pdes[i], hv_config.zero_table,
					 __ATOMIC_RELEASE);
		__atomic_store_n(&hv_sealed, true, __ATOMIC_RELEASE);
	}
	hv_unlock(&lock);
	flush(cpu);
}

/* The contents of the sink: what the guest reads there before it writes. */
static void fill_sink(u64 word)
{
	int i;

	for (i = 0; i < HV_ENTRIES; i++)
		__atomic_store_n(&hv_config.sink[i], word, __ATOMIC_RELAXED);
}

/*
 * The step ends with the instruction, by #DB, or with whatever keeps the instruction from ending:
 * all exceptions exit, and so do NMIs, interrupts (if it sets IF) and INT n (which clears TF).
 */
static void step_begin(struct hv_cpu *cpu, u64 address)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u64 debugctl;

	cpu->steps = true;
	cpu->written = address;
	cpu->guarded = NULL;
	cpu->step_flags = vmcb->save.rflags & (X86_EFLAGS_TF | X86_EFLAGS_IF);
	vmcb->control.nested_cr3 = hv_config.step_cr3;
	/* No interrupt comes between the entry and the instruction; #DB comes after it. */
	vmcb->save.rflags = (vmcb->save.rflags | X86_EFLAGS_TF) & ~X86_EFLAGS_IF;
	vmcb->control.intercepts[INTERCEPT_EXCEPTION] = ~0u;
	vmcb->control.intercepts[INTERCEPT_WORD3] |= STEP_INTERCEPTS;
	cpu->step_branches = hv_rdmsr(MSR_IA32_DEBUGCTLMSR, &debugctl) &&
			     debugctl & DEBUGCTLMSR_BTF;
	if (cpu->step_branches)
		hv_wrmsr(MSR_IA32_DEBUGCTLMSR, debugctl & ~(u64)DEBUGCTLMSR_BTF);
	vmcb->control.clean = 0;
	flush(cpu);
}

/*
 * What the step has written to the sink, but for the page whose fault has begun it. It may be what
 * another CPU's step has written, which is then logged here.
 */
static void log_written(struct hv_cpu *cpu)
{
	u64 page;

	hv_lock(&hv_views_lock);
	while ((page = hv_nested_take_written()))
		if (page != (cpu->written & HV_ADDRESS))
			hv_log(cpu, HV_LOG_WRITE, page);
	hv_unlock(&hv_views_lock);
}

static void step_end(struct hv_cpu *cpu)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u64 debugctl;

	fill_sink(0);
	cpu->steps = false;
	log_written(cpu);
	hv_patch_written(cpu);
	vmcb->control.nested_cr3 = cpu->lowered ? cpu->lowered->lowered_view :
						  hv_config.nested_cr3;
	vmcb->save.rflags &= ~(X86_EFLAGS_TF | X86_EFLAGS_IF);
	vmcb->save.rflags |= cpu->step_flags;
	vmcb->control.intercepts[INTERCEPT_EXCEPTION] = 0;
	vmcb->control.intercepts[INTERCEPT_WORD3] &= ~STEP_INTERCEPTS;
	if (cpu->step_branches && hv_rdmsr(MSR_IA32_DEBUGCTLMSR, &debugctl))
		hv_wrmsr(MSR_IA32_DEBUGCTLMSR, debugctl | DEBUGCTLMSR_BTF);
	vmcb->control.clean = 0;
	flush(cpu);
}

/*
 * The CPU has left the guest for @code before the stepped instruction was done. The step ends, and
 * the guest continues as if there had been none: it gets the exception that the instruction has
 * raised. INT3, INTO, and an instruction before which an interrupt or NMI has come, are executed
 * again; the interrupt or NMI is still pending.
 */
void hv_memory_step_failed(struct hv_cpu *cpu, u32 code)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u32 vector = code - SVM_EXIT_EXCP_BASE;

	step_end(cpu);
	if (vector >= HV_VECTORS || vector == X86_TRAP_BP || vector == X86_TRAP_OF)
		return;
	if (vector == X86_TRAP_PF)
		vmcb->save.cr2 = vmcb->control.exit_info_2;
	hv_inject(cpu, vector, HV_HAVE_ERROR & BIT(vector));
	if (!hv_panics(&vmcb->control))
		vmcb->control.event_inj_err = vmcb->control.exit_info_1;
}

/* The instruction is done: #DB after a single step (APM 13.1.4), which step_begin() asks for. */
void hv_memory_stepped(struct hv_cpu *cpu)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u64 guests = vmcb->save.dr6 & DR_TRAP_BITS;

	cpu->counts[HV_COUNT_STEP]++;
	if (!cpu->steps)
		hv_reset();
	if (cpu->step_flags & X86_EFLAGS_TF)
		guests |= DR_STEP;
	else
		vmcb->save.dr6 &= ~(u64)DR_STEP;
	step_end(cpu);
	/* A step or a breakpoint of the guest's own occurs as well. */
	if (guests)
		hv_inject(cpu, X86_TRAP_DB, false);
}

/*
 * A nested page fault. EXITINFO2 is the address (APM 15.25.6). The delivery of an event that faults
 * means that the guest has its stack or its tables in the guard's memory: it can only fail.
 */
void hv_memory_fault(struct hv_cpu *cpu)
{
	struct vmcb_control_area *control = &hv_vmcb(cpu)->control;
	u64 address = control->exit_info_2;
	bool is_write = control->exit_info_1 & SVM_NPF_WRITE &&
			!(control->exit_info_1 & SVM_NPF_TABLE);

	cpu->counts[HV_COUNT_MEMORY]++;
	if (control->exit_int_info & SVM_EXITINTINFO_VALID)
		hv_reset();
	if (is_write && hv_patch_owner(address)) {
		step_begin(cpu, address);
		return;
	}
	if (is_write && (hv_is_guards(address) || hv_nested_drops_writes(address))) {
		hv_log(cpu, HV_LOG_WRITE, address);
		hv_lock(&hv_views_lock);
		if (hv_privilege_taken(HV_PRIVILEGE_MMIO, address, 1, NULL))
			fill_sink(~0ULL);
		hv_unlock(&hv_views_lock);
		step_begin(cpu, address);
		return;
	}
	/* Another CPU has given the page back to the kernel since this one has faulted. */
	if (is_write && !cpu->lowered && (hv_nested_look(address) & HV_NPT_WRITE) == HV_NPT_WRITE) {
		control->tlb_ctl = hv_config.flush_tag;
		return;
	}
	hv_log(cpu, HV_LOG_NO_MEMORY, address);
	hv_inject(cpu, X86_TRAP_GP, true);
}

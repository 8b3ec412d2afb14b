// SPDX-License-Identifier: GPL-2.0-only
/*
 * ASIDs, the tags of the TLB (APM vol. 2, 15.16). Each CPU hands out its own;
 * a vCPU takes a fresh one where it comes to another CPU.
 */
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>

#include "svm.h"

/**
 * struct asid_counter - a CPU's; touched on that CPU, interrupts off
 * @generation:	a vCPU with an older one takes a new ASID
 * @next:	the next one of this generation
 */
struct asid_counter {
	u64 generation;
	u32 next;
};

static DEFINE_PER_CPU(struct asid_counter, asid_counter);
static u32 first_asid;
static u32 nr_asids;

void svm_asid_init(void)
{
	nr_asids = cpuid_ebx(0x8000000a);
	/* 0 is the host's; encrypted guests own the next ones, APM 15.34.3. */
	first_asid = 1;
	if (boot_cpu_has(X86_FEATURE_SEV))
		first_asid += cpuid_ecx(0x8000001f);
}

/* The first ASID taken then starts a generation and flushes all. */
void svm_asid_cpu_on(void)
{
	this_cpu_inc(asid_counter.generation);
	this_cpu_write(asid_counter.next, nr_asids);
}

/*
 * A fresh ASID has no entries in the TLB. When a CPU has used up all of
 * them it starts a new generation and flushes every tag once.
 */
static void take_asid(struct vcpu_hw *hw)
{
	struct asid_counter *counter = this_cpu_ptr(&asid_counter);
	struct vmcb_control_area *control = &hw->vmcb->control;

	if (counter->next >= nr_asids) {
		counter->generation++;
		counter->next = first_asid;
		control->tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
	}
	control->asid = counter->next++;
	/* Also after this CPU was off: it caches nothing of the VMCB then. */
	control->clean = 0;
	hw->asid_generation = counter->generation;
}

/*
 * A generation ends only while another thread runs on the CPU, or the CPU is
 * off, so it is enough to look after a context switch whether the ASID is
 * still this vCPU's.
 */
void svm_asid_moved(struct vcpu_hw *hw, bool migrated)
{
	hw->shares_asid = false;
	if (migrated ||
	    hw->asid_generation != this_cpu_read(asid_counter.generation))
		take_asid(hw);
}

/* Without a command for one ASID all of them are flushed. */
u8 svm_asid_flush_command(void)
{
	return boot_cpu_has(X86_FEATURE_FLUSHBYASID) ?
	       TLB_CONTROL_FLUSH_ASID : TLB_CONTROL_FLUSH_ALL_ASID;
}

/*
 * Beside KVM all ASIDs are KVM's, which counts up from the lowest and flushes
 * only when it begins again: all vCPUs of ours use the highest. Whatever it
 * holds is flushed now, and what we leave is flushed by svm_put().
 */
void svm_asid_share(struct vcpu_hw *hw)
{
	struct vmcb_control_area *control = &hw->vmcb->control;

	control->asid = nr_asids - 1;
	control->tlb_ctl = svm_asid_flush_command();
	/* KVM may have turned virtualization off and on since. */
	control->clean = 0;
	hw->asid_generation = 0;
	hw->shares_asid = true;
}

void svm_asid_flush(struct vcpu_hw *hw)
{
	if (boot_cpu_has(X86_FEATURE_FLUSHBYASID) || hw->shares_asid)
		hw->vmcb->control.tlb_ctl = svm_asid_flush_command();
	else
		take_asid(hw);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * ASIDs, the tags of the TLB (APM vol. 2, 15.16). Each CPU hands out its own;
 * a vCPU takes a fresh one where it comes to another CPU.
 */
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>

#include "dune/svm/svm.h"

/**
 * struct asid_counter - a CPU's; touched on that CPU, interrupts off
 * @generation:	a vCPU with an older one takes a new ASID
 * @next:	the next one of this generation
 * @must_flush:	no VMRUN has flushed all tags since this generation began, or
 *		since a VMRUN was refused
 */
struct asid_counter {
	u64 generation;
	u32 next;
	bool must_flush;
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

/* The one that vCPUs share with KVM. */
u32 svm_asid_shared(void)
{
	return nr_asids - 1;
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
		counter->must_flush = true;
	}
	control->asid = counter->next++;
	/* Also after this CPU was off: it caches nothing of the VMCB then. */
	control->clean = 0;
	hw->asid_generation = counter->generation;
}

/*
 * The VMRUN that follows without fail, on this CPU, flushes every tag. If it is
 * refused, svm_asid_refused() asks again. Not inline: the tests count calls.
 */
static noinline void flush_all_asids(struct vcpu_hw *hw)
{
	this_cpu_write(asid_counter.must_flush, false);
	hw->vmcb->control.tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
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
	if (this_cpu_read(asid_counter.must_flush))
		flush_all_asids(hw);
}

/*
 * TLB_CONTROL acts only after the consistency checks (APM 15.5.1), so a VMRUN
 * that was refused has flushed nothing. It ends the run, and the next run on
 * this CPU, of whichever vCPU, begins with svm_asid_moved().
 */
void svm_asid_refused(void)
{
	this_cpu_write(asid_counter.must_flush, true);
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

	control->asid = svm_asid_shared();
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
	if (!hw->shares_asid && this_cpu_read(asid_counter.must_flush))
		flush_all_asids(hw);
}

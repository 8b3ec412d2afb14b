// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launch and stop on each CPU. They are callbacks of CPU hotplug: so they run on the CPU itself,
 * one CPU after the other, also when a CPU comes and goes, and the kernel undoes a launch that
 * fails half way on the CPUs that had it.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>
#include <asm/msr-index.h>
#include <asm/msr.h>
#include <asm/processor-flags.h>

#include "guard/linux/guard.h"
#include "x86/msr.h"
#include "x86/svm/vmcb.h"

static int fail_on_cpu = -1;
module_param(fail_on_cpu, int, 0600);
MODULE_PARM_DESC(fail_on_cpu, "For tests: the processor refuses the launch on this CPU");

/* APM 15.30.1. */
#define VM_CR_DIS_A20M	BIT(2)

/* What the image does not need in CR4; without PGE its address space has no global pages. */
#define CR4_NOT_FOR_IMAGE	(X86_CR4_PGE | X86_CR4_PCIDE | X86_CR4_CET)

/* Changes only on the CPU itself, with interrupts off. */
static DEFINE_PER_CPU(bool, launched);
/* These change while the guard is off on all CPUs, under the lock in state.c. */
static const struct guard_memory *memory;
static enum cpuhp_state hotplug_state;
/* Set once, in guard_cpus_seal(), while no CPU comes or goes. */
static bool sealed;

/* Returns the image's answer, or -EIO if this CPU has no guard: #UD leaves RAX as it is. */
static s64 call(u64 number, u64 *b, u64 *c, u64 *d, u64 *si)
{
	s64 result;

	asm volatile("1: vmmcall\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : "=a" (result), "+b" (*b), "+c" (*c), "=d" (*d), "=S" (*si)
		     : "a" (HV_CALL + number) : "memory");
	return result > 0 ? -EIO : result;
}

/* In the block, as Linux sees it. */
static struct vmcb *cpu_vmcb(unsigned int cpu)
{
	return memory->block + memory->cpus + cpu * HV_CPU_SIZE;
}

static void svm_on(u64 save_area)
{
	u64 vm_cr = msr_read(MSR_VM_CR) | VM_CR_DIS_A20M;

	/*
	 * With A20 masked the image would find other memory at its addresses (APM 15.30.1). The bit
	 * stays after a stop, since Linux never masks A20. A hypervisor beneath may refuse it.
	 */
	wrmsr_safe(MSR_VM_CR, (u32)vm_cr, vm_cr >> 32);
	msr_write(MSR_EFER, msr_read(MSR_EFER) | EFER_SVME);
	msr_write(MSR_VM_HSAVE_PA, save_area);
}

static void svm_off(u64 efer)
{
	msr_write(MSR_VM_HSAVE_PA, 0);
	msr_write(MSR_EFER, efer & ~EFER_SVME);
}

/* Returns the CPU's SPEC_CTRL if the guest has its own, else 0. The host's is 0 under the guard. */
static u64 spec_ctrl(void)
{
	return guard_has_v_spec_ctrl() ? msr_read(MSR_IA32_SPEC_CTRL) : 0;
}

static void set_spec_ctrl(u64 value)
{
	if (guard_has_v_spec_ctrl())
		msr_write(MSR_IA32_SPEC_CTRL, value);
}

static int launch(unsigned int cpu)
{
	u64 predictions = spec_ctrl();
	u64 offset = memory->cpus + cpu * HV_CPU_SIZE;
	struct hv_cpu *hv_cpu = memory->block + offset + HV_CPU_SIZE - sizeof(*hv_cpu);
	struct vmcb *vmcb = cpu_vmcb(cpu);
	u64 cr4 = native_read_cr4() & ~CR4_NOT_FOR_IMAGE;
	long err;

	if (msr_read(MSR_EFER) & EFER_SVME)
		return -EBUSY;
	memset(hv_cpu, 0, sizeof(*hv_cpu));
	hv_cpu->vmcb_pa = memory->physical + offset;
	svm_on(hv_cpu->vmcb_pa + PAGE_SIZE);
	guard_vmcb_fill(vmcb, memory);
	if (cpu == fail_on_cpu)
		vmcb->control.asid = 0;		/* VMRUN refuses it (APM 15.5.1). */
	set_spec_ctrl(0);
	err = guard_switch_launch(&vmcb->save, memory->cr3, hv_cpu, cr4,
				  memory->block + memory->header.entry);
	if (err) {
		svm_off(msr_read(MSR_EFER));
		set_spec_ctrl(predictions);
	} else {
		__this_cpu_write(launched, true);
	}
	return err;
}

static int on_line(unsigned int cpu)
{
	unsigned long flags;
	int err = -EPERM;

	if (sealed) {
		pr_err("CPU %u cannot come on line: the guard is sealed\n", cpu);
		return err;
	}
	local_irq_save(flags);
	err = launch(cpu);
	local_irq_restore(flags);
	if (err)
		pr_err("CPU %u cannot run under the guard: %s (%d)\n", cpu,
		       err == -EBUSY ? "SVM is in use there" : "the processor refuses its state",
		       err);
	return err;
}

/*
 * Leaves the CPU launched if the image refuses. EFER and PAT of the guest are in the VMCB; what the
 * processor has of them afterwards is from the time of the launch. A positive answer is that of a
 * CPU without a guard.
 */
static void stop(void)
{
	u64 predictions = spec_ctrl(), efer = msr_read(MSR_EFER), pat = msr_read(MSR_IA32_CR_PAT);

	if (guard_switch_stop() < 0)
		return;
	__this_cpu_write(launched, false);
	svm_off(efer);
	msr_write(MSR_IA32_CR_PAT, pat);
	set_spec_ctrl(predictions);
}

static int off_line(unsigned int cpu)
{
	unsigned long flags;

	if (sealed) {
		pr_err("CPU %u cannot go off line: the guard is sealed\n", cpu);
		return -EBUSY;
	}
	local_irq_save(flags);
	if (__this_cpu_read(launched))
		stop();
	local_irq_restore(flags);
	return 0;
}

/*
 * Launches the guard on all CPUs; @new is loaded. Returns 0, or a negative errno with the reason in
 * @answer, and then the guard runs on no CPU.
 */
int guard_cpus_launch(const struct guard_memory *new, struct dune_guard_answer *answer)
{
	int ret;

	memory = new;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "dune/guard:online", on_line, off_line);
	if (ret < 0)
		return guard_refuse(answer, ret,
				    "a CPU cannot run under the guard, so no CPU does: dmesg names it");
	hotplug_state = ret;
	return 0;
}

/*
 * The opposite of guard_cpus_launch(); the guard is not sealed. If code in the kernel has sealed it
 * by a VMMCALL of its own, CPUs stay launched.
 */
void guard_cpus_stop(void)
{
	cpuhp_remove_state(hotplug_state);
}

struct question {
	u64 number;
	atomic_t refusals;
};

static void ask_cpu(void *data)
{
	struct question *question = data;
	u64 b = 0, c = 0, d, si;

	if (call(question->number, &b, &c, &d, &si))
		atomic_inc(&question->refusals);
}

/* Makes a VMMCALL on all CPUs that are on line. Returns how many of them refuse. */
static unsigned int ask_cpus(u64 number)
{
	struct question question = { .number = number };

	on_each_cpu(ask_cpu, &question, 1);
	return atomic_read(&question.refusals);
}

/*
 * A sealed guard needs all CPUs: one that comes on line later runs without it at first, and one
 * that Linux does not have can be started by any code in ring 0.
 */
int guard_cpus_can_seal(struct dune_guard_answer *answer)
{
	unsigned int online = num_online_cpus();
	int missing = guard_processors_missing();

	if (online != num_present_cpus() || guard_cpus_launched() != online)
		return guard_refuse(answer, -EBUSY,
				    "only %u of %u CPUs are on line: a sealed guard needs all of them",
				    online, num_present_cpus());
	if (ask_cpus(HV_CALL_NOTHING))
		return guard_refuse(answer, -EIO,
				    "a CPU has left the guard: stop it and launch it again");
	if (missing < 0)
		return guard_refuse(answer, -EOPNOTSUPP,
				    "the firmware has no table of the processors (ACPI's MADT): boot without acpi=off");
	if (missing)
		return guard_refuse(answer, -EBUSY,
				    "%d processors of the firmware's table are not Linux's, and would have no guard: boot without nr_cpus, maxcpus and nosmp",
				    missing);
	if (guard_ports_lack_sleep())
		return guard_refuse(answer, -EOPNOTSUPP,
				    "the firmware's sleep register (in ACPI's FADT) is no port: the guard could not hold sleep back");
	return 0;
}

/*
 * Returns 0, or a negative errno with the reason in @answer; guard_cpus_sealed() then tells whether
 * the guard is sealed nevertheless.
 */
int guard_cpus_seal(struct dune_guard_answer *answer)
{
	int err;

	cpus_read_lock();
	err = guard_cpus_can_seal(answer);
	if (!err) {
		sealed = true;
		if (ask_cpus(HV_CALL_SEAL))
			err = guard_refuse(answer, -EIO,
					   "a CPU has left the guard, and the others are sealed: reboot");
	}
	cpus_read_unlock();
	return err;
}

bool guard_cpus_sealed(void)
{
	return sealed;
}

unsigned int guard_cpus_launched(void)
{
	unsigned int cpu, count = 0;

	for_each_possible_cpu(cpu)
		count += per_cpu(launched, cpu);
	return count;
}

void guard_cpus_count(u64 counts[HV_COUNTS])
{
	unsigned int cpu, which;
	u64 b, c, d, si;

	for_each_possible_cpu(cpu) {
		for (which = 0; which < HV_COUNTS; which++) {
			b = cpu;
			c = which;
			if (!call(HV_CALL_COUNT, &b, &c, &d, &si))
				counts[which] += b;
		}
	}
}

/* 0: this CPU has no guard. */
unsigned int guard_cpus_pages_left(void)
{
	u64 pages = 0, c = 0, d, si;

	return call(HV_CALL_LEFT, &pages, &c, &d, &si) ? 0 : pages;
}

/* Returns 0, or -ENOENT if there is no entry from entry->index on. */
int guard_cpus_log(struct dune_guard_entry *entry)
{
	u64 index = entry->index, time = 0, cpu_and_kind, value;
	s64 err = call(HV_CALL_LOG, &index, &time, &cpu_and_kind, &value);

	if (err)
		return err;
	entry->index = index;
	entry->time = time;
	entry->cpu = cpu_and_kind;
	entry->kind = cpu_and_kind >> 32 & 0xffffff;
	entry->value = value;
	entry->choice = cpu_and_kind >> 56;
	entry->reserved = 0;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launch and stop on each CPU. They are callbacks of CPU hotplug: so they run on the CPU itself,
 * one CPU after the other, also when a CPU comes and goes, and the kernel undoes a launch that
 * fails half way on the CPUs that had it.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <asm/cpufeature.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>
#include <asm/svm.h>

#include "guard/linux/guard.h"
#include "x86/msr.h"

static int fail_on_cpu = -1;
module_param(fail_on_cpu, int, 0600);
MODULE_PARM_DESC(fail_on_cpu, "For tests: the processor refuses the launch on this CPU");

/* What the image does not need in CR4; without PGE its address space has no global pages. */
#define CR4_NOT_FOR_IMAGE	(X86_CR4_PGE | X86_CR4_PCIDE | BIT(23) /* CET */)

/* Changes only on the CPU itself, with interrupts off. */
static DEFINE_PER_CPU(bool, launched);
/* These change while the guard is off on all CPUs, under the lock in state.c. */
static const struct guard_memory *memory;
static enum cpuhp_state hotplug_state;
/* Set once, in guard_cpus_seal(), while no CPU comes or goes. */
static bool sealed;

static s64 call(u64 number, u64 *b, u64 *c, u64 *d, u64 *si)
{
	s64 result;

	asm volatile("vmmcall"
		     : "=a" (result), "+b" (*b), "+c" (*c), "=d" (*d), "=S" (*si)
		     : "a" (HV_CALL + number) : "memory");
	return result;
}

/* In the block, as Linux sees it. */
static struct vmcb *cpu_vmcb(unsigned int cpu)
{
	return memory->block + memory->cpus + cpu * HV_CPU_SIZE;
}

static void svm_off(void)
{
	msr_write(MSR_VM_HSAVE_PA, 0);
	msr_write(MSR_EFER, msr_read(MSR_EFER) & ~EFER_SVME);
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
	msr_write(MSR_EFER, msr_read(MSR_EFER) | EFER_SVME);
	msr_write(MSR_VM_HSAVE_PA, hv_cpu->vmcb_pa + PAGE_SIZE);
	guard_vmcb_fill(vmcb, memory);
	if (cpu == fail_on_cpu)
		vmcb->control.asid = 0;		/* VMRUN refuses it (APM 15.5.1). */
	set_spec_ctrl(0);
	err = guard_switch_launch(&vmcb->save, memory->cr3, hv_cpu, cr4,
				  memory->block + memory->header.entry);
	if (err) {
		svm_off();
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

static void stop(void)
{
	u64 predictions = spec_ctrl();

	if (guard_switch_stop())
		return;
	__this_cpu_write(launched, false);
	svm_off();
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

/* The opposite of guard_cpus_launch(). The guard is not sealed. */
void guard_cpus_stop(void)
{
	cpuhp_remove_state(hotplug_state);
}

static void seal_cpu(void *unused)
{
	u64 b = 0, c = 0, d, si;

	call(HV_CALL_SEAL, &b, &c, &d, &si);
}

/*
 * A sealed guard needs all CPUs: one that comes on line later runs without it at first, and one that
 * Linux does not have can be started by any code in ring 0.
 */
int guard_cpus_can_seal(struct dune_guard_answer *answer)
{
	unsigned int online = num_online_cpus();
	int missing = guard_processors_missing();

	if (online != num_present_cpus() || guard_cpus_launched() != online)
		return guard_refuse(answer, -EBUSY,
				    "only %u of %u CPUs are on line: a sealed guard needs all of them",
				    online, num_present_cpus());
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

int guard_cpus_seal(struct dune_guard_answer *answer)
{
	int err;

	cpus_read_lock();
	err = guard_cpus_can_seal(answer);
	if (!err) {
		sealed = true;
		on_each_cpu(seal_cpu, NULL, 1);
	}
	cpus_read_unlock();
	return err;
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
	entry->kind = cpu_and_kind >> 32;
	entry->value = value;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Whether this computer can have a guard now, and if not, why: one line with the remedy. */
#include <linux/cc_platform.h>
#include <linux/moduleparam.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/hypervisor.h>
#include <asm/msr-index.h>
#include <asm/processor.h>

#include "guard/linux/compat.h"
#include "guard/linux/guard.h"
#include "x86/compat.h"
#include "x86/msr.h"

#define CPUID_FEATURES	0x80000001
#define FEATURE_SVM	BIT(2)		/* in ECX */
#define FEATURE_NPT	BIT(0)		/* in EDX of CPUID_SVM */

static bool allow_unlocked_smm;
module_param(allow_unlocked_smm, bool, 0644);
MODULE_PARM_DESC(allow_unlocked_smm,
		 "Launch although the firmware has not locked SMM, by which ring 0 could leave the guard");

/* Sets *@used to a CPU that has SVM on. */
static void look_for_svm(void *used)
{
	if (msr_read(MSR_EFER) & EFER_SVME)
		WRITE_ONCE(*(int *)used, smp_processor_id());
}

static int lacks(struct dune_guard_answer *answer, const char *feature, bool emulated)
{
	return emulated ?
		guard_refuse(answer, -ENODEV,
			     "the hypervisor beneath this kernel offers no %s: enable it there",
			     feature) :
		guard_refuse(answer, -ENODEV, "this CPU has no %s", feature);
}

/* The kernel's own flags are not used: since 6.6 it clears them if the firmware disables SVM. */
static int check_processor(struct dune_guard_answer *answer)
{
	bool emulated = boot_cpu_has(X86_FEATURE_HYPERVISOR);

	if (boot_cpu_data.extended_cpuid_level < CPUID_SVM ||
	    !(cpuid_ecx(CPUID_FEATURES) & FEATURE_SVM))
		return lacks(answer, "AMD SVM", emulated);
	if (msr_read(MSR_VM_CR) & BIT(SVM_VM_CR_SVM_DISABLE))
		return guard_refuse(answer, -EOPNOTSUPP,
				    "SVM is disabled by the firmware: enable it in the setup (SVM mode)");
	if (!(cpuid_edx(CPUID_SVM) & FEATURE_NPT))
		return lacks(answer, "nested paging (NPT)", emulated);
	if (!emulated && !allow_unlocked_smm && !(msr_read(MSR_K7_HWCR) & MSR_K7_HWCR_SMMLOCK))
		return guard_refuse(answer, -EOPNOTSUPP,
				    "the firmware has not locked SMM: set the parameter allow_unlocked_smm=1 to launch anyway");
	return 0;
}

static int check_kernel(struct dune_guard_answer *answer)
{
	/*
	 * The guard would get the VMMCALLs of such a kernel, and it gives none to the hypervisor
	 * beneath; nor may registers that name memory to that hypervisor be written once sealed.
	 */
	if (!hypervisor_is_type(X86_HYPER_NATIVE))
		return guard_refuse(answer, -EOPNOTSUPP,
				    "the kernel makes calls to the hypervisor beneath it: boot with nopv");
	if (boot_cpu_has(X86_FEATURE_LA57) && native_read_cr4() & X86_CR4_LA57)
		return guard_refuse(answer, -EOPNOTSUPP,
				    "the kernel uses page tables of five levels: boot with no5lvl");
	if (cc_platform_has(CC_ATTR_MEM_ENCRYPT))
		return guard_refuse(answer, -EOPNOTSUPP,
				    "the kernel encrypts its memory: boot with mem_encrypt=off");
	return 0;
}

/* Returns 0, or a negative errno with the reason in @answer. The guard is off. */
int guard_check(struct dune_guard_answer *answer)
{
	int err, used = -1;

	err = check_processor(answer);
	if (!err)
		err = check_kernel(answer);
	if (err)
		return err;
	on_each_cpu(look_for_svm, &used, 1);
	if (used >= 0)
		return guard_refuse(answer, -EBUSY,
				    "SVM is in use on CPU %d: unload KVM (kvm_amd) and Dune (dune)",
				    used);
	return 0;
}

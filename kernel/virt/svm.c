// SPDX-License-Identifier: GPL-2.0-only
/*
 * AMD SVM on the CPUs: checks that the firmware allows it, turns it on and off, and
 * allocates what each CPU needs for it. APM is the AMD64 Architecture
 * Programmer's Manual, vol. 2. Guests are in dune/svm/.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/mem_encrypt.h>
#include <asm/msr.h>
#include <asm/processor.h>

#include "virt/compat.h"
#include "virt/internal.h"
#include "virt/svm.h"
#include "virt/tag.h"
#include "x86/msr.h"
#include "x86/svm/instructions.h"

/* The page in which VMRUN saves the host (VM_HSAVE_PA). */
static DEFINE_PER_CPU(void *, hsave);

/*
 * The CPU's speculation was reduced here (svm_virt_reduce_speculation()), not by KVM. Used only
 * on that CPU, with interrupts off.
 */
static DEFINE_PER_CPU(bool, reduced);

static int svm_virt_probe(void)
{
	u64 vm_cr;

	rdmsrq(MSR_VM_CR, vm_cr);
	if (vm_cr & BIT(SVM_VM_CR_SVM_DISABLE)) {
		pr_err("SVM is disabled by the firmware: enable it in the setup (SVM mode)\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

/*
 * The page is never the first one of 2 MB: on hosts of SEV-SNP guests some processors treat such a
 * page as part of a 2 MB page that belongs to an encrypted guest, and raise #PF (KVM:
 * snp_safe_alloc_page()). The second of two consecutive pages is never the first of 2 MB.
 */
void *svm_virt_alloc_page(gfp_t gfp)
{
	struct page *page = alloc_page(gfp | __GFP_ZERO);

	if (!page)
		return NULL;
	if (likely(!IS_ALIGNED(page_to_pfn(page), PTRS_PER_PMD)))
		return page_address(page);
	__free_page(page);
	page = alloc_pages(gfp | __GFP_ZERO, 1);
	if (!page)
		return NULL;
	split_page(page, 1);
	__free_page(page);
	return page_address(page + 1);
}

int svm_virt_alloc_cpu_pages(void *__percpu *pages)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		void *page = svm_virt_alloc_page(GFP_KERNEL);

		if (!page)
			return -ENOMEM;
		*per_cpu_ptr(pages, cpu) = page;
	}
	return 0;
}

void svm_virt_free_cpu_pages(void *__percpu *pages)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		free_page((unsigned long)*per_cpu_ptr(pages, cpu));
		*per_cpu_ptr(pages, cpu) = NULL;
	}
}

static int svm_virt_init(void)
{
	/* The host uses 0, and encrypted guests use the next ones (APM 15.34.3). */
	u32 first_asid = 1;

	if (boot_cpu_has(X86_FEATURE_SEV))
		first_asid += cpuid_ecx(CPUID_SEV);
	tags_init(first_asid, cpuid_ebx(CPUID_SVM));
	return svm_virt_alloc_cpu_pages(&hsave);
}

static void svm_virt_cleanup(void)
{
	svm_virt_free_cpu_pages(&hsave);
}

u64 svm_virt_hsave(void)
{
	lockdep_assert_irqs_disabled();
	return __sme_pa(this_cpu_read(hsave));
}

/*
 * Sets BP_CFG[BpSpecReduce], which keeps a guest's predictions from the host on Zen 5 (SRSO;
 * Linux: admin-guide/hw-vuln/srso.rst). Interrupts are off.
 *
 * KVM uses the bit too: it sets the bit with its first VM, and clears it on all CPUs
 * with its last, even if a guest here still needs it. So the layer above calls
 * svm_virt_reduce_speculation() again whenever KVM may have cleared the bit, and virt/ clears
 * it only while KVM is not loaded.
 */
void svm_virt_set_reduced_speculation(void)
{
	u64 value;

	lockdep_assert_irqs_disabled();
	rdmsrq(MSR_ZEN4_BP_CFG, value);
	if (value & BIT_ULL(MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT))
		return;
	wrmsrq(MSR_ZEN4_BP_CFG, value | BIT_ULL(MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT));
	this_cpu_write(reduced, true);
}

static void clear_reduced_speculation(void)
{
	u64 value;

	if (!this_cpu_read(reduced))
		return;
	this_cpu_write(reduced, false);
	rdmsrq(MSR_ZEN4_BP_CFG, value);
	wrmsrq(MSR_ZEN4_BP_CFG, value & ~BIT_ULL(MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT));
}

static int svm_virt_cpu_turn_on(void)
{
	u64 efer;

	rdmsrq(MSR_EFER, efer);
	if (efer & EFER_SVME)
		return -EBUSY;
	wrmsrq(MSR_EFER, efer | EFER_SVME);
	wrmsrq(MSR_VM_HSAVE_PA, svm_virt_hsave());
	return 0;
}

static void svm_virt_cpu_turn_off(void)
{
	u64 efer;

	/* In a crash GIF may be clear; a reset needs it set (APM 15.17). */
	stgi();
	wrmsrq(MSR_VM_HSAVE_PA, 0);
	rdmsrq(MSR_EFER, efer);
	wrmsrq(MSR_EFER, efer & ~EFER_SVME);
	clear_reduced_speculation();
}

/* Clears VM_HSAVE_PA if it leads to this CPU's page, which may be freed next. */
static void svm_virt_cpu_clear(void)
{
	u64 efer = msr_read(MSR_EFER);

	if (efer & EFER_SVME || msr_read(MSR_VM_HSAVE_PA) != svm_virt_hsave())
		return;
	msr_write(MSR_VM_HSAVE_PA, 0);
}

const struct virt_ops svm_virt_ops = {
	.vendor = VIRT_SVM,
	.probe = svm_virt_probe,
	.init = svm_virt_init,
	.cleanup = svm_virt_cleanup,
	.cpu_turn_on = svm_virt_cpu_turn_on,
	.cpu_turn_off = svm_virt_cpu_turn_off,
	.cpu_emergency = svm_virt_cpu_turn_off,
	.cpu_clear = svm_virt_cpu_clear,
};

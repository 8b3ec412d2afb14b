// SPDX-License-Identifier: GPL-2.0-only
/*
 * AMD SVM: what the machine must have, what all vCPUs share, a CPU's part.
 * References are to the AMD64 Architecture Programmer's Manual, volume 2
 * (APM). A vCPU's hardware part is in svm_vcpu.c, its TLB tag in svm_asid.c,
 * exits in svm_exit.c, the world switch in svm_switch.S.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/fpu/xcr.h>
#include <asm/mem_encrypt.h>
#include <asm/msr.h>
#include <asm/processor.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/guest_state.h"
#include "dune/svm/svm.h"
#include "dune/vendor.h"

#define MSRPM_ORDER	1	/* 8 KB, APM 15.11 */
#define IOPM_ORDER	2	/* 12 KB, APM 15.10.1 */

/*
 * Registers that the guest has for itself, switched by VMLOAD and VMSAVE: it
 * reads and writes them at will. All others are the host's.
 */
static const u32 guest_msrs[] = {
	MSR_FS_BASE, MSR_GS_BASE, MSR_KERNEL_GS_BASE, MSR_STAR, MSR_LSTAR,
	MSR_CSTAR, MSR_SYSCALL_MASK, MSR_IA32_SYSENTER_CS,
	MSR_IA32_SYSENTER_ESP, MSR_IA32_SYSENTER_EIP,
};

/**
 * struct svm_cpu - a CPU's part
 * @hsave:	where VMRUN saves the host (VM_HSAVE_PA)
 * @host:	where VMSAVE saves what VMRUN does not
 * @reduced:	we have reduced its speculation, svm_reduce_speculation()
 */
struct svm_cpu {
	void *hsave;
	void *host;
	bool reduced;
};

static DEFINE_PER_CPU(struct svm_cpu, svm_cpu);

bool svm_has_nrips;
DEFINE_STATIC_KEY_FALSE(svm_check_xcr0);
u64 svm_host_xcr0;
DEFINE_STATIC_KEY_FALSE(svm_hides_xss);
u64 svm_host_xss;
static void *msrpm;
static void *iopm;

static int svm_probe(void)
{
	u64 vm_cr;

	rdmsrq(MSR_VM_CR, vm_cr);
	if (vm_cr & BIT(SVM_VM_CR_SVM_DISABLE)) {
		pr_err("SVM is disabled by the firmware: enable it in the setup (SVM mode)\n");
		return -EOPNOTSUPP;
	}
	if (!boot_cpu_has(X86_FEATURE_NPT)) {
		pr_err("this CPU has no nested paging (NPT)\n");
		return -ENODEV;
	}
	/*
	 * A guest that changes the size of a page without a flush would end in
	 * a machine check of the whole machine. KVM sets DC_CFG against it and
	 * tells such a machine check from others; these processors are of 2007.
	 */
	if (boot_cpu_has_bug(X86_BUG_AMD_TLB_MMATCH)) {
		pr_err("this CPU has erratum 383 (AMD family 10h): a guest could stop the machine\n");
		return -ENODEV;
	}
	return 0;
}

/* Two bits an MSR, read and write; three ranges of 0x2000 MSRs, APM 15.11. */
static void msr_allow(u32 msr)
{
	u32 bit = 2 * (msr & 0x1fff);

	if (msr >= 0xc0000000)
		bit += 0x800 * 8;
	__clear_bit(bit, msrpm);
	__clear_bit(bit + 1, msrpm);
}

/**
 * svm_alloc_page() - a zeroed page for VMRUN, VMLOAD and VMSAVE
 *
 * Never the first of 2 MB: on hosts of SEV-SNP guests some processors take it
 * for a large page of others and raise #PF (KVM: snp_safe_alloc_page()). The
 * second of two that follow each other never is.
 *
 * Context: process, may sleep.
 * Return: for free_page(); NULL without memory.
 */
void *svm_alloc_page(gfp_t gfp)
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

static void free_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct svm_cpu *sc = &per_cpu(svm_cpu, cpu);

		free_page((unsigned long)sc->hsave);
		free_page((unsigned long)sc->host);
		sc->hsave = NULL;
		sc->host = NULL;
	}
}

static int alloc_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct svm_cpu *sc = &per_cpu(svm_cpu, cpu);

		sc->hsave = svm_alloc_page(GFP_KERNEL);
		sc->host = svm_alloc_page(GFP_KERNEL);
		if (!sc->hsave || !sc->host)
			return -ENOMEM;
	}
	return 0;
}

static void svm_exit(void)
{
	svm_kvm_exit();
	free_cpus();
	free_pages((unsigned long)iopm, IOPM_ORDER);
	free_pages((unsigned long)msrpm, MSRPM_ORDER);
}

static int svm_init(void)
{
	int i;

	svm_has_nrips = boot_cpu_has(X86_FEATURE_NRIPS);
	svm_asid_init();
	if (boot_cpu_has(X86_FEATURE_OSXSAVE))
		svm_host_xcr0 = xgetbv(XCR_XFEATURE_ENABLED_MASK);
	if (svm_host_xcr0 && boot_cpu_has(X86_FEATURE_HYPERVISOR))
		static_branch_enable(&svm_check_xcr0);
	/* The same on all CPUs, and constant (fpu__init_cpu_xstate()). */
	if (boot_cpu_has(X86_FEATURE_XSAVES))
		rdmsrq(MSR_IA32_XSS, svm_host_xss);
	if (svm_host_xss)
		static_branch_enable(&svm_hides_xss);
	msrpm = (void *)__get_free_pages(GFP_KERNEL, MSRPM_ORDER);
	iopm = (void *)__get_free_pages(GFP_KERNEL, IOPM_ORDER);
	if (!msrpm || !iopm || alloc_cpus()) {
		svm_exit();
		return -ENOMEM;
	}
	memset(msrpm, 0xff, PAGE_SIZE << MSRPM_ORDER);
	memset(iopm, 0xff, PAGE_SIZE << IOPM_ORDER);
	for (i = 0; i < ARRAY_SIZE(guest_msrs); i++)
		msr_allow(guest_msrs[i]);
	if (svm_kvm_init()) {
		svm_exit();
		return -ENOMEM;
	}
	return 0;
}

static void svm_info(struct dune_info *info)
{
	info->vendor = DUNE_VENDOR_SVM;
	/*
	 * With fewer than 47, a guest that uses higher addresses of the process
	 * faults or is refused. Its page tables must not lead there.
	 */
	info->address_bits = min(guest_address_bits(), 47U);
	info->guest_cr0 = DUNE_GUEST_CR0;
	info->guest_cr4 = guest_cr4(false);
	info->guest_efer = SVM_GUEST_EFER;
	if (info->guest_cr4 & X86_CR4_PCIDE)
		info->features |= DUNE_FEATURE_PCID;
	info->xcr0 = svm_host_xcr0;
}

/*
 * Interrupts off. The bit is KVM's too: it sets it with its first machine, and
 * clears it on all CPUs with its last, whoever else needs it. So ours is
 * looked for where KVM may have done that (switch_beside_kvm()), and cleared
 * only where no KVM is.
 */
void svm_set_reduced_speculation(void)
{
	u64 value;

	rdmsrq(MSR_ZEN4_BP_CFG, value);
	if (value & BIT_ULL(MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT))
		return;
	wrmsrq(MSR_ZEN4_BP_CFG,
	       value | BIT_ULL(MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT));
	this_cpu_write(svm_cpu.reduced, true);
}

static void clear_reduced_speculation(void)
{
	u64 value;

	if (!this_cpu_read(svm_cpu.reduced))
		return;
	this_cpu_write(svm_cpu.reduced, false);
	rdmsrq(MSR_ZEN4_BP_CFG, value);
	wrmsrq(MSR_ZEN4_BP_CFG,
	       value & ~BIT_ULL(MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT));
}

static int svm_cpu_enable(void)
{
	u64 efer;

	rdmsrq(MSR_EFER, efer);
	if (efer & EFER_SVME)
		return -EBUSY;
	wrmsrq(MSR_EFER, efer | EFER_SVME);
	wrmsrq(MSR_VM_HSAVE_PA, svm_hsave());
	svm_asid_cpu_on();
	return 0;
}

static void svm_cpu_disable(void)
{
	u64 efer;

	/* In a crash it may be clear; a reset needs it (APM 15.17). */
	asm volatile("stgi");
	wrmsrq(MSR_VM_HSAVE_PA, 0);
	rdmsrq(MSR_EFER, efer);
	wrmsrq(MSR_EFER, efer & ~EFER_SVME);
	clear_reduced_speculation();
}

void svm_permissions(struct vmcb_control_area *control)
{
	control->iopm_base_pa = __sme_pa(iopm);
	control->msrpm_base_pa = __sme_pa(msrpm);
}

/* Of this CPU; interrupts off. */
u64 svm_hsave(void)
{
	return __sme_pa(this_cpu_read(svm_cpu.hsave));
}

/*
 * Interrupts off: saves what VMLOAD restores after each exit, and returns its
 * physical address. All of it stays valid until the next context switch, except
 * for LDTR: when another thread calls modify_ldt(), an interrupt reloads LDTR
 * here and the old table is freed. So the saved LDTR is made null, and enter()
 * reloads LDTR from the GDT, which always has the current table.
 */
u64 svm_save_host(void)
{
	struct vmcb *host = this_cpu_read(svm_cpu.host);
	u64 pa = __sme_pa(host);

	asm volatile("vmsave %0" : : "a" (pa) : "memory");
	memset(&host->save.ldtr, 0, sizeof(host->save.ldtr));
	return pa;
}

const struct vendor svm_vendor = {
	.shares = true,
	.probe = svm_probe,
	.init = svm_init,
	.exit = svm_exit,
	.info = svm_info,
	.cpu_enable = svm_cpu_enable,
	.cpu_disable = svm_cpu_disable,
	.cpu_emergency = svm_cpu_disable,
	.cpu_forget = svm_kvm_forget,
	.create = svm_create,
	.destroy = svm_destroy,
	.set_root = svm_set_root,
	.get_state = svm_get_state,
	.set_state = svm_set_state,
	.filter = svm_filter,
	.load = svm_load,
	.store = svm_store,
	.moved = svm_moved,
	.put = svm_put,
	.enter = svm_enter,
	.handle_exit = svm_handle_exit,
};

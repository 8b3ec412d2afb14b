// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VMCB with which a CPU continues Linux exactly where it is. VMRUN and #VMEXIT switch only what
 * is set here; all else (FS, GS, TR, LDTR, the MSRs of system calls, DR0 to DR3, the FPU) stays in
 * the processor, where the guard does not touch it. APM is the AMD64 Architecture Programmer's
 * Manual, vol. 2.
 */
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/desc.h>
#include <asm/msr-index.h>
#include <asm/page.h>
#include <asm/processor-flags.h>

#include "guard/linux/compat.h"
#include "guard/linux/guard.h"
#include "x86/msr.h"
#include "x86/svm/vmcb.h"

/* The ASID of the only guest; the host has 0 (APM 15.16). */
#define GUEST_ASID	1

/* In EDX of CPUID_SVM. */
#define CPUID_V_SPEC_CTRL	BIT(20)
#define CPUID_INVLPGB_ENABLE	BIT(24)

/* switch.S has these. */
static_assert(offsetof(struct vmcb_save_area, rflags) == 0x170);
static_assert(offsetof(struct vmcb_save_area, rip) == 0x178);
static_assert(offsetof(struct vmcb_save_area, rsp) == 0x1d8);

#define REGISTER(register) ({						\
	u64 value;							\
									\
	asm volatile("mov %%" #register ", %0" : "=r" (value));		\
	value;								\
})

/*
 * Whether the guest has a SPEC_CTRL of its own, in the VMCB, to which the processor adds the host's
 * bits. Others leave the register alone.
 */
bool guard_has_v_spec_ctrl(void)
{
	return cpuid_edx(CPUID_SVM) & CPUID_V_SPEC_CTRL;
}

/* A segment register as it is: CS, DS, ES or SS, whose bases do not count in 64-bit mode. */
static void fill_segment(struct vmcb_seg *segment, u16 selector)
{
	u32 rights, limit;
	bool valid;

	segment->selector = selector;
	asm volatile("lar %[selector], %[rights]"
		     : [rights] "=r" (rights), "=@ccz" (valid) : [selector] "r" ((u32)selector));
	if (!valid)
		return;		/* null: no rights */
	asm volatile("lsl %[selector], %[limit]"
		     : [limit] "=r" (limit) : [selector] "r" ((u32)selector) : "cc");
	/* The VMCB has bits 47:40 and 55:52 of a descriptor in one row (APM 15.5.1). */
	segment->attrib = (rights >> 8 & 0xff) | (rights >> 12 & 0xf00);
	segment->limit = limit;
}

static void fill_save(struct vmcb_save_area *save)
{
	struct desc_ptr table;

	fill_segment(&save->cs, REGISTER(cs));
	fill_segment(&save->ss, REGISTER(ss));
	fill_segment(&save->ds, REGISTER(ds));
	fill_segment(&save->es, REGISTER(es));
	native_store_gdt(&table);
	save->gdtr.base = table.address;
	save->gdtr.limit = table.size;
	store_idt(&table);
	save->idtr.base = table.address;
	save->idtr.limit = table.size;
	save->efer = msr_read(MSR_EFER);
	save->cr0 = REGISTER(cr0);
	save->cr2 = REGISTER(cr2);
	save->cr3 = REGISTER(cr3);
	save->cr4 = REGISTER(cr4);
	save->dr6 = REGISTER(dr6);
	save->dr7 = REGISTER(dr7);
	save->g_pat = msr_read(MSR_IA32_CR_PAT);
	/* Linux uses shadow stacks in user mode only, so SSP is 0 (APM 18.12). */
	if (save->cr4 & X86_CR4_CET) {
		save->s_cet = msr_read(MSR_IA32_S_CET);
		save->isst_addr = msr_read(MSR_IA32_INT_SSP_TAB);
	}
	if (guard_has_v_spec_ctrl())
		save->spec_ctrl = msr_read(MSR_IA32_SPEC_CTRL);
}

static void intercept(struct vmcb_control_area *control, unsigned int bit)
{
	control->intercepts[bit / 32] |= BIT(bit % 32);
}

/*
 * Only what the guard needs is intercepted: with interrupts, NMIs, exceptions and the control
 * registers Linux has the processor for itself. No port exits at first (hv/io.c).
 */
static void fill_control(struct vmcb_control_area *control, const struct guard_memory *memory)
{
	static const u8 intercepts[] = {
		INTERCEPT_VMRUN, INTERCEPT_VMMCALL, INTERCEPT_VMLOAD, INTERCEPT_VMSAVE,
		INTERCEPT_STGI, INTERCEPT_CLGI, INTERCEPT_SKINIT, INTERCEPT_INVLPGA,
		INTERCEPT_MSR_PROT, INTERCEPT_IOIO_PROT, INTERCEPT_INVD, INTERCEPT_SHUTDOWN,
		INTERCEPT_INIT,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(intercepts); i++)
		intercept(control, intercepts[i]);
	control->msrpm_base_pa = memory->msrpm;
	control->iopm_base_pa = memory->iopm;
	control->asid = GUEST_ASID;
	control->misc_ctl = SVM_MISC_ENABLE_NP;
	/*
	 * Else INVLPGB and TLBSYNC raise #UD in a guest. The processor puts the guest's ASID in
	 * the place of the one that INVLPGB names (APM vol. 3, INVLPGB), and all CPUs have the
	 * same one.
	 */
	if (cpuid_edx(CPUID_SVM) & CPUID_INVLPGB_ENABLE)
		control->misc_ctl |= HV_INVLPGB_ENABLE;
	control->nested_cr3 = memory->nested_cr3;
}

void guard_vmcb_fill(struct vmcb *vmcb, const struct guard_memory *memory)
{
	memset(vmcb, 0, sizeof(*vmcb));
	fill_control(&vmcb->control, memory);
	fill_save(&vmcb->save);
}

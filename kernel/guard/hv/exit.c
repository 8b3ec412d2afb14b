// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a CPU enters the guard, and what the guard does when the CPU has left the guest: one switch
 * over all reasons.
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/hv.h"
#include "guard/hv/views.h"
#include "x86/msr.h"
#include "x86/registers.h"
#include "x86/svm/vmcb.h"

#define EXIT_DB		(SVM_EXIT_EXCP_BASE + X86_TRAP_DB)

struct hv_config hv_config;
bool hv_sealed;

/* Null, an unused one, and Linux's __KERNEL_CS and __KERNEL_DS, so that the selectors can stay. */
static const u64 gdt[] = { 0, 0, 0x00af9b000000ffff, 0x00cf93000000ffff };

struct gate {
	u16 low, selector;
	u16 attributes;
	u16 middle;
	u32 high;
	u32 reserved;
};

static struct gate idt[HV_VECTORS];

static void load_tables(void)
{
	struct hv_table table = { .limit = sizeof(gdt) - 1, .base = (u64)gdt };

	asm volatile("lgdt %0" : : "m" (table.limit), "m" (table.base));
	table.limit = sizeof(idt) - 1;
	table.base = (u64)idt;
	asm volatile("lidt %0" : : "m" (table.limit), "m" (table.base));
}

static void set_gate(int vector, void (*handler)(void))
{
	u64 address = (u64)handler;

	idt[vector].low = address;
	idt[vector].selector = 0x10;
	idt[vector].attributes = 0x8e00;	/* present, an interrupt gate (APM 8.9.1) */
	idt[vector].middle = address >> 16;
	idt[vector].high = address >> 32;
}

/*
 * Called by head.S before a CPU's first VMRUN. The loader lets one CPU at a time enter, so the
 * tables need no lock, and each CPU writes the same values. Returns the VMCB for VMRUN.
 */
u64 hv_start_cpu(struct hv_cpu *cpu)
{
	int i;

	for (i = 0; i < HV_VECTORS; i++)
		set_gate(i, i == X86_TRAP_GP ? hv_gp : hv_fault);
	load_tables();
	if (!hv_config.step_cr3)
		hv_msr_init();
	cpu->vmcb = hv_vmcb_of_k(cpu);
	cpu->number = ((u64)cpu - hv_config.cpu_areas) / HV_CPU_SIZE;
	cpu->guarded = NULL;
	cpu->who = word_who(cpu->number, 0);
	hv_register_start(cpu);
	hv_vmcb(cpu)->control.tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
	/* If VMRUN refuses the state: afterwards the VMCB may have the image's registers in it. */
	hv_leave(cpu, -EIO);
	return cpu->vmcb_pa;
}

static void svm_instruction(struct hv_cpu *cpu, u32 code)
{
	cpu->counts[HV_COUNT_SVM]++;
	/*
	 * EFER.SVME shows as set, so the kernel's paths for a crash or a reboot execute STGI. GIF
	 * is always set for the guest: nothing is left to do.
	 */
	if (code == SVM_EXIT_STGI && !hv_vmcb(cpu)->save.cpl) {
		hv_skip(cpu, STGI_LENGTH);
		return;
	}
	hv_log(cpu, HV_LOG_SVM, code);
	hv_inject(cpu, X86_TRAP_UD, false);
}

/*
 * INIT takes the CPU away from its guest. The processor holds INIT back while GIF is clear, so the
 * CPU cannot be given back either: it stops here, for good.
 */
static void __noreturn park(struct hv_cpu *cpu)
{
	u32 i;

	cpu->counts[HV_COUNT_INIT]++;
	hv_log(cpu, HV_LOG_INIT, 0);
	for (i = 0; i < 16; i++)
		cpu->regs[i] = 0;
	for (;;)
		asm volatile("hlt");
}

/* Whether a CPU exits for this reason only while it steps. */
static bool is_of_step(u32 code)
{
	return code - SVM_EXIT_EXCP_BASE < HV_VECTORS || code == SVM_EXIT_INTR ||
	       code == SVM_EXIT_NMI || code == SVM_EXIT_SWINT;
}

/* All but the crossings. */
static noinline struct hv_next exit_of_k(struct hv_cpu *cpu, u32 code)
{
	struct vmcb_control_area *control = &hv_vmcb(cpu)->control;

	if (code != (u32)SVM_EXIT_ERR)
		cpu->leave.result = 0;
	if (cpu->steps && code != EXIT_DB) {
		hv_memory_step_failed(cpu, code);
		/* M is not entered with the kernel's double fault. */
		if (is_of_step(code) || hv_panics(control))
			return hv_next_in_k(cpu);
	}
	switch (code) {
	case SVM_EXIT_VMMCALL:
		cpu->counts[HV_COUNT_CALL]++;
		if (!hv_call(cpu))
			return (struct hv_next){};
		break;
	case SVM_EXIT_MSR:
		if (control->exit_info_1)
			hv_msr_write(cpu);
		else
			hv_msr_read(cpu);
		break;
	case SVM_EXIT_IOIO:
		hv_io(cpu);
		break;
	case SVM_EXIT_NPF:
		if (control->exit_info_1 & SVM_NPF_FETCH)
			return hv_cross_search(cpu);
		hv_memory_fault(cpu);
		break;
	case EXIT_DB:
		hv_memory_stepped(cpu);
		break;
	case SVM_EXIT_INVD:
		/* It would drop what caches hold of the guard's memory. */
		cpu->counts[HV_COUNT_INVD]++;
		asm volatile("wbinvd" : : : "memory");
		hv_skip(cpu, INVD_LENGTH);
		break;
	case SVM_EXIT_VMRUN:
	case SVM_EXIT_VMLOAD:
	case SVM_EXIT_VMSAVE:
	case SVM_EXIT_STGI:
	case SVM_EXIT_CLGI:
	case SVM_EXIT_SKINIT:
	case SVM_EXIT_INVLPGA:
		svm_instruction(cpu, code);
		break;
	case SVM_EXIT_INIT:
		park(cpu);
	case (u32)SVM_EXIT_ERR:
		/* The first VMRUN of this CPU was refused: hv_start_cpu() has prepared for that. */
		if (cpu->leave.result)
			return (struct hv_next){};
		fallthrough;
	default:
		/* Also SVM_EXIT_SHUTDOWN, a triple fault of the guest. */
		hv_reset();
	}
	return hv_next_in_k(cpu);
}

/* Called by head.S after each exit. The crossings come first. */
struct hv_next hv_exit(struct hv_cpu *cpu)
{
	struct vmcb_control_area *control = &hv_vmcb(cpu)->control;
	u32 code = control->exit_code;

	control->tlb_ctl = TLB_CONTROL_DO_NOTHING;
	control->clean = SVM_CLEAN_ALL;
	if (cpu->border.view == VIEW_M && code != SVM_EXIT_INIT && code != SVM_EXIT_SHUTDOWN)
		return hv_cross_exit(cpu, code);
	if (code == SVM_EXIT_NPF && control->exit_info_1 & SVM_NPF_FETCH && cpu->guarded)
		return hv_cross_fetch(cpu, cpu->guarded);
	return exit_of_k(cpu, code);
}

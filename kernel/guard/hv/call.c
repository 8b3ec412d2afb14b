// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's VMMCALLs (HV_CALL in hv.h). Any code in ring 0 of the guest may make them: none of
 * them gives it more than it has, except for stopping, which ends with the seal.
 */
#include <linux/types.h>
#include <asm/trapnr.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/hv.h"
#include "guard/hv/views.h"
#include "x86/registers.h"
#include "x86/svm/vmcb.h"

static u64 *reg(struct hv_cpu *cpu, unsigned int offset)
{
	return &cpu->regs[offset / 8];
}

void hv_leave(struct hv_cpu *cpu, s64 result)
{
	const struct vmcb_save_area *save = &hv_vmcb(cpu)->save;

	cpu->leave.rip = save->rip;
	cpu->leave.rsp = save->rsp;
	cpu->leave.cr0 = save->cr0;
	cpu->leave.cr3 = save->cr3;
	cpu->leave.cr4 = save->cr4;
	cpu->leave.dr6 = save->dr6;
	cpu->leave.dr7 = save->dr7;
	cpu->leave.gdt.limit = save->gdtr.limit;
	cpu->leave.gdt.base = save->gdtr.base;
	cpu->leave.idt.limit = save->idtr.limit;
	cpu->leave.idt.base = save->idtr.base;
	cpu->leave.result = result;
	cpu->leave.cross = hv_config.cross;
}

static s64 count(u64 number, u64 which, bool crossings, u64 *result)
{
	const struct hv_cpu *other;

	if (number >= hv_config.cpus || which >= (crossings ? HV_CROSSINGS : HV_COUNTS))
		return -EINVAL;
	other = hv_cpu_of(number);
	*result = __atomic_load_n(crossings ? &other->crossings[which] : &other->counts[which],
				  __ATOMIC_RELAXED);
	return 0;
}

static s64 read_log(struct hv_cpu *cpu)
{
	bool exists = hv_log_read(reg(cpu, REGS_RBX), reg(cpu, REGS_RCX), reg(cpu, REGS_RDX),
				  reg(cpu, REGS_RSI));

	return exists ? 0 : -ENOENT;
}

bool hv_call(struct hv_cpu *cpu)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u64 number = vmcb->save.rax - HV_CALL;
	s64 result = 0;

	if (vmcb->save.cpl || number >> 32) {
		hv_inject(cpu, X86_TRAP_UD, false);
		return true;
	}
	/* The guard's own module has no prefixes there. */
	hv_skip_to(cpu, vmcb->control.next_rip ?: vmcb->save.rip + VMMCALL_LENGTH);
	switch (number) {
	case HV_CALL_NOTHING:
		break;
	case HV_CALL_STOP:
		if (!hv_sealed) {
			hv_register_stop(cpu);
			hv_leave(cpu, 0);
			return false;
		}
		hv_log(cpu, HV_LOG_CALL, number);
		result = -EPERM;
		break;
	case HV_CALL_SEAL:
		hv_memory_hide(cpu);
		hv_ports_seal(cpu);
		break;
	case HV_CALL_COUNT:
	case HV_CALL_CROSSINGS:
		result = count(*reg(cpu, REGS_RBX), *reg(cpu, REGS_RCX),
			       number == HV_CALL_CROSSINGS, reg(cpu, REGS_RBX));
		break;
	case HV_CALL_LOG:
		result = read_log(cpu);
		break;
	case HV_CALL_REGISTER:
	case HV_CALL_FLUSH:
	case HV_CALL_ARM:
	case HV_CALL_REVOKE:
	case HV_CALL_THAW:
	case HV_CALL_STATE:
	case HV_CALL_DESCRIBE:
	case HV_CALL_UNDESCRIBE:
	case HV_CALL_LOAD:
	case HV_CALL_RELEASE:
	case HV_CALL_TALLY:
	case HV_CALL_LEFT:
		result = hv_register_call(cpu, number, reg(cpu, REGS_RBX), *reg(cpu, REGS_RCX));
		if (cpu->panics)
			hv_panic(cpu);
		break;
	case HV_CALL_RANDOM:
	case HV_CALL_COUNTER:
		hv_log(cpu, HV_LOG_CALL, number);
		result = -EPERM;
		break;
	default:
		result = -ENOSYS;
	}
	vmcb->save.rax = result;
	return true;
}

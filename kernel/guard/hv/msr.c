// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSRs. Reads are the guest's own business, and so are writes of the registers in allowed[], which
 * cause no exit. Any other write comes here. Until the seal it is carried out; from then on it
 * raises #GP, because such registers can lay other memory over the guard's, or change how the
 * processor executes it. The registers by which SVM is turned on and off are never the guest's, and
 * a module's own (privilege/msr.c) read as 0 and ignore writes outside of the module.
 */
#include <linux/types.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>

#include "guard/hv/lock.h"
#include "guard/hv/views.h"
#include "x86/registers.h"
#include "x86/svm/vmcb.h"

/* Older headers lack these bits of HWCR: no boost; CPUID faults in ring 3. */
#define HWCR_CPB_DIS		BIT_ULL(25)
#define HWCR_CPUID_USER_DIS	BIT_ULL(35)

/*
 * The bits that may change once sealed: the local APIC's mode, but not its place; and of HWCR,
 * whose others lock or move things, those that Linux writes.
 */
#define APIC_BASE_MAY_CHANGE	0xfffULL
#define HWCR_MAY_CHANGE		(HWCR_CPB_DIS | MSR_K7_HWCR_IRPERF_EN | HWCR_CPUID_USER_DIS)

struct msr_range {
	u32 first, last;
};

/*
 * Names are in the kernel's msr-index.h and in the processors' manuals. A register is here if Linux
 * writes it while it runs, and if it does not affect physical memory.
 */
static const struct msr_range allowed[] = {
	{ 0x10, 0x10 },			/* TSC */
	{ 0x3b, 0x3b },			/* TSC_ADJUST */
	{ 0x48, 0x49 },			/* SPEC_CTRL, PRED_CMD */
	{ 0xe1, 0xe1 },			/* UMWAIT_CONTROL */
	{ 0xe7, 0xe8 },			/* MPERF, APERF */
	{ 0x10b, 0x10b },		/* FLUSH_CMD */
	{ 0x174, 0x176 },		/* SYSENTER */
	{ 0x179, 0x17b },		/* machine checks: MCG_CAP, MCG_STATUS, MCG_CTL */
	{ 0x1d9, 0x1d9 },		/* DEBUGCTL */
	{ 0x400, 0x47f },		/* banks of machine checks */
	{ 0x6a0, 0x6a8 },		/* CET */
	{ 0x6e0, 0x6e0 },		/* TSC_DEADLINE */
	{ 0x800, 0x8ff },		/* x2APIC */
	{ 0xc80, 0xd8f },		/* quality of service: shares of caches and bandwidth */
	{ 0xda0, 0xda0 },		/* XSS */
	{ 0xc0000081, 0xc0000084 },	/* STAR, LSTAR, CSTAR, SFMASK */
	{ 0xc0000100, 0xc0000104 },	/* FS, GS, KERNEL_GS, TSC_AUX, TSC_RATIO */
	{ 0xc000010e, 0xc000010f },	/* selection of branch records */
	{ 0xc0000200, 0xc000022f },	/* quality of service: shares of bandwidth, */
	{ 0xc0000280, 0xc00002af },	/* and of slow memory's bandwidth */
	{ 0xc0000300, 0xc0000303 },	/* performance counters' global control */
	{ 0xc0000400, 0xc0000407 },	/* quality of service: which events are counted */
	{ 0xc0000408, 0xc000040a },	/* machine checks: thresholds */
	{ 0xc0010000, 0xc0010007 },	/* performance counters */
	{ 0xc0010044, 0xc001004a },	/* masks of machine checks */
	{ 0xc0010062, 0xc0010062 },	/* the P-state */
	{ 0xc001011f, 0xc001011f },	/* VIRT_SPEC_CTRL */
	{ 0xc0010200, 0xc001020b },	/* performance counters of the core, ... */
	{ 0xc0010230, 0xc001023b },	/* of the cache, */
	{ 0xc0010240, 0xc001025f },	/* of the northbridge, or data fabric */
	{ 0xc00102b1, 0xc00102b3 },	/* CPPC: the wanted performance */
	{ 0xc0010300, 0xc001031f },	/* branch records */
	{ 0xc0010800, 0xc00108ff },	/* performance counters of the memory controllers */
	{ 0xc0011020, 0xc0011020 },	/* LS_CFG: older processors' SPEC_CTRL */
	{ 0xc0011030, 0xc001103d },	/* instruction-based sampling */
};

/*
 * The permission map has two bits for each MSR of three ranges of 0x2000: for reads, then for
 * writes (APM 15.11). MSRs outside of them always exit.
 */
static u32 map_bit(u32 msr, bool is_write)
{
	u32 bit = 2 * (msr & 0x1fff) + is_write;

	if (msr >= 0xc0010000)
		return bit + 0x1000 * 8;
	return msr >= 0xc0000000 ? bit + 0x800 * 8 : bit;
}

static void set_map_bit(u8 *map, u32 bit, bool exits)
{
	map[bit / 8] = (map[bit / 8] & ~(1 << bit % 8)) | exits << bit % 8;
}

void hv_msr_set_map(u8 *map, u32 msr, bool read_exits, bool write_exits)
{
	set_map_bit(map, map_bit(msr, false), read_exits);
	set_map_bit(map, map_bit(msr, true), write_exits);
}

bool hv_msr_is_allowed(u32 msr)
{
	u32 i;

	for (i = 0; i < sizeof(allowed) / sizeof(struct msr_range); i++)
		if (msr >= allowed[i].first && msr <= allowed[i].last)
			return true;
	return false;
}

/* For the first CPU. The loader has set the bits of all writes, and cleared those of all reads. */
void hv_msr_init(void)
{
	u32 i, msr;

	set_map_bit(hv_config.msrpm, map_bit(MSR_VM_HSAVE_PA, false), true);
	set_map_bit(hv_config.msrpm, map_bit(MSR_IA32_CR_PAT, false), true);
	for (i = 0; i < sizeof(allowed) / sizeof(struct msr_range); i++)
		for (msr = allowed[i].first; msr <= allowed[i].last; msr++)
			set_map_bit(hv_config.msrpm, map_bit(msr, true), false);
}

/* Whether it belongs to a module, and not to the one that runs on this CPU. */
static bool is_taken(const struct hv_cpu *cpu, u32 msr)
{
	bool taken;

	hv_lock(&hv_views_lock);
	taken = hv_is_taken(cpu, HV_PRIVILEGE_MSR, msr);
	hv_unlock(&hv_views_lock);
	return taken;
}

static void refuse(struct hv_cpu *cpu, enum hv_log_kind kind, u32 msr)
{
	hv_log(cpu, kind, msr);
	hv_inject(cpu, X86_TRAP_GP, true);
}

/* EFER.SVME stays set. Other bits may be cleared, and those that were set at launch set again. */
static bool write_efer(struct hv_cpu *cpu, u64 value)
{
	struct vmcb *vmcb = hv_vmcb(cpu);

	value |= EFER_SVME;
	if (value & ~hv_config.efer || ~value & (EFER_LME | EFER_LMA))
		return false;
	vmcb->save.efer = value;
	vmcb->control.clean = 0;
	return true;
}

/*
 * PAT is the guest's own (APM 15.25.8), and in its VMCB. The kernel may change it. M may not: the
 * modules of a CPU have one VMCB, and class S also has what class D would leave there.
 */
static bool write_pat(struct hv_cpu *cpu, u64 value)
{
	struct vmcb *vmcb = hv_vmcb(cpu);
	u32 i;

	/* Types 2, 3 and all from 8 on are reserved (APM 7.8.1). */
	for (i = 0; i < 64; i += 8)
		if ((value >> i & 0xff) > 7 || (value >> i & 0xfe) == 2)
			return false;
	vmcb->save.g_pat = value;
	vmcb->control.clean = 0;
	return true;
}

/* Machine checks have more registers above the permission map's ranges. */
static bool is_machine_check(u32 msr)
{
	return msr >= 0xc0002000 && msr <= 0xc0002fff;
}

/* Whether a write that exits is carried out once the guard is sealed. */
static bool is_harmless(u32 msr, u64 value)
{
	u64 old, may_change;

	switch (msr) {
	case MSR_IA32_APICBASE:
		may_change = APIC_BASE_MAY_CHANGE;
		break;
	case MSR_K7_HWCR:
		may_change = HWCR_MAY_CHANGE;
		break;
	default:
		return is_machine_check(msr);
	}
	return hv_rdmsr(msr, &old) && !((value ^ old) & ~may_change);
}

static bool write_other(u32 msr, u64 value)
{
	return (!hv_sealed || is_harmless(msr, value)) && hv_wrmsr(msr, value);
}

void hv_msr_write(struct hv_cpu *cpu)
{
	u32 msr = cpu->regs[REGS_RCX / 8];
	u64 value = (u32)hv_vmcb(cpu)->save.rax | cpu->regs[REGS_RDX / 8] << 32;
	bool done;

	cpu->counts[HV_COUNT_MSR_WRITE]++;
	switch (msr) {
	case MSR_EFER:
		done = write_efer(cpu, value);
		break;
	case MSR_IA32_CR_PAT:
		done = write_pat(cpu, value);
		break;
	case MSR_VM_HSAVE_PA:
		/* The kernel's path for a crash writes 0, and must not fault (emergency stop). */
		done = true;
		break;
	case MSR_VM_CR:
	case MSR_VM_IGNNE:
		done = false;
		break;
	default:
		if (is_taken(cpu, msr)) {
			hv_log(cpu, HV_LOG_MSR_WRITE, msr);
			done = true;
			break;
		}
		done = write_other(msr, value);
	}
	if (done)
		hv_skip(cpu, MSR_LENGTH);
	else
		refuse(cpu, HV_LOG_MSR_WRITE, msr);
}

void hv_msr_read(struct hv_cpu *cpu)
{
	u32 msr = cpu->regs[REGS_RCX / 8];
	u64 value = 0;

	cpu->counts[HV_COUNT_MSR_READ]++;
	if (is_taken(cpu, msr)) {
		hv_log(cpu, HV_LOG_MSR_READ, msr);
	} else if (msr == MSR_IA32_CR_PAT) {
		value = hv_vmcb(cpu)->save.g_pat;
	/* The guest has no host save area. */
	} else if (msr != MSR_VM_HSAVE_PA && !hv_rdmsr(msr, &value)) {
		refuse(cpu, HV_LOG_MSR_READ, msr);
		return;
	}
	hv_vmcb(cpu)->save.rax = (u32)value;
	cpu->regs[REGS_RDX / 8] = value >> 32;
	hv_skip(cpu, MSR_LENGTH);
}

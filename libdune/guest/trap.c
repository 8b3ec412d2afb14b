// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Exceptions: their handlers, and the signals that they become without a handler
 * (APM vol. 2, 8.2; the signals are those of arch/x86/kernel/traps.c).
 *
 * entry.S calls dune_trap_table[vector] with the frame. A handler with
 * DUNE_TRAP_FPU is called through with_fpu(), so that other handlers pay nothing
 * for it.
 */
#include "guest.h"

#define DFL8	dune_trap_default, dune_trap_default, dune_trap_default, \
		dune_trap_default, dune_trap_default, dune_trap_default, \
		dune_trap_default, dune_trap_default

dune_trap_fn dune_trap_table[VEC_HANDLERS] __ro_after_start = {
	DFL8, DFL8, DFL8, DFL8, dune_signal_irq
};

/*
 * The handlers with DUNE_TRAP_FPU. One is stored here before with_fpu() is stored in
 * dune_trap_table, and stays when the vector gets another handler.
 */
static dune_trap_fn fpu_handlers[32];

/* Calls the handler of the vector, with the FPU's state saved. */
static void with_fpu(struct dune_tf *tf)
{
	u64 features = dune_fpu_features();
	u8 *area = __builtin_alloca(dune_fpu_size() + 64);

	area = (u8 *)(((u64)area + 63) & ~63ULL);
	dune_fpu_save(area);
	fpu_handlers[tf->vector](tf);
	if (features)
		dune_xrstor(area, features);
	else
		dune_fxrstor(area);
}

/*
 * Returns whether the FPU's registers may be restored only when the handler returns. It looks
 * whether the vector has ever had a handler with DUNE_TRAP_FPU: the one that runs may have
 * been replaced in the table meanwhile, even by itself.
 */
static bool may_save_fpu(u64 vector)
{
	return vector < 32 && READ_ONCE(fpu_handlers[vector]);
}

int dune_trap_set(unsigned int vector, dune_trap_fn fn, unsigned int flags)
{
	if (vector > 31 || vector == VEC_NMI || vector == VEC_DF ||
	    vector == VEC_MC || (flags & ~DUNE_TRAP_FPU))
		return -EINVAL;
	if (!fn) {
		fn = dune_trap_default;
	} else if (flags & DUNE_TRAP_FPU) {
		dune_fpu_size();	/* CPUID now, not in the trap */
		WRITE_ONCE(fpu_handlers[vector], fn);
		fn = with_fpu;
	}
	__atomic_store_n(&dune_trap_table[vector], fn, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Ends the process, as no stack for a trap of ring 0 can be used. Called on an IST stack, perhaps
 * with no other one left below it: whatever runs from here on must not raise an exception.
 */
void dune_bad_stack(void)
{
	dune_services->bad_stack();
}

/*
 * Returns whether a fault of ring 3 at @address has to look as if nothing were mapped there: beyond
 * user space, and in the supervisor range.
 */
static bool looks_unmapped(u64 address)
{
	return address >= USER_END ||
	       address - dune_process.super_base < dune_process.super_size;
}

/*
 * Where ring 3 is to find nothing mapped, the error code shows, as Linux does for each address
 * beyond user space, that the address is protected.
 */
static int page_fault_code(struct dune_tf *tf, u64 address)
{
	if (from_ring3(tf) && looks_unmapped(address)) {
		tf->error |= PF_PRESENT;
		return SEGV_MAPERR;
	}
	return tf->error & PF_PRESENT ? SEGV_ACCERR : SEGV_MAPERR;
}

/* Exceptions in the x87 status word and in MXCSR (APM vol. 1, 4.2.2 and 6.2.2). */
#define FPU_IE	0x01
#define FPU_DE	0x02
#define FPU_ZE	0x04
#define FPU_OE	0x08
#define FPU_UE	0x10
#define FPU_PE	0x20

/* Returns si_code of SIGFPE, from the exceptions that are both raised and unmasked. */
static int fpe_code(u32 raised)
{
	if (raised & FPU_IE)
		return FPE_FLTINV;
	if (raised & FPU_ZE)
		return FPE_FLTDIV;
	if (raised & FPU_OE)
		return FPE_FLTOVF;
	/* A denormal operand counts as an underflow, as in Linux's fpu__exception_code(). */
	if (raised & (FPU_UE | FPU_DE))
		return FPE_FLTUND;
	if (raised & FPU_PE)
		return FPE_FLTRES;
	return 0;
}

static int sse_code(void)
{
	u32 mxcsr;

	__asm__ volatile("stmxcsr %0" : "=m" (mxcsr));
	return fpe_code(mxcsr & ~(mxcsr >> 7) & 0x3f);
}

static int x87_code(void)
{
	u16 control, status;

	__asm__ volatile("fnstcw %0; fnstsw %1" : "=m" (control), "=m" (status));
	return fpe_code(status & ~control & 0x3f);
}

/* Returns @code(). The FPU registers are the program's only while no signal waits. */
static int settled_code(int (*code)(void))
{
	int ret;

	do
		ret = code();
	while (dune_services->settle(dune_self()));
	return ret;
}

/* Makes the signal for a fault, with the arguments of dune_signal_fault(). */
static void raise_signal(struct dune_tf *tf, int sig, int code, u64 addr)
{
	dune_signal_fault(tf, sig, code, addr, may_save_fpu(tf->vector));
}

void dune_trap_default(struct dune_tf *tf)
{
	u64 cr2 = dune_cr2();
	u64 fixup;

	if (tf->vector == VEC_PF && !(tf->error & PF_PRESENT) && dune_services->fill(cr2))
		return;
	/* Not resolved on the way in: no memory, no granule, or nothing is mapped there. */
	fixup = from_ring3(tf) ? 0 : dune_fixup(tf->rip);
	if (fixup) {
		tf->rip = fixup;
		return;
	}
	switch (tf->vector) {
	case VEC_DE:
		raise_signal(tf, SIGFPE, FPE_INTDIV, tf->rip);
		break;
	case VEC_DB:
		raise_signal(tf, SIGTRAP, TRAP_TRACE, tf->rip);
		break;
	case VEC_BP:
		raise_signal(tf, SIGTRAP, SI_KERNEL, 0);
		break;
	case VEC_UD:
		raise_signal(tf, SIGILL, ILL_ILLOPN, tf->rip);
		break;
	case VEC_NP:
	case VEC_SS:
		raise_signal(tf, SIGBUS, SI_KERNEL, 0);
		break;
	case VEC_PF:
		raise_signal(tf, SIGSEGV, page_fault_code(tf, cr2), cr2);
		break;
	case VEC_MF:
		raise_signal(tf, SIGFPE, settled_code(x87_code), tf->rip);
		break;
	case VEC_AC:
		raise_signal(tf, SIGBUS, BUS_ADRALN, 0);
		break;
	case VEC_XM:
		raise_signal(tf, SIGFPE, settled_code(sse_code), tf->rip);
		break;
	default:		/* #OF, #BR, #NM, #TS, #GP and vectors of future processors */
		raise_signal(tf, SIGSEGV, SI_KERNEL, 0);
	}
}

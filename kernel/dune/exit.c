// SPDX-License-Identifier: GPL-2.0-only
/*
 * Common parts of both vendors' handlers of exits. The handlers themselves, one
 * switch each, are in svm/exit.c and vmx/exit.c; they call hypercall.c for a hypercall
 * and fault.c for a nested page fault.
 */
#include <linux/lockdep.h>
#include <linux/ptrace.h>
#include <linux/static_call.h>
#include <asm/cpu.h>
#include <asm/cpufeature.h>
#include <asm/mce.h>
#include <asm/processor-flags.h>
#include <asm/segment.h>
#include <asm/trapnr.h>

#include "dune/exit.h"
#include "dune/vcpu.h"
#include "virt/symbol.h"

/* The kernel's answers to a bus lock and a split lock: split_lock_detect=. */
DEFINE_STATIC_CALL_NULL(exit_handle_bus_lock, handle_bus_lock);
DEFINE_STATIC_CALL_RET0(exit_handle_split_lock, handle_guest_split_lock);

/*
 * Looks up the kernel's answers to bus locks and split locks. If the kernel has no such function,
 * it is not called. Called once, at load; may sleep.
 */
void __init exit_init(void)
{
	if (boot_cpu_has(X86_FEATURE_BUS_LOCK_DETECT))
		symbol_bind(exit_handle_bus_lock, "handle_bus_lock");
	if (boot_cpu_has(X86_FEATURE_SPLIT_LOCK_DETECT))
		symbol_bind(exit_handle_split_lock, "handle_guest_split_lock");
}

/**
 * exit_bus_lock() - the guest has locked the bus of the whole machine
 * @rip:	the address of the instruction
 *
 * Context: process, interrupts on; may sleep, which is the kernel's answer.
 */
void exit_bus_lock(unsigned long rip)
{
	struct pt_regs regs = { .ip = rip };

	static_call_cond(exit_handle_bus_lock)(&regs);
}

/**
 * exit_split_lock() - a locked access of the guest crosses a cache line
 * @rip:	the address of the instruction
 *
 * Context: process, interrupts on; may sleep.
 * Return: whether the guest may continue, for a while without the check; if not, it
 * gets #AC.
 */
bool exit_split_lock(unsigned long rip)
{
	return static_call(exit_handle_split_lock)(rip);
}

/**
 * exit_machine_check() - the exit has consumed a machine check
 *
 * Calls the kernel's handler as if the machine check came from user mode: an error
 * that a guest consumed then costs its process, and not the machine.
 *
 * Context: process, interrupts off.
 */
void exit_machine_check(void)
{
	struct pt_regs regs = { .cs = __USER_CS, .flags = X86_EFLAGS_IF };

	lockdep_assert_irqs_disabled();
	if (IS_ENABLED(CONFIG_X86_MCE))
		do_machine_check(&regs);
}

/**
 * exit_answer() - carry out the answer of a vendor's table to an exit
 * @vcpu:	of current
 * @answer:	an exception for the guest; any other answer ends the run
 * @inject:	the vendor's: raises an exception in the guest. It replaces an exception whose
 *		delivery was interrupted: the instruction of that one runs again and raises it
 *		anew
 *
 * Context: process, interrupts on.
 * Return: 0 to enter the guest again, or DUNE_EXIT_UNKNOWN.
 */
int exit_answer(struct dune_vcpu *vcpu, enum answer answer,
		void (*inject)(struct vcpu_hw *hw, u32 vector, bool error))
{
	bool gp = answer == ANSWER_GP;

	if (!gp && answer != ANSWER_UD) {
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		return DUNE_EXIT_UNKNOWN;
	}
	vcpu_count(vcpu, DUNE_COUNT_EXCEPTION);
	inject(vcpu->hw, gp ? X86_TRAP_GP : X86_TRAP_UD, gp);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common parts of both vendors' handlers of exits: exit.c, and fault.c for nested page faults.
 */
#ifndef DUNE_EXIT_H
#define DUNE_EXIT_H

#include <linux/percpu.h>
#include <linux/types.h>

/* This also includes <asm/debugreg.h>, after what that header needs. */
#include "dune/compat.h"

struct dune_vcpu;
struct vcpu_hw;

/*
 * The rule for what both vendors intercept: an instruction that the process could not execute as
 * an ordinary process raises the exception that it would raise there; an event that belongs to
 * the host alone is left to the host. AMD reports MONITOR, which a process cannot execute, by the
 * same exit as MONITORX, which it can, and so for MWAIT and MWAITX: such an exit is answered as
 * MONITORX and MWAITX are.
 *
 * MOV CR2, MOV CR3, INVLPG, INVPCID, the descriptor-table and task-register instructions, SWAPGS
 * and IRET are not intercepted: they act on the guest's own state, and are what a Dune process is
 * for. PAUSE is not intercepted either: the host's timer ends a guest that spins.
 *
 * #DB and #AC are intercepted, because their delivery can raise them again without end, inside one
 * instruction that no interrupt ends (CVE-2015-5307, -8104). The handlers inject them one at a
 * time, so that each is an instruction boundary.
 */

/* The answer of a vendor's table to an exit. */
enum answer {
	ANSWER_NONE,	/* no exception: the handler has a case for the exit, or the run ends */
	ANSWER_GP,	/* #GP(0) */
	ANSWER_UD,	/* #UD */
};

/* exit.c */
void exit_init(void);

int exit_answer(struct dune_vcpu *vcpu, enum answer answer,
		void (*inject)(struct vcpu_hw *hw, u32 vector, bool error));

void exit_bus_lock(unsigned long rip);
bool exit_split_lock(unsigned long rip);
void exit_machine_check(void);

/* fault.c */
int fault_handle(struct dune_vcpu *vcpu, u64 gpa, u32 flags);

/*
 * Restores the host's DR7, which an exit leaves cleared (APM 15.6, SDM 28.5.1). DR0 to DR3 still
 * hold the host's breakpoints. Interrupts are off.
 */
static __always_inline void exit_restore_dr7(void)
{
	if (unlikely(hw_breakpoint_active()))
		set_debugreg(__this_cpu_read(cpu_dr7), 7);
}

#endif /* DUNE_EXIT_H */

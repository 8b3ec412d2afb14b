/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Probes of the process's memory in user mode, by which the library learns whether an access is
 * allowed, and their signals (host/fault.c, alone/fault.c).
 */
#ifndef LIBDUNE_PROBE_H
#define LIBDUNE_PROBE_H

#include "sigaction.h"
#include "thread.h"

/* The signals of PROBE_SIGNALS, in the order of dune_thread.held[]. */
extern const int dune_probe_signals[2];

/*
 * Returns whether @info is the signal of the fault of a probe of @address. A positive code alone
 * does not tell: signals of timers, children and files have one, too. Beyond the end of user space
 * every probe faults, and if the address is not canonical its signal does not contain it.
 */
static inline bool is_probe_fault(const struct ksiginfo *info, u64 address)
{
	return (sigbit(info->signo) & PROBE_SIGNALS) && info->code > 0 &&
	       (address >= USER_END || (info->addr ^ address) < PAGE);
}

/*
 * Returns what the error code of a probe's fault lacks: the probe reads, also where the program has
 * fetched an instruction. @flags: of the program's access.
 */
static inline u64 dune_fetch_error(u32 flags)
{
	return flags & DUNE_FAULT_EXEC ? PF_INSTR : 0;
}

/*
 * Keeps one of these signals that a process sent while a silent probe has it unblocked. A second
 * one while the first is pending is lost, as always with these numbers (signal(7)).
 */
void dune_probe_hold(struct dune_thread *t, const struct ksiginfo *info);

/* Returns a number that grows with each system call of the thread whose run page is @run. */
static inline u64 dune_calls_made(const struct dune_run *run)
{
	return run->counters[DUNE_COUNT_SYSCALL_FAST] + run->counters[DUNE_COUNT_SYSCALL_SLOW] +
	       run->counters[DUNE_COUNT_HOSTCALL];
}

/*
 * Counts how often the same fault, at @rip and of @address, comes without a reason that a probe
 * finds. @calls: dune_calls_made(). A call in between is progress: the program's own, or the
 * library's, which sets the signal mask for each handler. Returns false when the process makes no
 * progress.
 */
bool dune_probe_repeat(struct dune_thread *t, u64 rip, u64 address, u64 calls);

#endif /* LIBDUNE_PROBE_H */

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Faults of the guest that the kernel could not resolve (DUNE_EXIT_FAULT): no
 * mapping at the address, no right to it, a stack that must grow, an address
 * beyond the end of a file.
 *
 * The host half probes the address itself, in user mode. Either that succeeds,
 * and the guest continues; or the kernel sends the signal that the program
 * should get, and the handler (signal.c) passes it to the guest.
 */
#include "host.h"
#include "probe.h"

/* For probes that do not depend on the signals that are queued. */
static const u32 no_signals;

/*
 * Reads or writes the byte at @address, if *@nsig is 0 immediately before. Returns 0, or -1 if
 * *@nsig is not 0 or that raised a signal.
 */
static long probe(u64 address, u32 flags, const u32 *nsig)
{
	if (flags & DUNE_FAULT_WRITE)
		return dune_host_probe_write((void *)address, nsig);
	return dune_host_probe_read((const void *)address, nsig);
}

/*
 * Does the same without sending a signal to the program, even if the program blocks
 * SIGSEGV and SIGBUS. One that was pending stays pending (dune_host_send_held()).
 * All other signals that the program handles are blocked meanwhile, because the
 * mask that such a signal sets (signal.c) could block these two again.
 */
static long probe_silent(struct dune_thread *t, u64 address, u32 flags)
{
	u64 handled = t->sighand->handled & ~PROBE_SIGNALS, set = PROBE_SIGNALS, old;
	long ret;

	WRITE_ONCE(t->silent_probe, 1);
	sys4(__NR_rt_sigprocmask, SIG_BLOCK, (long)&handled, (long)&old, SIGSET_SIZE);
	sys4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, SIGSET_SIZE);
	ret = probe(address, flags, &no_signals);
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, SIGSET_SIZE);
	WRITE_ONCE(t->silent_probe, 0);
	if (unlikely(t->held_set))
		dune_host_send_held(t);
	return ret;
}

/*
 * Returns whether user mode can read [p, p + n). Sends no signal. @n is at most a
 * page: only the first and the last byte are probed.
 */
bool dune_host_readable(struct dune_thread *t, const void *p, size_t n)
{
	u64 first = (u64)p, last = first + n - 1;

	return last < USER_END && !probe_silent(t, first, 0) && !probe_silent(t, last, 0);
}

/* Ends a process whose faults of one kind do not end: see dune_probe_repeat(). */
static void count_repeats(struct dune_thread *t)
{
	const struct dune_run *run = t->run;

	if (!dune_probe_repeat(t, run->regs.rip, run->fault_address, dune_calls_made(run)))
		dune_host_fatal(t, "a page fault that does not end", 0, SIGSEGV);
}

/*
 * Prints that no granule is left for the gigabyte around @va, and dies, if @va is mapped.
 * Where no memory is mapped, the guest gets the same page fault as on any processor.
 */
void dune_host_no_granule(struct dune_thread *t, u64 va)
{
	if (!dune_host_readable(t, (const void *)va, 1))
		return;
	dune_print_no_granule(va);
	dune_host_die(SIGBUS);
}

/* Prints that the arena has no page left for a page table, and dies, if @va is mapped. */
void dune_host_no_pages(struct dune_thread *t, u64 va)
{
	if (!dune_host_readable(t, (const void *)va, 1))
		return;
	dune_print_no_pages(va);
	dune_host_die(SIGBUS);
}

/* Tells the kernel of a granule that it does not know. One that is not assigned is fatal. */
static void granule_fault(struct dune_thread *t)
{
	long err = dune_granule_tell(t->vcpu, t->run->fault_address);

	if (err == -ENOENT)
		dune_host_fatal(t, "a page-table entry leads to no memory of the process", 0,
				SIGSEGV);
	if (err)
		dune_host_fatal(t, "DUNE_MAP_GRANULE failed", err, SIGBUS);
}

/* Handles DUNE_EXIT_FAULT. Afterwards the guest can run again. */
void dune_host_fault(struct dune_thread *t)
{
	struct dune_run *run = t->run;
	u64 fixup = dune_fixup(run->regs.rip);
	bool takes_signals = run->regs.rflags & RFLAGS_IF;

	if (run->fault_flags & DUNE_FAULT_GUEST) {
		count_repeats(t);
		granule_fault(t);
		return;
	}
	/* A queued signal is handled first; then the guest faults again. */
	if (READ_ONCE(t->nsig) && takes_signals)
		return;
	if (fixup) {
		if (probe_silent(t, run->fault_address, run->fault_flags))
			run->regs.rip = fixup;
		else
			count_repeats(t);
		return;
	}
	if (!probe(run->fault_address, run->fault_flags, takes_signals ? &t->nsig : &no_signals)) {
		count_repeats(t);
		if (run->fault_flags & DUNE_FAULT_EXEC)
			dune_host_exec_fault(t);
		else
			return;
	}
	/* Ring 0 with interrupts off can neither take a signal nor continue. */
	if (READ_ONCE(t->nsig) && !takes_signals)
		dune_host_die(t->queue[t->nsig - 1].info.signo);
}

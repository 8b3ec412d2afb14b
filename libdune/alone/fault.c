// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Page faults of the second level without a host half: the kernel has not resolved the access, and
 * the module has raised #PF (DUNE_PF_NESTED). As in host/fault.c, the address is probed in user
 * mode, here by the stub: either that succeeds, and the guest continues; or the kernel sends the
 * signal that the program should get.
 */
#include "alone.h"
#include "probe.h"

/* Probes @address. Returns false if a signal came first, or by the probe. */
static bool probe(u64 address, u32 flags)
{
	long nr = flags & DUNE_FAULT_WRITE ? DUNE_PROBE_WRITE : DUNE_PROBE_READ;

	return dune_syscall_forward(nr, address, 0, 0, 0, 0, 0) != DUNE_AGAIN || !dune_is_again();
}

/* Sends to the kernel a signal that came during a silent probe. Its mask is set again. */
static void send_held(struct dune_thread *t)
{
	u64 set = t->held_set, mark = dune_copies_mark();
	int i;

	t->held_set = 0;
	for (i = 0; i < 2; i++) {
		int sig = dune_probe_signals[i];

		if (set & sigbit(sig))
			dune_hypercall(__NR_rt_tgsigqueueinfo,
				       dune_hypercall(__NR_getpid, 0, 0, 0, 0, 0, 0),
				       dune_hypercall(__NR_gettid, 0, 0, 0, 0, 0, 0), sig,
				       dune_alone_show(&t->held[i], sizeof(t->held[i])), 0, 0);
		dune_copies_release(mark);
	}
}

/*
 * The signal of a silent probe is not for the program, so its interrupt must not stay either: the
 * module would refuse the program's next call because of it. The call after this ends the run, and
 * the next run has no interrupt.
 */
static void drop_interrupt(struct dune_thread *t)
{
	if (!t->nsig)
		WRITE_ONCE(t->run->irq_vector, 0);
}

/*
 * Probes @address without sending a signal to the program, even if the program blocks SIGSEGV and
 * SIGBUS. One that was pending stays pending. First all signals are blocked: one that came before
 * goes into the queue, with the mask that it found. After a probe they are blocked again, before
 * this looks for a signal: another process can send SIGSEGV at any time, and one that came after
 * the look would be lost, or would find the mask of the probe.
 */
static bool probe_silent(struct dune_thread *t, u64 address, u32 flags)
{
	struct dune_event e;
	bool made, done;
	u64 old;

	do {
		dune_alone_set_mask(~0ULL, &old);
	} while (dune_alone_collect(t));
	do {
		dune_alone_set_mask(~PROBE_SIGNALS, NULL);
		made = probe(address, flags);
		dune_alone_set_mask(~0ULL, NULL);
		done = made;
		if (dune_alone_take(t, &e)) {
			if (is_probe_fault(&e.info, address))
				done = true;
			else if (sigbit(e.info.signo) & PROBE_SIGNALS)
				dune_probe_hold(t, &e.info);
		}
	} while (!done);
	drop_interrupt(t);
	/*
	 * While a signal is queued, all stay blocked (alone.h): @old is of the scratch, where the
	 * program may have written another mask.
	 */
	dune_alone_force_mask(t->nsig ? ~0ULL : old);
	if (unlikely(t->held_set))
		send_held(t);
	return made;
}

/* Returns whether user mode can read the byte at @address. Sends no signal. */
bool dune_alone_readable(struct dune_thread *t, u64 address)
{
	return address < USER_END && probe_silent(t, address, 0);
}

/* Tells the kernel of a granule that it does not know. */
static void granule_fault(struct dune_thread *t, u64 gpa)
{
	u64 mark = dune_copies_mark();
	struct dune_granule g;
	long err = dune_granule_describe(gpa, &g);

	if (err)
		dune_alone_fatal("a page-table entry leads to no memory of the process", 0,
				 SIGSEGV);
	err = dune_alone_call(__NR_ioctl, t->vcpu, DUNE_MAP_GRANULE,
			      dune_alone_show(&g, sizeof(g)), 0);
	dune_copies_release(mark);
	if (err)
		dune_alone_fatal("DUNE_MAP_GRANULE failed", err, SIGBUS);
}

/*
 * A fault of ring 3: the program gets the signal, if there is one. Returns whether the program can
 * access the memory.
 */
static bool program_fault(struct dune_thread *t, struct dune_tf *tf, u64 address, u32 flags)
{
	struct dune_event e;

	if (!probe(address, flags)) {
		/* Another signal is delivered first; then the program faults again. */
		if (dune_alone_take(t, &e)) {
			e.error |= dune_fetch_error(flags);
			dune_alone_queue(t, &e, is_probe_fault(&e.info, address));
		}
		return false;
	}
	if (!(flags & DUNE_FAULT_EXEC))
		return true;
	/* Memory that can be read but not executed: no instruction of the stub faults so. */
	tf->error = PF_PRESENT | PF_USER | PF_INSTR;
	dune_signal_fault(tf, SIGSEGV, SEGV_ACCERR, address, false);
	return false;
}

/*
 * A fault of ring 0, which can neither take a signal nor continue without an answer. What follows
 * uses memory that the process can take away: the scratch, and the frames of signals. If that
 * faults, too, an answer would need the same memory again, and the stack would grow for ever.
 */
static bool own_fault(struct dune_thread *t, struct dune_tf *tf, u64 address, u32 flags)
{
	u64 fixup;

	if (probe_silent(t, address, flags))
		return true;
	fixup = dune_fixup(tf->rip);
	if (!fixup)
		dune_alone_die(SIGSEGV);
	tf->rip = fixup;
	return false;
}

/* The handler of VEC_NESTED. */
void dune_alone_fault(struct dune_tf *tf)
{
	struct dune_thread *t = dune_self();
	u64 address = READ_ONCE(t->run->fault_address);
	u32 flags = READ_ONCE(t->run->fault_flags);
	u64 calls = dune_calls_made(t->run);
	bool is_own = !(flags & DUNE_FAULT_GUEST) && !from_ring3(tf);
	bool repeats = true;

	if (is_own && t->own_fault)
		dune_alone_die(SIGSEGV);
	t->own_fault |= is_own;
	tf->vector = VEC_PF;
	tf->error &= ~(u64)PF_NESTED;
	dune_alone_look_at_cpu(t);
	if (flags & DUNE_FAULT_GUEST)
		granule_fault(t, address);
	else if (is_own)
		repeats = own_fault(t, tf, address, flags);
	else
		repeats = program_fault(t, tf, address, flags);
	if (is_own)
		t->own_fault = false;
	if (repeats && !dune_probe_repeat(t, tf->rip, address, calls))
		dune_alone_fatal("a page fault that does not end", 0, SIGSEGV);
	/* The calls of this function are no progress of the program. */
	t->fault_calls = dune_calls_made(t->run);
}

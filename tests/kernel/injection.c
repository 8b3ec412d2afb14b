// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Interrupts that the host half injects into a guest (dune_run.irq_vector), before a
 * run and from a signal's handler. Fails when a vector is delivered while IF is off or
 * in the shadow of STI, when it is lost or comes twice, when it does not interrupt
 * ring 3, when a signal's vector does not reach a guest that spins or sleeps in a
 * call, or when a refused entry loses the vector.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

static struct guest g;
volatile u64 irqs;
static volatile u64 last_vector, flags_in_handler;

static void on_trap(struct guest_frame *f)
{
	irqs++;
	last_vector = f->vector;
	flags_in_handler = read_flags();
}

static u64 with_interrupts(void *arg)
{
	u64 seen_off, seen_on;

	irqs = 0;
	for (volatile int i = 0; i < 2000; i++)
		;
	hypercall0(SYS_getpid);
	seen_off = irqs;
	asm volatile("sti; nop; nop" : : : "memory");
	seen_on = irqs;
	asm volatile("cli");
	return seen_off << 8 | seen_on;
}

static u64 waits_for_irq(void *arg)
{
	irqs = 0;
	asm volatile("sti");
	while (!irqs)
		;
	asm volatile("cli");
	return irqs;
}

static void kick(int sig)
{
	g.run->irq_vector = 0x60;	/* as libdune's handler does: from within the signal */
}

static u64 without_interrupts(void *arg)
{
	irqs = 0;
	for (volatile int i = 0; i < 2000; i++)
		;
	hypercall0(SYS_getpid);
	return irqs;
}

static u64 ring3_waits(void *arg)
{
	while (!irqs)
		;
	return irqs;
}

static u64 sleeps_with_if(void *arg)
{
	irqs = 0;
	asm volatile("sti");
	if (hypercall0(SYS_pause) != -EINTR)
		return 99;
	asm volatile("nop; cli" : : : "memory");
	return irqs;
}

static u64 sti_shadow(void *arg)
{
	u64 at;

	irqs = 0;
	/*
	 * STI keeps interrupts off for one more instruction (SDM vol. 2B, STI;
	 * APM vol. 2, 15.21.5, interrupt shadow).
	 */
	asm volatile("sti; mov irqs(%%rip), %0; nop; cli" : "=r"(at) : : "memory");
	return at << 8 | irqs;
}

/* A vector that waits in dune_run.irq_vector when the run begins. */
static void pending_vectors(void)
{
	static const u32 vectors[] = { 32, 33, 0x60, 0x80, 255 };
	enum guest_end end;

	for (unsigned int i = 0; i < 5; i++) {
		guest_prepare(&g, 0, with_interrupts, NULL);
		g.run->irq_vector = vectors[i];
		end = guest_resume(&g);
		ok(end == GUEST_DONE && g.value == 1 && last_vector == vectors[i] &&
		   g.run->irq_vector == X86_TRAP_DE,
		   "vector %u waits for IF and then comes once (%s)", vectors[i],
		   guest_end_name(&g, end));
		ok(!(flags_in_handler & X86_EFLAGS_IF), "the handler of vector %u runs with IF off",
		   vectors[i]);
	}
	/* IF is never set: the vector is still pending at the end, and a later run delivers it. */
	guest_prepare(&g, 0, without_interrupts, NULL);
	g.run->irq_vector = 0x61;
	end = guest_resume(&g);
	ok(end == GUEST_DONE && g.value == 0 && g.run->irq_vector == 0x61,
	   "with IF off, a vector is still pending at the end (%s, %u)", guest_end_name(&g, end),
	   g.run->irq_vector);
	guest_prepare(&g, 0, with_interrupts, NULL);
	end = guest_resume(&g);
	ok(end == GUEST_DONE && g.value == 1 && last_vector == 0x61 && !g.run->irq_vector,
	   "the next run delivers a vector that is still pending (%s)", guest_end_name(&g, end));

	/* Ring 3 with IF: at once, in ring 0. */
	irqs = 0;
	guest_prepare(&g, 3, ring3_waits, NULL);
	g.run->regs.rflags |= X86_EFLAGS_IF;
	g.run->irq_vector = 0x62;
	end = guest_resume(&g);
	ok(end == GUEST_DONE && g.value == 1 && last_vector == 0x62,
	   "a vector interrupts ring 3 at once (%s)", guest_end_name(&g, end));

	/* QEMU forgets the shadow if the host's timer ends the guest in it (docs/emulators.md). */
	for (unsigned int i = 0; i < 5; i++) {
		guest_prepare(&g, 0, sti_shadow, NULL);
		g.run->irq_vector = 0x63;
		end = guest_resume(&g);
		if (g.value >> 8 == 0)
			break;
	}
	ok(end == GUEST_DONE && (g.value & 0xff) == 1,
	   "an interrupt is delivered between STI and CLI with two instructions between them (%s)",
	   guest_end_name(&g, end));
	ok(g.value >> 8 == 0, "no interrupt is delivered in the shadow of STI (%lu)", g.value >> 8);
}

/* A signal's handler asks for the vector while the guest spins, or sleeps. */
static void vectors_by_signal(void)
{
	struct sigaction sa = { .sa_handler = kick };
	struct itimerval it = { .it_value = { 0, 20000 } };
	enum guest_end end;
	int err;

	sigaction(SIGALRM, &sa, NULL);
	guest_prepare(&g, 0, waits_for_irq, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	end = guest_resume(&g);
	ok(end == GUEST_DONE && g.value == 1 && last_vector == 0x60,
	   "a signal becomes an interrupt of the spinning guest (%s)", guest_end_name(&g, end));

	/*
	 * The same while it sleeps in a fast call: the call is interrupted,
	 * then comes the interrupt. (A signal just before the call makes it a
	 * slow one, with nothing interrupted yet.)
	 */
	it.it_interval.tv_usec = 30000;
	guest_prepare(&g, 0, sleeps_with_if, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	err = guest_run_to_exit(&g);
	ok(!err && g.run->exit_reason == DUNE_EXIT_SYSCALL &&
	   (g.run->restart == ERESTARTNOHAND || g.run->restart == 0),
	   "a signal interrupts pause in a fast call (restart %u)", g.run->restart);
	it.it_interval.tv_usec = 0;
	it.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &it, NULL);
	g.run->regs.rax = -EINTR;
	end = guest_resume(&g);
	ok(end == GUEST_DONE && g.value >= 1, "the interrupt follows the interrupted pause (%s)",
	   guest_end_name(&g, end));
}

/* An entry that the processor refuses delivers nothing, so the vector still waits. */
static void vector_of_a_refused_entry(void)
{
	struct dune_state refused = g.state;
	enum guest_end end;
	int err;

	refused.cs.attributes = CS_LONG_AND_32BIT;
	guest_prepare(&g, 0, waits_for_irq, NULL);
	g.run->regs.rflags |= X86_EFLAGS_IF;
	g.run->irq_vector = 0x64;
	guest_set_state(&g, &refused);
	err = guest_run(&g);
	ok(!err && g.run->exit_reason == DUNE_EXIT_INVALID, "the entry is refused (%d, exit %u)",
	   err, g.run->exit_reason);
	is(g.run->irq_vector, 0x64, "the vector of a refused entry still waits");
	guest_set_state(&g, &g.state);
	guest_prepare(&g, 0, waits_for_irq, NULL);
	g.run->irq_vector = 0x64;
	end = guest_resume(&g);
	ok(end == GUEST_DONE && g.value == 1 && last_vector == 0x64,
	   "the vector of a refused entry is delivered once the state is accepted (%s)",
	   guest_end_name(&g, end));
}

int main(void)
{
	begin(220);
	guest_open(&g);
	guest_trap_handler = on_trap;
	pending_vectors();
	vectors_by_signal();
	vector_of_a_refused_entry();
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals reach a guest wherever it is: spinning with interrupts on or off
 * in both rings, asleep in a fast or slow call, in a fault, stopped. And
 * injected interrupts wait for IF. Fails (a child hangs, is killed, and that is
 * a verdict) when the loop around the guest forgets pending work.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
	volatile u64 count;
	volatile int ready;
} *shared;

static u64 spin(void *arg)
{
	shared->ready = 1;
	for (;;)
		shared->count++;
	return 0;
}

static u64 pause_loop(void *arg)
{
	shared->ready = 1;
	for (;;) {
		shared->count++;
		asm volatile("pause");
	}
	return 0;
}

static u64 call_loop(void *arg)
{
	shared->ready = 1;
	for (;;) {
		shared->count++;
		hypercall0(SYS_getppid);
	}
	return 0;
}

static int ends[2];

static u64 blocked_read(void *arg)
{
	char c;

	shared->ready = 1;
	hypercall3(SYS_read, (long)arg, (long)&c, 1);
	for (;;)
		;
	return 0;
}

static u64 fault_loop(void *arg)
{
	volatile char *p = arg;

	shared->ready = 1;
	for (;;) {
		for (int i = 0; i < 64; i++)
			p[i * 4096] = 1;
		hypercall3(SYS_madvise, (long)arg, 64 * 4096, MADV_DONTNEED);
		shared->count++;
	}
	return 0;
}

static u64 touch_one(void *arg)
{
	shared->ready = 1;
	*(volatile char *)arg = 1;
	for (;;)
		;
	return 0;
}

static void *anonymous(unsigned long size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

enum where {
	SPIN_0, SPIN_0_IF, SPIN_3, SPIN_3_IF, PAUSE, CALLS, CALLS_SLOW, READ, READ_SLOW, FAULTS,
	UFFD, PLACES
};

static const char *const names[] = {
	"spinning in ring 0, IF=0", "spinning in ring 0, IF=1", "spinning in ring 3, IF=0",
	"spinning in ring 3, IF=1", "in a PAUSE loop", "making fast calls", "making slow calls",
	"asleep in a fast call", "asleep in a slow call", "faulting", "waiting for userfaultfd",
};

static void *missing_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	void *p = anonymous(4096);
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register reg = { .range = { (u64)p, 4096 },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		_exit(70);
	return p;
}

static void place(enum where w)
{
	struct guest g;

	guest_open(&g);
	switch (w) {
	case SPIN_0:
		guest_prepare(&g, 0, spin, NULL);
		break;
	case SPIN_0_IF:
		guest_prepare(&g, 0, spin, NULL);
		g.run->regs.rflags |= X86_EFLAGS_IF;
		break;
	case SPIN_3:
		guest_prepare(&g, 3, spin, NULL);
		break;
	case SPIN_3_IF:
		guest_prepare(&g, 3, spin, NULL);
		g.run->regs.rflags |= X86_EFLAGS_IF;
		break;
	case PAUSE:
		guest_prepare(&g, 0, pause_loop, NULL);
		break;
	case CALLS:
	case CALLS_SLOW:
		guest_prepare(&g, 0, call_loop, NULL);
		break;
	case READ:
	case READ_SLOW:
		guest_prepare(&g, 0, blocked_read, (void *)(long)ends[0]);
		break;
	case FAULTS:
		guest_prepare(&g, 0, fault_loop, anonymous(64 * 4096));
		break;
	default:
		guest_prepare(&g, 0, touch_one, missing_page());
		break;
	}
	g.run->flags = w == CALLS_SLOW || w == READ_SLOW ? DUNE_RUN_SLOW_SYSCALL : 0;
	guest_resume(&g);
	_exit(71);
}

static int start(enum where w)
{
	int pid;

	shared->ready = 0;
	shared->count = 0;
	pid = fork();
	if (!pid)
		place(w);
	for (int i = 0; !shared->ready && i < 50000; i++)
		sleep_ms(1);
	sleep_ms(5);
	return pid;
}

static void each_state(void)
{
	static const int sigs[] = { SIGKILL, SIGTERM, SIGINT };

	for (int w = 0; w < PLACES; w++) {
		for (int s = 0; s < 3; s++) {
			int pid = start(w);

			kill(pid, sigs[s]);
			struct outcome o = wait_child(pid, 10);

			if (w == UFFD && o.code == 70)
				skip("no userfaultfd", "%s: signal %d", names[w], sigs[s]);
			else
				ok(o.signal == sigs[s] && !o.hung,
				   "%s: signal %d ends it (%s%d, %d)", names[w],
				   sigs[s], o.hung ? "hung, " : "", o.code, o.signal);
		}
		int pid = start(w), status = 0;

		kill(pid, SIGSTOP);
		waitpid(pid, &status, WUNTRACED);
		if (w == UFFD && WIFEXITED(status)) {
			skip("no userfaultfd", "%s: stop", names[w]);
			continue;
		}
		ok(WIFSTOPPED(status), "%s: SIGSTOP stops it", names[w]);
		u64 count = shared->count;

		sleep_ms(20);
		ok(shared->count == count, "%s: it makes no progress while it is stopped",
		   names[w]);
		kill(pid, SIGCONT);
		waitpid(pid, &status, WCONTINUED);
		ok(WIFCONTINUED(status), "%s: SIGCONT continues it", names[w]);
		if (w != READ && w != READ_SLOW && w != UFFD) {
			for (int i = 0; shared->count == count && i < 30000; i++)
				sleep_ms(1);
			ok(shared->count > count, "%s: it makes progress after SIGCONT", names[w]);
		}
		kill(pid, SIGSTOP);
		waitpid(pid, &status, WUNTRACED);
		kill(pid, SIGKILL);
		struct outcome o = wait_child(pid, 10);

		ok(o.signal == SIGKILL && !o.hung, "%s: SIGKILL ends it while it is stopped",
		   names[w]);
	}
}

static struct guest g;
static volatile int handled;

static void handler(int sig)
{
	handled++;
}

static void timers(void)
{
	struct sigaction sa = { .sa_handler = handler };
	struct itimerval it = { { 0, 5000 }, { 0, 5000 } };
	struct itimerval off = {0};

	/* The host half's handler runs and the guest continues. */
	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGVTALRM, &sa, NULL);
	guest_prepare(&g, 0, spin, NULL);
	handled = 0;
	setitimer(ITIMER_REAL, &it, NULL);
	u64 last = shared->count;
	bool moved = true;

	while (handled < 50) {
		int before = handled;
		int err = guest_run(&g);

		if (err && err != -EINTR)
			break;
		if (handled == before && !err && g.run->exit_reason != DUNE_EXIT_INTR)
			break;
		moved &= shared->count >= last;
		last = shared->count;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	ok(handled >= 50 && moved && g.run->exit_reason == DUNE_EXIT_INTR,
	   "a timer interrupts the guest 50 times, and the guest continues (%d)", handled);
	handled = 0;
	setitimer(ITIMER_VIRTUAL, &it, NULL);
	unsigned long start = now_us();

	/* ITIMER_REAL alone ends five runs within a quarter of a second. */
	while (handled < 5 && now_us() - start < time_limit(5) * 1000000UL) {
		struct itimerval wake = { .it_value = { 0, 50000 } };

		setitimer(ITIMER_REAL, &wake, NULL);
		guest_run(&g);
	}
	setitimer(ITIMER_VIRTUAL, &off, NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	ok(handled >= 5, "ITIMER_VIRTUAL and ITIMER_REAL interrupt the guest (%d signals)",
	   handled);
}

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

	guest_prepare(&g, 0, sti_shadow, NULL);
	g.run->irq_vector = 0x63;
	end = guest_resume(&g);
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

static void injection(void)
{
	guest_trap_handler = on_trap;
	pending_vectors();
	vectors_by_signal();
	guest_trap_handler = NULL;
}

int main(int argc, char **argv)
{
	begin(220);
	shared = shared_alloc(sizeof(*shared));
	if (pipe(ends))
		bail("pipe: %m");
	if (argc < 2 || strcmp(argv[1], "injection"))
		each_state();
	guest_open(&g);
	timers();
	injection();
	return done();
}

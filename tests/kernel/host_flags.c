// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest's flags stay in the guest, and the host's trap flag stays out of it.
 * Fails when a flag that the guest set is set in the host half, when dune_run.regs
 * does not have it, or when single-stepping the host half steps the guest.
 */
#define _GNU_SOURCE
#include "guest_calls.h"
#include "host.h"
#include "proc.h"
#include "tap.h"

#include <asm/processor-flags.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN_FLAGS	(X86_EFLAGS_DF | X86_EFLAGS_AC | X86_EFLAGS_NT | X86_EFLAGS_IOPL)
/* TF would trap; POPF ignores RF and VM. */
#define SET_FLAGS	(SEEN_FLAGS | X86_EFLAGS_ID | X86_EFLAGS_IF | X86_EFLAGS_RF | \
			 X86_EFLAGS_VM | X86_EFLAGS_FIXED)

static struct guest g;
static volatile int traps;

static void on_trap(int sig)
{
	traps++;
}

static u64 set_flags(void *guest)
{
	asm volatile("pushq %0; popfq; mov %1, %%rax; xor %%edi, %%edi\n" HYPERCALL
		     : : "i"(SET_FLAGS), "i"(GUEST_CALL_DONE) : "rax", "rdi", "memory");
	return 1;
}

static void flags(void)
{
	struct host_run r;

	host_run(&g, set_flags, false, &r);

	const char *other = host_difference(&r.before, &r.after);

	ok(!other && r.good, "flags (DF, AC, NT, IOPL, IF, ID) stay in the guest (%s)",
	   other ? other : "no difference");
	ok((g.run->regs.rflags & SEEN_FLAGS) == SEEN_FLAGS,
	   "flags that a guest set are in dune_run.regs (%#llx)", g.run->regs.rflags);
}

/* Bochs steps into the kernel instead of over SYSCALL, of which Linux warns. */
static bool steps_into_kernel(void)
{
	char version[6] = "";

	file_read("/sys/class/dmi/id/bios_version", version, sizeof(version));
	return !strcmp(version, "Bochs");
}

/* The host half steps itself over a run. */
static void single_step(void)
{
	struct sigaction sa = { .sa_handler = on_trap };

	if (steps_into_kernel()) {
		skip("Bochs steps into SYSCALL, and Linux warns",
		     "single-stepping the host half over a run");
		return;
	}
	sigaction(SIGTRAP, &sa, NULL);
	guest_prepare(&g, 0, guest_return, NULL);
	/* Repeated when one of the host's interrupts comes first. */
	for (int i = 0; i < 20; i++) {
		traps = 0;
		asm volatile("pushfq; orq %[tf], (%%rsp); popfq; syscall\n"
			     "pushfq; andq %[not_tf], (%%rsp); popfq"
			     : : "a"(SYS_ioctl), "D"(g.fd), "S"(DUNE_RUN), "d"(0),
			       [tf] "i"(X86_EFLAGS_TF), [not_tf] "i"(~X86_EFLAGS_TF)
			     : "rcx", "r11", "memory");
		if (g.run->exit_reason != DUNE_EXIT_INTR)
			break;
	}
	ok(traps >= 1 && traps < 8 && g.run->exit_reason == DUNE_EXIT_HOSTCALL,
	   "single-stepping the host half over a run (%d traps, exit %u)", traps,
	   g.run->exit_reason);
}

int main(void)
{
	host_begin(&g);
	host_open_msrs();
	flags();
	single_step();
	return host_end();
}

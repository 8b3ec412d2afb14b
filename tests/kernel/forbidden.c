// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * RDTSC, RDTSCP and CPUID in guests of a thread for which the kernel forbids them
 * (PR_SET_TSC, ARCH_SET_CPUID): #GP in both rings, from the next run on, also if the guest
 * itself asks for it; and again executed when the kernel permits them again. Fails when a guest
 * executes an instruction that is forbidden to its thread, or not one that is permitted.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "guest_calls.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <asm/prctl.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef ARCH_SET_CPUID
#define ARCH_SET_CPUID	0x1012
#endif

static struct guest g;

static u64 rdtsc(void *arg)
{
	asm volatile("rdtsc" : : : "eax", "edx");
	return 1;
}

static u64 rdtscp(void *arg)
{
	asm volatile("rdtscp" : : : "eax", "ecx", "edx");
	return 1;
}

static u64 cpuid(void *arg)
{
	u32 leaf = 0, more = 0;

	asm volatile("cpuid" : "+a"(leaf), "+c"(more) : : "ebx", "edx");
	return 1;
}

/*
 * Run the instruction of @fn in ring @ring: it must be executed, or be #GP if @forbidden. @what:
 * the fault if not.
 */
static void expect(u64 (*fn)(void *arg), unsigned int ring, bool forbidden, const char *what)
{
	guest_prepare(&g, ring, fn, NULL);

	enum guest_end end = guest_resume(&g);
	bool trapped = end == GUEST_TRAP && g.frame->vector == X86_TRAP_GP;

	if (forbidden ? !trapped : end != GUEST_DONE)
		child_fails("%s in ring %u (%s)", what, ring, guest_end_name(&g, end));
}

/* No clock is read while the time stamp counter is forbidden: the vDSO uses it. */
static void tsc(void *arg)
{
	guest_open(&g);
	for (unsigned int ring = 0; ring <= 3; ring += 3) {
		expect(rdtsc, ring, false, "RDTSC is not executed");
		expect(rdtscp, ring, false, "RDTSCP is not executed");
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
		expect(rdtsc, ring, true, "RDTSC is executed although it is forbidden");
		expect(rdtscp, ring, true, "RDTSCP is executed although RDTSC is forbidden");
		expect(cpuid, ring, false, "CPUID is not executed while RDTSC is forbidden");
		prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
	}
	expect(rdtsc, 0, false, "RDTSC is not executed after it was permitted again");
}

static u64 forbid_and_read(void *arg)
{
	hypercall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0, 0);
	return rdtsc(NULL);
}

static u64 permit_and_read(void *arg)
{
	hypercall(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0, 0);
	return rdtsc(NULL);
}

static void tsc_by_guest(void *arg)
{
	guest_open(&g);
	expect(forbid_and_read, 0, true, "RDTSC is executed after the guest forbade it");
	expect(permit_and_read, 0, false, "RDTSC is not executed after the guest permitted it");
}

static void cpuid_fault(void *arg)
{
	guest_open(&g);
	for (unsigned int ring = 0; ring <= 3; ring += 3) {
		expect(cpuid, ring, false, "CPUID is not executed");
		if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0L))
			child_fails("ARCH_SET_CPUID failed");
		expect(cpuid, ring, true, "CPUID is executed although it is forbidden");
		expect(rdtsc, ring, false, "RDTSC is not executed while CPUID is forbidden");
		syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1L);
	}
	expect(cpuid, 0, false, "CPUID is not executed after it was permitted again");
}

int main(void)
{
	struct outcome o;

	begin(60);
	o = in_child(tsc, NULL, 20);
	ok(!o.code, "RDTSC and RDTSCP are exceptions while they are forbidden (%s)",
	   outcome_text(o));
	o = in_child(tsc_by_guest, NULL, 20);
	ok(!o.code, "a guest forbids and permits RDTSC by prctl (%s)", outcome_text(o));
	if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1L) && errno == ENODEV) {
		skip("the processor cannot forbid CPUID", "CPUID is an exception");
		return done();
	}
	o = in_child(cpuid_fault, NULL, 20);
	ok(!o.code, "CPUID is an exception while it is forbidden (%s)", outcome_text(o));
	return done();
}

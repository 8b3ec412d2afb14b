// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox loads PKRU by XRSTOR. Fails when the runtime's own accesses to user
 * memory, for a signal or a system call, obey that value.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#define XFEATURE_PKRU	9

static uint64_t handler_mask;

static void on_ud2(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	memcpy(&handler_mask, &uc->uc_sigmask, sizeof(handler_mask));
	uc->uc_mcontext.gregs[REG_RIP] += 2;
}

/*
 * XRSTOR loads PKRU, by which the kernel's accesses to user memory go. If it
 * stayed, the runtime's calls could not write their results.
 */
static void test_keys(void)
{
	struct sigaction sa = { .sa_sigaction = on_ud2, .sa_flags = SA_SIGINFO };
	static unsigned char area[8192] __attribute__((aligned(64)));
	unsigned int low = 0, high, offset, a, c, d;
	struct timespec now;

	__cpuid(1, a, high, c, d);
	if (c & bit_OSXSAVE)
		asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if (!(low & 1 << XFEATURE_PKRU)) {
		skip("the kernel uses no protection keys here", "XRSTOR of PKRU");
		return;
	}
	__cpuid_count(13, XFEATURE_PKRU, a, offset, c, d);
	*(uint64_t *)(area + 512) = 1 << XFEATURE_PKRU;
	memset(area + offset, 0xaa, 4);
	sigaction(SIGILL, &sa, NULL);
	/* It leaves an address on the runtime's stack. */
	call(SYS_fsopen, (long)"no such file system", 0, 0, 0, 0, 0);
	asm volatile("xrstor64 (%0)\n\tud2"
		     : : "r"(area), "a"(1 << XFEATURE_PKRU), "d"(0) : "memory");
	is(handler_mask, 0, "a handler after XRSTOR of PKRU sees an empty signal mask");
	asm volatile("xrstor64 (%0)" : : "r"(area), "a"(1 << XFEATURE_PKRU), "d"(0) : "memory");
	is(call(SYS_clock_gettime, 0, (long)&now, 0, 0, 0, 0), 0,
	   "clock_gettime after XRSTOR of PKRU: 0");
	signal(SIGILL, SIG_DFL);
}

int main(void)
{
	leave_session();
	test_keys();
	return done();
}

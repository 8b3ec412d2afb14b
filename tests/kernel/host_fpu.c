// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The FPU is the thread's, in the guest as in the host half: its modes, and its
 * vector and x87 registers, next to a process on the same CPU that dirties them.
 * Fails when a mode or a register is lost at an exit or a switch, or another
 * process's shows.
 */
#define _GNU_SOURCE
#include "child.h"
#include "host.h"
#include "tap.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;

/* The guest's FPU registers are the thread's own, so a change of modes must stay. */
static void modes(void)
{
	struct host_run r;

	host_run(&g, load_fpu_modes, false, &r);
	ok(r.after.mxcsr == GUEST_MXCSR && r.after.fcw == GUEST_FCW,
	   "FPU modes: the guest's FPU is the thread's");
	r.after.mxcsr = r.before.mxcsr;
	r.after.fcw = r.before.fcw;
	asm volatile("ldmxcsr %0; fldcw %1" : : "m"(r.before.mxcsr), "m"(r.before.fcw));

	const char *other = host_difference(&r.before, &r.after);

	ok(!other && r.good, "after a guest with FPU modes all else is the host's (%s)",
	   other ? other : "no difference");
}

/* The guest's vector registers survive exits, switches and a neighbour that dirties them. */
static u64 keep_vectors(void *avx)
{
	static const u64 a[2] = { 0xdeadbeefcafebabe, 0x0123456789abcdef };
	u64 b[2], bad = 0;

	for (int round = 0; round < 30; round++) {
		asm volatile("movups %0, %%xmm3; movups %0, %%xmm15" : : "m"(a));
		if (avx)
			asm volatile("vinsertf128 $1, %0, %%ymm3, %%ymm3" : : "m"(a));
		asm volatile("fninit; fldpi\n"
			     "mov $39, %%eax\n" HYPERCALL
			     "mov $60000, %%ecx; 1: dec %%ecx; jnz 1b\n"
			     "mov $24, %%eax\n" HYPERCALL
			     : : : "eax", "ecx", "edi", "memory");
		if (avx) {
			asm volatile("vextractf128 $1, %%ymm3, %0" : "=m"(b));
			bad += b[0] != a[0] || b[1] != a[1];
		}
		asm volatile("movups %%xmm3, %0" : "=m"(b));
		bad += b[0] != a[0] || b[1] != a[1];
		asm volatile("movups %%xmm15, %0" : "=m"(b));
		bad += b[0] != a[0] || b[1] != a[1];
		u64 pi[2] = {0};

		asm volatile("fstpt %0; fninit" : "=m"(pi));
		bad += pi[0] != 0xc90fdaa22168c235;
	}
	return bad;
}

static void dirty(bool avx)
{
	for (;;) {
		asm volatile("fninit; fldz; fld1; pxor %xmm3, %xmm3; pcmpeqd %xmm15, %xmm15");
		if (avx)
			asm volatile("vpxor %ymm3, %ymm3, %ymm3\n"
				     "vcmpps $15, %ymm15, %ymm15, %ymm15");
	}
}

static void registers(void)
{
	bool avx = read_xcr0() & 1 << 2;
	int pid = checked_fork();

	if (!pid)
		dirty(avx);
	for (int slow = 0; slow < 2; slow++) {
		g.run->flags = slow;
		enum guest_end end = guest_call(&g, keep_vectors, (void *)avx);

		ok(end == GUEST_DONE && g.value == 0,
		   "%s: the guest's vector and x87 registers survive (%s)",
		   slow ? "slow calls" : "fast calls", guest_end_name(&g, end));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	host_begin(&g);
	host_open_msrs();
	modes();
	registers();
	return host_end();
}

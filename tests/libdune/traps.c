// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Exception handlers in ring 0. Fails when the frame shows other registers than
 * the interrupted code had, when the red zone or (with DUNE_TRAP_FPU) the FPU is
 * changed, when a handler cannot itself fault, or when dune_trap_default() does not
 * become the signal that Linux would send.
 */
#include <asm/processor-flags.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

static struct dune_tf seen;
static volatile int count;

GPR_ONLY static void skip2(struct dune_tf *tf)
{
	seen = *tf;
	count++;
	tf->rip += 2;		/* ud2 */
}

GPR_ONLY static void change(struct dune_tf *tf)
{
	tf->rip += 2;
	tf->rax = 1;
	tf->rbx = 2;
	tf->r12 = 3;
	tf->r15 = 4;
	tf->rflags |= 1;
}

static void test_frame(void)
{
	unsigned long rax = 10, rbx = 11, r12 = 12, r15 = 15, carry, sp;

	is(dune_trap_set(X86_TRAP_UD, skip2, 0), 0, "dune_trap_set() succeeds");
	__asm__ volatile("movq %%rsp, %4; movq %5, %%r12; movq %6, %%r15\n"
			 "ud2\n"
			 "movq %%r12, %2; movq %%r15, %3"
			 : "+a" (rax), "+b" (rbx), "=r" (r12), "=r" (r15),
			   "=&r" (sp)
			 : "r" (12UL), "r" (15UL) : "r12", "r15", "memory");
	is(count, 1, "the handler of ud2 ran once");
	is(seen.vector, X86_TRAP_UD, "the frame of ud2 has its vector");
	is(seen.error, 0, "ud2's frame: error code");
	is(seen.cs & 3, 0, "ud2's frame: ring 0");
	is(seen.rax, 10, "the frame of ud2 has rax");
	is(seen.rbx, 11, "the frame of ud2 has rbx");
	is(seen.r12, 12, "the frame of ud2 has r12");
	is(seen.r15, 15, "the frame of ud2 has r15");
	is(seen.rsp, sp, "the frame of ud2 has the stack pointer");
	ok(seen.rflags & X86_EFLAGS_IF, "the frame of ud2 shows that interrupts were on");
	is(rax + rbx + r12 + r15, 10 + 11 + 12 + 15,
	   "a handler that changes nothing leaves the registers unchanged");
	dune_trap_set(X86_TRAP_UD, change, 0);
	__asm__ volatile("clc; ud2; sbbq %4, %4\n"
			 "movq %%r12, %2; movq %%r15, %3"
			 : "+a" (rax), "+b" (rbx), "=&r" (r12), "=&r" (r15),
			   "=&r" (carry)
			 : : "r12", "r15", "memory", "cc");
	ok(rax == 1 && rbx == 2 && r12 == 3 && r15 == 4,
	   "a handler changes the registers of its frame");
	is(carry, -1, "a handler changes the flags of its frame");
}

static void test_red_zone(void)
{
	unsigned long diff;

	dune_trap_set(X86_TRAP_UD, skip2, 0);
	__asm__ volatile("movq $1, %%rcx\n"
			 "1: movq %%rcx, %%rdx; negq %%rdx\n"
			 "movq %%rcx, (%%rsp, %%rdx, 8)\n"
			 "incq %%rcx; cmpq $16, %%rcx; jbe 1b\n"
			 "ud2\n"
			 "xorq %0, %0; movq $1, %%rcx\n"
			 "2: movq %%rcx, %%rdx; negq %%rdx\n"
			 "movq (%%rsp, %%rdx, 8), %%rdx; xorq %%rcx, %%rdx\n"
			 "orq %%rdx, %0\n"
			 "incq %%rcx; cmpq $16, %%rcx; jbe 2b"
			 : "=&r" (diff) : : "rcx", "rdx", "memory", "cc");
	is(diff, 0, "a handler leaves all 128 bytes of the red zone");
}

GPR_ONLY static void outer(struct dune_tf *tf)
{
	unsigned long red;

	tf->rip += 2;
	count++;
	/* In a handler, with something in the red zone: another exception. */
	__asm__ volatile("movq $99, -8(%%rsp); int3; movq -8(%%rsp), %0"
			 : "=r" (red) : : "memory");
	count += red == 99 ? 10 : 1000;
}

GPR_ONLY static void inner(struct dune_tf *tf)
{
	(void)tf;
	count += 100;
}

GPR_ONLY static void recursive(struct dune_tf *tf)
{
	tf->rip += 2;
	if (++count < 50)
		__asm__ volatile("ud2");
}

static void test_nested(void)
{
	count = 0;
	dune_trap_set(X86_TRAP_UD, outer, 0);
	dune_trap_set(X86_TRAP_BP, inner, 0);
	__asm__ volatile("ud2");
	is(count, 111, "an exception in a handler");
	count = 0;
	dune_trap_set(X86_TRAP_UD, recursive, 0);
	__asm__ volatile("ud2");
	is(count, 50, "exceptions in handlers, fifty deep");
	dune_trap_set(X86_TRAP_BP, NULL, 0);
}

static void uses_fpu(struct dune_tf *tf)
{
	volatile double d = tf->rip;

	tf->rip += 2;
	d = d * 3.14;
	__asm__ volatile("pxor %%xmm5, %%xmm5; pcmpeqd %%xmm4, %%xmm4\n"
			 "fld1; fld1; fld1; fld1; fld1; fld1; fld1; fld1"
			 : : : "xmm4", "xmm5");
	count++;
}

GPR_ONLY static void clears_xmm5(struct dune_tf *tf)
{
	tf->rip += 2;
	__asm__ volatile("pxor %xmm5, %xmm5");
}

static void test_fpu(void)
{
	long double st;
	unsigned long x4, x5;

	count = 0;
	dune_trap_set(X86_TRAP_UD, uses_fpu, DUNE_TRAP_FPU);
	__asm__ volatile("movq %3, %%xmm4; movq %4, %%xmm5; fldpi; ud2\n"
			 "fstpt %2; movq %%xmm4, %0; movq %%xmm5, %1"
			 : "=&r" (x4), "=&r" (x5), "=m" (st)
			 : "r" (0x4444UL), "r" (0x5555UL)
			 : "xmm4", "xmm5", "memory", "st");
	ok(count == 1 && x4 == 0x4444 && x5 == 0x5555, "DUNE_TRAP_FPU saves SSE");
	ok(st > 3.14L && st < 3.15L, "DUNE_TRAP_FPU saves x87");
	dune_trap_set(X86_TRAP_UD, clears_xmm5, 0);
	__asm__ volatile("movq %1, %%xmm5; ud2; movq %%xmm5, %0"
			 : "=r" (x5) : "r" (0x5555UL) : "xmm5", "memory");
	is(x5, 0, "without DUNE_TRAP_FPU no FPU register is saved");
}

GPR_ONLY static void breakpoint(struct dune_tf *tf)
{
	seen = *tf;
	count++;
}

GPR_ONLY static void single_step(struct dune_tf *tf)
{
	if (++count == 5)
		tf->rflags &= ~X86_EFLAGS_TF;
}

static void test_others(void)
{
	unsigned long q = 0;

	count = 0;
	dune_trap_set(X86_TRAP_BP, breakpoint, 0);
	__asm__ volatile("int3");
	is(count, 1, "int3 leads to the handler");
	dune_trap_set(X86_TRAP_BP, NULL, 0);

	dune_trap_set(X86_TRAP_DE, skip2, 0);
	count = 0;
	__asm__ volatile("xorl %%edx, %%edx; xorl %%ecx, %%ecx; movl $1, %%eax\n"
			 "divl %%ecx; movl %%eax, %%eax"
			 : "=a" (q) : : "rcx", "rdx", "cc");
	is(count, 1, "division by zero leads to the handler");
	dune_trap_set(X86_TRAP_DE, NULL, 0);

	dune_trap_set(X86_TRAP_GP, skip2, 0);
	count = 0;
	__asm__ volatile("movabsq $0x8000000000000000, %%rax; movb (%%rax), %%al"
			 : : : "rax", "memory");
	is(count, 1, "general protection leads to the handler");
	is(seen.error, 0, "the error code of general protection is 0");
	dune_trap_set(X86_TRAP_GP, NULL, 0);

	dune_trap_set(X86_TRAP_DB, single_step, 0);
	count = 0;
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq\n"
			 "nop; nop; nop; nop; nop; nop; nop; lea 128(%%rsp), %%rsp"
			 : : "i" (X86_EFLAGS_TF) : "memory", "cc");
	is(count, 5, "each single step leads to the handler until it clears TF");
	dune_trap_set(X86_TRAP_DB, NULL, 0);

	is(dune_trap_set(X86_TRAP_NMI, skip2, 0), -EINVAL,
	   "dune_trap_set for NMI: EINVAL");
	is(dune_trap_set(X86_TRAP_DF, skip2, 0), -EINVAL,
	   "dune_trap_set for double faults: EINVAL");
	is(dune_trap_set(FIRST_EXTERNAL_VECTOR, skip2, 0), -EINVAL,
	   "dune_trap_set for interrupts: EINVAL");
	is(dune_trap_set(X86_TRAP_UD, skip2, 2), -EINVAL,
	   "dune_trap_set with an unknown flag: EINVAL");
}

static volatile int signals;

static void on_ill(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	((long *)uc)[5 + 16] += 2;	/* rip */
	signals++;
}

GPR_ONLY static void pass_on(struct dune_tf *tf)
{
	count++;
	dune_trap_default(tf);
}

static void test_default(void)
{
	struct sigaction sa = { .sa_sigaction = on_ill, .sa_flags = SA_SIGINFO };

	sigaction(SIGILL, &sa, NULL);
	count = 0;
	dune_trap_set(X86_TRAP_UD, NULL, 0);
	__asm__ volatile("ud2");
	is(signals, 1, "ud2 without a handler is a signal");
	dune_trap_set(X86_TRAP_UD, pass_on, 0);
	__asm__ volatile("ud2");
	ok(signals == 2 && count == 1,
	   "dune_trap_default() raises the signal, and the program continues");
	dune_trap_set(X86_TRAP_UD, pass_on, DUNE_TRAP_FPU);
	__asm__ volatile("ud2");
	ok(signals == 3 && count == 2, "dune_trap_default() does the same with DUNE_TRAP_FPU");
	dune_trap_set(X86_TRAP_UD, NULL, 0);
}

static void prints(struct dune_tf *tf)
{
	tf->rip += 2;
	printf("# libc in a handler: pid %d\n", (int)getpid());
	fflush(stdout);
	count++;
}

static void test_libc(void)
{
	count = 0;
	dune_trap_set(X86_TRAP_UD, prints, DUNE_TRAP_FPU);
	__asm__ volatile("ud2");
	is(count, 1, "a handler that prints");
	dune_trap_set(X86_TRAP_UD, NULL, 0);
}

/* A stack in a part of the address space that was never used before. */
static void test_new_stack(void)
{
	char *stack = mmap((void *)0x123400000000, 65536, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	count = 0;
	dune_trap_set(X86_TRAP_UD, skip2, 0);
	__asm__ volatile("movq %%rsp, %%rbx; movq %0, %%rsp; ud2\n"
			 "pushq $1; popq %%rcx; movq %%rbx, %%rsp"
			 : : "r" (stack + 65536) : "rbx", "rcx", "memory");
	is(count, 1, "an exception on a stack that was not touched yet");
	dune_trap_set(X86_TRAP_UD, NULL, 0);
}

#define BORDER	0x124000000000UL	/* of two gigabytes */

static char watched[PAGE] __attribute__((aligned(4096)));
static uint64_t first_cr2;

GPR_ONLY static void unprotect(struct dune_tf *tf)
{
	(void)tf;
	if (!count++)
		first_cr2 = dune_cr2();
	dune_pt_protect(dune_pt_root(), (uint64_t)watched, PAGE, DUNE_PT_RW);
}

/*
 * The frame of a page fault comes to lie across the border of two gigabytes, of which the
 * lower one was never used.
 */
static void test_new_stack_of_page_fault(void)
{
	char *stack = mmap((void *)(BORDER - 65536), 2 * 65536, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	char *top = stack + 65536 + 192;

	*(volatile char *)top = 1;
	dune_pt_protect(dune_pt_root(), (uint64_t)watched, PAGE, DUNE_PT_RO);
	count = 0;
	dune_trap_set(X86_TRAP_PF, unprotect, 0);
	__asm__ volatile("movq %%rsp, %%rbx; movq %0, %%rsp; movb $1, 7(%1)\n"
			 "movq %%rbx, %%rsp"
			 : : "r" (top), "r" (watched) : "rbx", "memory");
	dune_trap_set(X86_TRAP_PF, NULL, 0);
	is(count, 1, "a page fault whose frame faults reaches its handler once");
	is(first_cr2, (long)watched + 7, "the handler gets the address of its own fault");
}

static jmp_buf landing;

GPR_ONLY static void jump(struct dune_tf *tf)
{
	(void)tf;
	longjmp(landing, 1);
}

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

/* Interrupts are off where a handler's longjmp() lands. */
static void test_longjmp(void)
{
	signals = 0;
	signal(SIGUSR1, on_signal);
	dune_trap_set(X86_TRAP_UD, jump, 0);
	if (!setjmp(landing))
		__asm__ volatile("ud2");
	raise(SIGUSR1);
	is(signals, 0, "longjmp() out of a handler: signals wait");
	dune_irq_enable();
	is(signals, 1, "signals come at dune_irq_enable() after a longjmp() out of a handler");
	raise(SIGUSR1);
	is(signals, 2, "signals come after dune_irq_enable()");
	dune_trap_set(X86_TRAP_UD, NULL, 0);
}

int main(void)
{
	must_enter(NULL);
	test_frame();
	test_red_zone();
	test_nested();
	test_fpu();
	test_others();
	test_default();
	test_libc();
	test_new_stack();
	test_new_stack_of_page_fault();
	test_longjmp();
	return done();
}

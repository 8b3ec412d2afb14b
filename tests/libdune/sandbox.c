// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ring 3 that is not trusted, with all memory the supervisor's: a signal that
 * arrives while it runs is handled in ring 0. Fails when the handler runs on a
 * stack of ring 3 or with its FS base or FPU registers, when ring 3 comes back with
 * other registers, or when it reaches memory that it was not given.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <asm/processor-flags.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "child.h"
#include "handler.h"
#include "rings.h"
#include "tap.h"
#include "x86.h"

static __thread int mine = 4711;
static volatile int count, handler_ring, tls;
static volatile unsigned int mxcsr;
static volatile uintptr_t handler_sp, handler_cs;
static char stack[4 * PAGE] __attribute__((aligned(4096)));
static volatile long *box;	/* shared with a child */
static sigjmp_buf out;

/* Ring 3's code is in pages of its own, which it is given. */
#define CODE(name, text) \
	__asm__(".pushsection ring3, \"ax\", @progbits\n" #name ": " text ".popsection\n"); \
	extern char name[]

extern char __start_ring3[], __stop_ring3[];

CODE(code_start, ".balign 4096\n");
/* Ends when a handler has written 2 to the box; its registers must be whole. */
CODE(code_wait, "movq $77, %r12; movq $88, %r11; movq $99, %rcx; std; movl $1, (%rbx)\n"
		"1: cmpl $2, (%rbx); jne 1b; pushfq; popq %rdi\n"
		"andl $" ASM_BIT(X86_EFLAGS_DF_BIT) ", %edi\n"
		"cld; addq %r12, %rdi; addq %r11, %rdi; addq %rcx, %rdi\n" LEAVE);
CODE(code_spin, "movl $1, (%rbx); 1: jmp 1b\n");
CODE(code_ud, "ud2; movl $55, %edi\n" LEAVE);
CODE(code_xmm, "movq %rbx, %xmm9; ud2; movq %xmm9, %rdi; subq %rbx, %rdi\n" LEAVE);
CODE(code_read, "movq (%rbx), %rdi\n" LEAVE);
CODE(code_call, "movq %rbx, %rax; xorl %edi, %edi; xorl %esi, %esi; xorl %edx, %edx\n"
		"movl $8, %r10d; syscall; movq %rax, %rdi\n" LEAVE);
/* A value on the x87 stack, all SSE exceptions unmasked, FS at the box */
CODE(code_own, "fldz; movl $0x6000, -8(%rsp); ldmxcsr -8(%rsp)\n"
	       "movl $" ASM_NUMBER(ARCH_SET_FS) ", %edi; movq %rbx, %rsi\n"
	       SYSCALL(SYS_arch_prctl)
	       "movl $1, (%rbx); 1: cmpl $2, (%rbx); jne 1b; movl %fs:0, %edi\n" LEAVE);
CODE(code_end, ".balign 4096\n");

GPR_ONLY static void monitor(struct dune_tf *tf)
{
	if (tf->rax == NR_LEAVE)
		dune_ring3_leave(tf->rdi);
	dune_syscall_pass(tf);
}

static long run(void *code, volatile void *rbx)
{
	struct dune_tf tf = {
		.rip = (uint64_t)code,
		.rsp = (uint64_t)stack + sizeof(stack) - 8,
		.rbx = (uint64_t)rbx,
	};

	return dune_ring3(&tf);
}

static void look_here(void)
{
	unsigned int word;

	__asm__ volatile("stmxcsr %0" : "=m" (word));
	handler_ring = ring();
	mxcsr = word;
	tls = mine;
}

static void look(void *uc)
{
	look_here();
	handler_sp = (uintptr_t)__builtin_frame_address(0);
	handler_cs = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_CSGSFS] & 0xffff;
	count++;
}

static void go_on(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	look(uc);
	box[0] = 2;
}

static void leave(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	look(uc);
	dune_ring3_leave(-5);
}

static void jump(int sig, siginfo_t *info, void *uc)
{
	(void)info;
	look(uc);
	siglongjmp(out, sig);
}

static void step_over(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)info;
	look(uc);
	((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* A signal comes as soon as ring 3 has written 1 into the box. */
static pid_t send_when_ready(int sig)
{
	pid_t parent = getpid(), pid;

	*box = 0;
	pid = fork();
	if (pid)
		return pid;
	while (*box != 1)
		usleep(1000);
	kill(parent, sig);
	_exit(0);
}

static long run_with_signal(void *code, int sig)
{
	pid_t pid = send_when_ready(sig);
	long value;

	count = 0;
	value = run(code, box);
	waitpid(pid, NULL, 0);
	return value;
}

static int on(const void *area, size_t size, uintptr_t p)
{
	return p - (uintptr_t)area < size;
}

static void trusted(const char *what)
{
	ok(count == 1 && handler_ring == 0, "%s: the handler runs in ring 0", what);
	is(handler_cs & 3, 3, "%s: the handler's frame is of ring 3", what);
	ok(!on(stack, sizeof(stack), handler_sp), "%s: the handler runs on a stack of ring 0",
	   what);
	ok(tls == 4711 && mxcsr == 0x1f80, "%s: the handler has ring 0's TLS and MXCSR", what);
}

static void test_signals(void)
{
	int i;

	handle(SIGUSR1, go_on, 0, 0);
	is(run_with_signal(code_wait, SIGUSR1), X86_EFLAGS_DF + 77 + 88 + 99,
	   "ring 3 continues with all its registers after a signal");
	trusted("a signal");
	handle(SIGUSR1, leave, SA_NODEFER, 0);
	for (i = 0; i < 3; i++)
		is(run_with_signal(code_spin, SIGUSR1), -5, "dune_ring3_leave() from a handler");
	trusted("dune_ring3_leave() from a handler");
	handle(SIGUSR1, jump, 0, 0);
	if (!sigsetjmp(out, 1))
		run_with_signal(code_spin, SIGUSR1);
	trusted("siglongjmp() out of a handler");
	waitpid(-1, NULL, 0);
	handle(SIGUSR1, go_on, 0, 0);
	is(run_with_signal(code_own, SIGUSR1), 2,
	   "ring 3 returns after a signal with its own FS and MXCSR");
	trusted("a signal while ring 3 has its own FS and MXCSR");
	look_here();
	ok(tls == 4711 && mxcsr == 0x1f80, "ring 3's FS and MXCSR are gone after dune_ring3()");
	count = 0;
	raise(SIGUSR1);
	ok(count == 1 && handler_ring == 0 && handler_cs == DUNE_CS, "a signal to ring 0 itself");
	handle(SIGILL, step_over, 0, 0);
	count = 0;
	is(run(code_ud, box), 55, "an exception of ring 3 becomes a signal");
	trusted("the signal of an exception of ring 3");
}

static void use_fpu(struct dune_tf *tf)
{
	__asm__ volatile("pxor %%xmm9, %%xmm9" : : : "xmm9");
	dune_trap_default(tf);
}

static void use_fpu_once(struct dune_tf *tf)
{
	dune_trap_set(X86_TRAP_UD, NULL, 0);
	use_fpu(tf);
}

static void test_fpu(void)
{
	dune_trap_set(X86_TRAP_UD, use_fpu, DUNE_TRAP_FPU);
	count = 0;
	is(run(code_xmm, box), 0, "a handler with the FPU that wants the signal: registers");
	trusted("the signal of an exception whose handler has the FPU");
	dune_trap_set(X86_TRAP_UD, use_fpu_once, DUNE_TRAP_FPU);
	count = 0;
	is(run(code_xmm, box), 0, "a handler with the FPU that removes itself: registers");
	trusted("the signal of an exception whose handler removes itself");
}

static char alt[65536];

static void test_altstack(void)
{
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };

	sigaltstack(&ss, NULL);
	handle(SIGUSR1, go_on, SA_ONSTACK, 0);
	is(run_with_signal(code_wait, SIGUSR1), X86_EFLAGS_DF + 77 + 88 + 99,
	   "ring 3 continues after a signal on an alternate stack");
	trusted("a signal");
	ok(on(alt, sizeof(alt), handler_sp),
	   "a signal of ring 3 is handled on the alternate stack");
}

static void test_limits(void)
{
	is(run(code_call, (void *)SYS_getpid), getpid(),
	   "a call of ring 3 that is passed on has its result");
	is(run(code_call, (void *)SYS_rt_sigaction), -EPERM, "rt_sigaction of ring 3: EPERM");
	is(run(code_call, (void *)SYS_sigaltstack), -EPERM, "sigaltstack of ring 3: EPERM");
	is(run(code_call, (void *)SYS_rt_sigreturn), -EPERM, "rt_sigreturn of ring 3: EPERM");
	is(run(code_read, box), 2, "ring 3 reads memory that it was given");
	handle(SIGSEGV, leave, SA_NODEFER, 0);
	is(run(code_read, &mine), -5, "ring 3 cannot read a global");
	is(run(code_read, dune_pt_root()), -5, "ring 3 cannot read the page table");
	is(run(code_read, (void *)look_here), -5, "ring 3 cannot read code of ring 0");
	is(run((void *)look_here, box), -5, "ring 3 cannot execute code of ring 0");
}

static void grant(const void *from, size_t size, uint64_t rights)
{
	is(dune_pt_protect(dune_pt_root(), (uint64_t)from, size, rights), 0,
	   "memory is given to ring 3");
}

int main(void)
{
	struct dune_config cfg = { .size = sizeof(cfg), .super_size = 1UL << 47 };

	box = shared_alloc(PAGE);
	must_enter(&cfg);
	grant(__start_ring3, __stop_ring3 - __start_ring3, DUNE_PT_RX);
	grant(stack, sizeof(stack), DUNE_PT_RW);
	grant((void *)box, PAGE, DUNE_PT_RW);
	dune_syscall_set(monitor);
	test_signals();
	test_fpu();
	test_limits();
	test_altstack();
	return done();
}

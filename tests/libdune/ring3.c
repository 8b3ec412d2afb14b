// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ring 3: its system calls, its exceptions, and what it must not be able to do.
 * Fails when a privileged instruction, a far jump or a memory access of ring 3
 * succeeds, or when a call or an exception changes a register that it should not.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <asm/processor-flags.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

/* A system call, unknown to Linux, that returns the sum of its arguments. */
#define NR_SUM	4242

/* The selectors of ring 3: the same as on Linux. */
#define USER_CS	0x33
#define USER_SS	0x2b

static struct dune_tf seen;
static volatile long calls;
static char stack[65536] __attribute__((aligned(16)));

GPR_ONLY static void handler(struct dune_tf *tf)
{
	seen = *tf;
	calls++;
	if (tf->rax == NR_LEAVE)
		dune_ring3_leave(tf->rdi);
	if (tf->rax == NR_SUM) {
		tf->rax = tf->rdi + tf->rsi + tf->rdx + tf->r10 + tf->r8 + tf->r9;
		return;
	}
	dune_syscall_pass(tf);
}

static long run(void *code)
{
	struct dune_tf tf = {
		.rip = (uint64_t)code,
		.rsp = (uint64_t)stack + sizeof(stack) - 8,
		/* It asks for IOPL 3 and for ring 0. */
		.rflags = X86_EFLAGS_IOPL | X86_EFLAGS_IF | X86_EFLAGS_FIXED,
		.cs = DUNE_CS,
		.rbx = 0x1b, .rbp = 0x1c, .r12 = 0x12, .r15 = 0x15,
	};

	return dune_ring3(&tf);
}

#define SET_FLAG(bit) "pushfq; orq $" ASM_BIT(bit) ", (%rsp); popfq\n"
/* Returns the flag after a system call, and clears it. */
#define KEEP_FLAG(bit) SET_FLAG(bit) SYSCALL(SYS_getpid) \
	"pushfq; popq %rdi; andq $" ASM_BIT(bit) ", %rdi; pushq $2; popfq\n"

#define CODE(name, text) \
	__asm__(".pushsection .text\n" #name ": " text ".popsection\n"); \
	extern char name[]

CODE(code_cs, "movq %cs, %rdi; andq $3, %rdi\n" LEAVE);
CODE(code_flags, "pushfq; popq %rdi\n" LEAVE);
CODE(code_popf, "pushfq; orq $(3 << " ASM_NUMBER(X86_EFLAGS_IOPL_BIT) "), (%rsp); popfq\n"
		"pushfq; popq %rdi\n" LEAVE);
CODE(code_sum, "movl $" ASM_NUMBER(NR_SUM) ", %eax; movl $1, %edi; movl $2, %esi; movl $4, %edx\n"
	       "movl $8, %r10d; movl $16, %r8d; movl $32, %r9d; syscall\n"
	       "movq %rax, %rdi\n" LEAVE);
/* 1 for each register that a system call must preserve and did not */
CODE(code_keep, "movl $" ASM_NUMBER(SYS_getpid) ", %eax\n"
		"movq $-1, %rdi; movq $-2, %rsi; movq $-3, %rdx\n"
		"movq $-4, %r10; movq $-5, %r8; movq $-6, %r9; movq $-7, %r13\n"
		"movq $-8, %r14; std; stc; syscall; sbbq %rcx, %rcx; movq %rsp, %r11\n"
		"addq %rdi, %rsi; addq %rsi, %rdx; addq %rdx, %r10; addq %r10, %r8\n"
		"addq %r8, %r9; addq %r9, %r13; addq %r13, %r14\n"
		"leaq (%r14, %rcx), %rdi; addq %rbx, %rdi; addq %rbp, %rdi\n"
		"addq %r12, %rdi; addq %r15, %rdi; cld\n" LEAVE);
CODE(code_rcx, SYSCALL(SYS_getpid) "1: pushfq; popq %rsi\n"
	       "leaq 1b(%rip), %rdi; subq %rcx, %rdi\n"
	       "xorq %r11, %rsi; andq $0xff, %rsi; orq %rsi, %rdi\n" LEAVE);
CODE(code_ud, "movl $1, %ebx; ud2; movq %rbx, %rdi\n" LEAVE);
CODE(code_gs, "movq $" ASM_NUMBER(ARCH_SET_GS) ", %rdi; leaq gs_data(%rip), %rsi\n"
	      SYSCALL(SYS_arch_prctl) "movq %gs:0, %rdi\n" LEAVE
	      ".balign 8\ngs_data: .quad 0x6757\n");
CODE(code_tf, SET_FLAG(X86_EFLAGS_TF_BIT) "nop\n" SYSCALL(SYS_getpid) "nop\n"
	      "pushfq; andq $~" ASM_BIT(X86_EFLAGS_TF_BIT) ", (%rsp); popfq\n"
	      "movq $5, %rdi\n" LEAVE);
CODE(code_ac, KEEP_FLAG(X86_EFLAGS_AC_BIT) LEAVE);
CODE(code_nt, KEEP_FLAG(X86_EFLAGS_NT_BIT) LEAVE);
CODE(code_vmmcall, "vmmcall\n" LEAVE);
CODE(code_vmcall, "vmcall\n" LEAVE);
CODE(code_int80, "movl $20, %eax; int $" ASM_NUMBER(IA32_SYSCALL_VECTOR) "\n"
		 "movq $5, %rdi\n" LEAVE);
CODE(code_hlt, "hlt\n" LEAVE);
CODE(code_cli, "cli\n" LEAVE);
CODE(code_cr, "movq %cr3, %rax\n" LEAVE);
CODE(code_swapgs, "swapgs\n" LEAVE);
CODE(code_farjmp, "pushq $0x10; leaq 1f(%rip), %rax; pushq %rax; lretq; 1:\n" LEAVE);
CODE(code_iret0, "movq %rsp, %rdx; pushq $0x18; pushq %rdx; pushq $0x1202\n"
		 "pushq $0x10; leaq 1f(%rip), %rax; pushq %rax; iretq; 1:\n" LEAVE);
CODE(code_32, "pushq $0x23; leaq 1f(%rip), %rax; pushq %rax; lretq; 1:\n" LEAVE);
CODE(code_wrmsr, "movl $" ASM_NUMBER(MSR_GS_BASE) ", %ecx; xorl %eax, %eax; xorl %edx, %edx\n"
		 "wrmsr\n" LEAVE);
CODE(code_sysenter, "sysenter\n" LEAVE);
CODE(code_secret, "movq secret(%rip), %rax; movq (%rax), %rdi\n" LEAVE);
CODE(code_wrong, "movabsq $0x7ffffffffffe, %rax; jmp *%rax\n");

char *secret;

static volatile int traps;

GPR_ONLY static void skip2(struct dune_tf *tf)
{
	traps++;
	seen = *tf;
	tf->rbx = 0x77;
	tf->rip += 2;
}

GPR_ONLY static void step(struct dune_tf *tf)
{
	(void)tf;
	traps++;
}

GPR_ONLY static void leave_trap(struct dune_tf *tf)
{
	seen = *tf;
	dune_ring3_leave(-(long)tf->vector);
}

static int death_of(void *code)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		run(code);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_calls(void)
{
	is(run(code_cs), 3, "dune_ring3() runs code in ring 3");
	is(run(code_flags) & (X86_EFLAGS_IOPL | X86_EFLAGS_IF), X86_EFLAGS_IF,
	   "ring 3 has IOPL 0 and interrupts on");
	is(run(code_popf) & X86_EFLAGS_IOPL, 0, "POPF in ring 3 does not change IOPL");
	is(run(code_sum), 63, "a system call of ring 3 has six arguments and a result");
	is(seen.vector, DUNE_VECTOR_SYSCALL, "a system call of ring 3 has its vector in the frame");
	is(run(code_keep), -1 - 1 - 2 - 3 - 4 - 5 - 6 - 7 - 8 + 0x1b + 0x1c +
	   0x12 + 0x15, "a system call of ring 3 preserves registers and carry");
	is(run(code_rcx), 0, "a system call of ring 3 leaves rcx and r11 as the processor does");
	is(run(code_gs), 0x6757, "arch_prctl(ARCH_SET_GS) sets the GS base of ring 3");
	ok(dune_active(), "the program is in ring 0 after dune_ring3()");
}

static void test_traps(void)
{
	traps = 0;
	dune_trap_set(X86_TRAP_UD, skip2, 0);
	is(run(code_ud), 0x77, "an exception of ring 3 is handled, and ring 3 continues");
	is(traps, 1, "the handler of ring 3's exception ran once");
	is(seen.cs, USER_CS, "an exception of ring 3 shows its cs");
	is(seen.ss, USER_SS, "an exception of ring 3 shows its ss");
	dune_trap_set(X86_TRAP_UD, leave_trap, 0);
	is(run(code_ud), -X86_TRAP_UD, "a trap handler may end ring 3");
	dune_trap_set(X86_TRAP_UD, NULL, 0);
	traps = 0;
	dune_trap_set(X86_TRAP_DB, step, 0);
	is(run(code_tf), 5, "single steps across a system call");
	ok(traps >= 4, "single steps across a system call: %d steps", traps);
	dune_trap_set(X86_TRAP_DB, NULL, 0);
	is(run(code_ac), X86_EFLAGS_AC, "ring 3 keeps AC over a system call");
	is(run(code_nt), X86_EFLAGS_NT, "ring 3 keeps NT over a system call");
}

static void test_forbidden(void)
{
	is(death_of(code_vmmcall), SIGILL, "vmmcall in ring 3: SIGILL");
	is(death_of(code_vmcall), SIGILL, "vmcall in ring 3: SIGILL");
	is(death_of(code_int80), SIGSEGV, "int 0x80 in ring 3: SIGSEGV");
	is(death_of(code_hlt), SIGSEGV, "hlt in ring 3: SIGSEGV");
	is(death_of(code_cli), SIGSEGV, "cli in ring 3: SIGSEGV");
	is(death_of(code_cr), SIGSEGV, "mov from cr3 in ring 3: SIGSEGV");
	is(death_of(code_swapgs), SIGSEGV, "swapgs in ring 3: SIGSEGV");
	is(death_of(code_farjmp), SIGSEGV, "far return from ring 3 to ring 0: SIGSEGV");
	is(death_of(code_iret0), SIGSEGV, "iret from ring 3 to ring 0: SIGSEGV");
	is(death_of(code_32), SIGSEGV, "far return from ring 3 to 32-bit code: SIGSEGV");
	is(death_of(code_wrmsr), SIGSEGV, "wrmsr in ring 3: SIGSEGV");
	ok(death_of(code_sysenter) != 0, "sysenter in ring 3 ends by a signal");
	is(death_of(code_wrong), SIGSEGV, "code of ring 3 that runs beyond its end: SIGSEGV");
}

static void test_memory(void)
{
	secret = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(long *)secret = 31337;
	is(run(code_secret), 31337, "ring 3 reads memory");
	dune_pt_protect(dune_pt_root(), (uint64_t)secret, 4096,
			DUNE_PTE_P | DUNE_PTE_W);
	is(*(long *)secret, 31337, "ring 0 reads memory that is the supervisor's only");
	dune_trap_set(DUNE_VECTOR_PF, leave_trap, 0);
	is(run(code_secret), -X86_TRAP_PF,
	   "ring 3 cannot read memory that is the supervisor's only");
	is(seen.error, 5, "the error code of ring 3's read: present, user");
	dune_trap_set(DUNE_VECTOR_PF, NULL, 0);
	is(death_of(code_secret), SIGSEGV, "ring 3's read without a handler is SIGSEGV");
}

static void test_arguments(void)
{
	struct dune_tf tf = { .rip = 0xffffffff81000000 };
	char word[6] = "";

	is(dune_ring3(&tf), -EFAULT, "dune_ring3() to a kernel address: EFAULT");
	tf.rip = 0x800000000000;
	is(dune_ring3(&tf), -EFAULT, "dune_ring3() to an address that is not canonical: EFAULT");
	ok(dune_user_ok(stack, sizeof(stack)), "dune_user_ok() accepts memory of the program");
	ok(!dune_user_ok((void *)-1, 1) && !dune_user_ok((void *)8, -1UL),
	   "dune_user_ok of nonsense");
	is(dune_copy(word, "hello", 6), 0, "dune_copy() succeeds");
	ok(!strcmp(word, "hello"), "dune_copy() has copied the bytes");
	is(dune_copy(word, (void *)8, 6), -EFAULT, "dune_copy() from unmapped memory: EFAULT");
	is(dune_copy((void *)8, word, 6), -EFAULT, "dune_copy() to unmapped memory: EFAULT");
	is(dune_copy(word, (void *)0x8000000000000000, 6), -EFAULT,
	   "dune_copy() from an address that is not canonical: EFAULT");
	is(dune_hypercall(SYS_getpid, 0, 0, 0, 0, 0, 0), getpid(),
	   "dune_hypercall() makes a system call");
	is(dune_hypercall(SYS_close, -1, 0, 0, 0, 0, 0), -EBADF,
	   "dune_hypercall() returns an error number");
}

int main(void)
{
	must_enter(NULL);
	dune_syscall_set(handler);
	test_calls();
	test_traps();
	test_forbidden();
	test_memory();
	test_arguments();
	return done();
}

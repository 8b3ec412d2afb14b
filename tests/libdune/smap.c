// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * DUNE_ENTER_SMAP: all of the program is in the supervisor range, and one gigabyte
 * is left to ring 3. Fails when ring 0 reaches a page of ring 3 by a plain access,
 * whatever flags ring 3 has set, or when dune_copy() cannot.
 */
#define _GNU_SOURCE
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

#define USER_BASE	0x10000000UL
#define USER_SIZE	0x10000UL

/* Error codes of faults of the supervisor on a present page. */
#define PF_FETCH	(X86_PF_PROT | X86_PF_INSTR)
#define PF_READ		X86_PF_PROT
#define PF_WRITE	(X86_PF_PROT | X86_PF_WRITE)

static char *const user = (char *)USER_BASE;
static volatile uint64_t fault_error, fault_address, resume;
static volatile uint64_t handler_flags, in_handler;

GPR_ONLY static uint64_t flags_now(void)
{
	uint64_t flags;

	__asm__ volatile("leaq -128(%%rsp), %%rsp; pushfq; popq %0; leaq 128(%%rsp), %%rsp"
			 : "=r" (flags));
	return flags;
}

/* A fault that is expected: continue at @resume. */
GPR_ONLY static void page_fault(struct dune_tf *tf)
{
	if (!resume || (tf->cs & 3)) {
		dune_trap_default(tf);
		return;
	}
	fault_error = tf->error;
	fault_address = dune_cr2();
	tf->rip = resume;
	if (tf->error == PF_FETCH)
		tf->rsp += 8;
	resume = 0;
}

#define TRY(instruction, ...) do {						\
	fault_error = 0;							\
	fault_address = 0;							\
	__asm__ volatile("leaq 1f(%%rip), %%rax; movq %%rax, %0\n"		\
			 instruction "\n1:"					\
			 : "=m" (resume) : __VA_ARGS__ : "rax", "rcx", "memory", "cc"); \
	resume = 0;								\
} while (0)

GPR_ONLY static void try_read(void)
{
	TRY("movb (%%rdx), %%al", "d" (user));
}

GPR_ONLY static void try_write(void)
{
	TRY("movb $1, (%%rdx)", "d" (user));
}

/* To a RET: comes back with or without a fault, which leaves the return address. */
GPR_ONLY static void try_fetch(void)
{
	fault_error = 0;
	fault_address = 0;
	__asm__ volatile("leaq 1f(%%rip), %%rax; movq %%rax, %0\n"
			 "leaq -128(%%rsp), %%rsp; call *%%rdx; 1: leaq 128(%%rsp), %%rsp"
			 : "=m" (resume) : "d" (user + 1) : "rax", "memory", "cc");
	resume = 0;
}

/* In ring 0, for ring 3, which has AC set. */
GPR_ONLY static void with_ac(struct dune_tf *tf)
{
	in_handler = tf->rflags;
	handler_flags = flags_now();
	try_read();
	if (tf->vector == X86_TRAP_UD)
		tf->rip += 2;
	else if (tf->rax == NR_LEAVE)
		dune_ring3_leave(tf->rdi);
}

static long ring3(const void *code, size_t size)
{
	struct dune_tf tf = {
		.rip = USER_BASE + 0x1000,
		.rsp = USER_BASE + USER_SIZE - 8,
	};

	dune_copy((void *)tf.rip, code, size);
	return dune_ring3(&tf);
}

/* AC, IF and the bit that is always set. */
#define PUSH_AC "pushq $" ASM_BIT(X86_EFLAGS_AC_BIT) " | " ASM_BIT(X86_EFLAGS_IF_BIT) " | " \
	ASM_BIT(X86_EFLAGS_FIXED_BIT) "; "

#define CODE(name, text) \
	__asm__(".pushsection .text\n" #name ": " text #name "_end: .popsection\n"); \
	extern char name[], name##_end[]

CODE(code_ac_call, PUSH_AC "popfq\n" SYSCALL(SYS_getpid)
		   "pushfq; popq %rdi; " LEAVE);
CODE(code_ac_trap, PUSH_AC "popfq; ud2\n"
		   "pushfq; popq %rdi; " LEAVE);
CODE(code_signal, SYSCALL(SYS_getpid) "movl %eax, %edi\n"
		  "movl $" ASM_NUMBER(SIGUSR1) ", %esi\n" SYSCALL(SYS_kill)
		  "movq 0x10000100, %rdi; " LEAVE);
/* a handler and its restorer, at USER_BASE + 0x2000 and + 0x2080 */
CODE(code_handler, "movq %rdi, 0x10000100; ret\n");
CODE(code_restorer, SYSCALL(SYS_rt_sigreturn));

GPR_ONLY static void pass_or_leave(struct dune_tf *tf)
{
	if (tf->rax == NR_LEAVE)
		dune_ring3_leave(tf->rdi);
	dune_syscall_pass(tf);
}

#define SA_RESTORER	0x04000000	/* <asm/signal.h>, which libc replaces */

struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

static void signals(void)
{
	struct kernel_action act = {
		USER_BASE + 0x2000, SA_RESTORER | SA_SIGINFO, USER_BASE + 0x2080, 0
	};

	dune_copy((void *)act.handler, code_handler, code_handler_end - code_handler);
	dune_copy((void *)act.restorer, code_restorer, code_restorer_end - code_restorer);
	is(syscall(SYS_rt_sigaction, SIGUSR1, &act, NULL, 8), 0, "a handler in ring 3's memory");
	dune_syscall_set(pass_or_leave);
	is(ring3(code_signal, code_signal_end - code_signal), SIGUSR1,
	   "a signal comes to ring 3 and returns");
}

static void ring3_flags(int smap)
{
	dune_syscall_set(with_ac);
	dune_trap_set(X86_TRAP_UD, with_ac, 0);
	is(ring3(code_ac_call, code_ac_call_end - code_ac_call) & X86_EFLAGS_AC, X86_EFLAGS_AC,
	   "ring 3 keeps its AC over a system call");
	ok(!(handler_flags & X86_EFLAGS_AC), "AC is clear in the handler of a system call");
	ok(!smap || fault_error == PF_READ,
	   "the handler of a system call cannot read ring 3's memory");
	handler_flags = ~0UL;
	in_handler = 0;
	is(ring3(code_ac_trap, code_ac_trap_end - code_ac_trap) & X86_EFLAGS_AC, X86_EFLAGS_AC,
	   "ring 3 keeps its AC over an exception");
	ok(!(handler_flags & X86_EFLAGS_AC), "AC is clear in the handler of an exception");
	dune_trap_set(X86_TRAP_UD, NULL, 0);
}

/* The handler of a fault in dune_copy() runs without AC, too. */
GPR_ONLY static void fault_in_copy(struct dune_tf *tf)
{
	in_handler = tf->rflags;
	handler_flags = flags_now();
	dune_trap_default(tf);
}

static void copies(int smap)
{
	char bytes[16] = "";

	is(dune_copy(user + 64, "sixteen bytes..", 16), 0, "dune_copy() to ring 3's memory");
	is(dune_copy(bytes, user + 64, 16), 0, "dune_copy() from ring 3's memory");
	ok(!memcmp(bytes, "sixteen bytes..", 16),
	   "dune_copy() to and from ring 3's memory has copied the bytes");
	ok(!(flags_now() & X86_EFLAGS_AC), "AC is clear after dune_copy()");
	is(dune_pt_protect(dune_pt_root(), USER_BASE + 0x8000, 4096, 0), 0,
	   "a page of ring 3's memory is made not present");
	dune_trap_set(DUNE_VECTOR_PF, fault_in_copy, 0);
	is(dune_copy(user + 0x8000, bytes, 16), -EFAULT,
	   "dune_copy() to a page that is not present: EFAULT");
	ok(!smap || (in_handler & X86_EFLAGS_AC), "AC is set in the copy that faults");
	ok(!(handler_flags & X86_EFLAGS_AC), "AC is clear in the handler of the copy's fault");
	ok(!(flags_now() & X86_EFLAGS_AC),
	   "AC is clear after dune_copy() to a page that is not present");
	is(dune_copy((void *)(USER_BASE + USER_SIZE), bytes, 16), -EFAULT,
	   "dune_copy() to no mapping of the process: EFAULT");
	ok(!(flags_now() & X86_EFLAGS_AC),
	   "AC is clear after dune_copy() to no mapping of the process");
	dune_trap_set(DUNE_VECTOR_PF, page_fault, 0);
}

static void processes(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		try_read();
		_exit(fault_error == PF_READ ? 7 : 8);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7,
	   "a child after fork is as its parent (status %#x)", status);
}

static int has(int bit)
{
	uint32_t eax = 7, ebx, ecx = 0, edx;

	__asm__ volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	return ebx >> bit & 1;
}

int main(void)
{
	struct dune_config config = {
		.size = sizeof(config),
		.flags = DUNE_ENTER_SMAP | DUNE_ENTER_RING3_SIGNALS,
	};
	int smep = has(7), smap = has(20), err;

	is(dune_enter(&config), -EINVAL, "DUNE_ENTER_SMAP without a supervisor range: EINVAL");
	config.super_base = GB;
	config.super_size = (1UL << 47) - GB;
	if (mmap(user, USER_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != user)
		return 1;
	user[1] = (char)0xc3;	/* RET */
	err = dune_enter(&config);
	is(err, 0, "dune_enter() with DUNE_ENTER_SMAP");
	if (err)
		return done();
	dune_trap_set(DUNE_VECTOR_PF, page_fault, 0);
	if (smap) {
		try_read();
		is(fault_error, PF_READ, "reading ring 3's memory in ring 0 faults");
		is(fault_address, USER_BASE,
		   "the fault of reading ring 3's memory has its address");
		try_write();
		is(fault_error, PF_WRITE, "writing ring 3's memory in ring 0 faults");
	} else {
		skip("no SMAP in this processor", "reading and writing ring 3's memory in ring 0");
	}
	if (smep) {
		try_fetch();
		is(fault_error, PF_FETCH, "executing ring 3's memory in ring 0 faults");
		is(fault_address, USER_BASE + 1,
		   "the fault of executing ring 3's memory has its address");
	} else {
		skip("no SMEP in this processor", "executing ring 3's memory in ring 0");
	}
	copies(smap);
	ring3_flags(smap);
	signals();
	if (smap)
		processes();
	else
		skip("no SMAP in this processor", "a child after fork is as its parent");
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A tracer moves a thread to the stub's lseek() while the thread is in another lseek(). The thread
 * has a filter that denies a call to 64-bit code alone. Fails when a 32-bit lseek() begins a run,
 * since the filter would take the guest's calls for 32-bit ones, and when a 64-bit lseek() does
 * not, since this test would then prove nothing.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "filter.h"
#include "rseq.h"
#include "tap.h"
#include "timing.h"

#include <linux/audit.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define DENIED		123	/* the filter's errno */
#define LSEEK_32	19

/* What the traced process leaves for the test. */
static volatile struct shared {
	u64 stub;
	bool go;	/* the tracer has done its work */
	long native, value;
} *shared;

static u64 call_when_told(void *arg)
{
	while (!shared->go)
		asm volatile("pause");
	shared->value = hypercall0(SYS_getppid);
	return hypercall3(SYS_exit_group, 0, 0, 0);
}

static void deny_getppid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | DENIED),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_install(code, FILTER_LEN(code), 0);
}

/* Both make lseek(fd, 0, 0) outside of the stub. */
static void lseek_32(int fd)
{
	long rax = LSEEK_32;

	asm volatile("int $0x80"
		     : "+a"(rax) : "b"((long)fd), "c"(0L), "d"(0L), "D"((long)fd)
		     : "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void lseek_64(int fd)
{
	long rax = SYS_lseek, rdi = fd, rsi = 0, rdx = 0;

	asm volatile("syscall"
		     : "+a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx) : "b"((long)fd)
		     : "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
}

static const struct attack {
	const char *name;
	void (*lseek)(int fd);
	unsigned long nr;
	int signal;	/* of the UD2 after the stub's lseek(), if that fails */
	long value;	/* of the guest's call */
} attacks[] = {
	{ "a 64-bit lseek()", lseek_64, SYS_lseek, 0, -DENIED },
	{ "a 32-bit lseek()", lseek_32, LSEEK_32, SIGILL, 0 },
};

static void be_traced(void *arg)
{
	const struct attack *a = arg;
	int fd;

	alone_open();
	fd = alone_second(call_when_told, NULL);
	deny_getppid();
	shared->native = raw_syscall(SYS_getppid, 0, 0, 0, 0, 0, 0);
	shared->stub = (u64)alone_stub;
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	a->lseek(fd);
	_exit(1);
}

static void trace(int pid, const struct attack *a)
{
	struct user_regs_struct regs;
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		bail("the traced process does not stop");
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	do {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
		    ptrace(PTRACE_GETREGS, pid, 0, &regs))
			bail("the traced process ends");
	} while (regs.orig_rax != a->nr);
	ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rip), shared->stub + STUB_ENTERED);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	shared->go = true;
}

int main(void)
{
	begin(120);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	for (unsigned int i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		const struct attack *a = &attacks[i];
		struct outcome o;
		int pid;

		*shared = (struct shared) { 0 };
		pid = checked_fork();
		if (!pid)
			be_traced((void *)a);
		trace(pid, a);
		o = wait_child(pid, 20);
		ok(outcome_is(o, a->signal) && shared->native == -DENIED &&
		   shared->value == a->value,
		   "%s, moved to the stub: the denied call gives %ld, natively %ld (%s)",
		   a->name, shared->value, shared->native, outcome_text(o));
	}
	return done();
}

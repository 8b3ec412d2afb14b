#define _GNU_SOURCE
#include "child.h"
#include "by_stub.h"
#include "filter.h"
#include "rseq.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"
#include <stddef.h>
#include <stdio.h>
#include <signal.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
static struct guest g;
static char *stub;
static volatile int *go;
static u64 one(void *a) { return hypercall0((long)a); }
static u64 waits(void *a) { while (!*go) asm volatile("pause"); return hypercall0((long)a); }
static long enter80(int fd)
{
	long ret;
	asm volatile("call 1f\njmp 2f\n1: int $0x80\nret\n2:"
		     : "=a"(ret) : "0"(19L), "b"((long)fd), "c"(0L), "d"(0L), "D"((long)fd)
		     : "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return ret;
}
static void policy(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 123),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	filter_install(f, FILTER_LEN(f), 0);
}

#include <sys/mman.h>
static void tracee(int out)
{
	rseq_drop();
	stub = stub_open(&g);
	policy();
	printf("native getppid: %ld\n", raw_syscall(SYS_getppid, 0,0,0,0,0,0));
	stub_call(&g, stub, one, (void *)SYS_getppid);
	printf("guest getppid by the stub: %ld\n", (long)g.value);
	guest_prepare(&g, 0, waits, (void *)SYS_getppid);
	long v = (long)stub; write(out, &v, 8);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	kill(getpid(), SIGSTOP);
	unsigned long long before = g.run->counters[DUNE_COUNT_SYSCALL_FAST];
	long e = enter80(g.fd);
	while (!e && g.run->exit_reason == DUNE_EXIT_INTR) { e = stub_enter(stub, g.fd); }
	printf("compat lseek: %ld reason %u fast %llu\n", e, g.run->exit_reason,
	       g.run->counters[DUNE_COUNT_SYSCALL_FAST] - before);
	enum guest_end end = guest_hostcall(&g);
	printf("%s value %ld; native getppid again: %ld\n", guest_end_name(&g, end), (long)g.value, raw_syscall(SYS_getppid, 0,0,0,0,0,0));
	_exit((long)g.value > 0 ? 7 : 0);
}
static int tracer(void)
{
	int st, p[2]; long v; pipe(p);
	pid_t pid = fork();
	if (!pid)
		tracee(p[1]);
	read(p[0], &v, 8);
	waitpid(pid, &st, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
	for (int n = 0; n < 100; n++) {
		struct user_regs_struct r;
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		waitpid(pid, &st, 0);
		if (!WIFSTOPPED(st)) { printf("gone %x\n", st); return 1; }
		ptrace(PTRACE_GETREGS, pid, 0, &r);
		if (r.orig_rax == 19) {
			printf("lseek at rip %llx cs %llx\n", r.rip, r.cs);
			ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rip), v + 7);
			ptrace(PTRACE_CONT, pid, 0, 0);
			return 0;
		}
	}
	return 1;
}
int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int n = 0; n < 20; n++) {
		int st;
		*go = 0;
		pid_t pid = fork();
		if (!pid)
			_exit(tracer());
		waitpid(pid, &st, 0);
		*go = 1;
		printf("trial %d: tracer gone; I am %d\n", n, getpid());
		wait(&st);
		if (WIFEXITED(st) && WEXITSTATUS(st) == 7) {
			printf("BYPASSED: the guest made a call that the filter denies\n");
			return 0;
		}
	}
	return 1;
}

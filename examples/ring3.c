// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ring3: run code that is not trusted in ring 3, and decide about its system
 * calls. It may write and exit; a page that holds a secret it cannot read.
 */
#include <dune.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char stack[65536] __attribute__((aligned(16)));
static volatile int allowed, denied, faults;
static volatile char *secret;

static long call(long nr, long a0, long a1, long a2)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a" (ret) : "a" (nr), "D" (a0), "S" (a1), "d" (a2)
			 : "rcx", "r11", "memory");
	return ret;
}

/* The untrusted code. */
static void guest(void)
{
	static const char hello[] = "ring3: hello from ring 3\n";
	long denied_with;

	call(SYS_write, 1, (long)hello, sizeof(hello) - 1);
	denied_with = call(SYS_getpid, 0, 0, 0);
	if (*secret == 42)	/* faults: the handler ends it here */
		denied_with = 0;
	call(SYS_exit, denied_with, 0, 0);
}

/* The monitor, in ring 0. No FPU: it shares the registers with the guest. */
__attribute__((target("general-regs-only")))
static void on_syscall(struct dune_tf *tf)
{
	switch (tf->rax) {
	case SYS_write:
		allowed++;
		dune_syscall_pass(tf);
		break;
	case SYS_exit:
		dune_ring3_leave(tf->rdi);
	default:
		denied++;
		tf->rax = -EPERM;
	}
}

__attribute__((target("general-regs-only")))
static void on_page_fault(struct dune_tf *tf)
{
	if ((tf->cs & 3) == 0 || dune_cr2() != (uint64_t)secret)
		dune_trap_default(tf);
	faults++;
	dune_ring3_leave(1234);
}

int main(void)
{
	struct dune_tf tf = {
		.rip = (uint64_t)guest,
		.rsp = (uint64_t)stack + sizeof(stack) - 8,
	};
	int err = dune_enter(NULL);
	long result;

	if (err) {
		fprintf(stderr, "ring3: dune_enter: %s\n", strerror(-err));
		return 1;
	}
	secret = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*secret = 42;
	/* Without DUNE_PTE_U, the page is for ring 0 only. */
	dune_pt_protect(dune_pt_root(), (uint64_t)secret, 4096,
			DUNE_PTE_P | DUNE_PTE_W);
	dune_trap_set(14, on_page_fault, 0);
	dune_syscall_set(on_syscall);
	result = dune_ring3(&tf);
	printf("ring3: %d calls allowed, %d denied, %d fault, result %ld\n",
	       allowed, denied, faults, result);
	return allowed == 1 && denied == 1 && faults == 1 && result == 1234 ? 0 : 1;
}

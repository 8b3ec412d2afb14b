// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox accesses the runtime's memory itself, and maps something else in the
 * supervisor range. Fails when an access does not end with the expected signal, when a system call
 * does not take the runtime's stack, when a hypercall works in ring 3, when a call places, moves or
 * removes a mapping in the supervisor range, or when the runtime has a mapping outside of it.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

static void do_write(void *p)
{
	*(volatile char *)p = 1;
}

static void do_exec(void *p)
{
	((void (*)(void))p)();
}

static void do_vmmcall(void *p)
{
	__asm__ volatile("vmmcall" : : "a" (39) : "memory");
}

static void do_vmcall(void *p)
{
	__asm__ volatile("vmcall" : : "a" (39) : "memory");
}

static void do_stack(void *p)
{
	/* a push with the stack pointer in the runtime */
	__asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; push %%rax; mov %%rbx, %%rsp"
			 : : "r" (p) : "rbx", "memory");
}

/* The entry of a system call must use the runtime's stack, whatever RSP holds. */
static long getpid_on_stack(unsigned long sp)
{
	long ret = SYS_getpid;

	__asm__ volatile("mov %%rsp, %%rbx; mov %1, %%rsp; syscall; mov %%rbx, %%rsp"
			 : "+a" (ret) : "r" (sp) : "rbx", "rcx", "r11", "memory");
	return ret;
}

static void test_direct(void)
{
	/*
	 * the beginning of private memory; an entry of the root that leads nowhere; the runtime;
	 * its scratch; the end
	 */
	static const unsigned long places[] = {
		DUNE_PRIVATE_BASE, 0xffff900000000000, DUNE_IMAGE_BASE, DUNE_SCRATCH_AT, ~0UL
	};
	unsigned long at, open = 0;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *p = (void *)places[i];

		ok(fault_of(read_byte, p) == SIGSEGV && fault_address == p &&
		   fault_code == SEGV_MAPERR && fault_error == 5,
		   "reading the runtime at %#lx: SIGSEGV, not mapped", places[i]);
		ok(fault_of(do_write, p) == SIGSEGV && fault_address == p,
		   "writing the runtime at %#lx: SIGSEGV", places[i]);
		ok(fault_of(do_exec, p) == SIGSEGV && fault_address == p,
		   "executing the runtime at %#lx: SIGSEGV", places[i]);
	}
	for (at = DUNE_IMAGE_BASE; at < DUNE_SCRATCH_AT + SCRATCH_SIZE; at += 4096)
		open += fault_of(read_byte, (void *)at) != SIGSEGV || fault_address != (void *)at;
	is(open, 0, "reading each page of the runtime and of its scratch: SIGSEGV");
	ok(fault_of(do_stack, (void *)(DUNE_IMAGE_BASE + 64)) == SIGSEGV,
	   "a push to the runtime: SIGSEGV");
	is(getpid_on_stack(DUNE_IMAGE_BASE + 64), getpid(),
	   "getpid() with the stack pointer in the runtime: the process's number");
	ok(fault_of(do_write, (void *)super_base) == SIGSEGV, "writing the stub: SIGSEGV");
	ok(fault_of(do_write, (void *)WINDOW) == SIGSEGV, "writing the window: SIGSEGV");
	ok(fault_of(do_vmmcall, NULL) == SIGILL, "AMD's hypercall from ring 3: SIGILL");
	ok(fault_of(do_vmcall, NULL) == SIGILL, "Intel's hypercall from ring 3: SIGILL");
}

static void test_mappings(void)
{
	char *own = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p;
	int id;

	ok(other_mappings() == 0, "nothing of the runtime is mapped but the stub");
	is(call(SYS_mmap, WINDOW, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), -ENOMEM,
	   "mmap over the window: ENOMEM");
	is(call(SYS_mmap, SUPER_BASE - 4096, 8192, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), -ENOMEM,
	   "mmap that begins below the supervisor range and reaches into it: ENOMEM");
	is(call(SYS_mmap, WINDOW, 4096, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), -EEXIST,
	   "mmap over the window with MAP_FIXED_NOREPLACE: EEXIST");
	p = mmap((void *)(SUPER_BASE + SUPER_SIZE / 2), 4096, PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ok(p != MAP_FAILED && (unsigned long)p - SUPER_BASE >= SUPER_SIZE,
	   "a hint into the supervisor range does not place a mapping there");
	/* For the program nothing is mapped there. The runtime must still work afterwards. */
	is(call(SYS_munmap, WINDOW, 4096, 0, 0, 0, 0), 0,
	   "munmap of the window: 0, and nothing is unmapped");
	is(call(SYS_munmap, SUPER_BASE - 4096, 2 * SUPER_SIZE, 0, 0, 0, 0), 0,
	   "munmap around the supervisor range: 0");
	is(call(SYS_munmap, SUPER_BASE, SUPER_SIZE, 0, 0, 0, 0), 0,
	   "munmap of the supervisor range: 0");
	is(call(SYS_munmap, SUPER_BASE - 4096, 8192 - 1, 0, 0, 0, 0), 0,
	   "munmap up to a part of the supervisor range's first page: 0");
	is(call(SYS_munmap, SUPER_BASE + 1, 4096, 0, 0, 0, 0), -EINVAL,
	   "munmap of an address that is not aligned: EINVAL");
	is(call(SYS_munmap, SUPER_BASE, 0, 0, 0, 0, 0), -EINVAL, "munmap of no byte: EINVAL");
	is(call(SYS_munmap, SUPER_BASE - 4096, 1UL << 63, 0, 0, 0, 0), -EINVAL,
	   "munmap of 2^63 bytes: EINVAL");
	is(call(SYS_munmap, SUPER_BASE + 4096, -8192UL, 0, 0, 0, 0), -EINVAL,
	   "munmap over the end of the address space: EINVAL");
	is(call(SYS_mremap, WINDOW, 4096, 4096, MREMAP_MAYMOVE, 0, 0), -EFAULT,
	   "mremap of the window: EFAULT");
	is(call(SYS_mremap, (long)own, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, WINDOW, 0),
	   -EINVAL, "mremap onto the window: EINVAL");
	id = shmget(IPC_PRIVATE, 3 * 4096, IPC_CREAT | 0600);
	is(call(SYS_shmat, id, WINDOW, 0, 0, 0, 0), -EINVAL, "shmat at the window: EINVAL");
	is(call(SYS_shmat, id, SUPER_BASE - 4096, SHM_REMAP, 0, 0, 0), -EINVAL,
	   "shmat that reaches into the supervisor range: EINVAL");
	shmctl(id, IPC_RMID, NULL);
	is(call(SYS_pkey_mprotect, (long)own, 4096, PROT_READ, 1, 0, 0), -EINVAL,
	   "pkey_mprotect with key 1: EINVAL");
	is(call(SYS_prctl, PR_SET_MM, PR_SET_MM_START_BRK, WINDOW, 0, 0, 0), -EINVAL,
	   "PR_SET_MM_START_BRK in the window: EINVAL");
}

int main(void)
{
	leave_session();
	test_direct();
	test_mappings();
	return done();
}

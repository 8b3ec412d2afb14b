// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * On AMD a guest-physical address is an address of the process. Where the
 * processor's physical addresses are narrower than a process's (Bochs: 40
 * bits), a guest reaches only what lies low: then the main thread's stack and
 * every mapping whose place the test leaves to the kernel are put there. The
 * linker lets main() and mmap() lead here (--wrap).
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define STACK_SIZE	(1UL << 20)

/* Above what programs and their heaps take, below 2^39. */
#define LOW		(1UL << 36)
#define ALIGN		(2UL << 20)

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);
void *__real_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset);

static uintptr_t next = LOW;

static bool narrow(void)
{
	static int known;
	uint32_t eax, ebx, ecx, edx;

	if (!known) {
		__cpuid(0, eax, ebx, ecx, edx);
		known = 1;
		if (ebx == signature_AMD_ebx) {
			__cpuid(0x80000008, eax, ebx, ecx, edx);
			known += (eax & 0xff) < 47;
		}
	}
	return known == 2;
}

/* The address is only a hint: with MAP_FIXED, calls that must fail could succeed. */
void *__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (!p && narrow())
		p = (void *)__atomic_fetch_add(&next, (size + 2 * ALIGN - 1) & -ALIGN,
					       __ATOMIC_RELAXED);
	return __real_mmap(p, size, prot, flags, fd, offset);
}

int __wrap_main(int argc, char **argv, char **envp)
{
	int ret;

	if (!narrow())
		return __real_main(argc, argv, envp);

	char *stack = __wrap_mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		abort();
	asm volatile("mov %%rsp, %%rbx\n\t"
		     "mov %[top], %%rsp\n\t"
		     "call __real_main\n\t"
		     "mov %%rbx, %%rsp"
		     : "=a"(ret), "+D"(argc), "+S"(argv), "+d"(envp)
		     : [top] "r"(stack + STACK_SIZE)
		     : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
	return ret;
}

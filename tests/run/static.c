// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A static program that shows what it was started with: arguments, auxiliary
 * vector, heap, stack, registers of the FPU. What is random is only checked for
 * being sensible. start.bash fails when the output differs natively and in the
 * sandbox.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;
extern char _end[];

static int bss[3000];

int main(int argc, char **argv)
{
	const Elf64_Phdr *p = (const void *)getauxval(AT_PHDR);
	uint32_t mxcsr = 0, zero = 0;
	char name[16] = "";
	int i, n = 0;

	for (i = 0; i < argc; i++)
		printf("argv[%d] %s\n", i, argv[i]);
	for (i = 0; environ[i]; i++)
		n++;
	printf("environment: %d\n", n);
	printf("execfn %s\n", (char *)getauxval(AT_EXECFN));
	printf("phdr %d of %lu, phent %lu\n", p && p[0].p_type, getauxval(AT_PHNUM),
	       getauxval(AT_PHENT));
	printf("pagesz %lu clktck %lu secure %lu\n", getauxval(AT_PAGESZ), getauxval(AT_CLKTCK),
	       getauxval(AT_SECURE));
	printf("uid %lu gid %lu hwcap %lx base %d flags %lx\n", getauxval(AT_UID),
	       getauxval(AT_GID), getauxval(AT_HWCAP), getauxval(AT_BASE) != 0,
	       getauxval(AT_FLAGS));
	printf("platform %s\n", (char *)getauxval(AT_PLATFORM));
	printf("vdso %d random %d\n", getauxval(AT_SYSINFO_EHDR) != 0, getauxval(AT_RANDOM) != 0);
	prctl(PR_GET_NAME, name);
	printf("name %s\n", name);
	for (i = 0; i < 3000; i++)
		zero |= bss[i];
	printf("bss %u\n", zero);
	printf("heap after the image: %d\n", (char *)sbrk(0) >= _end &&
	       (char *)sbrk(0) < _end + (2UL << 30));
	printf("heap grows: %d\n", sbrk(1 << 20) != (void *)-1);
	memset(sbrk(0) - 4096, 1, 4096);
	__asm__ volatile("stmxcsr %0" : "=m" (mxcsr));
	printf("mxcsr %x stack aligned %d\n", mxcsr,
	       ((uintptr_t)__builtin_frame_address(0) & 15) == 0);
	return argc;
}

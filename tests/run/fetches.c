// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Instruction fetches that fault, and before them instructions that do. Prints what each signal's
 * frame says of the fault. faults.bash fails when that differs natively and in the sandbox.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static const char *now;
static sigjmp_buf jump;

static void note(int sig, siginfo_t *info, void *context)
{
	const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;

	printf("%s: signal %d, code %d, trap %lld, error %#llx%s%s\n", now, sig, info->si_code,
	       regs[REG_TRAPNO], regs[REG_ERR],
	       regs[REG_RIP] == (greg_t)info->si_addr ? ", at its address" : "",
	       regs[REG_CR2] == regs[REG_RIP] ? ", which CR2 has" :
	       regs[REG_CR2] ? ", CR2 has another" : "");
	siglongjmp(jump, 1);
}

static void execute(const char *name, const volatile void *code)
{
	now = name;
	if (!sigsetjmp(jump, 1))
		((void (*)(void))code)();
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *file = tmpfile();
	char *beyond = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fileno(file), 0);

	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	sigaction(SIGILL, &act, NULL);
	sigaction(SIGTRAP, &act, NULL);
	/* Until the first page fault CR2 is 0. */
	now = "ud2";
	if (!sigsetjmp(jump, 1))
		__asm__ volatile("ud2");
	now = "int3";
	if (!sigsetjmp(jump, 1))
		__asm__ volatile("int3");
	now = "hlt";
	if (!sigsetjmp(jump, 1))
		__asm__ volatile("hlt");
	execute("no address", (void *)0x800000000000);
	*page = 1;
	execute("memory without the right", page);
	mprotect(page, 4096, PROT_NONE);
	execute("memory without any right", page);
	munmap(page, 4096);
	execute("where nothing is mapped", page);
	execute("the first page", NULL);
	execute("beyond the end of a file", beyond);
	execute("the last page of the lower half", (void *)0x7ffffffff000);
	execute("the kernel's half", (void *)0xffff900000000000);
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/* Signals. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

void row_sigreturn(void)
{
	struct {
		u64 ret;
		ucontext_t uc;
		char rest[4096];
	} __attribute__((aligned(64))) *f = (void *)buffer;

	getcontext(&f->uc);
	f->uc.uc_mcontext.gregs[REG_RIP] = (u64)sled;
	f->uc.uc_mcontext.gregs[REG_RSP] = (u64)buffer + 32768;
	f->uc.uc_mcontext.gregs[REG_CSGSFS] = 0x002b000000000033;
	f->uc.uc_mcontext.fpregs = NULL;
	__asm__ volatile("mov %0, %%rsp; mov %1, %%eax; syscall; mov $60, %%eax; syscall"
			 : : "r" (&f->uc), "i" (RAW_BIT | SYS_rt_sigreturn) : "memory");
}

void row_sigaction(void)
{
	struct action act = { (u64)sled, SA_RESTORER | SA_SIGINFO | SA_ONSTACK, (u64)sled, 0 };
	int sig;

	for (sig = 1; sig < 65; sig++)
		RAW6(SYS_rt_sigaction, sig, &act, NULL, 8, 0, 0);
	kill(getpid(), SIGURG);
	kill(getpid(), SIGSEGV);
	work(3);
}

void row_sigaltstack(void)
{
	stack_t alt = { .ss_sp = buffer, .ss_size = sizeof(buffer) };
	stack_t off = { .ss_flags = SS_DISABLE };

	RAW(SYS_sigaltstack, &alt, NULL, 0);
	work(3);
	RAW(SYS_sigaltstack, &off, NULL, 0);
	work(3);
}

void row_siginfo(void)
{
	u64 info[16];
	int sig;

	keep_ticking(SIGALRM, 700);
	for (sig = 1; sig < 65; sig++) {
		struct sigaction act = { .sa_handler = tick };

		sigaction(sig, &act, NULL);
		random_words(info, 16);
		info[0] = sig;
		((int *)info)[2] = rand() & 1 ? -rand() % 10 : rand() % 10;
		RAW(SYS_rt_sigqueueinfo, getpid(), sig, info);
		RAW6(SYS_rt_tgsigqueueinfo, getpid(), getpid(), sig, info, 0, 0);
	}
	work(3);
}

void row_sigmask(void)
{
	u64 all = ~0UL, none = 0;
	int i;

	for (i = 0; i < 50; i++) {
		RAW6(SYS_rt_sigprocmask, SIG_SETMASK, i & 1 ? &all : &none, NULL, 8, 0, 0);
		work(1);
	}
}

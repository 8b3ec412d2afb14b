// SPDX-License-Identifier: MIT OR Apache-2.0
/* Handling signals: see handler.h. */
#define _GNU_SOURCE
#include "handler.h"

#include <string.h>

struct handled handled;

void handled_clear(void)
{
	handled.count = 0;
	handled.orders = 0;
	memset(&handled.info, 0, sizeof(handled.info));
}

void note(int sig, siginfo_t *info, void *uc)
{
	handled.info = *info;
	handled.uc = *(ucontext_t *)uc;
	sigprocmask(SIG_BLOCK, NULL, &handled.mask);
	if (handled.orders < 16)
		handled.order[handled.orders++] = sig;
	handled.count++;
}

void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags, int also_block)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&sa.sa_mask);
	if (also_block)
		sigaddset(&sa.sa_mask, also_block);
	sigaction(sig, &sa, NULL);
}

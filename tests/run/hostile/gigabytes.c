// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox uses more gigabytes than the guest has physical addresses for (Intel),
 * without a signal and with one that it blocks and that is pending. Fails when the process does
 * not end by SIGBUS: the runtime finds out by a probe whether memory is mapped there. The probe
 * takes the signal, and must not do so on the stack of the page fault's entry.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST		0x1000000000UL	/* far from the mappings of a program */
#define GIGABYTES	1200		/* more than a processor of 40 bits has room for */

static volatile int *used;

/*
 * Accesses one page in each gigabyte. Blocks SIGSEGV, and sends it to itself after @before of
 * them.
 */
static void use(void *before)
{
	sigset_t segv;

	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	sigprocmask(SIG_BLOCK, &segv, NULL);
	for (int i = 0; i < GIGABYTES; i++) {
		char *p = mmap((char *)FIRST + ((unsigned long)i << 30), 4096,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		if (i == (int)(long)before)
			kill(getpid(), SIGSEGV);
		*p = 1;
		*used = i + 1;
	}
}

int main(void)
{
	struct outcome end;
	int room;

	used = shared_alloc(sizeof(*used));
	end = in_child(use, (void *)-1L, 120);
	room = *used;
	if (room == GIGABYTES) {
		skip("this processor has physical addresses for all of them",
		     "a gigabyte too many");
		return done();
	}
	ok(end.signal == SIGBUS, "one gigabyte too many: %s", outcome_text(end));
	end = in_child(use, (void *)(long)room, 120);
	ok(end.signal == SIGBUS && *used == room, "with a signal that is pending: %s",
	   outcome_text(end));
	return done();
}

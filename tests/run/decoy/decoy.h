/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The oracle for the sandbox's checks, docs/sandbox.md "How the checks are tested". A build of
 * dune-run for tests (runtime.c) tells its checks of another supervisor range, the decoy. This is
 * memory that nothing uses, after some pages in the place of the stub that nobody can access. The
 * checks refuse each address in it. So if a page of the decoy becomes present, the kernel has
 * touched it on the program's behalf, and a check was bypassed.
 *
 *	runtime.c	looks at the decoy after each system call
 *	attack/		the program in the sandbox: sequences of system calls
 *	watch/		starts it, natively; watches for what else must not happen
 */
#ifndef DUNE_DECOY_H
#define DUNE_DECOY_H

#include <dune_addresses.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/super_range.h"

#define SUPER_BASE	0x6d7500000000UL
#define DECOY_BASE	(SUPER_BASE + STUB_SIZE)
#define DECOY_SIZE	(SUPER_SIZE - STUB_SIZE)

#define LOG_BASE	(SUPER_BASE + 0x4000000UL)
#define LOG_SIZE	0x10000UL
#define LOG_FILE	"/run/dune-decoy.log"

#define CALLS_MAX	512
#define TOUCHES_MAX	256

/*
 * A touch that was found after a call. Another process that shares the memory may have
 * made it.
 */
struct touch {
	u64 seed;
	u32 process;
	u32 nr;
	u64 args[6];
	u64 result;
	u64 address;	/* the first word that was written, else the page; 0: unmapped */
	u64 word;	/* what was written, 0: it was only read */
};

/* In memory that the watcher and all processes of the tree share. */
struct decoy_log {
	u64 seed;
	u64 mix;	/* of so many calls one is changed (runtime.c, plant()); 0: none */
	u64 calls;
	u64 succeeded;
	u64 touches;
	u64 by_number[CALLS_MAX];
	struct touch touch[TOUCHES_MAX];
};

#endif /* DUNE_DECOY_H */

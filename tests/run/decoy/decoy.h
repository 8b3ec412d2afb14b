/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The oracle for the sandbox's checks, docs/sandbox.md "How the checks are
 * tested". A build of dune-run for tests (runtime.c) maps a decoy in the
 * supervisor range: memory that nothing uses, right after the guard region. The
 * checks refuse an address in the decoy as they refuse one in the runtime. A page
 * of the decoy that becomes present was therefore touched by the kernel on the
 * program's behalf, and a check was bypassed.
 *
 *	runtime.c	looks at the decoy after each system call
 *	attack/		the program in the sandbox: sequences of system calls
 *	watch/		starts it, natively; watches for what else must not happen
 */
#ifndef DUNE_DECOY_H
#define DUNE_DECOY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/super_range.h"

/* dune-run has its image at this address; dune-run-decoy has it further up (decoy.mk). */
#define DECOY_BASE	(SUPER_BASE + GUARD_REGION_SIZE)
#define DECOY_SIZE	0x1000000UL

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

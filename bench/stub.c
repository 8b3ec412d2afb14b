// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A system call that the module does not make for a guest, by the stub (struct dune_stub in
 * <linux/dune.h>), as in the sandbox: it is executed in user mode, and the guest gets its result.
 * The guest is a program in ring 0, so the sandbox's way from ring 3 and its check are not
 * measured. A flag forces this path, as in slow.c.
 */
#define _GNU_SOURCE
#include "dune_mode.h"
#include "exits.h"
#include "rseq.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <dune_runtime.h>
#include <thread.h>

int main(void)
{
	uint64_t on_linux = MEASURE(syscall(SYS_getpid)), dune;

	rseq_drop();
	dune_stub_use();
	enter_dune_mode();
	/* The flag is read when a run begins, so a call that ends the current one follows. */
	dune_self()->run->flags = DUNE_RUN_SLOW_SYSCALL;
	dune_hypercall(SYS_iopl, 0, 0, 0, 0, 0, 0);
	dune = MEASURE(syscall(SYS_getpid));
	figure("getpid_native", on_linux, dune, EXITS(syscall(SYS_getpid)));
	return 0;
}

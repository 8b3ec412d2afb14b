/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program in the sandbox without checks: the known ways out of an isolation within one process,
 * a row each. Each row is a child, which may die of it or continue, with any result. The watcher
 * sees what must not happen (unchecked.h). Any executable memory here is full of INT 0x80, so that
 * native code would make a call.
 *
 *	pitfalls [SEED [ROW]]	all rows, or those whose name begins with ROW; the random choices
 *				depend on SEED
 *
 * Rows that begin with "control" need dune-run-unchecked-control, and are made by their name only.
 * rows.c has the table of the rows and makes them; common.c is what the others use.
 */
#ifndef DUNE_UNCHECKED_PITFALLS_H
#define DUNE_UNCHECKED_PITFALLS_H

#include "unchecked.h"

#include <dune_addresses.h>
#include "base/super_range.h"

#include <stddef.h>

#define PAGE		4096UL
#define SLED_SIZE	(1UL << 20)
#define SA_RESTORER	0x04000000UL
#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

/* Memory that is full of INT 0x80, and some that the row reads to. */
extern char *sled;
extern char buffer[1 << 16];

/* The parts of the supervisor range, and what is in private memory. */
#define STUB		super_base
#define WINDOW		(super_base + PAGE)
#define SCRATCH		(super_base + STUB_SIZE)
#define FRAMES		(SCRATCH + SCRATCH_SIZE)

#define PRIVATE_PLACES	6
extern const u64 private_memory[PRIVATE_PLACES];

/* One of the TARGETS addresses that are attacked: @i modulo their number. */
#define TARGETS		12
u64 target(unsigned int i);

/*
 * How many raw calls this row has made, and how many succeeded, and how many rounds of work()
 * ended, in all of its processes. (The row "overwritten" overwrites them, too.)
 */
extern struct counts {
	u64 made, succeeded, rounds;
} *counts;

/* A raw call: the module alone decides about it. */
long raw(long nr, long a, long b, long c, long d, long e, long f);
#define RAW(nr, a, b, c)	raw(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define RAW6(nr, a, b, c, d, e, f) \
	raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

void fill_sled(char *at, size_t size);
char *make_sled(u64 at, size_t size, int flags);
/* A handler that does nothing. */
void tick(int sig);
/* Signal @sig comes again and again, with this handler, and restarts calls. */
void keep_ticking(int sig, long microseconds);
/* Random bytes, or addresses of the sled. */
void random_words(u64 *to, size_t words);
/* Makes calls of each kind that the runtime makes itself, with memory of its own. */
void work(int times);
/*
 * The same for a process that another one attacks: most of all, it changes actions of signals and
 * takes the signals, since the kernel's copy of an action decides where the thread continues.
 */
void work_attacked(int times);
/*
 * A child for each attempt, since the module kills those that take the stub away. The time may end
 * before the last one, so the seed decides which is the first.
 */
void try(void (*attempt)(unsigned int), unsigned int count);
/* The number of the vCPU's descriptor, and that of dune-run's file, or -1. */
int vcpu_number(void);
int own_number(void);

/* The kernel's own struct sigaction. */
struct action {
	u64 handler, flags, restorer, mask;
};

/* The rows */
void row_sigreturn(void);
void row_sigaction(void);
void row_sigaltstack(void);
void row_siginfo(void);
void row_sigmask(void);
void row_proc_mem(void);
void row_process_vm(void);
void row_overwritten(void);
void row_overwritten_scratch(void);
void row_overwritten_frames(void);
void row_shared(void);
void row_scratch_gone(void);
void row_scratch_cut(void);
void row_vmsplice(void);
void row_map_over(void);
void row_map_over_all(void);
void row_unmap(void);
void row_mprotect(void);
void row_mremap(void);
void row_madvise(void);
void row_shmat(void);
void row_other_mapping_calls(void);
void row_unmap_everything(void);
void row_io_uring(void);
void row_aio(void);
void row_userfaultfd(void);
void row_ptrace(void);
void row_vcpu(void);
void row_vcpu_received(void);
void row_clone(void);
void row_execute(void);
void row_replaced_execution(void);
void row_robust_list(void);
void row_rseq(void);
void row_prctl(void);
void row_arch_prctl(void);
void row_ldt(void);
void row_personality(void);
void row_seccomp(void);
void row_limits(void);
void row_namespaces(void);
void row_core(void);
void row_numbers(void);
void row_ring3(void);
void row_control_native(void);
void row_control_read(void);
void row_control_write(void);
void row_control_code(void);
void row_control_jump(void);
void row_control_file(void);

#endif /* DUNE_UNCHECKED_PITFALLS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions beyond dune.h for a runtime that keeps the vCPU's file descriptor
 * from its program, as dune-run does (run/). The runtime is linked with the library
 * of the same tree: unlike dune.h this header is not installed.
 *
 * Such a runtime is one image with the library. The library's variables that do
 * not change after the start are in the section dune_ro_after_start, which a
 * linker script can put into a part that is made read-only (run/sealed.ld).
 */
#ifndef DUNE_RUNTIME_H
#define DUNE_RUNTIME_H

#include <dune.h>

/* Returns the number of the calling thread's descriptor, or -1 before it entered. */
int dune_vcpu_fd(void);

/* Moves that descriptor to another number. Returns this number or an error. Ring 0. */
long dune_vcpu_fd_move(void);

/*
 * Makes dune_enter() renew the vCPU @fd, of the program that called execve, instead of
 * opening /dev/dune. Called before dune_enter().
 */
void dune_vcpu_inherit(int fd);

/*
 * Makes dune_enter() run the vCPU by a stub of the module's (struct dune_stub in <linux/dune.h>),
 * as the only code that the process executes in user mode from then on. Ring 0 of such a process
 * does not enable interrupts, and executes no SYSCALL, and its configuration has
 * DUNE_ENTER_RING3_SIGNALS; ring 3 receives the signals. Called before dune_enter().
 */
void dune_stub_use(void);

/*
 * execveat() for a runtime that executes itself, in ring 0. @name, @argv and @envp are where the
 * kernel finds them (dune_copies.h). As dune_syscall_forward() it can return DUNE_AGAIN.
 */
long dune_execveat(long fd, uint64_t name, uint64_t argv, uint64_t envp, long flags);

/*
 * dune_syscall_forward() with all arguments from the frame, but for the number
 * of the call. It is a pointer, as dune_hypercall() is, because the hypercall
 * instruction differs between vendors.
 */
extern long (*dune_forward_tf)(struct dune_tf *tf, long nr);

/* Returns where the arena that was given to dune_enter() ends now. */
unsigned long dune_arena_end(void);

#endif /* DUNE_RUNTIME_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that the files of this folder share. All of it runs in ring 0, with interrupts off,
 * in a process without a host half (dune_runtime.h): the thread executes nothing in user mode but
 * the stub of the module (struct dune_stub in <linux/dune.h>). Interrupts are on only while ring 3
 * runs, and ring 0 makes no SYSCALL. services.c has the table of what guest/ calls here. The C file
 * describes each function.
 *
 * A signal comes in two steps. The module stores it in the run page, with the kernel's mask set to
 * all signals, and an interrupt waits for ring 3. Ring 0 reads it (dune_alone_collect()) when that
 * interrupt comes, or earlier where it needs the FPU registers of the program, which the kernel has
 * put into the signal's frame. From there on it is in the queue, as with a host half, and the
 * interrupt delivers it.
 */
#ifndef LIBDUNE_ALONE_H
#define LIBDUNE_ALONE_H

#include "copy.h"
#include "dune_copies.h"
#include "guest.h"
#include "text.h"

/* What the module reports of a signal. The values come from memory of the process. */
struct dune_event {
	struct ksiginfo info;
	u64 mask;
	u64 trapno, error, cr2;
};

/* Makes a call of the library's own that a guest may not make, and that waits for nothing. */
static inline long dune_alone_call(long nr, long a0, long a1, long a2, long a3)
{
	return dune_hypercall(DUNE_HOSTCALL_NOW | nr, a0, a1, a2, a3, 0, 0);
}

/* copies.c */
void *dune_own_window(u64 size);
void *dune_own_scratch(u64 size);

/* own_calls.c */
u64 dune_alone_show(const void *p, u64 size);
void *dune_alone_result(u64 size);
long dune_alone_action(int sig, const struct ksigaction *real, struct ksigaction *old);
long dune_alone_mask(int how, u64 set, u64 *old);
void dune_alone_set_mask(u64 set, u64 *old);
long dune_alone_forward_mask(u64 set);
void dune_alone_force_mask(u64 set);
void dune_alone_print(const char *text, u64 size);

/* signal.c */
bool dune_alone_take(struct dune_thread *t, struct dune_event *e);
void dune_alone_queue(struct dune_thread *t, const struct dune_event *e, bool fault);
bool dune_alone_collect(struct dune_thread *t);
void dune_alone_signal(struct dune_tf *tf);

/* fault.c */
void dune_alone_fault(struct dune_tf *tf);
bool dune_alone_readable(struct dune_thread *t, u64 address);

/* process.c */
long dune_alone_make_child(struct dune_clone *c);
long dune_alone_execute(long fd, long name, long argv, long envp, long flags);

/* special.c */
long dune_alone_special(struct dune_tf *tf);

/* cpu.c */
void dune_alone_look_at_cpu(struct dune_thread *t);

/* calls.c: the functions that make hypercalls, of the processor's vendor; child.S has the last */
struct dune_child;
extern long (*dune_alone_clone)(long make, struct dune_child *child);
int dune_alone_choose_calls(u32 vendor);

/* end.c */
void dune_alone_die(int sig) __noreturn;
void dune_alone_fatal(const char *what, long err, int sig) __noreturn;

#endif /* LIBDUNE_ALONE_H */

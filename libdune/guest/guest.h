/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that the files of the guest half share, from the entry to traps, system
 * calls and signals. All of them run in ring 0, except that dune_trap_set() may call
 * dune_fpu_size() before dune_enter(). The C file describes each.
 */
#ifndef LIBDUNE_GUEST_H
#define LIBDUNE_GUEST_H

#include "copy.h"
#include "dune_runtime.h"
#include "entry.h"
#include "fork.h"
#include "hypercall.h"
#include "memory.h"
#include "msr.h"
#include "services.h"
#include "sigaction.h"
#include "thread.h"

/* Returns whether @tf interrupted ring 3. */
ALWAYS_INLINE bool from_ring3(const struct dune_tf *tf)
{
	return tf->cs & 3;
}

/* entry.S */
long dune_ring3_enter(const struct dune_tf *tf);

/* trap.c, for entry.S */
void dune_bad_stack(void) __noreturn;

/* syscall.c; the functions dune_sys_* below are those of special.h */
extern dune_syscall_fn dune_syscall_handler;
extern const u64 dune_special[SYSCALL_MAX / 64];

/* fpu.c: the sizes of FXSAVE's area and of the header that XSAVE adds */
#define FXSAVE_SIZE	512
#define XSAVE_HEADER	64

u32 dune_fpu_size(void);
u64 dune_fpu_features(void);
void dune_fpu_save(void *area);

/* signal.c */
void dune_signal_irq(struct dune_tf *tf);
void dune_signal_fault(struct dune_tf *tf, int sig, int code, u64 addr, bool fpu_saved);
long dune_sys_sigaction(struct dune_tf *tf);
long dune_sys_sigreturn(struct dune_tf *tf);

/* sigframe.c */
int dune_sigframe_push(struct dune_thread *t, struct dune_tf *tf, const struct dune_sigentry *e);
int dune_sigframe_read(struct dune_tf *tf, struct kucontext *uc);
int dune_sigframe_restore(struct dune_thread *t, struct dune_tf *tf, const struct kucontext *uc);

/* user.c */
long dune_get_user(const struct dune_tf *tf, void *to, u64 from, size_t n);
long dune_put_user(const struct dune_tf *tf, u64 to, const void *from, size_t n);

/* altstack.c */
long dune_sys_sigaltstack(struct dune_tf *tf);
u32 dune_altstack_flags(const struct dune_thread *t, u64 rsp);
long dune_set_altstack(struct dune_thread *t, const struct kstack *to, u64 rsp);

/* process.c */
long dune_sys_clone(struct dune_tf *tf);

/* arch_prctl.c */
long dune_sys_arch_prctl(struct dune_tf *tf);

/* fd.c */
long dune_sys_fd(struct dune_tf *tf);

#endif /* LIBDUNE_GUEST_H */

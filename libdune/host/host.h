/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that the files of the host half share, from dune_enter() to the run loop
 * and its work between two runs. The C file describes each.
 */
#ifndef LIBDUNE_HOST_H
#define LIBDUNE_HOST_H

#include "copy.h"
#include "entry.h"
#include "hostcall.h"
#include "hypercall.h"
#include "memory.h"
#include "sigaction.h"
#include "services.h"
#include "start_state.h"
#include "syscall.h"
#include "text.h"
#include "thread.h"

/* end.c */
void dune_host_fatal(struct dune_thread *t, const char *what, long err, int sig)
	__noreturn;
void dune_host_die(int sig) __noreturn;

/* thread.c: blocks and run pages */
struct dune_thread *dune_thread_new(void);
void dune_thread_free(struct dune_thread *t);
void dune_thread_exit(struct dune_thread *t, long status) __noreturn;
void dune_thread_cover_others(const struct dune_thread *t);
long dune_run_map(struct dune_thread *t, int vcpu);
bool dune_run_unmap(struct dune_thread *t, void *run);

/* vcpu.c */
long dune_device_open(const char **why);
void dune_device_close(long dev);
long dune_vcpu_open(struct dune_thread *t, long dev);
long dune_vcpu_renew(struct dune_thread *t);

/* entry.S */
long dune_host_switch(struct dune_thread *t, struct dune_run *run);

/* calls.S */
long dune_host_syscall(struct dune_thread *t, long nr, long a0, long a1,
		       long a2, long a3, long a4, long a5);
long dune_host_clone(struct dune_thread *t, long nr, long a0, long a1, long a2, long a3, long a4);
long dune_host_probe_read(const void *p, const u32 *nsig);
long dune_host_probe_write(void *p, const u32 *nsig);
extern const char dune_host_abort_begin[], dune_host_abort_insn[];
extern const char dune_host_abort_done[], dune_host_abort[];
extern const char dune_host_clone_begin[], dune_host_clone_insn[];
extern const char dune_host_probe_read_insn[], dune_host_probe_write_insn[];
extern const char dune_host_probe_fail[];

/* loop.c; entry.S calls both */
void dune_host_enter(struct dune_thread *t) __noreturn;
void dune_host_loop(struct dune_thread *t) __noreturn;

/* fault.c */
void dune_host_fault(struct dune_thread *t);
void dune_host_no_granule(struct dune_thread *t, u64 va);
void dune_host_no_pages(struct dune_thread *t, u64 va);
bool dune_host_readable(struct dune_thread *t, const void *p, size_t n);

/* signal.c; dune_host_handler() is in sigaction.h */
void dune_host_send_held(struct dune_thread *t);
void dune_host_exec_fault(struct dune_thread *t);

/* process.c */
long dune_host_fork(struct dune_thread *t, struct dune_clone *c);
/* called by entry.S */
void dune_host_child(struct dune_thread *t);

#endif /* LIBDUNE_HOST_H */

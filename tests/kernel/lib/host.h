/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the tests of what a run must restore, host_*.c: the processor's state as the
 * host half sees it, guests that set a part of it to other values, and the
 * comparison.
 */
#ifndef DUNE_TESTS_HOST_H
#define DUNE_TESTS_HOST_H

#include "guest.h"

#define HOST_MSRS	8

struct host {
	u16 cs, ss, ds, es, fs, gs, ldt, tr;
	struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) gdt, idt;
	u64 fs_base, gs_base, flags;
	u32 mxcsr;
	u16 fcw;
	u64 xcr0;
	u64 msr[HOST_MSRS];
};

/*
 * Call first: a watchdog, the kernel log, one CPU for the process, and @g. Each CPU
 * has a GDT of its own, and MSRs.
 */
void host_begin(struct guest *g);
/*
 * Let host_read() read the MSRs too, through the file of the module msr. One verdict:
 * that this works.
 */
void host_open_msrs(void);
/* The verdict on the kernel log, and the plan; the exit status of main(). */
int host_end(void);

void host_read(struct host *h);
/* The name of the first register with two values, or NULL. */
const char *host_difference(const struct host *a, const struct host *b);

/* A guest's function; its argument is the struct guest. */
typedef u64 (*host_load_fn)(void *guest);

/* Call fn(g) in the guest; the guest then waits through some ticks of the clock. */
enum guest_end host_call_long(struct guest *g, host_load_fn fn);

/* One run, between two looks at the host's state. */
struct host_run {
	struct host before, after;
	enum guest_end end;
	bool good;		/* the guest did all of it; load_tr() need not */
};

/* Call fn(g) in the guest, or by host_call_long(). */
void host_run(struct guest *g, host_load_fn fn, bool is_long, struct host_run *r);
/* One verdict: after a guest that loads @name by fn(g), every register has the host's value. */
void host_check(struct guest *g, const char *name, host_load_fn fn);

/* ---- called inside the guest: each loads one thing ---- */

u64 load_segments(void *guest);
u64 load_ldt(void *guest);
u64 load_tr(void *guest);
u64 load_tables(void *guest);
u64 load_bases(void *guest);
u64 load_syscall_msrs(void *guest);
u64 load_fpu_modes(void *guest);

/* The values that load_fpu_modes() loads. */
#define GUEST_MXCSR	0x5f80
#define GUEST_FCW	0x0b7f

#endif

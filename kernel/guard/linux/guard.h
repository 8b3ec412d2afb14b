/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of guard/linux/ share: the part of dune-guard.ko that runs in Linux, as an
 * ordinary module. main.c (the device), state.c (the requests), check.c (whether this computer can
 * have a guard), load.c (its memory, with all tables), vmcb.c (the state with which a CPU continues
 * as the guest), ports.c (the ports that a sealed guard watches), cpu.c (each CPU's launch and
 * stop), processors.c (whether Linux runs all processors), answer.c (reasons for refusals),
 * switch.S, lifecycle.c (reboot and suspend), kexec.c, register.c (modules that are known by their
 * content), views.c (registrations in the image), and secret.c (modules of class S). image.S
 * contains the resident part, guard/hv/, which is the guard once it is launched.
 */
#ifndef GUARD_LINUX_GUARD_H
#define GUARD_LINUX_GUARD_H

#include <linux/dune-guard.h>
#include <linux/types.h>

#include "guard/hv/hv.h"

struct guard_secret;
struct vmcb_save_area;

/**
 * struct guard_memory - the guard's memory; load.c makes it, and others only read it
 * @block:	physically contiguous, in Linux's direct map: not to be touched once sealed. The
 *		image's address space has it at the same address
 * @physical:	its physical address
 * @order:	its size is 2^@order pages
 * @cr3:	the image's page table
 * @nested_cr3:	the guest's nested page table
 * @header:	a copy of the image's
 * @msrpm:	physical address of the MSR permission map
 * @iopm:	the same of the I/O permission map
 * @cpus:	offset of the first CPU's pages
 */
struct guard_memory {
	void *block;
	u64 physical;
	unsigned int order;
	u64 cr3;
	u64 nested_cr3;
	struct hv_header header;
	u64 msrpm;
	u64 iopm;
	u64 cpus;
};

/* All functions are for process context, and may sleep, unless the line here tells otherwise. */

/*
 * answer.c: writes the reason for @err, a negative errno, to @answer, and returns @err. For any
 * context.
 */
int guard_refuse(struct dune_guard_answer *answer, int err, const char *format, ...)
	__printf(3, 4);

/* state.c: a request of the device. Returns 0 or a negative errno. */
long guard_request(unsigned int command, void __user *user);
/* Stops a guard that is launched; there is none from now on. For lifecycle.c and main.c. */
void guard_stop_for_shutdown(void);
/*
 * The computer is about to sleep, or has awoken. Returns the state. If that is DUNE_GUARD_OFF, the
 * guard cannot be launched until the computer has awoken.
 */
int guard_set_sleeping(bool sleeps);

/* check.c */
int guard_check(struct dune_guard_answer *answer);

/* load.c */
int guard_load(struct guard_memory *memory, struct dune_guard_answer *answer);
void guard_unload(struct guard_memory *memory);

/* cpu.c: @memory stays valid until guard_cpus_stop() */
int guard_cpus_launch(const struct guard_memory *memory, struct dune_guard_answer *answer);
void guard_cpus_stop(void);
int guard_cpus_can_seal(struct dune_guard_answer *answer);
int guard_cpus_seal(struct dune_guard_answer *answer);
bool guard_cpus_sealed(void);
unsigned int guard_cpus_launched(void);
/* The guard is launched. */
void guard_cpus_count(u64 counts[HV_COUNTS]);
/* Of the guard's memory, what no module has taken. */
unsigned int guard_cpus_pages_left(void);
int guard_cpus_log(struct dune_guard_entry *entry);

/* processors.c */
int guard_processors_missing(void);

/* ports.c */
bool guard_ports_lack_sleep(void);
void guard_ports_fill(struct hv_config *config);

/*
 * vmcb.c. The first is for any context; the second for interrupts off, on the CPU that continues as
 * the guest, with EFER.SVME set.
 */
bool guard_has_v_spec_ctrl(void);
void guard_vmcb_fill(struct vmcb *vmcb, const struct guard_memory *memory);

/* lifecycle.c */
int guard_lifecycle_init(void);
void guard_lifecycle_cleanup(void);

/* register.c: @state is the guard's, under the lock of state.c */
long guard_registration_request(unsigned int command, void __user *user, int state);
long guard_registration_crossings(void __user *user, int state);
/* The guard stops, and forgets them. */
void guard_registrations_drop(void);
int guard_registrations_init(void);
/* There are none. */
void guard_registrations_cleanup(void);

/*
 * secret.c: under the lock of state.c, while the guard is launched. The first two are for
 * guard/secret.h; the number may have been removed already.
 */
int guard_secrets_add(const struct guard_secret *secret);
int guard_secrets_remove(int number);
/* The name of a guarded module of class S; NULL: none */
const char *guard_secrets_name(void);
/* The guard stops: their secrets are cleared. */
void guard_secrets_drop(void);

/* kexec.c */
int guard_kexec_disable(struct dune_guard_answer *answer);

/*
 * switch.S: for interrupts off. The first two return 0 or a negative errno, and guard_switch_stop()
 * a positive number if the CPU has no guard. The others are no C functions.
 */
long guard_switch_launch(struct vmcb_save_area *save, u64 cr3, void *hv_cpu, u64 cr4, void *entry);
long guard_switch_stop(void);
void guard_cross_in(void);
void guard_cross_out(void);

/* image.S */
extern const u8 guard_image[], guard_image_end[];

#endif /* GUARD_LINUX_GUARD_H */

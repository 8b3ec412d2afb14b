/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Privileges of a guarded module: what it may do in M, and nobody else may do. The interface is
 * that of Hale and Dinda (guard-border.md): a kind of privilege has a name and four functions.
 * Raise and lower are called on the CPU that crosses the border, and are complete when they return.
 * They change M's VMCB alone. K has another one, in which no privilege is ever raised. So they are
 * called only if M's VMCB has the privileges of another module, or of one that may be gone.
 *
 * The list of a registration names what is bound to it. docs/guard-privileges.md describes the
 * kinds, and the reason for each decision.
 */
#ifndef GUARD_HV_PRIVILEGE_PRIVILEGE_H
#define GUARD_HV_PRIVILEGE_PRIVILEGE_H

#include <linux/types.h>

/* The most entries of a registration's list. */
#define HV_PRIVILEGES		32

/* The functions and bridges of PCI that all registrations together may lock. */
#define HV_LOCKS		16

/* The names. A mask of privileges has a bit for each. */
enum hv_privilege_kind {
	HV_PRIVILEGE_MEMORY,	/* private frames, which have a list of their own */
	HV_PRIVILEGE_BRIDGE,	/* no privilege: a bridge above a @function of the list; no range */
	HV_PRIVILEGE_MMIO,	/* a memory BAR of the PCI function @function */
	HV_PRIVILEGE_PORTS,	/* I/O ports; with a @function, one of its I/O BARs */
	HV_PRIVILEGE_MSR,	/* model-specific registers */
	HV_PRIVILEGE_MONITOR,	/* the guard's services; no range */
	HV_PRIVILEGE_KINDS,
};

#define HV_NO_FUNCTION	(~0u)

/**
 * struct hv_privilege - an entry of a registration's list
 * @kind:	enum hv_privilege_kind
 * @function:	bus, device and function, as in a PCI address, or HV_NO_FUNCTION
 * @first:	the first physical address, port, or MSR; 0 without a range
 * @size:	how many of them; 0 without a range
 *
 * A list that has one BAR of a function must have all of its BARs that have an address, and all
 * bridges above the function, up to bus 0.
 */
struct hv_privilege {
	u32 kind;
	u32 function;
	u64 first;
	u64 size;
};

struct hv_cpu;
struct hv_guarded;

/*
 * init: the kernel loses what the list of @guarded has of this kind. Returns 0 or a negative errno,
 * and has changed nothing then. M is not entered before all CPUs have flushed.
 * deinit: the opposite; M is not entered any more. A CPU may not have flushed yet.
 * raise: this CPU is about to enter M of @guarded; its VMCB has nothing of this kind yet.
 * lower: the VMCB has nothing of this kind afterwards.
 * NULL: there is nothing to do.
 */
struct hv_privilege_functions {
	s64 (*init)(struct hv_guarded *guarded);
	void (*deinit)(struct hv_guarded *guarded);
	void (*raise)(struct hv_cpu *cpu, const struct hv_guarded *guarded);
	void (*lower)(struct hv_cpu *cpu);
};

/* A kind announces itself, once, before the first registration. */
void hv_privilege_register(enum hv_privilege_kind kind,
			   const struct hv_privilege_functions *functions);

/*
 * For raise and lower: M has this permission map; @base is where its VMCB has the address. After
 * lower it is the kernel's map.
 */
void hv_privilege_use_map(struct hv_cpu *cpu, u64 *base, const u8 *map);

void hv_pci_start(void);
void hv_mmio_start(void);
void hv_ports_start(void);
void hv_msr_start(void);
void hv_monitor_start(void);

/* privilege.c: with hv_views_lock held, except for the last two functions */
/* Pages that hv_privileges_init() may take at most, with @views nested page tables. */
u64 hv_privileges_need(const struct hv_guarded *guarded, u64 views);
/* Returns 0 or a negative errno, and has changed nothing then; sets the mask of @guarded. */
s64 hv_privileges_init(struct hv_guarded *guarded);
void hv_privileges_deinit(struct hv_guarded *guarded);
/* Whether a registration other than @except has a part of that. */
bool hv_privilege_taken(u32 kind, u64 first, u64 size, const struct hv_guarded *except);
/* Whether @at belongs to a module other than the one that this CPU executes now. */
bool hv_is_taken(const struct hv_cpu *cpu, u32 kind, u64 at);
/* Without the lock: M's VMCB has the privileges of @guarded, and no others, afterwards. */
void hv_privileges_change(struct hv_cpu *cpu, const struct hv_guarded *guarded);

/* ports.c: these ports exit everywhere, from now on; hv_views_lock is held */
void hv_ports_watch(u32 first, u32 count);
void hv_ports_seal(struct hv_cpu *cpu);

/* monitor.c: a VMMCALL of M's. Returns false if it is refused. */
bool hv_monitor_call(struct hv_cpu *cpu);

/* mmio.c: makes the window of configuration space read-only for all; with hv_views_lock held */
void hv_mmio_close_window(void);
void hv_mmio_open_window(void);

/* pci.c: the lock of configuration space; with hv_views_lock held */
/* Whether there is a lock, or a registration with ports: both need hv_pci_write(). */
bool hv_pci_is_guarded(void);
/* Whether the locked functions of @guarded have the addresses that they had when it was added. */
bool hv_pci_stays(const struct hv_guarded *guarded);
/* The kernel writes to a part of port CFCh, which begins at @offset. */
void hv_pci_write(struct hv_cpu *cpu, u32 offset, u32 size, u32 value);

#endif /* GUARD_HV_PRIVILEGE_PRIVILEGE_H */

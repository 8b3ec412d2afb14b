/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of dune-guard.ko: /dev/dune-guard, which root alone may open.
 *
 * The guard is a hypervisor that is launched beneath the running kernel, on all CPUs. It has three
 * states: off, launched, and sealed. A guard that is launched can be stopped. A guard that is
 * sealed cannot, until the computer is reset: its memory is not there for the kernel any more.
 *
 * All layouts are fixed and little-endian. The ioctls are for 64-bit callers (ENOTTY for others).
 * An argument that cannot be read or written gives EFAULT.
 */
#ifndef _UAPI_LINUX_DUNE_GUARD_H
#define _UAPI_LINUX_DUNE_GUARD_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* dune_guard_status.version: a change that older programs would not understand counts it up. */
#define DUNE_GUARD_VERSION	3

/* dune_guard_status.state */
#define DUNE_GUARD_OFF		0
#define DUNE_GUARD_LAUNCHED	1
#define DUNE_GUARD_SEALED	2

/* Indices of dune_guard_status.exits: why a CPU left the kernel for the guard. */
#define DUNE_GUARD_EXIT_CALL		0	/* VMMCALL: the module's own requests */
#define DUNE_GUARD_EXIT_MSR_READ	1	/* a register that is not the kernel's */
#define DUNE_GUARD_EXIT_MSR_WRITE	2
#define DUNE_GUARD_EXIT_SVM		3	/* VMRUN, VMLOAD, ..., SKINIT */
#define DUNE_GUARD_EXIT_INVD		4
#define DUNE_GUARD_EXIT_MEMORY		5	/* an access to memory that is not the kernel's */
#define DUNE_GUARD_EXIT_STEP		6	/* the end of a write that was dropped */
#define DUNE_GUARD_EXIT_INIT		7
#define DUNE_GUARD_EXIT_PORT		8	/* sleep, reset, a module's, PCI's */
#define DUNE_GUARD_EXITS		9

/**
 * struct dune_guard_status - DUNE_GUARD_GET_STATUS
 * @version:	DUNE_GUARD_VERSION
 * @state:	DUNE_GUARD_OFF, DUNE_GUARD_LAUNCHED or DUNE_GUARD_SEALED
 * @cpus:	CPUs that run under the guard
 * @memory_left:	bytes of @memory that modules have not taken
 * @address:	physical address of the guard's memory, 0 while it is off
 * @memory:	bytes that belong to the guard, from there on
 * @exits:	by reason, the sum of all CPUs, each since it was last launched
 */
struct dune_guard_status {
	__u32 version;
	__u32 state;
	__u32 cpus;
	__u32 memory_left;
	__u64 address;
	__u64 memory;
	__u64 exits[DUNE_GUARD_EXITS];
};

/**
 * struct dune_guard_answer - the answer of DUNE_GUARD_CHECK, _LAUNCH, _SEAL and _STOP
 * @text:	after an error other than EFAULT and ENOTTY, the reason: one line of text with the
 *		remedy, ended by a 0; the kernel's log has it, too, except for DUNE_GUARD_CHECK
 */
struct dune_guard_answer {
	char text[200];
};

/* dune_guard_entry.kind, with the meaning of dune_guard_entry.value (addresses are physical) */
#define DUNE_GUARD_LOG_MSR_READ		0	/* refused; the MSR */
#define DUNE_GUARD_LOG_MSR_WRITE	1	/* refused; the MSR */
#define DUNE_GUARD_LOG_SVM		2	/* refused; the exit code of the instruction */
#define DUNE_GUARD_LOG_WRITE		3	/* to what is hidden; the address */
/* neither memory nor a device, or a page table in the guard's memory; the address */
#define DUNE_GUARD_LOG_NO_MEMORY	4
#define DUNE_GUARD_LOG_CALL		5	/* a VMMCALL was refused; its number */
#define DUNE_GUARD_LOG_INIT		6	/* the CPU got INIT, and is parked */
#define DUNE_GUARD_LOG_PORT		7	/* no sleep, or a module's; the port */
#define DUNE_GUARD_LOG_ENTER		8	/* a guarded module, not at an entry point; RIP */
#define DUNE_GUARD_LOG_EXIT		9	/* out of it, not by a call or return; RIP */
#define DUNE_GUARD_LOG_PCI		10	/* configuration space; port CF8h */
#define DUNE_GUARD_LOG_CONTENT		11	/* not the registered module; a linear address */
#define DUNE_GUARD_LOG_PATCH		12	/* it has no effect inside; the address */

/*
 * What happens on suspicious activity around a module (docs/guard-modules.md): a registration's
 * on_suspicion, which has to be one of these, and an entry's choice. Each includes those above it.
 */
#define DUNE_GUARD_LOWER	1	/* the code continues without privileges */
#define DUNE_GUARD_LOG		2	/* and the guard's log has an entry */
#define DUNE_GUARD_STOP_MODULE	3	/* and the module is never entered again */
#define DUNE_GUARD_PANIC	4	/* and the kernel panics */

/**
 * struct dune_guard_entry - DUNE_GUARD_GET_LOG: one entry of the guard's log
 * @index:	on input the wanted entry, from 0; on output the entry that was returned, which is a
 *		later one if the guard has overwritten the wanted one (it keeps 64)
 * @time:	the time-stamp counter
 * @cpu:	the CPU's number
 * @kind:	DUNE_GUARD_LOG_*
 * @value:	by the kind
 * @choice:	DUNE_GUARD_LOG, ...: it was suspicious activity around a module, for which this was
 *		chosen; or 0
 * @reserved:	0
 */
struct dune_guard_entry {
	__u64 index;
	__u64 time;
	__u32 cpu;
	__u32 kind;
	__u64 value;
	__u32 choice;
	__u32 reserved;
};

/* dune_guard_registration.state */
#define DUNE_GUARD_WAITING	0	/* the module is not loaded */
#define DUNE_GUARD_ARMED	1	/* it is loaded, and guarded: it is the registered one */
#define DUNE_GUARD_DIFFERS	2	/* it is loaded, and another one */
#define DUNE_GUARD_FAILED	3	/* it is loaded, and not guarded; there is an error */
#define DUNE_GUARD_ENDED	4	/* it is loaded, and its exit has returned: not guarded */
#define DUNE_GUARD_STOPPED	5	/* it is loaded, and was stopped for good: not entered */

/* dune_guard_registration.finding: what differs */
#define DUNE_GUARD_CONTENT_NO_REGION	1	/* no memory for the section that begins there */
#define DUNE_GUARD_CONTENT_BYTES	2	/* bytes of the section that begins there */
#define DUNE_GUARD_CONTENT_RELOCATION	3	/* a relocation there */
#define DUNE_GUARD_CONTENT_SITE		4	/* a patch there */
#define DUNE_GUARD_CONTENT_GAP		5	/* a byte there, where nothing should be */
#define DUNE_GUARD_CONTENT_PLACE	6	/* the address leads to other memory */

#define DUNE_GUARD_NAME		64

/* dune_guard_registration.flags */
#define DUNE_GUARD_COUNT_CROSSINGS	1	/* for DUNE_GUARD_GET_CROSSINGS */

/* The most entries of a list of privileges. */
#define DUNE_GUARD_PRIVILEGES	32

/* dune_guard_privilege.kind, and what @first and @size are */
#define DUNE_GUARD_BRIDGE	1	/* a bridge above a device of the list; 0 */
#define DUNE_GUARD_MMIO		2	/* a memory BAR of a device; physical addresses */
#define DUNE_GUARD_PORTS	3	/* ports, perhaps an I/O BAR of a device */
#define DUNE_GUARD_MSR		4	/* model-specific registers */
#define DUNE_GUARD_MONITOR	5	/* the guard's services; 0 */

/**
 * struct dune_guard_privilege - what a module gets, and nobody else (docs/guard-privileges.md)
 * @kind:	DUNE_GUARD_BRIDGE, ...
 * @function:	bus, device and function of PCI, as in its addresses; ~0 without one
 * @first:	by the kind
 * @size:	how many from there on
 */
struct dune_guard_privilege {
	__u32 kind;
	__u32 function;
	__u64 first;
	__u64 size;
};

/* The most functions of the kernel's that a module executes itself. */
#define DUNE_GUARD_LEAVES	32

/**
 * struct dune_guard_leaf - a function of the kernel's that a module executes without leaving
 * (docs/guard-modules.md)
 * @address:	linear
 * @size:	in bytes, at most 4096
 * @reserved:	0
 * @sha256:	of its bytes
 */
struct dune_guard_leaf {
	__u64 address;
	__u32 size;
	__u32 reserved;
	__u8 sha256[32];
};

/**
 * struct dune_guard_registration - DUNE_GUARD_REGISTER, _UNREGISTER and _GET_REGISTRATION: a module
 * that is known by its content
 * @description:	_REGISTER, input: the address of the description (see
 *			docs/guard-modules.md). It has the addresses of all that the module refers
 *			to, in this boot; modules with such an address stay loaded meanwhile
 * @size:		_REGISTER, input: its size; _GET_REGISTRATION returns it
 * @index:		_GET_REGISTRATION, input: which one, from 0
 * @state:		_GET_REGISTRATION returns DUNE_GUARD_WAITING, ...
 * @error:		and the negative errno of DUNE_GUARD_FAILED, or 0
 * @finding:		and what differs, or 0
 * @region:		and where: a part of the module's memory, as numbered by
 *			docs/guard-modules.md
 * @offset:		and the offset in it
 * @entries:		and the number of entry points
 * @privileges:		_REGISTER, input: the address of a list, or 0
 * @privilege_count:	_REGISTER, input: how many struct dune_guard_privilege it has;
 *			_GET_REGISTRATION returns it
 * @flags:		_REGISTER, input: DUNE_GUARD_COUNT_CROSSINGS or 0; _GET_REGISTRATION
 *			returns it
 * @name:		_UNREGISTER, input: the module; the other two return it
 * @text:		as dune_guard_answer.text, but not of _GET_REGISTRATION
 * @on_suspicion:	_REGISTER, input: DUNE_GUARD_LOWER, ...; _GET_REGISTRATION returns it
 * @leaf_count:		_REGISTER, input: how many struct dune_guard_leaf @leaves has;
 *			_GET_REGISTRATION returns it
 * @leaves:		_REGISTER, input: the address of a list, or 0
 */
struct dune_guard_registration {
	__u64 description;
	__u32 size;
	__u32 index;
	__u32 state;
	__s32 error;
	__u32 finding;
	__u32 region;
	__u32 offset;
	__u32 entries;
	__u64 privileges;
	__u32 privilege_count;
	__u32 flags;
	char name[DUNE_GUARD_NAME];
	char text[200];
	__u32 on_suspicion;
	__u32 leaf_count;
	__u64 leaves;
};

/* Indices of dune_guard_crossings.crossings */
#define DUNE_GUARD_IN_CALL		0	/* the kernel calls the module's entry point */
#define DUNE_GUARD_IN_RET		1	/* it returns from a function that was called */
#define DUNE_GUARD_IN_RTI		2	/* it returns from an interrupt */
#define DUNE_GUARD_OUT_CALL		3	/* the module calls the kernel's function */
#define DUNE_GUARD_OUT_RET		4	/* it returns from its entry point */
#define DUNE_GUARD_OUT_INT		5	/* it is interrupted, or raises an exception */
#define DUNE_GUARD_CROSSINGS		6

/**
 * struct dune_guard_crossings - DUNE_GUARD_GET_CROSSINGS: how often the border of a module was
 * crossed at one function since the module was last loaded. Its registration has to have
 * DUNE_GUARD_COUNT_CROSSINGS.
 * @index:	input: which registration, from 0
 * @row:	input: which function, from 0; on output that of this answer, which may be a later
 *		one
 * @address:	of the module's entry point, or of the function that it calls; 0: of all functions
 *		for which the guard's table had no room
 * @crossings:	by DUNE_GUARD_IN_CALL, ...; in an interrupt, at the entry point that is left
 */
struct dune_guard_crossings {
	__u32 index;
	__u32 row;
	__u64 address;
	__u64 crossings[DUNE_GUARD_CROSSINGS];
};

/*
 * Whether the guard can be launched now. ENODEV, EOPNOTSUPP: not on this computer, or not with
 * these settings of its firmware or kernel; EBUSY: another hypervisor is in use; EALREADY: it is
 * launched.
 */
#define DUNE_GUARD_CHECK	_IOR('g', 0, struct dune_guard_answer)
/* As DUNE_GUARD_CHECK; ENOMEM: no contiguous memory. After an error the guard is off everywhere. */
#define DUNE_GUARD_LAUNCH	_IOR('g', 1, struct dune_guard_answer)
/*
 * EINVAL: it is not launched; EALREADY: it is sealed; EBUSY: a CPU is off line, Linux lacks a
 * processor of the firmware's table, or a kernel is loaded for kexec; EOPNOTSUPP: the firmware's
 * tables lack what has to be known; another error: kexec cannot be forbidden. From now on the guard
 * cannot be stopped, and kexec cannot load another kernel.
 */
#define DUNE_GUARD_SEAL		_IOR('g', 2, struct dune_guard_answer)
/* EINVAL: it is not launched; EPERM: it is sealed, perhaps by other code in the kernel. */
#define DUNE_GUARD_STOP		_IOR('g', 3, struct dune_guard_answer)
#define DUNE_GUARD_GET_STATUS	_IOR('g', 4, struct dune_guard_status)
/* ENOENT: there is no such entry yet; EINVAL: the guard is not launched, and has no log. */
#define DUNE_GUARD_GET_LOG	_IOWR('g', 5, struct dune_guard_entry)

/*
 * Registrations. A registered module is guarded when it is loaded, also once the guard is sealed.
 *
 * EINVAL: the guard is not launched, the description is damaged or for another kernel, or a flag or
 * @on_suspicion is not known; EPERM: it is sealed; EEXIST: the module is registered already;
 * ENOSPC: there are too many; ENOMEM: there is no memory left, or none of the guard's; EOPNOTSUPP:
 * the module is of class S; ENOEXEC: a function of the kernel's has other bytes than its entry;
 * EAGAIN: a module that it refers to is about to be unloaded, or it refers to more than 32.
 */
#define DUNE_GUARD_REGISTER		_IOWR('g', 6, struct dune_guard_registration)
/* EINVAL, EPERM: as above; ENOENT: it is not registered. */
#define DUNE_GUARD_UNREGISTER		_IOWR('g', 7, struct dune_guard_registration)
/* ENOENT: there are not so many. */
#define DUNE_GUARD_GET_REGISTRATION	_IOWR('g', 8, struct dune_guard_registration)
/*
 * EINVAL: the guard is not launched; ENOENT: there are not so many registrations or rows; ENODATA:
 * the crossings of this module are not counted.
 */
#define DUNE_GUARD_GET_CROSSINGS	_IOWR('g', 9, struct dune_guard_crossings)

#endif /* _UAPI_LINUX_DUNE_GUARD_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of dune-guard-outside know of each other, a part for each subject: outside.c has
 * the commands, and leaves them to the others.
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include <linux/notifier.h>
#include <linux/pgtable.h>

#include "inside.h"

/* outside_devices.c: */
struct hv_privilege;
struct hv_registration;
/* Registers a module and arms it, as the parameters have it. 0 or -errno. */
int outside_arm(u64 number, const struct hv_registration *registration);
/* The list of the module parameter. Returns the number of its entries. */
u32 outside_privileges(struct hv_privilege *list);
bool outside_find_devices(void);
void outside_forget_devices(void);
/* A call of the guard's services, by the kernel: its error, or 1 if it gives anything. */
s64 outside_monitor_call(u64 number);
/* A command that has to do with privileges. Returns whether it is one. */
bool outside_device_command(const struct inside *inside, const char *word, u64 a, u64 b, u64 c,
			    u64 *result);

/* outside_attacks.c: */
/* A page of vmalloc()'s as a module's text, and its registration, a page, too. Or NULL. */
struct hv_registration *outside_page_of_text(void **text);
/* From now on INT3 in the module's text returns from its function, or it does so no more. */
void outside_catch_int3(bool catches);
/*
 * The module calls its function that stores, which is no entry, at another address. It would write
 * to the private page, of which the content is returned.
 */
u64 outside_call_store(const struct inside *inside, u64 *private, u64 at);
/* A command that is an attack. Returns whether it is one. */
bool outside_attack(const struct inside *inside, u64 *private, const char *word, u64 a, u64 b,
		    u64 *result);

/* outside_hooks.c: */
/* A command that hooks the module, or comes from ring 3. Returns whether it is one. */
bool outside_hook(const struct inside *inside, u64 *private, const char *word, u64 a, u64 b,
		  u64 *result);

/* outside_leaves.c: */
struct hv_load;
/*
 * Has the guard load and arm the module while the large page around a leaf leads to the 2 MB around
 * one of its frames. 0 or -errno; -EAGAIN: the leaf's page is in the frame's place. From then on
 * Linux's events about the module are ours.
 */
s64 outside_load_beside(u64 number, const struct hv_load *load, u64 frame, u64 leaf);
void outside_follow_beside(u64 number, unsigned long event);
/* A command about leaves. Returns whether it is one. */
bool outside_leaves(const struct inside *inside, u64 *private, const char *word, u64 a,
		    u64 *result);

/* outside_patches.c: */
/* A command that patches. Returns whether it is one. */
bool outside_patch(const struct inside *inside, const u64 *private, const char *word, u64 a, u64 b,
		   u64 *result);

/* outside_stacks.c: */
/* A command that enters on a stack of our own. Returns whether it is one. */
bool outside_return(const struct inside *inside, const char *word, u64 a, u64 *result);

/* outside_fuzz.c: what a batch has done. */
struct outside_fuzz_counts {
	u64 fetches, crossings, calls, writes, bad;
};

const struct outside_fuzz_counts *outside_fuzz(const struct inside *inside, struct module *module,
					       u64 *private, u64 seed, u64 steps, u64 guard,
					       u64 guard_size);

/* outside_registration.c: */
/* A VMMCALL of the guard's, with its number, RBX and RCX. */
s64 outside_guard_call(u64 number, u64 b, u64 c);
void outside_flush_guard(void *unused);
void outside_text_of(const struct module *module, u64 *text, u64 *size);
/* The guarded module, and whether it is armed as the parameter has it: 0 or -errno. */
struct module *outside_module(void);
int outside_armed(void);
extern struct notifier_block outside_notifier;

/* outside_lies.c: */
/* At an event of the module's, tells the lie that is to be told then. */
void outside_lie(const struct module *module, unsigned long event);
void outside_give_blocks(void);
/* A command about lies. Returns whether it is one. */
bool outside_lies(const char *word, u64 *result);

/* outside_memory.c: */
/* The physical address of a page of vmalloc()'s, and the entry that leads to it. */
u64 outside_frame_of(unsigned long address);
pte_t *outside_entry_of(unsigned long address);
/* Has this CPU forget all that it has cached of the page tables. */
void outside_flush(void *unused);
/* Changes a byte of the text, by a mapping of our own, as text_poke() does. What it was. */
u8 outside_write_byte(const void *at, u8 value);

/* outside_calls.c: */
/* The instruction of a function after the NOP for ftrace, which has 5 bytes. */
const void *outside_after_entry(const void *function);
/* A command that calls or attacks the module. Its result, or ~0 if it is no command. */
u64 outside_call(const struct inside *inside, u64 *private, const char *word, u64 a, u64 b);

/* outside_code.S: */
u64 outside_jump(const void *to, const u64 *from);
u64 outside_return_into(const void *to, const u64 *from);
u64 outside_call_from(const void *to, const u64 *from, const void *address);
u64 outside_replay(const void *to, const u64 *from);
u64 outside_with_direction(const void *to);
u64 outside_elsewhere(u64 argument);
u64 outside_jumps_back(u64 argument);
u64 outside_clobbers(u64 argument);
u64 outside_with_trap(const void *to);
u64 outside_interrupt_return(const void *to, const u64 *from);
u64 outside_far_return(const void *to, const u64 *from);
u64 outside_by_sysret(const void *to, const u64 *from);
u64 outside_by_iret(const void *to, const u64 *from);
extern const char outside_ring_trap[], outside_ring_trap_without_error[];
/* The stack to which they return, and the error code of the exception by which they do. */
extern u64 outside_ring_sp, outside_ring_error;
/* Where outside_jumps_back() goes. */
extern u64 (*outside_target)(const u64 *from);
u64 outside_patches(u64 argument);
u64 outside_leads_return(u64 argument);
/* What outside_patches() calls; RCX after both; where outside_leads_return() leads. */
extern void (*outside_meanwhile)(void);
extern u64 outside_rcx, outside_return_to;

#endif

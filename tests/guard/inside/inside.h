/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two modules of the tests know of each other. The one inside is guarded: its text may be
 * entered at the functions whose names begin with "enter_", at its init and its exit. A page of
 * memory is its privilege: the other module, which plays the kernel, has given it away. Devices,
 * ports, an MSR and the guard's services may be privileges, too.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include <linux/types.h>

/* What the private page has. */
#define SECRET	0x5ec2e7

/* Entry points. Those that return a u64 return what they read of the private page. */
struct inside {
	u64 (*read)(const u64 *private);
	void (*write)(u64 *private, u64 value);
	/* Calls back, and reads then. */
	u64 (*call)(u64 (*function)(u64 argument), u64 argument);
	/* The same in assembly; its frame is RBX, and the return address after_call. */
	u64 (*raw_call)(u64 (*function)(u64 argument), const u64 *private, u64 argument);
	/* Calls outside_deeper() as often as that, one within the other. */
	u64 (*nest)(u64 depth);
	/* So many rounds, with interrupts on or off; 0 if a register was lost. */
	u64 (*spin)(u64 rounds, bool interrupts);
	u64 (*warn)(void);
	/* Reads where nothing is, with a fixup. */
	u64 (*fix_up)(const u64 *nowhere);
	/* Writes a byte to a port. */
	void (*port)(u64 port, u64 value);
	u64 (*flags)(void);
	/* CR0, CR4 or DR7 */
	u64 (*control)(u64 number);
	void (*nothing)(void);
	u64 (*user)(const u64 *user);
	u64 (*string)(char *destination, const char *source);
	u64 (*sleep)(u64 milliseconds);
	/* A timer and a work item, which start each other; runs() counts good ones. */
	void (*start)(void);
	u64 (*runs)(void);
	void (*stop)(void);
	/* inside_devices.c: addresses, ports and numbers are the kernel's choice. */
	u64 (*read_memory)(const void __iomem *at);
	void (*write_memory)(void __iomem *at, u64 value);
	u64 (*in)(u64 port, u64 size);
	void (*out)(u64 port, u64 size, u64 value);
	void (*in_string)(u64 port, u32 *to, unsigned long count);
	u64 (*read_msr)(u64 msr);
	void (*write_msr)(u64 msr, u64 value);
	void (*random)(u64 to[4]);
	u64 (*counter)(void);
	/* Of QEMU's device edu: it computes, and copies memory. */
	u64 (*factorial)(void __iomem *edu, u64 number);
	u64 (*dma)(void __iomem *edu, u64 from, u64 to, u64 size);
	/* 1, and 2 while the static key is on, which switch_key() changes. */
	u64 (*key)(void);
	void (*switch_key)(bool on);
	/* 1, which napi_schedule_prep() returns. */
	u64 (*leaf)(void);
	/* As raw_call(), by a patch site. */
	u64 (*site_call)(u64 (*function)(u64 argument), const u64 *private, u64 argument);
	/* No entry points. */
	const void *middle;
	const void *after_call;
	/* A page of the text that is full of INT3. */
	const void *other_page;
	/* Stores its second argument at its first one. */
	const void *store;
	/* The site of site_call(): CALL *RAX and a NOP, or one instruction (inside_code.S). */
	const void *site;
};

/* inside_code.S: */
u64 enter_raw_call(u64 (*function)(u64 argument), const u64 *private, u64 argument);
u64 enter_flags(void);
u64 enter_control(u64 number);
void enter_nothing(void);
u64 enter_site_call(u64 (*function)(u64 argument), const u64 *private, u64 argument);
extern const char inner_after_call[], inner_other_page[], inner_store[], inner_site[];

/* inside_devices.c: */
u64 enter_read_memory(const void __iomem *at);
void enter_write_memory(void __iomem *at, u64 value);
u64 enter_in(u64 port, u64 size);
void enter_out(u64 port, u64 size, u64 value);
void enter_in_string(u64 port, u32 *to, unsigned long count);
u64 enter_read_msr(u64 msr);
void enter_write_msr(u64 msr, u64 value);
void enter_random(u64 to[4]);
u64 enter_counter(void);
u64 enter_factorial(void __iomem *edu, u64 number);
u64 enter_dma(void __iomem *edu, u64 from, u64 to, u64 size);

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
/* Changes a byte of the text, by a mapping of our own, as text_poke() does. What it was. */
u8 outside_write_byte(const void *at, u8 value);
/* A command that patches. Returns whether it is one. */
bool outside_patch(const struct inside *inside, const u64 *private, const char *word, u64 *result);

/* outside_fuzz.c: what a batch has done. */
struct outside_fuzz_counts {
	u64 fetches, crossings, calls, writes, bad;
};

const struct outside_fuzz_counts *outside_fuzz(const struct inside *inside, struct module *module,
					       u64 *private, u64 seed, u64 steps, u64 guard,
					       u64 guard_size);

/* outside.c: */
void outside_text_of(const struct module *module, u64 *text, u64 *size);
void outside_register(const struct inside *inside);
u64 *outside_private(void);
u64 outside_deeper(u64 depth);
/* A VMMCALL of the guard's, with its number, RBX and RCX. */
s64 outside_guard_call(u64 number, u64 b, u64 c);
void outside_flush_guard(void *unused);
const void *outside_after_entry(const void *function);

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

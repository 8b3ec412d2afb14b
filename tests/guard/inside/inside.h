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

/* outside.c: */
void outside_register(const struct inside *inside);
u64 *outside_private(void);
u64 outside_deeper(u64 depth);

#endif

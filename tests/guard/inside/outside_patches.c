// SPDX-License-Identifier: GPL-2.0-only
/*
 * Patches that would bring instructions into the module that it does not have: by a site in whose
 * middle the module waits, and by the target of a call, four bytes of our choice. The commands are
 * those of outside.c.
 */
#include <linux/delay.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/trapnr.h>

#include "outside.h"

#define TAMPERED	0xa77ac4

#define SITE_SIZE	5

static void patch_site(const void *site, const u8 bytes[SITE_SIZE], u8 was[SITE_SIZE])
{
	int i;

	for (i = 0; i < SITE_SIZE; i++)
		was[i] = outside_write_byte(site + i, bytes[i]);
}

/* ---- a site in whose middle the module waits ---- */

void (*outside_meanwhile)(void);
u64 outside_rcx, outside_return_to;

static const void *waits_in;
static u8 waits_was[SITE_SIZE];

/* The site's other content, whose last three bytes are MOV RCX to RBX. */
static void patch_meanwhile(void)
{
	static const u8 other[SITE_SIZE] = { 0xb9, 0x00, 0x48, 0x89, 0xcb };

	patch_site(waits_in, other, waits_was);
}

/* The module reads by RBX then. What it has read. */
static u64 patch_middle(const struct inside *inside, const u64 *private)
{
	static const u64 ours = TAMPERED;
	u8 unused[SITE_SIZE];
	u64 read;

	waits_in = inside->site;
	outside_rcx = (u64)&ours;
	outside_meanwhile = patch_meanwhile;
	read = inside->site_call(outside_patches, private, 0);
	patch_site(waits_in, waits_was, unused);
	return read;
}

/* ---- the target of a call ---- */

static const void *target_at;

/* Without the patch, the module is in the middle of a NOP, and ends here. It returns then. */
static int on_undefined(struct notifier_block *block, unsigned long event, void *data)
{
	struct die_args *args = data;

	if (event != DIE_TRAP || args->trapnr != X86_TRAP_UD ||
	    args->regs->ip != (unsigned long)target_at)
		return NOTIFY_DONE;
	args->regs->ip = args->regs->si;
	return NOTIFY_STOP;
}

static struct notifier_block undefined_block = { .notifier_call = on_undefined };

/* What the module returns if it is made to return to the target of a call, which is not made. */
static u64 patch_target(const struct inside *inside, const u64 *private)
{
	/* CALL; its target is MOV ECX to EAX, and JMP to RSI. */
	static const u8 call[SITE_SIZE] = { 0xe8, 0x89, 0xc8, 0xff, 0xe6 };
	static const u8 nop[SITE_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	const void *site = outside_after_entry(inside->read) - SITE_SIZE;
	u8 was[SITE_SIZE], unused[SITE_SIZE];
	u64 result;

	if (memcmp(site, nop, SITE_SIZE))
		return -ENOEXEC;
	target_at = site + 1;
	outside_rcx = TAMPERED;
	outside_return_to = (u64)target_at;
	patch_site(site, call, was);
	register_die_notifier(&undefined_block);
	result = inside->raw_call(outside_leads_return, private, 0);
	unregister_die_notifier(&undefined_block);
	patch_site(site, was, unused);
	return result;
}

/* ---- more than a site ---- */

/*
 * Writes 8 bytes by one instruction: a patch site of 5 bytes, which stays as it is, and INT3 in the
 * place of the 3 bytes after it. Returns what the kernel then reads of these 3 bytes.
 */
static u64 patch_wide(const struct inside *inside)
{
	unsigned long at = (unsigned long)outside_after_entry(inside->read) - SITE_SIZE;
	struct page *pages[2] = {
		vmalloc_to_page((void *)at), vmalloc_to_page((void *)at + PAGE_SIZE),
	};
	void *alias = vmap(pages, 2, VM_MAP, PAGE_KERNEL);
	u64 *site = alias + offset_in_page(at);

	if (!alias)
		return 0;
	WRITE_ONCE(*site, (*site & 0xffffffffffULL) | 0xcccccc0000000000ULL);
	vunmap(alias);
	return *(u64 *)at >> 40;
}

/* ---- a patch that is taken back while the module runs ---- */

#define ROUNDS	60000000

static atomic_t spins;

static void spin(void *data)
{
	const struct inside *inside = data;

	atomic_set(&spins, 1);
	inside->spin(ROUNDS, false);
	atomic_set(&spins, 0);
}

/*
 * Changes a byte of a site, and changes it back, while another CPU is in the module. Returns
 * whether it still was afterwards.
 */
static u64 patch_briefly(const struct inside *inside)
{
	u8 *at = (u8 *)inside->site + SITE_SIZE - 1, was;
	unsigned int cpu = cpumask_any_but(cpu_online_mask, get_cpu());
	bool is_inside = false;

	if (cpu < nr_cpu_ids && !smp_call_function_single(cpu, spin, (void *)inside, false)) {
		while (!atomic_read(&spins))
			cpu_relax();
		mdelay(20);
		was = outside_write_byte(at, *at ^ 1);
		outside_write_byte(at, was);
		is_inside = atomic_read(&spins);
		while (atomic_read(&spins))
			cpu_relax();
	}
	put_cpu();
	return is_inside;
}

/*
 * Writes 8 bytes by one instruction: half of them to a page of the guard's, and half of them to the
 * text. Returns what the kernel then reads of the text.
 */
static u64 patch_beside(const struct inside *inside, u64 guard, bool text_first)
{
	struct page *text = vmalloc_to_page(inside->other_page);
	struct page *guards = pfn_to_page(PHYS_PFN(guard));
	struct page *pages[2] = { text_first ? text : guards, text_first ? guards : text };
	u8 *alias = vmap(pages, 2, VM_MAP, PAGE_KERNEL);
	u32 read;

	if (!alias)
		return 0;
	WRITE_ONCE(*(u64 *)(alias + PAGE_SIZE - sizeof(u32)), 0x9090909090909090ULL);
	read = *(u32 *)(alias + PAGE_SIZE - (text_first ? sizeof(u32) : 0));
	vunmap(alias);
	return read;
}

bool outside_patch(const struct inside *inside, const u64 *private, const char *word, u64 a, u64 b,
		   u64 *result)
{
	if (!strcmp(word, "patch-waiting"))
		*result = patch_middle(inside, private);
	else if (!strcmp(word, "patch-target"))
		*result = patch_target(inside, private);
	else if (!strcmp(word, "patch-wide"))
		*result = patch_wide(inside);
	else if (!strcmp(word, "patch-brief"))
		*result = patch_briefly(inside);
	else if (!strcmp(word, "patch-beside"))
		*result = patch_beside(inside, a, b);
	else
		return false;
	return true;
}

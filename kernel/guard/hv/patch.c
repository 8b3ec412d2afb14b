// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel writes to the text and the constants of a guarded module. In K these lead to
 * shadows that are read-only: a write faults, and the CPU executes this one instruction with the
 * single step's nested page table, where the shadow is writable (memory.c). So the kernel always
 * finds what it has written, and a module that nobody patches costs nothing.
 *
 * After each step, whatever has faulted, all shadows are compared with what the modules have: one
 * instruction may write much, also to what is hidden from the kernel (memory.c). Jump labels follow
 * what the kernel writes, and so do NOPs in the place of a call of ftrace's. All other sites, and
 * what is in no site, stay as they were when the module was compared. A hostile kernel would choose
 * the bytes of a call's target, or replace two instructions by one while an activation waits
 * between them; then M would execute instructions that the module does not have.
 *
 * Once a site that follows has one of the contents that the description allows, it is carried over
 * to the golden frames: all at once, while no CPU is in M. A CPU that enters M takes an activation
 * with a locked instruction, and then reads @carries. A CPU that carries sets @carries, and then
 * looks for an activation in M. So at least one of the two sees the other. A patch that cannot be
 * carried yet is judged at once, since the kernel may take it back, and is pending: the next CPU
 * that is about to enter M carries it, and executes its fetch again as long as another CPU is in M.
 * That ends, because the kernel sends an interrupt to every CPU after it has patched. What is
 * written before the module is compared is pending, too.
 */
#include <linux/types.h>

#include "guard/hv/lock.h"
#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

#define INT3		0xcc

/* The longest instruction. */
#define LONGEST_SITE	15

/*
 * How often a CPU that wants to enter M tries to carry first. Without a limit, a CPU that loops in
 * M with interrupts off, until another CPU has entered M, would loop for ever. After the limit a
 * CPU enters M with the old text.
 */
#define MOST_WAITS	0x10000

struct written {
	struct hv_guarded *guarded;
	u32 region;
	u32 offset;
};

/* Returns whether a golden frame is at a physical address, and where it is in the module. */
static bool find(u64 address, struct written *found)
{
	u32 i, frame;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		struct hv_guarded *guarded = &hv_guarded[i];

		for (frame = 0; guarded->used && frame < guarded->golden; frame++) {
			struct hv_place place = hv_place(guarded, frame);

			if (address - guarded->frames[frame] >= HV_PAGE)
				continue;
			found->guarded = guarded;
			found->region = place.region;
			found->offset = place.offset + address % HV_PAGE;
			return true;
		}
	}
	return false;
}

/* Whether a CPU is in M. The caller has announced that it carries. */
static bool is_inside(const struct hv_guarded *guarded)
{
	u32 i;

	for (i = 0; i < HV_ACTIVATIONS; i++) {
		u64 word = activation_read(&hv_activations[i]);

		if (word_state(word) == ACTIVATION_IN && word_registration(word) == guarded->number)
			return true;
	}
	return false;
}

/*
 * With the lock held. Keeps all CPUs from entering M until carry_end(). Returns false, and keeps
 * none, if a CPU is in M.
 */
static bool carry_begin(struct hv_guarded *guarded)
{
	__atomic_store_n(&guarded->carries, true, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!is_inside(guarded))
		return true;
	__atomic_store_n(&guarded->carries, false, __ATOMIC_RELEASE);
	return false;
}

static void carry_end(struct hv_guarded *guarded)
{
	__atomic_store_n(&guarded->carries, false, __ATOMIC_RELEASE);
}

/* Which golden frame is at a place of text. */
static u32 frame_at(const struct hv_guarded *guarded, u32 region, u32 offset)
{
	u32 first = region == CONTENT_INIT_TEXT ? hv_registration_lasting(guarded->copy) : 0;

	return first + offset / HV_PAGE;
}

/* The bytes of the shadow and of the golden frame there. */
static u8 *shadow_at(const struct hv_guarded *guarded, u32 region, u32 offset)
{
	return guarded->shadows[frame_at(guarded, region, offset)] + offset % HV_PAGE;
}

static u8 *golden_at(const struct hv_guarded *guarded, u32 region, u32 offset)
{
	return (u8 *)guarded->known->memory[region].pages[offset / HV_PAGE] + offset % HV_PAGE;
}

static bool is_same(const struct hv_guarded *guarded, const struct content_site *site, u32 region,
		    u32 offset)
{
	u32 end = offset + site->length;

	for (; offset < end; offset++)
		if (*golden_at(guarded, region, offset) != *shadow_at(guarded, region, offset))
			return false;
	return true;
}

/*
 * Carries what the shadow of a site has, if that is allowed: another CPU may change the shadow
 * meanwhile, so the copied bytes are compared. Returns whether they stay.
 */
static bool carry(struct hv_guarded *guarded, const struct content_site *site, u32 region,
		  u32 offset)
{
	u8 was[LONGEST_SITE];
	u32 i;

	if (is_same(guarded, site, region, offset))
		return true;
	if (!site->follows || site->length > LONGEST_SITE)
		return false;
	for (i = 0; i < site->length; i++) {
		u8 *golden = golden_at(guarded, region, offset + i);

		was[i] = *golden;
		*golden = *shadow_at(guarded, region, offset + i);
	}
	if (content_allows(&guarded->known->content, guarded->known->memory, site, region, offset))
		return true;
	for (i = 0; i < site->length; i++)
		*golden_at(guarded, region, offset + i) = was[i];
	return false;
}

/* The same without carrying it, while a CPU is in M: whether the module may have it. */
static bool may_carry(struct hv_guarded *guarded, const struct content_site *site, u32 region,
		      u32 offset)
{
	struct content_memory memory[CONTENT_REGIONS];
	u32 i;

	if (is_same(guarded, site, region, offset))
		return true;
	if (!site->follows)
		return false;
	for (i = 0; i < CONTENT_REGIONS; i++)
		memory[i] = guarded->known->memory[i];
	memory[region].pages = (const u8 *const *)&guarded->shadows[frame_at(guarded, region, 0)];
	return content_allows(&guarded->known->content, memory, site, region, offset);
}

/*
 * Carries what the kernel has written there, or only judges it. Or the module may not have it,
 * which is suspicious: returns the physical address then, and otherwise 0.
 */
static u64 settle(struct hv_guarded *guarded, const struct content_site *site, u32 region,
		  u32 offset, bool carries)
{
	bool may = carries ? carry(guarded, site, region, offset) :
			     may_carry(guarded, site, region, offset);

	/* Linux replaces the INT3 when the rest of its patch is written. */
	if (may || *shadow_at(guarded, region, offset) == INT3)
		return 0;
	return guarded->frames[frame_at(guarded, region, offset)] + offset % HV_PAGE;
}

/* The same for all patches: the last one that is suspicious. */
static u64 settle_all(struct hv_guarded *guarded, bool carries)
{
	const struct content *content = &guarded->known->content;
	u64 refused, last = 0;
	u32 i, k;

	for (i = 0; i < content->header->sections; i++) {
		const struct content_section *section = &content->sections[i];
		const struct content_site *site = &content->sites[section->first_site];

		if (section->region != CONTENT_TEXT &&
		    (section->region != CONTENT_INIT_TEXT || !guarded->init_size))
			continue;
		for (k = 0; k < section->sites; k++, site++) {
			refused = settle(guarded, site, section->region,
					 section->offset + site->offset, carries);
			last = refused ?: last;
		}
	}
	return last;
}

/* Whether a patch site has this byte of the module. */
static bool is_in_site(const struct hv_guarded *guarded, u32 region, u32 offset)
{
	u32 start;

	return guarded->known &&
	       content_site_at(&guarded->known->content, region, offset, &start);
}

/*
 * Where the kernel has changed what no patch site has: a physical address, or 0. @differs: whether
 * it has changed anything. One instruction may write much, to several pages, of which the fault
 * names one byte.
 */
static u64 changed_elsewhere(const struct hv_guarded *guarded, bool *differs)
{
	u32 i, word, at;

	for (i = 0; i < guarded->golden; i++) {
		const u64 *golden = hv_guest_memory(guarded->frames[i]);
		const u64 *shadow = (const u64 *)guarded->shadows[i];
		struct hv_place place = hv_place(guarded, i);

		for (word = 0; word < HV_ENTRIES; word++) {
			if (golden[word] == shadow[word])
				continue;
			*differs = true;
			for (at = 8 * word; at < 8 * word + 8; at++)
				if (((const u8 *)golden)[at] != ((const u8 *)shadow)[at] &&
				    !is_in_site(guarded, place.region, place.offset + at))
					return guarded->frames[i] + at;
		}
	}
	return 0;
}

/*
 * Carries what the kernel has written to the sites of a module. Returns what is suspicious, as
 * settle() does.
 */
static u64 settle_module(struct hv_guarded *guarded)
{
	bool differs = false;
	u64 refused = changed_elsewhere(guarded, &differs);

	if (!guarded->known || !differs)
		return refused;
	/* Until the module was compared, nothing is known of the place of a site. */
	if (!registration_runs(&guarded->border)) {
		__atomic_store_n(&guarded->pending, true, __ATOMIC_RELEASE);
		return refused;
	}
	/* What is suspicious may be gone when no CPU is in M any more: it is judged now. */
	if (!carry_begin(guarded)) {
		__atomic_store_n(&guarded->pending, true, __ATOMIC_RELEASE);
		return settle_all(guarded, false) ?: refused;
	}
	refused = settle_all(guarded, true) ?: refused;
	carry_end(guarded);
	return refused;
}

/* Whether it was a write to a patch site. Linux patches init's no more once init has returned. */
static bool is_patch(const struct written *written)
{
	return is_in_site(written->guarded, written->region, written->offset) &&
	       (written->region != CONTENT_INIT_TEXT || written->guarded->init_size);
}

void hv_patch_written(struct hv_cpu *cpu)
{
	u64 refused[HV_REGISTRATIONS] = {};
	struct written written;
	u32 i;

	hv_lock(&hv_views_lock);
	/* It may have written to the text of several, whatever is next to that in a page table. */
	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used && !hv_guarded[i].leaving)
			refused[i] = settle_module(&hv_guarded[i]);
	if (find(cpu->written, &written) && !is_patch(&written))
		refused[written.guarded->number] = cpu->written;
	hv_unlock(&hv_views_lock);
	/* What it is about stays until this CPU acknowledges a flush. */
	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (refused[i])
			hv_suspect(cpu, &hv_guarded[i], SUSPECT_WRITE, refused[i]);
}

struct hv_guarded *hv_patch_owner(u64 address)
{
	struct written found = {};

	hv_lock(&hv_views_lock);
	find(address, &found);
	hv_unlock(&hv_views_lock);
	return found.guarded;
}

bool hv_patch_carry(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	u64 refused = 0;
	bool done;

	hv_lock(&hv_views_lock);
	/* It is entered only if it is armed: then what is pending is carried. */
	done = !registration_runs(&guarded->border);
	if (!done && carry_begin(guarded)) {
		guarded->pending = false;
		guarded->waits = 0;
		refused = settle_all(guarded, true);
		carry_end(guarded);
		done = true;
	}
	hv_unlock(&hv_views_lock);
	if (refused)
		hv_suspect(cpu, guarded, SUSPECT_WRITE, refused);
	return done || __atomic_add_fetch(&guarded->waits, 1, __ATOMIC_RELAXED) > MOST_WAITS;
}

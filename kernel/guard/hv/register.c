// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registrations: their VMMCALLs, and the actions that their automaton demands (frames.c carries out
 * those that change a view).
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/border/cpu_step.h"
#include "guard/hv/lock.h"
#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

u8 hv_views_lock;
u32 hv_views_changed;
u64 hv_present;
struct hv_guarded hv_guarded[HV_REGISTRATIONS];
struct border_activation hv_activations[HV_ALL_ACTIVATIONS];
u64 hv_in_use[1 + HV_REGISTRATIONS];

/* ---- M's address space ---- */

/* Maps the pages of its leaves, or unmaps those that no other module has, too. */
static bool map_leaves(struct hv_cpu *cpu, u64 cr3, const struct hv_guarded *guarded, bool map)
{
	const struct hv_leaves *leaves = guarded->leaves;
	bool done = true;
	u32 i;

	for (i = 0; leaves && i < leaves->page_count; i++)
		if (map || !hv_leaves_share(guarded, leaves->pages[i].address))
			done &= hv_space_map(cpu, cr3, leaves->pages[i].address,
					     map ? leaves->pages[i].frame | HV_PTE_TEXT : 0);
	return done;
}

/*
 * Maps or unmaps the golden frames from @first on; with 0 also the module's data and its leaves.
 * Returns false without memory.
 */
static bool map_on(struct hv_cpu *cpu, u64 cr3, const struct hv_guarded *guarded, u32 first,
		   bool map)
{
	const struct hv_registration *copy = guarded->copy;
	bool done = true;
	u64 entry;
	u32 i;

	for (i = first; i < guarded->mapped; i++) {
		struct hv_place place = hv_place(guarded, i);

		entry = guarded->frames[i] | (place.is_text ? HV_PTE_TEXT : HV_PTE_CONSTANT);
		done &= hv_space_map(cpu, cr3, place.address, map ? entry : 0);
	}
	for (i = 0; !first && i < copy->data_count; i++)
		done &= hv_space_map(cpu, cr3, guarded->datas[i].address,
				     map ? guarded->datas[i].entry : 0);
	if (!first)
		done &= map_leaves(cpu, cr3, guarded, map);
	return done;
}

static bool map(struct hv_cpu *cpu, const struct hv_guarded *guarded, u32 first, bool map)
{
	bool done = true;
	u32 i;

	for (i = 0; i < hv_config.cpus && i < MOST_CPUS && !hv_is_secret(guarded); i++)
		if (hv_present >> i & 1 && hv_cpu_of(i)->space)
			done &= map_on(hv_cpu_of(i), hv_vmcb_of_k(cpu)->save.cr3, guarded,
				       first, map);
	return done;
}

/* ---- the automaton ---- */

static void act(struct hv_cpu *cpu, struct hv_guarded *guarded, u32 kind)
{
	struct border border;

	switch (kind) {
	case ACT_LOG:
		if (guarded->differs)
			hv_log_suspicion(cpu, HV_LOG_CONTENT, guarded->border.choice,
					 guarded->differs);
		break;
	case ACT_PANIC:
		cpu->panics = true;
		break;
	case ACT_FREEZE:
		hv_frames_freeze(guarded);
		break;
	case ACT_OPEN:
		/* What the kernel has put there, and could read, is no secret. */
		if (hv_is_secret(guarded))
			hv_clear_secrets(guarded);
		hv_frames_open(guarded, true);
		break;
	case ACT_CLOSE:
		hv_frames_open(guarded, false);
		break;
	case ACT_SWEEP:
		hv_border_begin(&border, cpu, guarded);
		border_sweep(&border);
		break;
	case ACT_CLEAR_SECRETS:
		hv_clear_secrets(guarded);
		break;
	case ACT_THAW:
		hv_frames_thaw(guarded);
		hv_privileges_deinit(guarded);
		map(cpu, guarded, 0, false);
		break;
	}
}

/*
 * One step, with the lock held. A revocation is stored before its actions, all else afterwards: see
 * border/registration.h. Returns false if the automaton refuses the event.
 */
static bool step(struct hv_cpu *cpu, struct hv_guarded *guarded,
		 const struct registration_event *event)
{
	struct border_registration old = guarded->border, next;
	struct border_actions actions = {};
	bool refused = false;
	u32 i;

	next = registration_step(old, event, &actions);
	if (next.stopped && guarded->known)
		guarded->known->stopped = true;
	if (next.state == REGISTRATION_DYING)
		registration_store(&guarded->border, old, next);
	for (i = 0; i < actions.count; i++) {
		refused |= actions.list[i].kind == ACT_REFUSE;
		act(cpu, guarded, actions.list[i].kind);
	}
	registration_store(&guarded->border, old, next);
	return !refused;
}

static bool step_kind(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 kind)
{
	struct registration_event event = {
		.kind = kind, .choice = guarded->copy->choice,
		.privileges = guarded->privilege_mask, .who = hv_present,
	};

	return step(cpu, guarded, &event);
}

void hv_register_change(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 kind)
{
	hv_lock(&hv_views_lock);
	step_kind(cpu, guarded, kind);
	hv_unlock(&hv_views_lock);
}

/* ---- the calls ---- */

static bool is_sorted(const u64 *offsets, u32 count, u64 size)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (offsets[i] >= size || (i && offsets[i] <= offsets[i - 1]))
			return false;
	return true;
}

/* Whether a page is the kernel's in all views, and not page 0. A BAR is, too: see is_ram(). */
static bool is_plain(u64 frame)
{
	return frame && !(frame & ~HV_ADDRESS) && frame < hv_config.end && !hv_is_guards(frame) &&
	       hv_nested_look(frame) == (frame | HV_NPT_WRITE);
}

static bool is_in(u64 frame, const u64 *frames, u32 count)
{
	while (count--)
		if (*frames++ == frame)
			return true;
	return false;
}

/* Whether a module of class S shares the page with the kernel: it is plain, but M may write it. */
static bool is_exchange(u64 frame)
{
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used && is_in(frame, hv_guarded[i].exchanges,
						hv_guarded[i].copy->secret.exchange_pages))
			return true;
	return false;
}

/* Whether a page of a module of class S, which no other M has, is at a linear address. */
static bool is_secrets(u64 address)
{
	const struct hv_registration *copy;
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		if (!hv_guarded[i].used || !hv_is_secret(&hv_guarded[i]))
			continue;
		copy = hv_guarded[i].copy;
		if (address - copy->text < copy->text_pages * HV_PAGE ||
		    address - copy->ranges[HV_RODATA].address <
			    copy->ranges[HV_RODATA].pages * HV_PAGE ||
		    address - copy->secret.private < copy->private_count * HV_PAGE ||
		    address - copy->secret.exchange < copy->secret.exchange_pages * HV_PAGE)
			return true;
	}
	return false;
}

static bool is_others(struct hv_cpu *cpu, u64 address)
{
	return hv_space_owns(cpu, address) || is_secrets(address);
}

/*
 * Memory that nobody but the CPUs changes (and devices, by DMA). hv_is_memory() also accepts the
 * first megabyte, with its devices.
 */
static bool is_ram(u64 frame)
{
	u32 i;

	for (i = 0; i < HV_MEMORY_PARTS; i++)
		if (frame >= hv_config.parts[i].start && frame + HV_PAGE <= hv_config.parts[i].end)
			return true;
	return false;
}

/*
 * Whether each frame is the kernel's alone, and no address is another module's. All modules have
 * one page table on a CPU, which leads to the frames of all leaves: none of these may become text.
 */
static bool is_free(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	const struct hv_registration *copy = guarded->copy;
	/* The private frames are followed by those of the exchange. */
	u32 others = copy->private_count + copy->secret.exchange_pages, i;

	for (i = 0; i < guarded->golden; i++)
		if (!is_plain(guarded->frames[i]) || !is_ram(guarded->frames[i]) ||
		    is_exchange(guarded->frames[i]) ||
		    is_in(guarded->frames[i], guarded->frames, i) ||
		    is_in(guarded->frames[i], guarded->privates, others) ||
		    hv_leaf_has_frame(guarded->frames[i]) ||
		    is_others(cpu, hv_place(guarded, i).address))
			return false;
	for (i = 0; i < copy->data_count; i++)
		if (is_others(cpu, guarded->datas[i].address))
			return false;
	for (i = 0; guarded->leaves && i < guarded->leaves->page_count; i++) {
		u64 frame = guarded->leaves->pages[i].frame;

		if (!is_plain(frame) || !is_ram(frame) || is_exchange(frame))
			return false;
	}
	for (i = 0; i < others; i++)
		if (!is_plain(guarded->privates[i]) || is_exchange(guarded->privates[i]) ||
		    hv_leaf_has_frame(guarded->privates[i]) ||
		    is_in(guarded->privates[i], guarded->privates, i))
			return false;
	return true;
}

static void to_addresses(u64 *offsets, u32 count, u64 text)
{
	while (count--)
		*offsets++ += text;
}

/* The tables of the copy have offsets. Returns false if a value is not allowed. */
static bool add_text(struct hv_guarded *guarded)
{
	const struct hv_registration *copy = guarded->copy;
	struct border_module *module = &guarded->module;
	u64 size = copy->text_pages * HV_PAGE;
	struct border_fixup *fixup = (struct border_fixup *)module->fixups;
	u32 i;

	if (copy->text % HV_PAGE || !is_sorted(module->entries, copy->entry_count, size) ||
	    !is_sorted(module->bugs, copy->bug_count, size))
		return false;
	to_addresses((u64 *)module->entries, copy->entry_count + copy->bug_count, copy->text);
	for (i = 0; i < copy->fixup_count; i++, fixup++) {
		fixup->from += copy->text;
		fixup->to += copy->text;
	}
	return true;
}

/* What border control needs to know of class S. Returns false if a value is not allowed. */
static bool add_secret(struct hv_guarded *guarded)
{
	const struct hv_registration *copy = guarded->copy;
	const struct hv_secret *secret = &copy->secret;
	struct border_module *module = &guarded->module;

	module->stub = module->text + secret->stub;
	module->gate = secret->gate;
	module->stacks = secret->private;
	module->stack_size = secret->stack_pages * HV_PAGE;
	guarded->first = HV_ACTIVATIONS + guarded->number * HV_STACKS;
	guarded->pool = &hv_activations[guarded->first];
	guarded->in_use = &hv_in_use[1 + guarded->number];
	/* Those of the last registration were freed, and it may have had more. */
	*guarded->in_use = 0;
	guarded->pool_size = secret->stacks;
	return !copy->data_count && !copy->privilege_count && !copy->ranges[HV_INIT_TEXT].pages &&
	       !copy->ranges[HV_INIT_RODATA].pages && !module->init &&
	       !module_has(module, secret->gate) && module_has(module, module->stub) &&
	       !module_entry(module, module->stub) &&
	       !((copy->ranges[HV_RODATA].address | secret->private | secret->exchange) %
		 HV_PAGE) &&
	       secret->stacks && secret->stacks <= HV_STACKS && secret->stack_pages &&
	       secret->stack_pages <= copy->private_count / secret->stacks;
}

static void free_shadows(struct hv_guarded *guarded, u32 first)
{
	u32 i;

	for (i = first; i < hv_registration_frames(guarded->copy); i++) {
		if (guarded->shadows[i])
			hv_pool_give(guarded->shadows[i], 1);
		guarded->shadows[i] = NULL;
	}
}

static void forget(struct hv_guarded *guarded)
{
	u32 i;

	free_shadows(guarded, 0);
	hv_secret_free(guarded);
	if (guarded->view)
		hv_nested_free(guarded->view);
	if (guarded->lowered_view)
		hv_nested_free(guarded->lowered_view);
	hv_give_copy(guarded);
	*guarded = (struct hv_guarded){};
	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used)
			return;
	hv_nested_hide_none();
}

static bool hide_block(u64 root)
{
	u64 at, *entry;

	for (at = 0; at < hv_config.memory_size; at += HV_LARGE_PAGE) {
		entry = hv_nested_entry(root, hv_config.memory + at, HV_SHIFT_LARGE);
		if (!entry)
			return false;
		*entry = hv_config.zero_table | HV_NPT_SHARED | HV_NPT_NO_EXECUTE;
	}
	return true;
}

/*
 * Makes an entry for this frame alone in each view that will need one. Returns false without
 * memory.
 */
static bool divide(const struct hv_guarded *guarded, u64 frame)
{
	return hv_nested_entry(hv_config.nested_cr3, frame, HV_SHIFT_PAGE) &&
	       hv_nested_entry(hv_config.step_cr3, frame, HV_SHIFT_PAGE) &&
	       hv_nested_entry(guarded->view, frame, HV_SHIFT_PAGE) &&
	       (hv_is_secret(guarded) ||
		hv_nested_entry(guarded->lowered_view, frame, HV_SHIFT_PAGE));
}

static bool make_views(struct hv_guarded *guarded)
{
	if (hv_is_secret(guarded))
		return hv_secret_make(guarded);
	guarded->view = hv_nested_make(HV_NPT_NO_EXECUTE);
	guarded->lowered_view = hv_nested_make(HV_NPT_NO_EXECUTE);
	if (!guarded->view || !guarded->lowered_view || !hide_block(guarded->view) ||
	    !hide_block(guarded->lowered_view))
		return false;
	hv_space_reveal(guarded->view);
	return true;
}

/* All memory that the registration needs. */
static bool furnish(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	u64 views = 4;
	u32 i;

	if (!make_views(guarded) || !hv_leaves_map(guarded))
		return false;
	for (i = 0; i < guarded->golden; i++) {
		guarded->shadows[i] = hv_pool_take(1);
		if (!guarded->shadows[i] || !divide(guarded, guarded->frames[i]))
			return false;
	}
	for (i = 0; i < guarded->copy->private_count; i++)
		if (!divide(guarded, guarded->privates[i]))
			return false;
	guarded->mapped = guarded->golden;
	for (i = 0; i < HV_REGISTRATIONS; i++)
		views += hv_guarded[i].used ? 2 : 0;
	return map(cpu, guarded, 0, true) &&
	       hv_pool_left() >= hv_privileges_need(guarded, views);
}

/* Memory and privileges. Returns 0 or an error, and has divided and mapped nothing then. */
static s64 equip(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	s64 err = furnish(cpu, guarded) ? hv_privileges_init(guarded) : -ENOMEM;

	if (!err)
		return 0;
	map(cpu, guarded, 0, false);
	hv_frames_join(guarded);
	return err == -EINVAL ? -ENXIO : err;
}

static s64 take_registration(struct hv_guarded *guarded, u64 at)
{
	const struct hv_registration *from = hv_guest_memory(at);
	struct hv_registration sizes = *from;
	u64 size = hv_registration_size(&sizes), i;

	if (hv_sealed)
		return -EPERM;
	if (size > HV_REGISTRATION_SIZE || !sizes.text_pages || sizes.class > CLASS_S ||
	    sizes.privilege_count > HV_PRIVILEGES || !choice_is_known(sizes.choice))
		return -EINVAL;
	if (!hv_take_copy(guarded, &sizes))
		return -ENOMEM;
	for (i = sizeof(sizes) / sizeof(u64); i < size / sizeof(u64); i++)
		((u64 *)guarded->copy)[i] = ((const u64 *)from)[i];
	hv_dissect(guarded);
	if (!add_text(guarded) || (hv_is_secret(guarded) && !add_secret(guarded)))
		return -EINVAL;
	return 0;
}

/*
 * A described module is said to be where it cannot be, or its device is elsewhere: that is as
 * suspicious as other content (EVENT_MISMATCH).
 */
static void suspect_load(struct hv_cpu *cpu, struct hv_known *known)
{
	const struct border_registration border = { .choice = known->choice };

	if (registration_chose(&border, CHOICE_LOG))
		hv_log_suspicion(cpu, HV_LOG_CONTENT, known->choice,
				 known->memory[CONTENT_TEXT].address);
	known->stopped |= registration_chose(&border, CHOICE_STOP);
	cpu->panics |= registration_chose(&border, CHOICE_PANIC);
}

/* REGISTER or LOAD */
static s64 enroll(struct hv_cpu *cpu, struct hv_guarded *guarded, u64 number, u64 at)
{
	u8 index = guarded - hv_guarded;
	s64 err;

	if (guarded->used ||
	    (number == HV_CALL_REGISTER && hv_is_described(index)))
		return -EBUSY;
	if (!hv_config.window || !cpu->space || hv_config.cpus > MOST_CPUS)
		return -EOPNOTSUPP;
	/* The answer tells something of what is read there. */
	if (!is_plain(at) || !hv_is_memory(at))
		return -EINVAL;
	*guarded = (struct hv_guarded){ .number = index, .who = word_who(0, index) };
	err = number == HV_CALL_LOAD ? hv_compose(guarded, at) : take_registration(guarded, at);
	if (!err && !is_free(cpu, guarded))
		err = -EINVAL;
	if (!err)
		err = equip(cpu, guarded);
	if (guarded->known && (err == -EINVAL || err == -ENXIO))
		suspect_load(cpu, guarded->known);
	if (err) {
		if (guarded->copy)
			forget(guarded);
		return err;
	}
	guarded->size = guarded->module.text_end - guarded->module.text;
	guarded->init_size = guarded->module.init_text_end - guarded->module.init_text;
	guarded->border.has_init = !!guarded->module.init;
	guarded->border.state = REGISTRATION_LOADED;
	guarded->used = true;
	step_kind(cpu, guarded, EVENT_BIND);
	step_kind(cpu, guarded, EVENT_FREEZE);
	return 0;
}

/*
 * All CPUs have flushed: the first time, the kernel gets init's frames; the second time, the pool
 * gets their shadows.
 */
static void release_step(struct hv_guarded *guarded)
{
	u32 first = hv_registration_lasting(guarded->copy);

	if (guarded->golden > first) {
		hv_frames_thaw_golden(guarded, first);
		guarded->releasing = hv_present;
	} else {
		free_shadows(guarded, first);
	}
}

/* RELEASE: takes init's text and constants from M. */
static s64 release(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	u32 first = hv_registration_lasting(guarded->copy), i;

	/* Arming would open the frames of init again. */
	if (!registration_runs(&guarded->border))
		return -EINVAL;
	/* Whatever Linux puts there is outside of the module. */
	for (i = CONTENT_INIT_TEXT; guarded->known && i <= CONTENT_INIT_DATA; i++)
		guarded->known->memory[i].size = 0;
	if (guarded->golden == first || guarded->releasing)
		return -EINVAL;
	guarded->init_size = 0;
	guarded->module.init_text_end = guarded->module.init_text;
	hv_frames_set_golden(guarded, first, false);
	map(cpu, guarded, first, false);
	guarded->mapped = first;
	guarded->releasing = hv_present;
	return 0;
}

/* The actions of a flush are those of one tag. Each time, all are flushed. */
static void border_act(struct border *border, u32 kind, u32 argument)
{
	struct hv_cpu *cpu = (void *)border->cpu - offsetof(struct hv_cpu, border);

	hv_vmcb_of_k(cpu)->control.tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
}

/* Flushes both tags: at the next VMRUN, and no code of the guest's runs before it. */
static void flush(struct hv_cpu *cpu)
{
	struct registration_event event = { .kind = EVENT_ACK, .who = AWAIT_CPU(cpu->number) };
	struct border border;
	u32 i;

	hv_lower(cpu, NULL);
	hv_vmcb_of_k(cpu)->control.tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
	for (i = 0; i < HV_REGISTRATIONS; i++) {
		struct hv_guarded *guarded = &hv_guarded[i];

		if (!guarded->used)
			continue;
		hv_border_begin(&border, cpu, guarded);
		if (border_flush(&border, &event.generation))
			step(cpu, guarded, &event);
		if (guarded->releasing & AWAIT_CPU(cpu->number)) {
			guarded->releasing &= ~AWAIT_CPU(cpu->number);
			if (!guarded->releasing)
				release_step(guarded);
		}
		if (!guarded->leaving)
			continue;
		guarded->leaving &= ~AWAIT_CPU(cpu->number);
		if (!guarded->leaving)
			forget(guarded);
	}
	hv_space_prune(cpu);
	hv_pool_flushed(AWAIT_CPU(cpu->number));
}

/*
 * The golden frames of a described module are compared. For any other module the guard believes the
 * caller, who could register it only before the seal.
 */
static s64 arm(struct hv_cpu *cpu, struct hv_guarded *guarded, u64 *b)
{
	struct content_finding finding = {};

	if (!guarded->known && hv_sealed)
		return -EPERM;
	if (!step_kind(cpu, guarded, EVENT_HASH))
		return -EBUSY;
	if (!hv_pci_stays(guarded)) {
		guarded->differs = guarded->module.text;
		step_kind(cpu, guarded, EVENT_MISMATCH);
		return -ENXIO;
	}
	if (guarded->known)
		finding = hv_check_content(cpu, guarded);
	if (finding.verdict != CONTENT_MATCHES) {
		guarded->differs = guarded->known->memory[finding.region].address + finding.offset;
		step_kind(cpu, guarded, EVENT_MISMATCH);
		*b = finding.verdict | (u64)finding.region << 8 | (u64)finding.offset << 32;
		return -ENOEXEC;
	}
	step_kind(cpu, guarded, EVENT_MATCH);
	step_kind(cpu, guarded, EVENT_ARM);
	/* Without an init that it could wait for, the module may also end. */
	if (!guarded->border.has_init)
		step_kind(cpu, guarded, EVENT_SEAL);
	return 0;
}

static s64 call(struct hv_cpu *cpu, u64 number, u64 *b, u64 c)
{
	struct hv_guarded *guarded;

	if (number == HV_CALL_FLUSH) {
		flush(cpu);
		return 0;
	}
	if (number == HV_CALL_LEFT) {
		*b = hv_pool_left();
		return 0;
	}
	if (*b >= HV_REGISTRATIONS)
		return -EINVAL;
	guarded = &hv_guarded[*b];
	if (number == HV_CALL_DESCRIBE)
		return hv_describe(cpu, b, c);
	if (number == HV_CALL_UNDESCRIBE)
		return hv_undescribe(*b);
	if (number == HV_CALL_REGISTER || number == HV_CALL_LOAD)
		return enroll(cpu, guarded, number, c);
	if (number == HV_CALL_TALLY)
		return hv_tally_read(hv_tally_of(*b), (u32)c, c >> 32, b);
	if (number == HV_CALL_STATE) {
		*b = guarded->used ? guarded->border.state : ~0ULL;
		if (guarded->used && guarded->border.stopped)
			*b |= HV_STATE_STOPPED;
		return 0;
	}
	if (!guarded->used || guarded->leaving)
		return -ENOENT;
	switch (number) {
	case HV_CALL_ARM:
		return arm(cpu, guarded, b);
	case HV_CALL_RELEASE:
		return release(cpu, guarded);
	case HV_CALL_REVOKE:
		return step_kind(cpu, guarded, EVENT_REVOKE) ? 0 : -EINVAL;
	default: /* HV_CALL_THAW */
		if (!step_kind(cpu, guarded, EVENT_THAW))
			return -EBUSY;
		/*
		 * Nobody finds the module by an address any more. A CPU that has found it before is
		 * in the guard, so it has not acknowledged.
		 */
		__atomic_store_n(&guarded->size, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&guarded->init_size, 0, __ATOMIC_RELAXED);
		guarded->releasing = 0;
		guarded->leaving = hv_present;
		return 0;
	}
}

s64 hv_register_call(struct hv_cpu *cpu, u64 number, u64 *b, u64 c)
{
	s64 result;

	hv_lock(&hv_views_lock);
	result = call(cpu, number, b, c);
	hv_unlock(&hv_views_lock);
	return result;
}

/* The first CPU finds the tables as the loader has left them. */
static void start_first(void)
{
	u64 at;
	u32 i;

	for (i = 0; i < HV_ALL_ACTIVATIONS; i++)
		hv_activations[i].word = ACTIVATION_FIRST;
	hv_pci_start();
	hv_mmio_start();
	hv_ports_start();
	hv_msr_start();
	hv_monitor_start();
	hv_config.step_cr3 = hv_nested_make(0);
	for (at = 0; at < hv_config.memory_size; at += HV_LARGE_PAGE)
		*hv_nested_entry(hv_config.step_cr3, hv_config.memory + at, HV_SHIFT_LARGE) =
			hv_config.sink_table;
	if (hv_config.window)
		hv_space_init();
}

void hv_register_start(struct hv_cpu *cpu)
{
	u64 cr3 = hv_vmcb_of_k(cpu)->save.cr3;
	u32 i;

	hv_lock(&hv_views_lock);
	if (!hv_config.step_cr3)
		start_first();
	hv_space_start(cpu);
	for (i = 0; i < HV_REGISTRATIONS && cpu->space; i++)
		if (hv_guarded[i].used && !hv_guarded[i].leaving &&
		    !hv_is_secret(&hv_guarded[i]) &&
		    !map_on(cpu, cr3, &hv_guarded[i], 0, true))
			hv_space_stop(cpu);
	/* Nothing is registered on a computer that has more. */
	if (cpu->number < MOST_CPUS)
		hv_present |= AWAIT_CPU(cpu->number);
	hv_unlock(&hv_views_lock);
}

/* A CPU that leaves the guard caches nothing any more. With the last one all secrets end. */
void hv_register_stop(struct hv_cpu *cpu)
{
	u32 i;

	hv_lock(&hv_views_lock);
	if (cpu->number < MOST_CPUS)
		hv_present &= ~AWAIT_CPU(cpu->number);
	for (i = 0; i < HV_REGISTRATIONS && !hv_present; i++)
		if (hv_guarded[i].used && hv_guarded[i].border.state != REGISTRATION_LOADED)
			hv_clear_secrets(&hv_guarded[i]);
	flush(cpu);
	hv_space_stop(cpu);
	hv_unlock(&hv_views_lock);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registrations: their VMMCALLs, and the actions that their automaton demands. A view changes here
 * alone, with the lock held. Each frame of a module changes in all views: those of other modules
 * have no more of it than K has.
 */
#include <linux/types.h>
#include <asm/svm.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/lock.h"
#include "guard/hv/views.h"

#define PAGE		4096ULL
#define WORDS		512
#define LARGE_PAGE	0x200000ULL

/* Present, accessed; M's own entries for text. */
#define TEXT_RIGHTS	(BIT_ULL(0) | BIT_ULL(5))

u8 hv_views_lock;
u32 hv_views_changed;
struct hv_guarded hv_guarded[HV_REGISTRATIONS];
struct border_activation hv_activations[HV_ALL_ACTIVATIONS];

/* A bit for each CPU that is in the guard. */
static u64 present;

static struct hv_cpu *cpu_of(u32 number)
{
	return (void *)(hv_config.cpu_areas + (number + 1) * HV_CPU_SIZE - sizeof(struct hv_cpu));
}

/* ---- the views ---- */

/* An entry of all views but those of @guarded: what K has, or what the single step has. */
static void set_others(const struct hv_guarded *guarded, u64 frame, u64 entry, u64 step_entry)
{
	u32 i;

	*hv_nested_entry(hv_config.nested_cr3, frame, 12) = entry;
	*hv_nested_entry(hv_config.step_cr3, frame, 12) = step_entry;
	for (i = 0; i < HV_REGISTRATIONS; i++) {
		if (!hv_guarded[i].used || &hv_guarded[i] == guarded ||
		    hv_is_secret(&hv_guarded[i]))
			continue;
		*hv_nested_entry(hv_guarded[i].view, frame, 12) = entry | HV_NPT_NO_EXECUTE;
		*hv_nested_entry(hv_guarded[i].lowered_view, frame, 12) =
			entry | HV_NPT_NO_EXECUTE;
	}
}

static u64 shadow_entry(const struct hv_guarded *guarded, u32 i)
{
	return hv_physical(guarded->shadows + i * PAGE) | HV_NPT_WRITE;
}

/*
 * K and L have shadows instead of the text and of constants, and no private frames; M has nothing
 * yet. In class S it is closed already, and there is no L.
 */
static void freeze(struct hv_guarded *guarded)
{
	u64 zero = hv_config.zero_entry | HV_NPT_NO_EXECUTE;
	u64 sink = hv_config.sink_entry | HV_NPT_NO_EXECUTE;
	u64 *from, *to, shadow;
	u32 i, word;

	for (i = 0; i < guarded->frozen; i++) {
		from = hv_guest_memory(guarded->texts[i]);
		to = (u64 *)(guarded->shadows + i * PAGE);
		for (word = 0; word < WORDS; word++)
			to[word] = from[word];
		shadow = shadow_entry(guarded, i);
		/* L makes the single step, too. */
		set_others(guarded, guarded->texts[i], shadow | HV_NPT_NO_EXECUTE,
			   hv_is_secret(guarded) ? shadow | HV_NPT_NO_EXECUTE : shadow);
		if (hv_is_secret(guarded))
			continue;
		*hv_nested_entry(guarded->view, guarded->texts[i], 12) =
			shadow | HV_NPT_NO_EXECUTE;
		*hv_nested_entry(guarded->lowered_view, guarded->texts[i], 12) = shadow;
	}
	for (i = 0; i < guarded->copy->private_count; i++) {
		hv_nested_hide(guarded->privates[i]);
		set_others(guarded, guarded->privates[i], zero, sink);
		if (hv_is_secret(guarded))
			continue;
		*hv_nested_entry(guarded->view, guarded->privates[i], 12) = zero;
		*hv_nested_entry(guarded->lowered_view, guarded->privates[i], 12) = sink;
	}
	hv_views_changed++;
}

/* M executes the golden frames, and has the private ones; or nothing of that. */
static void set_open(struct hv_guarded *guarded, bool open)
{
	u64 text, private;
	u32 i;

	hv_views_changed++;
	if (hv_is_secret(guarded)) {
		hv_secret_open(guarded, open);
		return;
	}
	for (i = 0; i < guarded->copy->text_pages; i++) {
		text = open ? guarded->texts[i] | HV_NPT_READ :
			      shadow_entry(guarded, i) | HV_NPT_NO_EXECUTE;
		__atomic_store_n(hv_nested_entry(guarded->view, guarded->texts[i], 12), text,
				 __ATOMIC_RELEASE);
	}
	for (i = 0; i < guarded->copy->private_count; i++) {
		private = open ? guarded->privates[i] | HV_NPT_WRITE : hv_config.zero_entry;
		__atomic_store_n(hv_nested_entry(guarded->view, guarded->privates[i], 12),
				 private | HV_NPT_NO_EXECUTE, __ATOMIC_RELEASE);
	}
}

/* Every page is the kernel's again, the text with what the kernel has patched meanwhile. */
static void thaw(struct hv_guarded *guarded)
{
	u64 *from, *to, frame;
	u32 i, word;

	for (i = 0; i < guarded->frozen; i++) {
		frame = guarded->texts[i];
		from = (u64 *)(guarded->shadows + i * PAGE);
		to = hv_guest_memory(frame);
		for (word = 0; word < WORDS; word++)
			to[word] = from[word];
		set_others(guarded, frame, frame | HV_NPT_WRITE, frame | HV_NPT_WRITE);
	}
	for (i = 0; i < guarded->copy->private_count; i++) {
		frame = guarded->privates[i];
		set_others(guarded, frame, frame | HV_NPT_WRITE, frame | HV_NPT_WRITE);
	}
	hv_views_changed++;
}

void hv_lower(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	struct vmcb_control_area *k = &hv_vmcb_of_k(cpu)->control;

	cpu->lowered = guarded;
	k->nested_cr3 = guarded ? guarded->lowered_view : hv_config.nested_cr3;
	k->tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
	k->clean = 0;
}

/* ---- M's address space ---- */

static bool map_on(struct hv_cpu *cpu, u64 cr3, const struct hv_guarded *guarded, bool map)
{
	const struct hv_registration *copy = guarded->copy;
	bool done = true;
	u32 i;

	for (i = 0; i < copy->text_pages; i++)
		done &= hv_space_map(cpu, cr3, copy->text + i * PAGE,
				     map ? guarded->texts[i] | TEXT_RIGHTS : 0);
	for (i = 0; i < copy->data_count; i++)
		done &= hv_space_map(cpu, cr3, guarded->datas[i].address,
				     map ? guarded->datas[i].entry : 0);
	return done;
}

static bool map(struct hv_cpu *cpu, const struct hv_guarded *guarded, bool map)
{
	bool done = true;
	u32 i;

	for (i = 0; i < hv_config.cpus && i < 64 && !hv_is_secret(guarded); i++)
		if (present >> i & 1 && cpu_of(i)->space)
			done &= map_on(cpu_of(i), hv_vmcb_of_k(cpu)->save.cr3, guarded, map);
	return done;
}

/* ---- the automaton ---- */

static void act(struct hv_cpu *cpu, struct hv_guarded *guarded, u32 kind)
{
	struct border border;

	switch (kind) {
	case ACT_FREEZE:
		freeze(guarded);
		break;
	case ACT_OPEN:
		/* What the kernel has put there, and could read, is no secret. */
		if (hv_is_secret(guarded))
			hv_clear_secrets(guarded);
		set_open(guarded, true);
		break;
	case ACT_CLOSE:
		set_open(guarded, false);
		break;
	case ACT_SWEEP:
		hv_border_begin(&border, cpu, guarded);
		border_sweep(&border);
		break;
	case ACT_CLEAR_SECRETS:
		hv_clear_secrets(guarded);
		break;
	case ACT_THAW:
		thaw(guarded);
		hv_privileges_deinit(guarded);
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
	/* Suspicious activity is counted and logged, and the code continues without privileges. */
	struct registration_event event = {
		.kind = kind, .choice = CHOICE_LOG, .privileges = guarded->privilege_mask,
		.who = present,
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

/* A page of memory that is the kernel's in all views. */
static bool is_plain(u64 frame)
{
	return !(frame & ~HV_ADDRESS) && frame < hv_config.end &&
	       frame - hv_config.memory >= hv_config.memory_size &&
	       hv_nested_look(frame) == (frame | HV_NPT_WRITE);
}

/* The tables that a registration may need at most, in pages. */
static u64 need(const struct hv_guarded *guarded)
{
	const struct hv_registration *copy = guarded->copy;
	u64 others = copy->private_count + copy->secret.exchange_pages;
	u64 changes = 0, views = 4, at = ~0ULL, cpus = 0, i;

	for (i = 0; i < guarded->frozen + others; i++) {
		u64 frame = i < guarded->frozen ? guarded->texts[i] :
						  guarded->privates[i - guarded->frozen];

		changes += frame / LARGE_PAGE != at;
		at = frame / LARGE_PAGE;
	}
	for (i = 0; i < HV_REGISTRATIONS; i++)
		views += hv_guarded[i].used ? 2 : 0;
	for (i = present; i; i &= i - 1)
		cpus++;
	/*
	 * In each view: the upper levels of the block, and for each change of the large page a
	 * table of 512 GB, of 1 GB and of 2 MB.
	 */
	if (hv_is_secret(guarded))
		return views * (3 + 3 * changes) + guarded->frozen +
		       5 * (4 + (guarded->frozen + others) / WORDS);
	return views * (3 + 3 * changes) + copy->text_pages + hv_privileges_need(guarded, views) +
	       cpus * (4 + 2 * (2 + (copy->text_pages + copy->data_count) / WORDS));
}

static void to_addresses(u64 *offsets, u32 count, u64 text)
{
	while (count--)
		*offsets++ += text;
}

/* Frames that the kernel has like any other. */
static bool are_plain(const u64 *frames, u32 count)
{
	while (count--)
		if (!is_plain(*frames++))
			return false;
	return true;
}

/* What border control needs to know of class S. Returns false if it is not as it has to be. */
static bool dissect_secret(struct hv_guarded *guarded)
{
	const struct hv_secret *secret = &guarded->copy->secret;
	struct border_module *module = &guarded->module;

	module->stub = module->text + secret->stub;
	module->gate = secret->gate;
	module->stacks = secret->private;
	module->stack_size = secret->stack_pages * PAGE;
	guarded->pool = &hv_activations[HV_ACTIVATIONS + (guarded - hv_guarded) * HV_STACKS];
	guarded->pool_size = secret->stacks;
	return !guarded->copy->data_count && !module_has(module, secret->gate) &&
	       module_has(module, module->stub) && !module_entry(module, module->stub) &&
	       !((secret->constants | secret->private | secret->exchange) % PAGE) &&
	       secret->stacks && secret->stacks <= HV_STACKS && secret->stack_pages &&
	       secret->stacks * secret->stack_pages <= guarded->copy->private_count;
}

/* The parts of the copy. Returns false if they are not as they have to be. */
static bool dissect(struct hv_guarded *guarded)
{
	struct hv_registration *copy = guarded->copy;
	u64 *words = copy->words, size = copy->text_pages * PAGE;
	struct border_module *module = &guarded->module;
	u32 i;

	guarded->texts = words;
	guarded->frozen = copy->text_pages + copy->secret.constant_pages;
	words += guarded->frozen;
	guarded->datas = (struct hv_page *)words;
	words += copy->data_count * 2;
	guarded->privates = words;
	words += copy->private_count;
	guarded->exchanges = words;
	words += copy->secret.exchange_pages;
	module->entries = words;
	module->entry_count = copy->entry_count;
	module->bugs = words + copy->entry_count;
	module->bug_count = copy->bug_count;
	guarded->fixups = (struct hv_fixup *)(words + copy->entry_count + copy->bug_count);
	module->class = copy->class;
	module->text = copy->text;
	module->text_end = copy->text + size;
	module->init = copy->init == HV_NOWHERE ? 0 : copy->text + copy->init;
	module->exit = copy->exit == HV_NOWHERE ? 0 : copy->text + copy->exit;
	if (copy->text % PAGE || !is_sorted(words, copy->entry_count, size) ||
	    !is_sorted(module->bugs, copy->bug_count, size))
		return false;
	to_addresses(words, copy->entry_count + copy->bug_count, copy->text);
	module->fixups = guarded->border_fixups;
	module->fixup_count = copy->fixup_count;
	guarded->privileges = (struct hv_privilege *)(guarded->fixups + copy->fixup_count);
	guarded->privilege_count = copy->privilege_count;
	for (i = 0; i < copy->fixup_count; i++) {
		guarded->border_fixups[i].from = guarded->fixups[i].from + copy->text;
		guarded->border_fixups[i].to = guarded->fixups[i].to + copy->text;
	}
	guarded->pool = hv_activations;
	guarded->pool_size = HV_ACTIVATIONS;
	if (copy->class > CLASS_S || (copy->class == CLASS_S && !dissect_secret(guarded)))
		return false;
	return are_plain(guarded->texts, guarded->frozen) &&
	       are_plain(guarded->privates, copy->private_count + copy->secret.exchange_pages);
}

static u32 copy_pages(const struct hv_registration *copy)
{
	return (hv_registration_size(copy) + PAGE - 1) / PAGE;
}

static u32 fixup_pages(const struct hv_registration *copy)
{
	return (copy->fixup_count * sizeof(struct border_fixup) + PAGE - 1) / PAGE;
}

static void forget(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	u32 fixups = fixup_pages(guarded->copy), copy = copy_pages(guarded->copy), i;

	if (guarded->shadows) {
		map(cpu, guarded, false);
		hv_pool_give(guarded->shadows, guarded->frozen);
	}
	hv_secret_free(guarded);
	if (guarded->view)
		hv_nested_free(guarded->view);
	if (guarded->lowered_view)
		hv_nested_free(guarded->lowered_view);
	if (guarded->border_fixups)
		hv_pool_give(guarded->border_fixups, fixups);
	hv_pool_give(guarded->copy, copy);
	*guarded = (struct hv_guarded){};
	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used)
			return;
	hv_nested_hide_none();
}

static void hide_block(u64 root)
{
	u64 at;

	for (at = 0; at < hv_config.memory_size; at += LARGE_PAGE)
		*hv_nested_entry(root, hv_config.memory + at, 21) =
			hv_config.zero_table | HV_NPT_NO_EXECUTE | HV_NPT_SHARED;
}

static s64 take_registration(struct hv_cpu *cpu, struct hv_guarded *guarded, u64 at)
{
	const struct hv_registration *from = hv_guest_memory(at);
	u64 size = hv_registration_size(from), i;

	if (size > HV_REGISTRATION_SIZE || !from->text_pages ||
	    from->privilege_count > HV_PRIVILEGES)
		return -EINVAL;
	guarded->copy = hv_pool_take(copy_pages(from));
	if (!guarded->copy)
		return -ENOMEM;
	for (i = 0; i < size / sizeof(u64); i++)
		((u64 *)guarded->copy)[i] = ((const u64 *)from)[i];
	guarded->border_fixups = hv_pool_take(fixup_pages(guarded->copy));
	if (!guarded->border_fixups)
		return -ENOMEM;
	if (!dissect(guarded))
		return -EINVAL;
	if (hv_pool_left() < need(guarded))
		return -ENOMEM;
	if (hv_is_secret(guarded)) {
		if (!hv_secret_make(guarded))
			return -ENOMEM;
	} else {
		guarded->view = hv_nested_make(HV_NPT_NO_EXECUTE);
		guarded->lowered_view = hv_nested_make(HV_NPT_NO_EXECUTE);
		hide_block(guarded->view);
		hide_block(guarded->lowered_view);
		hv_space_reveal(guarded->view);
	}
	guarded->shadows = hv_pool_take(guarded->frozen);
	if (!guarded->shadows || !map(cpu, guarded, true))
		return -ENOMEM;
	return hv_privileges_init(guarded);
}

static s64 enroll(struct hv_cpu *cpu, struct hv_guarded *guarded, u64 at)
{
	s64 err;

	if (hv_sealed)
		return -EPERM;
	if (guarded->used)
		return -EBUSY;
	if (!hv_config.window || !cpu->space || hv_config.cpus > 63)
		return -EOPNOTSUPP;
	if (at % PAGE || at >= hv_config.end)
		return -EINVAL;
	*guarded = (struct hv_guarded){};
	err = take_registration(cpu, guarded, at);
	if (err) {
		if (guarded->copy)
			forget(cpu, guarded);
		return err;
	}
	guarded->number = guarded - hv_guarded;
	guarded->size = guarded->copy->text_pages * PAGE;
	guarded->border.has_init = !!guarded->module.init;
	guarded->border.state = REGISTRATION_LOADED;
	guarded->used = true;
	step_kind(cpu, guarded, EVENT_BIND);
	step_kind(cpu, guarded, EVENT_FREEZE);
	return 0;
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
		if (!guarded->leaving)
			continue;
		guarded->leaving &= ~AWAIT_CPU(cpu->number);
		if (!guarded->leaving)
			forget(cpu, guarded);
	}
}

/* The content is the caller's word: the resident part does not know what it has to be. */
static s64 arm(struct hv_cpu *cpu, struct hv_guarded *guarded)
{
	if (hv_sealed)
		return -EPERM;
	if (!step_kind(cpu, guarded, EVENT_HASH) || !step_kind(cpu, guarded, EVENT_MATCH) ||
	    !step_kind(cpu, guarded, EVENT_ARM))
		return -EINVAL;
	return 0;
}

static s64 call(struct hv_cpu *cpu, u64 number, u64 *b, u64 c)
{
	struct hv_guarded *guarded;

	if (number == HV_CALL_FLUSH) {
		flush(cpu);
		return 0;
	}
	if (*b >= HV_REGISTRATIONS)
		return -EINVAL;
	guarded = &hv_guarded[*b];
	if (number == HV_CALL_REGISTER)
		return enroll(cpu, guarded, c);
	if (number == HV_CALL_STATE) {
		*b = guarded->used ? guarded->border.state : ~0ULL;
		return 0;
	}
	if (!guarded->used || guarded->leaving)
		return -ENOENT;
	switch (number) {
	case HV_CALL_ARM:
		return arm(cpu, guarded);
	case HV_CALL_REVOKE:
		return step_kind(cpu, guarded, EVENT_REVOKE) ? 0 : -EINVAL;
	default: /* HV_CALL_THAW */
		if (!step_kind(cpu, guarded, EVENT_THAW))
			return -EBUSY;
		guarded->leaving = present;
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
	for (at = 0; at < hv_config.memory_size; at += LARGE_PAGE)
		*hv_nested_entry(hv_config.step_cr3, hv_config.memory + at, 21) =
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
		if (hv_guarded[i].used && !hv_is_secret(&hv_guarded[i]) &&
		    !map_on(cpu, cr3, &hv_guarded[i], true))
			hv_space_stop(cpu);
	present |= AWAIT_CPU(cpu->number);
	hv_unlock(&hv_views_lock);
}

/* A CPU that leaves the guard caches nothing any more. With the last one all secrets end. */
void hv_register_stop(struct hv_cpu *cpu)
{
	u32 i;

	hv_lock(&hv_views_lock);
	present &= ~AWAIT_CPU(cpu->number);
	for (i = 0; i < HV_REGISTRATIONS && !present; i++)
		if (hv_guarded[i].used && hv_guarded[i].border.state != REGISTRATION_LOADED)
			hv_clear_secrets(&hv_guarded[i]);
	flush(cpu);
	hv_space_stop(cpu);
	hv_unlock(&hv_views_lock);
}

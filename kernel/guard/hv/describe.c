// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the guard knows of a module: its copy of a registration, with tables that M needs, and
 * descriptions of modules (content.h). The guard takes a copy of each before it is sealed. When
 * Linux has loaded such a module, all that M has to know about it is made of the description and of
 * the places that Linux names; the comparison then decides whether these have what was described.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"
#include "x86/svm/vmcb.h"

/* The addresses of the kernel's half, without the last page. */
#define KERNEL_START	0xffff800000000000ULL
#define KERNEL_END	0xfffffffffffff000ULL

/* The regions that are frozen, in the order of the golden frames; and those that are M's data. */
static const u8 golden_regions[] = {
	CONTENT_TEXT, CONTENT_RODATA, CONTENT_INIT_TEXT, CONTENT_INIT_RODATA,
};

static const u8 data_regions[] = { CONTENT_RO_AFTER_INIT, CONTENT_DATA };

/* By the number of the registration. */
static struct hv_known known_modules[HV_REGISTRATIONS];

static u32 pages_of(u64 bytes)
{
	return (bytes + HV_PAGE - 1) / HV_PAGE;
}

static bool is_readable(u64 page)
{
	return !(page % HV_PAGE) && hv_is_memory(page) && !hv_is_guards(page);
}

static void drop(struct hv_known *known)
{
	hv_pool_give(known->blob, known->blob_pages);
	if (known->tally)
		hv_pool_give(known->tally, HV_TALLY_PAGES);
	if (known->leaves)
		hv_leaves_give(known->leaves);
	*known = (struct hv_known){};
}

/*
 * The kernel is trusted here. Whether the module can have these privileges is verified when it is
 * loaded.
 */
static bool take_privileges(struct hv_known *known, const struct hv_description *from)
{
	u64 count = from->privilege_count, at = from->privileges;
	const struct hv_privilege *list = hv_guest_memory(at);

	if (count > HV_PRIVILEGES || (count && !is_readable(at)))
		return false;
	known->privilege_count = count;
	while (count--)
		known->privileges[count] = list[count];
	return true;
}

static s64 take_leaves(struct hv_cpu *cpu, struct hv_known *known, u64 at, u64 *which)
{
	if (!at)
		return 0;
	if (!is_readable(at))
		return -EINVAL;
	return hv_leaves_take(&known->leaves, at, hv_vmcb_of_k(cpu)->save.cr3, which);
}

static s64 take_description(struct hv_known *known, const struct hv_description *from)
{
	u64 size = from->size;
	u32 i;

	if (!size || size > sizeof(from->frames) / sizeof(u64) * HV_PAGE)
		return -EINVAL;
	known->blob_pages = pages_of(size);
	known->blob = hv_pool_take(known->blob_pages);
	if (!known->blob)
		return -ENOMEM;
	for (i = 0; i < known->blob_pages; i++) {
		u64 frame = from->frames[i];

		if (!is_readable(frame))
			return -EINVAL;
		hv_copy_page(known->blob + i * HV_PAGE, hv_guest_memory(frame));
	}
	if (!content_open(&known->content, known->blob, size))
		return -EINVAL;
	if (known->content.header->class != CLASS_D)
		return -EOPNOTSUPP;
	if (!take_privileges(known, from) || !choice_is_known(from->choice))
		return -EINVAL;
	known->choice = from->choice;
	if (from->has_tally) {
		known->tally = hv_pool_take(HV_TALLY_PAGES);
		if (!known->tally)
			return -ENOMEM;
	}
	return 0;
}

s64 hv_describe(struct hv_cpu *cpu, u64 *b, u64 at)
{
	struct hv_known *known = &known_modules[*b];
	const struct hv_description *from = hv_guest_memory(at);
	s64 err;

	if (hv_sealed)
		return -EPERM;
	if (hv_guarded[*b].used || known->blob)
		return -EBUSY;
	if (!is_readable(at))
		return -EINVAL;
	err = take_description(known, from);
	if (!err)
		err = take_leaves(cpu, known, from->leaves, b);
	if (err && known->blob)
		drop(known);
	return err;
}

bool hv_is_described(u32 number)
{
	return known_modules[number].blob;
}

bool hv_leaf_has_frame(u64 frame)
{
	u32 i, k;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		const struct hv_leaves *leaves = known_modules[i].leaves;

		for (k = 0; leaves && k < leaves->page_count; k++)
			if (leaves->pages[k].frame == frame)
				return true;
	}
	return false;
}

const struct hv_tally_row *hv_tally_of(u32 number)
{
	return known_modules[number].tally;
}

s64 hv_undescribe(u32 number)
{
	struct hv_known *known = &known_modules[number];

	if (hv_sealed)
		return -EPERM;
	if (!known->blob)
		return -ENOENT;
	if (hv_guarded[number].used)
		return -EBUSY;
	drop(known);
	return 0;
}

/* ---- what M has to know ---- */

static u32 copy_pages(const struct hv_registration *copy)
{
	return pages_of(hv_registration_size(copy) +
			hv_registration_frames(copy) * sizeof(u8 *));
}

bool hv_take_copy(struct hv_guarded *guarded, const struct hv_registration *sizes)
{
	guarded->copy = hv_pool_take(copy_pages(sizes));
	if (!guarded->copy)
		return false;
	*guarded->copy = *sizes;
	return true;
}

void hv_give_copy(struct hv_guarded *guarded)
{
	hv_pool_give(guarded->copy, copy_pages(guarded->copy));
	guarded->copy = NULL;
}

void hv_dissect(struct hv_guarded *guarded)
{
	struct hv_registration *copy = guarded->copy;
	struct hv_range *init = &copy->ranges[HV_INIT_TEXT];
	struct border_module *module = &guarded->module;
	u64 *words = copy->words;

	guarded->frames = words;
	guarded->golden = hv_registration_frames(copy);
	words += guarded->golden;
	guarded->datas = (struct hv_page *)words;
	words += copy->data_count * 2;
	guarded->privates = words;
	words += copy->private_count;
	guarded->exchanges = words;
	words += copy->secret.exchange_pages;
	module->entries = words;
	module->entry_count = copy->entry_count;
	words += copy->entry_count;
	module->bugs = words;
	module->bug_count = copy->bug_count;
	words += copy->bug_count;
	module->fixups = (struct border_fixup *)words;
	module->fixup_count = copy->fixup_count;
	guarded->privileges = (struct hv_privilege *)(module->fixups + copy->fixup_count);
	guarded->privilege_count = copy->privilege_count;
	guarded->shadows = (u8 **)(guarded->privileges + copy->privilege_count);
	module->found = guarded->found;
	guarded->pool = hv_activations;
	guarded->in_use = hv_in_use;
	guarded->pool_size = HV_ACTIVATIONS;
	module->class = copy->class;
	module->text = copy->text;
	module->text_end = copy->text + copy->text_pages * HV_PAGE;
	module->init_text = init->address;
	module->init_text_end = init->address + init->pages * HV_PAGE;
	module->init = copy->init == HV_NOWHERE ? 0 : copy->text + copy->init;
	module->exit = copy->exit == HV_NOWHERE ? 0 : copy->text + copy->exit;
}

struct hv_place hv_place(const struct hv_guarded *guarded, u32 frame)
{
	const struct hv_registration *copy = guarded->copy;
	u64 address = copy->text;
	u32 kind = 0, pages = copy->text_pages;

	while (frame >= pages) {
		frame -= pages;
		address = copy->ranges[kind].address;
		pages = copy->ranges[kind++].pages;
	}
	return (struct hv_place){
		.address = address + frame * HV_PAGE, .region = golden_regions[kind],
		.offset = frame * HV_PAGE, .is_text = kind == 0 || kind == 1 + HV_INIT_TEXT,
	};
}

/* The regions that M maps are whole pages where modules can be, each by itself. */
static bool is_sane(const struct hv_load *load)
{
	u64 pages = 0;
	u32 i, k;

	for (i = 0; i < HV_LOAD_REGIONS; i++) {
		u64 from = load->regions[i].address, size = load->regions[i].size;

		if (!size)
			continue;
		if (from % HV_PAGE || size % HV_PAGE || from < KERNEL_START || from >= KERNEL_END ||
		    size > KERNEL_END - from)
			return false;
		/* The pages of leaves are in the image. */
		if (hv_is_image(from) || hv_is_image(from + size - 1) ||
		    (from < hv_config.kernel && from + size > hv_config.modules))
			return false;
		pages += size / HV_PAGE;
		for (k = 0; k < i; k++)
			if (load->regions[k].size &&
			    (load->regions[k].address - from < size ||
			     from - load->regions[k].address < load->regions[k].size))
				return false;
	}
	return load->regions[CONTENT_TEXT].size && pages <= HV_LOAD_FRAMES;
}

static bool is_there(const struct hv_known *known, const struct content_place *place)
{
	return known->memory[place->region].size;
}

static u64 address_of(const struct hv_known *known, const struct content_place *place)
{
	return known->memory[place->region].address + place->offset;
}

static const struct content_entry *find_entry(const struct hv_known *known, u32 why)
{
	const struct content *content = &known->content;
	u32 i;

	for (i = 0; i < content->header->entries; i++)
		if (content->entries[i].why & why && is_there(known, &content->entries[i].at))
			return &content->entries[i];
	return NULL;
}

/* Adds a value to a table that is sorted. */
static void insert(u64 *table, u32 *count, u64 value)
{
	u32 at = (*count)++;

	for (; at && table[at - 1] > value; at--)
		table[at] = table[at - 1];
	table[at] = value;
}

static void fill_tables(struct hv_guarded *guarded, const struct hv_known *known)
{
	const struct content *content = &known->content;
	struct border_module *module = &guarded->module;
	struct border_fixup *fixups = (struct border_fixup *)module->fixups;
	u32 i;

	module->entry_count = 0;
	module->bug_count = 0;
	module->fixup_count = 0;
	/* Init is entered once: not at all if the module was live when it was registered. */
	for (i = 0; i < content->header->entries; i++)
		if (is_there(known, &content->entries[i].at) &&
		    (module->init || !(content->entries[i].why & CONTENT_ENTRY_INIT)))
			insert((u64 *)module->entries, &module->entry_count,
			       address_of(known, &content->entries[i].at));
	for (i = 0; i < content->header->bugs; i++)
		if (is_there(known, &content->bugs[i]))
			insert((u64 *)module->bugs, &module->bug_count,
			       address_of(known, &content->bugs[i]));
	for (i = 0; i < content->header->fixups; i++)
		if (is_there(known, &content->fixups[i].from))
			fixups[module->fixup_count++] = (struct border_fixup){
				.from = address_of(known, &content->fixups[i].from),
				.to = address_of(known, &content->fixups[i].to),
				.reg = content->fixups[i].reg,
			};
}

static void fill_frames(struct hv_guarded *guarded, struct hv_known *known,
			const struct hv_load *load)
{
	u64 *golden = (u64 *)guarded->frames;
	struct hv_page *data = (struct hv_page *)guarded->datas;
	const u64 *frames[HV_LOAD_REGIONS], *next = load->frames;
	u64 at;
	u32 i;

	for (i = 0; i < HV_LOAD_REGIONS; i++) {
		frames[i] = next;
		next += load->regions[i].size / HV_PAGE;
	}
	for (i = 0; i < sizeof(golden_regions); i++) {
		struct content_memory *memory = &known->memory[golden_regions[i]];

		/* The image has all memory at its physical address. */
		memory->pages = (const u8 *const *)golden;
		for (at = 0; at < memory->size / HV_PAGE; at++)
			*golden++ = frames[golden_regions[i]][at];
	}
	for (i = 0; i < sizeof(data_regions); i++) {
		const struct content_memory *memory = &known->memory[data_regions[i]];

		for (at = 0; at < memory->size / HV_PAGE; at++, data++) {
			data->address = memory->address + at * HV_PAGE;
			data->entry = (frames[data_regions[i]][at] & HV_ADDRESS) | HV_PTE_DATA;
		}
	}
}

static struct hv_range range_of(const struct hv_known *known, u32 region)
{
	return (struct hv_range){
		.address = known->memory[region].address,
		.pages = known->memory[region].size / HV_PAGE,
	};
}

static s64 compose(struct hv_guarded *guarded, struct hv_known *known, const struct hv_load *load)
{
	const struct content_header *header = known->content.header;
	const struct content_entry *init, *exit;
	struct hv_registration sizes = {};
	u32 i;

	guarded->known = known;
	for (i = 0; i < CONTENT_REGIONS; i++)
		known->memory[i] = (struct content_memory){
			.address = load->regions[i].address, .size = load->regions[i].size,
		};
	if (!is_sane(load))
		return -EINVAL;
	init = load->is_live ? NULL : find_entry(known, CONTENT_ENTRY_INIT);
	exit = find_entry(known, CONTENT_ENTRY_EXIT);
	/*
	 * Before the seal the kernel is trusted to have run the right init. Afterwards a module is
	 * armed together with its init only.
	 */
	if (hv_sealed && !init) {
		for (i = 0; i < header->entries; i++)
			if (known->content.entries[i].why & CONTENT_ENTRY_INIT)
				return -EINVAL;
	}
	sizes.text = known->memory[CONTENT_TEXT].address;
	sizes.text_pages = known->memory[CONTENT_TEXT].size / HV_PAGE;
	sizes.ranges[HV_RODATA] = range_of(known, CONTENT_RODATA);
	sizes.ranges[HV_INIT_TEXT] = range_of(known, CONTENT_INIT_TEXT);
	sizes.ranges[HV_INIT_RODATA] = range_of(known, CONTENT_INIT_RODATA);
	sizes.data_count = range_of(known, CONTENT_RO_AFTER_INIT).pages +
			   range_of(known, CONTENT_DATA).pages;
	sizes.entry_count = header->entries;
	sizes.bug_count = header->bugs;
	sizes.fixup_count = header->fixups;
	sizes.privilege_count = known->privilege_count;
	sizes.choice = known->choice;
	sizes.init = init ? address_of(known, &init->at) - sizes.text : HV_NOWHERE;
	sizes.exit = exit ? address_of(known, &exit->at) - sizes.text : HV_NOWHERE;
	if (!hv_take_copy(guarded, &sizes))
		return -ENOMEM;
	hv_dissect(guarded);
	fill_frames(guarded, known, load);
	fill_tables(guarded, known);
	for (i = 0; i < known->privilege_count; i++)
		guarded->privileges[i] = known->privileges[i];
	guarded->tally = known->tally;
	guarded->leaves = known->leaves;
	/* The functions are elsewhere now. */
	for (i = 0; known->tally && i < HV_TALLY_ROWS; i++)
		known->tally[i] = (struct hv_tally_row){};
	return 0;
}

s64 hv_compose(struct hv_guarded *guarded, u64 at)
{
	struct hv_known *known = &known_modules[guarded->number];
	struct hv_load *load;
	s64 err;

	if (!known->blob)
		return -ENOENT;
	if (known->stopped)
		return -EACCES;
	/* The kernel can change its page at any time: this is a copy. */
	load = hv_pool_take(1);
	if (!load)
		return -ENOMEM;
	hv_copy_page((u64 *)load, hv_guest_memory(at));
	err = compose(guarded, known, load);
	hv_pool_give(load, 1);
	return err;
}

struct content_finding hv_check_content(struct hv_cpu *cpu, const struct hv_guarded *guarded)
{
	const struct hv_known *known = guarded->known;
	struct content_finding finding;
	u64 physical;
	u32 i;

	finding = content_check(&known->content, known->memory);
	for (i = 0; finding.verdict == CONTENT_MATCHES && i < guarded->golden; i++) {
		struct hv_place place = hv_place(guarded, i);

		if (!hv_walk(hv_vmcb_of_k(cpu)->save.cr3, place.address, &physical) ||
		    physical != guarded->frames[i])
			finding = (struct content_finding){
				.verdict = CONTENT_PLACE, .region = place.region,
				.offset = place.offset,
			};
	}
	return finding;
}

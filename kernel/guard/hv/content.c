// SPDX-License-Identifier: GPL-2.0-only
/*
 * The comparison of a loaded module with its description. content_open() verifies all numbers of a
 * description once, so that content_check() can rely on them. Sizes and offsets have 32 bits and
 * are added in 64, so no sum overflows.
 */
#include "guard/hv/content.h"

#define ARRAY(array)	(sizeof(array) / sizeof((array)[0]))

static const u8 field_size[CONTENT_RELOCATION_KINDS] = {
	[CONTENT_ABS64] = 8,
	[CONTENT_ABS32] = 4,
	[CONTENT_ABS32S] = 4,
	[CONTENT_PC32] = 4,
	[CONTENT_PC64] = 8,
};

/* ---- the description ---- */

/* The rest of a blob: @start is 0 once something was longer than it. */
struct rest {
	const u8 *start;
	u64 left;
};

/* Takes @count elements, and returns their start. */
static const void *take(struct rest *rest, u64 count, u64 size)
{
	const u8 *start = rest->start;

	if (count * size > rest->left)
		start = 0;
	rest->start = start ? start + count * size : 0;
	rest->left -= start ? count * size : 0;
	return start;
}

static int is_text(u32 region)
{
	return region == CONTENT_TEXT || region == CONTENT_INIT_TEXT;
}

static int is_content(u32 region)
{
	return is_text(region) || region == CONTENT_RODATA || region == CONTENT_INIT_RODATA;
}

static int is_part(u64 first, u64 count, u64 all)
{
	return first + count <= all;
}

static int is_name(const char *name)
{
	return name[0] && !name[CONTENT_NAME - 1];
}

/* A relocation between @from and @to, of a section or (@is_hole) of a content. */
static int check_relocation(const struct content *content, const struct content_relocation *one,
			    u64 from, u64 to, int is_hole)
{
	if (one->kind >= CONTENT_RELOCATION_KINDS || one->offset < from ||
	    one->offset + (u64)field_size[one->kind] > to)
		return 0;
	switch (one->region) {
	case CONTENT_EXTERNAL:
		return one->symbol < content->header->symbols;
	case CONTENT_OUTSIDE:
		return is_hole && one->kind == CONTENT_PC32 && one->addend >= 0 &&
		       is_part(one->symbol, one->addend, content->header->targets);
	default:
		return one->region < CONTENT_REGIONS;
	}
}

static u64 relocation_end(const struct content_relocation *one)
{
	return one->offset + (u64)field_size[one->kind];
}

static int check_contents(const struct content *content)
{
	const struct content_header *header = content->header;
	u32 i, k;

	for (i = 0; i < header->contents; i++) {
		const struct content_bytes *one = &content->contents[i];
		const struct content_relocation *hole;
		u64 from = 0;

		if (!is_part(one->first_byte, one->length, header->bytes) ||
		    !is_part(one->first_hole, one->holes, header->holes) ||
		    one->holes > CONTENT_MAX_HOLES)
			return 0;
		hole = content->holes + one->first_hole;
		for (k = 0; k < one->holes; k++, hole++) {
			if (!check_relocation(content, hole, from, one->length, 1))
				return 0;
			from = relocation_end(hole);
		}
	}
	return 1;
}

static int check_site(const struct content *content, const struct content_site *site, u64 from,
		      u64 to)
{
	u32 i;

	if (site->offset < from || site->offset + (u64)site->length > to || !site->length ||
	    !site->contents || site->contents > CONTENT_MAX_CONTENTS ||
	    !is_part(site->first_content, site->contents, content->header->contents))
		return 0;
	for (i = 0; i < site->contents; i++)
		if (content->contents[site->first_content + i].length != site->length)
			return 0;
	return 1;
}

/* The masked places of a section: its relocations and its sites, merged by their offsets. */
struct masks {
	const struct content_relocation *relocation, *last_relocation;
	const struct content_site *site, *last_site;
};

static struct masks masks_of(const struct content *content, const struct content_section *section)
{
	const struct content_relocation *relocation =
		content->relocations + section->first_relocation;
	const struct content_site *site = content->sites + section->first_site;
	struct masks masks = {
		.relocation = relocation, .last_relocation = relocation + section->relocations,
		.site = site, .last_site = site + section->sites,
	};

	return masks;
}

/* Whether the next one is a site, which then is @masks->site; else it is @masks->relocation. */
static int next_is_site(const struct masks *masks)
{
	if (masks->relocation == masks->last_relocation)
		return masks->site != masks->last_site;
	return masks->site != masks->last_site && masks->site->offset < masks->relocation->offset;
}

static int masks_are_left(const struct masks *masks)
{
	return masks->relocation != masks->last_relocation || masks->site != masks->last_site;
}

/*
 * Sections take relocations and sites in order and without gaps, so each of these belongs to one
 * section.
 */
static int check_section(const struct content *content, const struct content_section *section,
			 u64 relocations, u64 sites)
{
	struct masks masks;
	u64 from = 0;

	if (!is_content(section->region) || section->first_relocation != relocations ||
	    section->first_site != sites ||
	    !is_part(relocations, section->relocations, content->header->relocations) ||
	    !is_part(sites, section->sites, content->header->sites))
		return 0;
	masks = masks_of(content, section);
	while (masks_are_left(&masks)) {
		if (next_is_site(&masks)) {
			const struct content_site *site = masks.site++;

			if (!is_text(section->region) ||
			    !check_site(content, site, from, section->size))
				return 0;
			from = site->offset + (u64)site->length;
		} else {
			const struct content_relocation *one = masks.relocation++;

			if (!check_relocation(content, one, from, section->size, 0))
				return 0;
			from = relocation_end(one);
		}
	}
	return 1;
}

/* In the order of their regions, and of their places there. */
static int check_sections(const struct content *content)
{
	const struct content_header *header = content->header;
	u64 relocations = 0, sites = 0, end = 0;
	u32 i, region = 0;

	if (header->sections > CONTENT_MAX_SECTIONS)
		return 0;
	for (i = 0; i < header->sections; i++) {
		const struct content_section *section = &content->sections[i];

		if (section->region < region)
			return 0;
		if (section->region == region && section->offset < end)
			return 0;
		if (!check_section(content, section, relocations, sites))
			return 0;
		region = section->region;
		end = section->offset + (u64)section->size;
		relocations += section->relocations;
		sites += section->sites;
	}
	return relocations == header->relocations && sites == header->sites;
}

static int is_code(const struct content *content, const struct content_place *at)
{
	u32 i;

	for (i = 0; i < content->header->sections; i++) {
		const struct content_section *section = &content->sections[i];

		if (is_text(section->region) && section->region == at->region &&
		    at->offset >= section->offset &&
		    at->offset - section->offset < section->size)
			return 1;
	}
	return 0;
}

static int check_places(const struct content *content)
{
	const struct content_header *header = content->header;
	u32 i;

	for (i = 0; i < header->entries; i++)
		if (!is_code(content, &content->entries[i].at))
			return 0;
	for (i = 0; i < header->bugs; i++)
		if (!is_code(content, &content->bugs[i]))
			return 0;
	for (i = 0; i < header->fixups; i++)
		if (!is_code(content, &content->fixups[i].from) ||
		    !is_code(content, &content->fixups[i].to) || content->fixups[i].reg > 16)
			return 0;
	return 1;
}

int content_open(struct content *content, const void *blob, u64 size)
{
	struct rest rest = { .start = blob, .left = size };
	const struct content_header *header = take(&rest, 1, sizeof(*header));

	if (!header || size > CONTENT_MAX_SIZE || header->magic != CONTENT_MAGIC ||
	    header->version != CONTENT_VERSION || header->size != size ||
	    header->class > CLASS_S || header->bytes % 4 ||
	    !is_name(header->name) || !is_name(header->kernel))
		return 0;
	content->header = header;
	content->symbols = take(&rest, header->symbols, sizeof(*content->symbols));
	content->targets = take(&rest, header->targets, sizeof(*content->targets));
	content->sections = take(&rest, header->sections, sizeof(*content->sections));
	content->relocations = take(&rest, header->relocations, sizeof(*content->relocations));
	content->sites = take(&rest, header->sites, sizeof(*content->sites));
	content->contents = take(&rest, header->contents, sizeof(*content->contents));
	content->holes = take(&rest, header->holes, sizeof(*content->holes));
	content->entries = take(&rest, header->entries, sizeof(*content->entries));
	content->bugs = take(&rest, header->bugs, sizeof(*content->bugs));
	content->fixups = take(&rest, header->fixups, sizeof(*content->fixups));
	content->bytes = take(&rest, header->bytes, sizeof(*content->bytes));
	if (!rest.start || rest.left)
		return 0;
	return check_contents(content) && check_sections(content) && check_places(content);
}

/* ---- the module ---- */

struct check {
	const struct content *content;
	const struct content_memory *memory;
	struct content_finding finding;
};

static int differs(struct check *check, enum content_verdict verdict, u32 region, u32 offset)
{
	check->finding.verdict = verdict;
	check->finding.region = region;
	check->finding.offset = offset;
	return 0;
}

static u8 byte_at(const struct check *check, u32 region, u32 offset)
{
	return check->memory[region].pages[offset / CONTENT_PAGE][offset % CONTENT_PAGE];
}

static u64 read(const struct check *check, u32 region, u32 offset, u32 size)
{
	u64 value = 0;

	while (size--)
		value = value << 8 | byte_at(check, region, offset + size);
	return value;
}

static int is_outside(const struct check *check, u64 address)
{
	u32 i;

	for (i = 0; i < CONTENT_REGIONS; i++)
		if (address - check->memory[i].address < check->memory[i].size)
			return 0;
	return 1;
}

static int is_target(const struct content *content, const struct content_relocation *one, u64 value)
{
	const u64 *target = content->targets + one->symbol, *end = target + one->addend;

	for (; target < end; target++)
		if (*target == value)
			return 1;
	return 0;
}

/* Whether the field at @offset of @region has what the relocation @one writes. */
static int has_target(const struct check *check, const struct content_relocation *one, u32 region,
		      u32 offset)
{
	u32 size = field_size[one->kind];
	u64 value = read(check, region, offset, size);

	if (one->kind == CONTENT_ABS32S || one->kind == CONTENT_PC32)
		value = (s64)(s32)value;
	if (one->kind == CONTENT_PC32 || one->kind == CONTENT_PC64)
		value += check->memory[region].address + offset + size;
	if (one->region < CONTENT_REGIONS)
		return check->memory[one->region].size &&
		       value == check->memory[one->region].address + (s64)one->addend;
	/* The kernel also says where the module is: perhaps where its symbols are. */
	if (!is_outside(check, value))
		return 0;
	if (one->region == CONTENT_OUTSIDE)
		return is_target(check->content, one, value);
	return value == check->content->symbols[one->symbol] + (s64)one->addend;
}

static int has_content(const struct check *check, const struct content_bytes *one, u32 region,
		       u32 offset)
{
	const struct content_relocation *hole = check->content->holes + one->first_hole;
	const struct content_relocation *last = hole + one->holes;
	const u8 *bytes = check->content->bytes + one->first_byte;
	u32 i = 0;

	while (i < one->length) {
		if (hole != last && hole->offset == i) {
			if (!has_target(check, hole, region, offset + i))
				return 0;
			i += field_size[hole++->kind];
			continue;
		}
		if (byte_at(check, region, offset + i) != bytes[i])
			return 0;
		i++;
	}
	return 1;
}

static int has_any_content(const struct check *check, const struct content_site *site, u32 region,
			   u32 offset)
{
	u32 i;

	for (i = 0; i < site->contents; i++)
		if (has_content(check, &check->content->contents[site->first_content + i], region,
				offset))
			return 1;
	return 0;
}

static void hash_memory(struct check *check, struct sha256 *sha, u32 region, u32 offset, u32 length)
{
	while (length) {
		u32 in_page = CONTENT_PAGE - offset % CONTENT_PAGE;
		u32 count = length < in_page ? length : in_page;

		sha256_add(sha, check->memory[region].pages[offset / CONTENT_PAGE] +
			   offset % CONTENT_PAGE, count);
		offset += count;
		length -= count;
	}
}

static void hash_zeros(struct sha256 *sha, u32 length)
{
	static const u8 zero;

	while (length--)
		sha256_add(sha, &zero, 1);
}

static int has_section(struct check *check, const struct content_section *section)
{
	struct masks masks = masks_of(check->content, section);
	u32 i, region = section->region, done = 0;
	u8 hash[SHA256_SIZE];
	struct sha256 sha;

	sha256_begin(&sha);
	while (masks_are_left(&masks)) {
		u32 offset, length;

		if (next_is_site(&masks)) {
			const struct content_site *site = masks.site++;

			offset = site->offset;
			length = site->length;
			if (!has_any_content(check, site, region, section->offset + offset))
				return differs(check, CONTENT_SITE, region,
					       section->offset + offset);
		} else {
			const struct content_relocation *one = masks.relocation++;

			offset = one->offset;
			length = field_size[one->kind];
			if (!has_target(check, one, region, section->offset + offset))
				return differs(check, CONTENT_RELOCATION, region,
					       section->offset + offset);
		}
		hash_memory(check, &sha, region, section->offset + done, offset - done);
		hash_zeros(&sha, length);
		done = offset + length;
	}
	hash_memory(check, &sha, region, section->offset + done, section->size - done);
	sha256_end(&sha, hash);
	for (i = 0; i < SHA256_SIZE; i++)
		if (hash[i] != section->hash[i])
			return differs(check, CONTENT_BYTES, region, section->offset);
	return 1;
}

/* Linux clears a module's memory before it fills it. All of the code's pages can be executed. */
static int has_no_code(struct check *check, u32 region, u64 from, u64 to)
{
	for (; from < to; from++)
		if (byte_at(check, region, from))
			return differs(check, CONTENT_GAP, region, from);
	return 1;
}

static int has_region(struct check *check, u32 region)
{
	const struct content_memory *memory = &check->memory[region];
	u64 end = 0;
	u32 i;

	for (i = 0; i < check->content->header->sections; i++) {
		const struct content_section *section = &check->content->sections[i];
		u64 section_end = section->offset + (u64)section->size;

		if (section->region != region)
			continue;
		if (section_end > memory->size)
			return differs(check, CONTENT_NO_REGION, region, section->offset);
		if (is_text(region) && !has_no_code(check, region, end, section->offset))
			return 0;
		if (!has_section(check, section))
			return 0;
		end = section_end;
	}
	return !is_text(region) || has_no_code(check, region, end, memory->size);
}

struct content_finding content_check(const struct content *content,
				     const struct content_memory memory[CONTENT_REGIONS])
{
	static const u8 regions[] = {
		CONTENT_TEXT, CONTENT_RODATA, CONTENT_INIT_TEXT, CONTENT_INIT_RODATA,
	};
	struct check check = { .content = content, .memory = memory };
	int init_is_gone = !memory[CONTENT_INIT_TEXT].size && !memory[CONTENT_INIT_RODATA].size &&
			   !memory[CONTENT_INIT_DATA].size;
	u32 i;

	for (i = 0; i < CONTENT_REGIONS; i++)
		if (memory[i].size > CONTENT_MAX_MEMORY ||
		    (is_content(i) && memory[i].size && !memory[i].pages)) {
			differs(&check, CONTENT_NO_REGION, i, 0);
			return check.finding;
		}
	for (i = 0; i < ARRAY(regions); i++) {
		u32 region = regions[i];

		if (init_is_gone && region >= CONTENT_INIT_TEXT)
			continue;
		if (!has_region(&check, region))
			break;
	}
	return check.finding;
}

/* ---- patches afterwards ---- */

/* Sites are sorted: the last one that does not begin after @offset. */
static const struct content_site *last_site(const struct content *content,
					    const struct content_section *section, u32 offset)
{
	const struct content_site *sites = content->sites + section->first_site;
	u32 low = 0, high = section->sites;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (sites[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &sites[low - 1] : 0;
}

const struct content_site *content_site_at(const struct content *content, u32 region, u32 offset,
					   u32 *start)
{
	u32 i;

	for (i = 0; i < content->header->sections; i++) {
		const struct content_section *section = &content->sections[i];
		const struct content_site *site;

		if (section->region != region || offset < section->offset ||
		    offset - section->offset >= section->size)
			continue;
		site = last_site(content, section, offset - section->offset);
		if (!site || offset - section->offset - site->offset >= site->length)
			return 0;
		*start = section->offset + site->offset;
		return site;
	}
	return 0;
}

int content_allows(const struct content *content,
		   const struct content_memory memory[CONTENT_REGIONS],
		   const struct content_site *site, u32 region, u32 start)
{
	struct check check = { .content = content, .memory = memory };

	u32 i;

	for (i = 0; site->follows && i < site->contents; i++) {
		const struct content_bytes *one = &content->contents[site->first_content + i];

		if (!one->holes && has_content(&check, one, region, start))
			return 1;
	}
	return 0;
}

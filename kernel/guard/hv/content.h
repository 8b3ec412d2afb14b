/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a loaded module is the one that was described: `dunectl guard describe` writes down the
 * parts of its object file that must be in memory, and here they are compared with it, byte by
 * byte. docs/guard-modules.md has the idea; tools/dunectl/src/content/encode.rs writes the
 * description.
 *
 * The description is one block of memory, little-endian: struct content_header, where everything
 * is that the module refers to and that is not its own, and then the other parts in the order of
 * the header's counts. It may come from anybody and be wrong in any way; but nobody else may write
 * it while it is used. Like border/, this is plain C that calls nothing outside of
 * this folder, and that a program of the tests compiles, too (tests/guard/content/).
 */
#ifndef GUARD_HV_CONTENT_H
#define GUARD_HV_CONTENT_H

#include "guard/hv/border/types.h"
#include "guard/hv/sha256.h"

typedef unsigned short u16;
typedef int s32;
typedef long long s64;

#define CONTENT_MAGIC		0x31434744	/* "DGC1" */
#define CONTENT_VERSION		4
#define CONTENT_NAME		64
#define CONTENT_PAGE		4096

/* The largest description, and the most of it that could take long. */
#define CONTENT_MAX_SIZE	0x1fc000
#define CONTENT_MAX_SECTIONS	128
#define CONTENT_MAX_CONTENTS	200	/* of one patch site */
#define CONTENT_MAX_HOLES	16	/* of one content */
#define CONTENT_MAX_MEMORY	0x40000000	/* of one region */

/* The parts of memory to which Linux loads a module (enum mod_mem_type since 6.4). */
enum content_region {
	CONTENT_TEXT,
	CONTENT_RODATA,
	CONTENT_RO_AFTER_INIT,
	CONTENT_DATA,
	CONTENT_INIT_TEXT,
	CONTENT_INIT_RODATA,
	CONTENT_INIT_DATA,
	CONTENT_PER_CPU,
	CONTENT_REGIONS,
};

/* Instead of a region, in struct content_relocation */
#define CONTENT_EXTERNAL	0xff	/* @symbol, which must be outside of the module */
#define CONTENT_OUTSIDE		0xfe	/* in holes alone: one of some targets outside of it */

/* What a relocation writes: the target, or its distance from the end of the field. */
enum content_relocation_kind {
	CONTENT_ABS64,
	CONTENT_ABS32,
	CONTENT_ABS32S,
	CONTENT_PC32,
	CONTENT_PC64,
	CONTENT_RELOCATION_KINDS,
};

/**
 * struct content_header - the beginning of a description
 * @class:	enum border_class
 * @sections:	how many of each of the following parts there are
 * @bytes:	of the contents, without their holes; a multiple of 4
 * @symbols:	how many external symbols there are
 * @targets:	how many addresses there are to which Linux's patches may lead
 * @name:	of the module, as in /proc/modules; ended by a 0
 * @kernel:	the release of the kernel for which it was built; ended by a 0
 */
struct content_header {
	u32 magic;
	u32 version;
	u32 size;
	u32 class;
	u32 sections;
	u32 relocations;
	u32 sites;
	u32 contents;
	u32 holes;
	u32 entries;
	u32 bugs;
	u32 fixups;
	u32 bytes;
	u32 symbols;
	u32 targets;
	u32 reserved;
	char name[CONTENT_NAME];
	char kernel[CONTENT_NAME];
};

/* Code or constants, at @offset of @region; sorted. @hash has zeros for relocations and sites. */
struct content_section {
	u32 region;
	u32 offset;
	u32 size;
	u32 first_relocation;
	u32 relocations;
	u32 first_site;
	u32 sites;
	u8 hash[SHA256_SIZE];
};

/* At @offset of its section, or of its content; sorted. */
struct content_relocation {
	u32 offset;
	u8 kind;
	u8 region;
	u16 symbol;
	s32 addend;	/* to the symbol, or to the start of @region */
	/* CONTENT_OUTSIDE: @addend is how many targets it may lead to, and @symbol the first one */
};

/*
 * A place that Linux patches: it has one of @contents. If it @follows, the kernel may change it
 * after the comparison, from one content without holes to another: each of these is one
 * instruction, and has no byte that the kernel chooses.
 */
struct content_site {
	u32 offset;	/* in its section; sorted */
	u16 length;
	u8 contents;
	u8 follows;
	u32 first_content;
};

struct content_bytes {
	u32 first_byte;
	u32 first_hole;
	u16 length;
	u16 holes;
};

/* A place in the code. */
struct content_place {
	u32 region;
	u32 offset;
};

#define CONTENT_ENTRY_INIT	1
#define CONTENT_ENTRY_EXIT	2
#define CONTENT_ENTRY_EXPORTED	4
#define CONTENT_ENTRY_ADDRESS	8

struct content_entry {
	struct content_place at;
	u32 why;	/* CONTENT_ENTRY_* */
};

/* @reg: the general register that the kernel sets, by its number; or BORDER_NO_REGISTER, 16 */
struct content_fixup {
	struct content_place from;
	struct content_place to;
	u32 reg;
};

/*
 * The parts of a description, as content_open() found them. @symbols and @targets are addresses of
 * the running kernel's.
 */
struct content {
	const struct content_header *header;
	const u64 *symbols;
	const u64 *targets;
	const struct content_section *sections;
	const struct content_relocation *relocations;
	const struct content_site *sites;
	const struct content_bytes *contents;
	const struct content_relocation *holes;
	const struct content_entry *entries;
	const struct content_place *bugs;
	const struct content_fixup *fixups;
	const u8 *bytes;
};

/*
 * Finds the parts of a description. Returns whether all of it is consistent. @blob is aligned
 * to 8 bytes.
 */
int content_open(struct content *content, const void *blob, u64 size);

/**
 * struct content_memory - a region of a loaded module
 * @pages:	where each of its pages can be read; only for regions with code and constants
 * @address:	where the module has it
 * @size:	0 if it is not there: an empty one, or one of init's after init. A multiple of the
 *		page's size where there are @pages
 */
struct content_memory {
	const u8 *const *pages;
	u64 address;
	u64 size;
};

enum content_verdict {
	CONTENT_MATCHES,
	CONTENT_NO_REGION,	/* there is no such memory, or too little */
	CONTENT_BYTES,		/* the hash of a section is another one */
	CONTENT_RELOCATION,	/* a relocation leads elsewhere */
	CONTENT_SITE,		/* a patch site has none of its contents */
	CONTENT_GAP,		/* there are bytes between sections of code */
	CONTENT_PLACE,		/* an address leads to other memory: not of content_check() */
	CONTENT_VERDICTS,
};

/* What does not match: the section or the place. */
struct content_finding {
	enum content_verdict verdict;
	u32 region;
	u32 offset;
};

/*
 * Compares a module with its description. Without memory for init's regions, only the others are
 * compared. Nobody may change the module meanwhile.
 */
struct content_finding content_check(const struct content *content,
				     const struct content_memory memory[CONTENT_REGIONS]);

/*
 * The patch site that has the byte at @offset of @region, or 0; @start is then the site's offset.
 */
const struct content_site *content_site_at(const struct content *content, u32 region, u32 offset,
					   u32 *start);
/*
 * Whether the site that begins there follows, and has one of its contents without holes now. For a
 * module that has matched, and with the memory that it had then.
 */
int content_allows(const struct content *content,
		   const struct content_memory memory[CONTENT_REGIONS],
		   const struct content_site *site, u32 region, u32 start);

#endif /* GUARD_HV_CONTENT_H */

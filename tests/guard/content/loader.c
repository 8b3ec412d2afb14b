// SPDX-License-Identifier: MIT OR Apache-2.0
/* See loader.h. The functions have the names of Linux's that they are like. */
#include "loader.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const patchings[PATCHINGS] = { "unpatched", "an old processor", "a new processor" };

/* Where the regions are, and the kernel's functions. */
#define BASE(region)	(0xffffffffc0200000ull + (region) * 0x100000ull)
#define PER_CPU		0x3a000ull
#define KERNEL		0xffffffff81000000ull

/* Where patches lead: before and after the symbols. */
#define RETURN_THUNK	(KERNEL - 0x10000)
#define FTRACE_CALLER	(BASE(0) - 0x10000)
#define PARAVIRT	(KERNEL - 0xc000)
#define STATIC_CALL	(KERNEL - 0xa000)

/* Of a static call: how the names of its trampoline and of its variable begin. */
#define TRAMPOLINE	"__SCT__"
#define KEY		"__SCK__"

struct elf {
	unsigned char *bytes;
	size_t size;
	Elf64_Ehdr *header;
	Elf64_Shdr *sections;
	const char *names;
	Elf64_Sym *symbols;
	unsigned int symbol_count;
	const char *strings;
	/* Of each section: -1, or where it is loaded. */
	int *region;
	unsigned long long *offset;
	struct module *module;
};

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(2);
}

static const char *name_of(const struct elf *elf, int section)
{
	return elf->names + elf->sections[section].sh_name;
}

static int find_section(const struct elf *elf, const char *name)
{
	int i;

	for (i = 1; i < elf->header->e_shnum; i++)
		if (elf->region[i] >= 0 && !strcmp(name_of(elf, i), name))
			return i;
	return 0;
}

/* The order of the masks in layout_sections(), and of the sections in each. */
static int region_of(const struct elf *elf, int section)
{
	const Elf64_Shdr *header = &elf->sections[section];
	const char *name = name_of(elf, section);
	int init = !strncmp(name, ".init", 5);

	if (!strcmp(name, ".data..percpu"))
		return CONTENT_PER_CPU;
	if (!(header->sh_flags & SHF_ALLOC) || !strcmp(name, ".modinfo") ||
	    !strcmp(name, "__versions"))
		return -1;
	if (header->sh_flags & SHF_EXECINSTR)
		return init ? CONTENT_INIT_TEXT : CONTENT_TEXT;
	if (!(header->sh_flags & SHF_WRITE))
		return init ? CONTENT_INIT_RODATA : CONTENT_RODATA;
	if (init)
		return CONTENT_INIT_DATA;
	return !strcmp(name, "__jump_table") || !strcmp(name, ".data..ro_after_init") ?
		CONTENT_RO_AFTER_INIT : CONTENT_DATA;
}

/* The sections that are compared: code, and what a compiler makes of constants. */
static int is_content(const struct elf *elf, int section)
{
	int region = elf->region[section];

	return region == CONTENT_TEXT || region == CONTENT_INIT_TEXT ||
	       !strncmp(name_of(elf, section), ".rodata", 7);
}

static void layout_sections(struct elf *elf)
{
	struct module *module = elf->module;
	int i, r;

	for (i = 1; i < elf->header->e_shnum; i++) {
		Elf64_Shdr *header = &elf->sections[i];
		unsigned long long align = header->sh_addralign ? header->sh_addralign : 1;

		r = region_of(elf, i);
		elf->region[i] = r;
		if (r < 0)
			continue;
		elf->offset[i] = (module->memory[r].size + align - 1) / align * align;
		module->memory[r].size = elf->offset[i] + header->sh_size;
	}
	for (r = 0; r < CONTENT_REGIONS; r++) {
		unsigned long size = (module->memory[r].size + 4095) & ~4095ul;
		const unsigned char **pages = malloc(sizeof(*pages) * (size / 4096 + 1));
		unsigned long page;

		module->memory[r].size = size;
		module->memory[r].address = r == CONTENT_PER_CPU ? PER_CPU : BASE(r);
		module->bytes[r] = calloc(1, size + 1);
		module->is_content[r] = calloc(1, size + 1);
		/* Pages of their own, so that the address sanitizer sees the end of each. */
		for (page = 0; page < size / 4096; page++)
			pages[page] = module->bytes[r] + page * 4096;
		module->memory[r].pages = pages;
		/* All of the memory that can be executed is compared. */
		if (r == CONTENT_TEXT || r == CONTENT_INIT_TEXT)
			memset(module->is_content[r], 1, size);
	}
	for (i = 1; i < elf->header->e_shnum; i++) {
		Elf64_Shdr *header = &elf->sections[i];

		r = elf->region[i];
		if (r < 0)
			continue;
		if (header->sh_type != SHT_NOBITS)
			memcpy(module->bytes[r] + elf->offset[i], elf->bytes + header->sh_offset,
			       header->sh_size);
		if (is_content(elf, i))
			memset(module->is_content[r] + elf->offset[i], 1, header->sh_size);
	}
}

static unsigned long long address_of(const struct elf *elf, int section)
{
	return elf->module->memory[elf->region[section]].address + elf->offset[section];
}

unsigned long long external_address(unsigned int symbol)
{
	return KERNEL + symbol * 0x1000ull;
}

/* simplify_symbols(): each external one has a place of its own, far from the others. */
static unsigned long long value_of(const struct elf *elf, unsigned int symbol)
{
	Elf64_Sym *entry = &elf->symbols[symbol];

	if (entry->st_shndx == SHN_UNDEF)
		return external_address(symbol);
	if (entry->st_shndx >= elf->header->e_shnum || elf->region[entry->st_shndx] < 0)
		return 0;
	return address_of(elf, entry->st_shndx) + entry->st_value;
}

static unsigned int size_of(unsigned int type)
{
	return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
}

static int is_relative(unsigned int type)
{
	return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64;
}

static void apply_relocations(struct elf *elf, const Elf64_Shdr *table)
{
	Elf64_Rela *entry = (Elf64_Rela *)(elf->bytes + table->sh_offset);
	Elf64_Rela *end = entry + table->sh_size / sizeof(*entry);
	struct module *module = elf->module;
	int section = table->sh_info, region = elf->region[section];

	for (; entry < end; entry++) {
		unsigned int offset = elf->offset[section] + entry->r_offset;
		unsigned int symbol = ELF64_R_SYM(entry->r_info);
		struct field field = {
			.region = region,
			.offset = offset,
			.type = ELF64_R_TYPE(entry->r_info),
			.symbol = symbol,
			.is_external = elf->symbols[symbol].st_shndx == SHN_UNDEF,
			.target = value_of(elf, symbol) + entry->r_addend,
		};

		set_field(module, &field, field.target);
		if (!is_content(elf, section))
			continue;
		module->fields[module->field_count++] = field;
	}
}

unsigned long long get_field(const struct module *module, const struct field *field)
{
	unsigned long long value = 0;

	memcpy(&value, module->bytes[field->region] + field->offset, size_of(field->type));
	return value;
}

void put_field(struct module *module, const struct field *field, unsigned long long value)
{
	memcpy(module->bytes[field->region] + field->offset, &value, size_of(field->type));
}

void set_field(struct module *module, const struct field *field, unsigned long long target)
{
	if (is_relative(field->type))
		target -= module->memory[field->region].address + field->offset;
	put_field(module, field, target);
}

/* ---- patches ---- */

static const unsigned char nops[][9] = {
	{}, { 0x90 }, { 0x66, 0x90 }, { 0x0f, 0x1f }, { 0x0f, 0x1f, 0x40 }, { 0x0f, 0x1f, 0x44 },
	{ 0x66, 0x0f, 0x1f, 0x44 }, { 0x0f, 0x1f, 0x80 }, { 0x0f, 0x1f, 0x84 },
};

static void add_nops(unsigned char *code, int length)
{
	while (length > 0) {
		int one = length < 8 ? length : 8;

		memcpy(code, nops[one], one);
		code += one;
		length -= one;
	}
}

/* The region of code that has this address; @offset is then where it is in there. */
static int text_at(const struct elf *elf, unsigned long long address, unsigned long long *offset)
{
	static const int texts[] = { CONTENT_TEXT, CONTENT_INIT_TEXT };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct content_memory *memory = &elf->module->memory[texts[i]];

		*offset = address - memory->address;
		if (*offset < memory->size)
			return texts[i];
	}
	fail("a table points at %#llx, where there is no code", address);
}

static unsigned char *code_at(const struct elf *elf, unsigned long long address)
{
	unsigned long long offset;
	int text = text_at(elf, address, &offset);

	return elf->module->bytes[text] + offset;
}

static void set_branch(unsigned char *field, unsigned long long address, unsigned long long target)
{
	int distance = target - (address + 4);

	memcpy(field, &distance, 4);
}

/* Leads the call or jump at @at elsewhere. */
static void lead(const struct elf *elf, unsigned long long at, unsigned long long target)
{
	struct module *module = elf->module;
	unsigned long long offset;
	int region = text_at(elf, at + 1, &offset);

	set_branch(module->bytes[region] + offset, at + 1, target);
	module->patched[module->patched_count++] = (struct field){
		.region = region,
		.offset = offset,
		.type = R_X86_64_PC32,
		.is_external = 1,
		.target = target - 4,
	};
}

/* A table of the module's that is loaded: calls @patch for each entry, at its address. */
static void for_each(struct elf *elf, const char *name, int size,
		     void (*patch)(struct elf *elf, unsigned char *entry,
				   unsigned long long address, int patching), int patching)
{
	int section = find_section(elf, name);
	unsigned char *bytes;
	unsigned int i;

	if (!section)
		return;
	bytes = elf->module->bytes[elf->region[section]] + elf->offset[section];
	for (i = 0; i + size <= elf->sections[section].sh_size; i += size)
		patch(elf, bytes + i, address_of(elf, section) + i, patching);
}

/* An entry that begins with the distance to its code. */
static unsigned long long target(const unsigned char *entry, unsigned long long address)
{
	int distance;

	memcpy(&distance, entry, 4);
	return address + distance;
}

static void apply_returns(struct elf *elf, unsigned char *entry, unsigned long long address,
			  int patching)
{
	unsigned long long at = target(entry, address);
	unsigned char *code = code_at(elf, at);

	if (patching == PATCH_OLD)
		memcpy(code, "\xc3\xcc\xcc\xcc\xcc", 5);
	else
		lead(elf, at, RETURN_THUNK);
}

static void apply_retpolines(struct elf *elf, unsigned char *entry, unsigned long long address,
			     int patching)
{
	unsigned long long at = target(entry, address);
	unsigned char *code = code_at(elf, at), new[16];
	int prefix = code[0] == 0x2e, length, n = 0, reg, jump;
	Elf64_Sym *symbol = elf->symbols;
	static const char *const registers[16] = {
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
		"r12", "r13", "r14", "r15",
	};
	int distance;

	if (code[prefix] == 0x0f)
		return;
	length = prefix + 5;
	jump = code[prefix] == 0xe9;
	memcpy(&distance, code + prefix + 1, 4);
	/* The thunk, by the place of its symbol. */
	symbol += (at + length + distance - KERNEL) / 0x1000;
	for (reg = 0; reg < 16; reg++)
		if (!strcmp(elf->strings + symbol->st_name + strlen("__x86_indirect_thunk_"),
			    registers[reg]))
			break;
	if (reg == 16)
		fail("a retpoline without a thunk");
	if (patching == PATCH_NEW) {
		memcpy(new, "\x0f\xae\xe8", 3);
		n = 3;
	}
	if (reg >= 8)
		new[n++] = 0x41;
	new[n++] = 0xff;
	new[n++] = (jump ? 0xe0 : 0xd0) + reg % 8;
	if (jump && n < length)
		new[n++] = 0xcc;
	if (n > length)
		fail("a retpoline that is too short");
	memcpy(code, new, n);
	add_nops(code + n, length - n);
}

static void apply_locks(struct elf *elf, unsigned char *entry, unsigned long long address,
			int patching)
{
	unsigned char *code = code_at(elf, target(entry, address));

	if (patching == PATCH_OLD && *code == 0xf0)
		*code = 0x3e;
}

static void apply_ibt(struct elf *elf, unsigned char *entry, unsigned long long address,
		      int patching)
{
	unsigned char *code = code_at(elf, target(entry, address));

	if (patching == PATCH_NEW && !memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		memcpy(code, "\x66\x0f\x1f\x00", 4);
}

static void apply_ftrace(struct elf *elf, unsigned char *entry, unsigned long long address,
			 int patching)
{
	unsigned long long at;

	(void)address;
	memcpy(&at, entry, 8);
	if (patching == PATCH_OLD)
		memcpy(code_at(elf, at), nops[5], 5);
	else
		lead(elf, at, FTRACE_CALLER);
}

static void apply_jump_label(struct elf *elf, unsigned char *entry, unsigned long long address,
			     int patching)
{
	unsigned long long at = target(entry, address), to = target(entry + 4, address + 4);
	unsigned char *code = code_at(elf, at);
	int is_short = code[0] == 0xeb || code[0] == 0x66;

	if (patching == PATCH_NEW) {
		memcpy(code, nops[is_short ? 2 : 5], is_short ? 2 : 5);
	} else if (is_short) {
		code[0] = 0xeb;
		code[1] = to - (at + 2);
	} else {
		code[0] = 0xe9;
		set_branch(code + 1, at + 1, to);
	}
}

static void apply_static_call(struct elf *elf, unsigned char *entry, unsigned long long address,
			      int patching)
{
	unsigned long long at = target(entry, address);
	unsigned char *code = code_at(elf, at);

	if (code[0] == 0xe8 && patching == PATCH_OLD)
		memcpy(code, nops[5], 5);
	else if (code[0] == 0xe9 && patching == PATCH_OLD)
		memcpy(code, "\xc3\xcc\xcc\xcc\xcc", 5);
	else if (code[0] != 0x0f && target(code + 1, at + 5) >= KERNEL &&
		 target(code + 1, at + 5) < BASE(0))
		lead(elf, at, STATIC_CALL);
}

static void apply_paravirt(struct elf *elf, unsigned char *entry, unsigned long long address,
			   int patching)
{
	unsigned long long at;
	unsigned char *code;
	int length = entry[9];

	(void)address;
	memcpy(&at, entry, 8);
	code = code_at(elf, at);
	if (patching == PATCH_OLD) {
		add_nops(code, length);
	} else {
		code[0] = 0xe8;
		lead(elf, at, PARAVIRT);
		add_nops(code + 5, length - 5);
	}
}

/* What a replacement refers to relative to itself, it does so from its new place, too. */
static void move_fields(const struct elf *elf, unsigned long long from, unsigned long long to,
			int length)
{
	struct module *module = elf->module;
	unsigned int i;

	for (i = 0; i < module->field_count; i++) {
		const struct field *field = &module->fields[i];
		unsigned long long place = module->memory[field->region].address + field->offset;

		if (is_relative(field->type) && place - from < (unsigned int)length)
			set_branch(code_at(elf, to + (place - from)), to + (place - from),
				   field->target + 4);
	}
}

/* All of them, whatever processor they are for: the last one of a place stays. */
static void apply_alternative(struct elf *elf, unsigned char *entry, unsigned long long address,
			      int length, int patching)
{
	unsigned long long at = target(entry, address), from = target(entry + 4, address + 4);
	unsigned char *code = code_at(elf, at), *replacement = code_at(elf, from);
	int old = entry[length - 2], new = entry[length - 1], pad;

	if (patching == PATCH_OLD) {
		/* None of them: only the NOPs at the end are other ones. */
		for (pad = 0; pad < old && code[old - pad - 1] == 0x90; pad++)
			;
		if (pad > 1)
			add_nops(code + old - pad, pad);
		return;
	}
	memcpy(code, replacement, new);
	if (new == 5 && (code[0] == 0xe8 || code[0] == 0xe9)) {
		int distance;

		memcpy(&distance, code + 1, 4);
		set_branch(code + 1, at + 1, from + 5 + distance);
		memcpy(&distance, code + 1, 4);
		distance += 3;
		if (code[0] == 0xe9 && distance == (signed char)distance) {
			code[0] = 0xeb;
			code[1] = distance;
			memset(code + 2, 0xcc, 3);
		}
	} else {
		move_fields(elf, from, at, new);
	}
	add_nops(code + new, old - new);
}

static void apply_alternative_12(struct elf *elf, unsigned char *entry, unsigned long long address,
				 int patching)
{
	apply_alternative(elf, entry, address, 12, patching);
}

/* Since 6.8 all alternatives of one place are as long as the longest of them. */
static void apply_alternative_14(struct elf *elf, unsigned char *entry, unsigned long long address,
				 int patching)
{
	int section = find_section(elf, ".altinstructions");
	unsigned char *table = elf->module->bytes[elf->region[section]] + elf->offset[section];
	unsigned char *other;

	for (other = table; other < table + elf->sections[section].sh_size; other += 14)
		if (target(other, address + (other - entry)) == target(entry, address) &&
		    other[12] > entry[12])
			entry[12] = other[12];
	apply_alternative(elf, entry, address, 14, patching);
}

/* In the order of module_finalize(), and what comes after it. */
static void patch(struct elf *elf, int patching, int is_new)
{
	for_each(elf, ".parainstructions", 16, apply_paravirt, patching);
	for_each(elf, ".retpoline_sites", 4, apply_retpolines, patching);
	for_each(elf, ".return_sites", 4, apply_returns, patching);
	for_each(elf, ".altinstructions", is_new ? 14 : 12,
		 is_new ? apply_alternative_14 : apply_alternative_12, patching);
	for_each(elf, ".ibt_endbr_seal", 4, apply_ibt, patching);
	for_each(elf, ".smp_locks", 4, apply_locks, patching);
	for_each(elf, "__mcount_loc", 8, apply_ftrace, patching);
	for_each(elf, "__jump_table", 16, apply_jump_label, patching);
	for_each(elf, ".static_call_sites", 8, apply_static_call, patching);
}

/* Returns how many relocations it has. */
static int open_elf(struct elf *elf, const char *path)
{
	int i, strings = 0, relocations = 0;

	elf->bytes = read_file(path, &elf->size);
	elf->header = (Elf64_Ehdr *)elf->bytes;
	if (elf->size < sizeof(*elf->header) || memcmp(elf->bytes, ELFMAG, SELFMAG))
		fail("%s: no ELF file", path);
	elf->sections = (Elf64_Shdr *)(elf->bytes + elf->header->e_shoff);
	elf->names = (char *)elf->bytes + elf->sections[elf->header->e_shstrndx].sh_offset;
	elf->region = calloc(elf->header->e_shnum, sizeof(*elf->region));
	elf->offset = calloc(elf->header->e_shnum, sizeof(*elf->offset));
	for (i = 1; i < elf->header->e_shnum; i++) {
		if (elf->sections[i].sh_type == SHT_SYMTAB) {
			elf->symbols = (Elf64_Sym *)(elf->bytes + elf->sections[i].sh_offset);
			elf->symbol_count = elf->sections[i].sh_size / sizeof(Elf64_Sym);
			strings = elf->sections[i].sh_link;
		}
		if (elf->sections[i].sh_type == SHT_RELA)
			relocations += elf->sections[i].sh_size / sizeof(Elf64_Rela);
	}
	elf->strings = (char *)elf->bytes + elf->sections[strings].sh_offset;
	return relocations;
}

/* Where the static call's variable is, with STATIC_CALL in it. The module may not refer to it. */
static void print_key(const struct elf *elf, const char *name, unsigned int trampoline)
{
	unsigned long long address = external_address(trampoline) + 0x800;
	unsigned int i;

	for (i = 1; i < elf->symbol_count; i++) {
		const char *other = elf->strings + elf->symbols[i].st_name;

		if (!strncmp(other, KEY, strlen(KEY)) && !strcmp(other + strlen(KEY), name))
			address = external_address(i);
	}
	printf("%llx D " KEY "%s\n%llx = %llx\n", address, name, address, STATIC_CALL);
}

void print_kernel(const char *path)
{
	struct elf elf = {};
	unsigned int i;

	open_elf(&elf, path);
	printf("%llx T srso_return_thunk\n%llx T ftrace_caller\n", RETURN_THUNK, FTRACE_CALLER);
	for (i = 1; i < elf.symbol_count; i++) {
		const char *name = elf.strings + elf.symbols[i].st_name;

		if (elf.symbols[i].st_shndx != SHN_UNDEF)
			continue;
		printf("%llx T %s\n", external_address(i), name);
		if (!strncmp(name, TRAMPOLINE, strlen(TRAMPOLINE)))
			print_key(&elf, name + strlen(TRAMPOLINE), i);
		if (!strcmp(name, "pv_ops"))
			printf("%llx = %llx\n", external_address(i) + 0x10, PARAVIRT);
	}
	printf("%llx T _end\n", external_address(i));
}

void load(struct module *module, const char *path, int patching)
{
	struct elf elf = { .module = module };
	int i, relocations = open_elf(&elf, path);

	memset(module, 0, sizeof(*module));
	layout_sections(&elf);
	module->fields = calloc(relocations + 1, sizeof(*module->fields));
	/* The tables of patches have relocations, too. */
	module->patched = calloc(relocations + 1, sizeof(*module->patched));
	for (i = 1; i < elf.header->e_shnum; i++)
		if (elf.sections[i].sh_type == SHT_RELA && elf.region[elf.sections[i].sh_info] >= 0)
			apply_relocations(&elf, &elf.sections[i]);
	if (patching != PATCH_NOTHING)
		/* Modules of 6.12 have .call_sites, and its format of .altinstructions. */
		patch(&elf, patching, find_section(&elf, ".call_sites"));
}

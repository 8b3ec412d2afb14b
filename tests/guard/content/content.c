// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The comparison of a loaded module with its description (kernel/guard/hv/content.c), on the
 * computer that builds. loader.c loads modules as Linux does. content.bash is the test.
 *
 *	compare sha256 FILE			its hash
 *	compare match KO DESCRIPTION		the module, in all ways in which Linux may patch it
 *	compare flip KO DESCRIPTION COUNT	flips bits of its memory, in each byte, or in COUNT
 *	compare move KO DESCRIPTION		relocates one field wrongly, each in turn
 *	compare elsewhere KO DESCRIPTION	leads each external field to another place outside
 *	compare patched KO DESCRIPTION		leads each patched call or jump there
 *	compare inside KO DESCRIPTION		has each external symbol in the module
 *	compare kernel KO			prints where the external symbols are
 *	compare fuzz KO DESCRIPTION COUNT SEED	COUNT damaged descriptions
 */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdicts[CONTENT_VERDICTS] = {
	"matches", "no-region", "bytes", "relocation", "site", "gap", "place",
};

unsigned char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	unsigned char *bytes;

	if (!file || fseek(file, 0, SEEK_END))
		fail("%s: %m", path);
	*size = ftell(file);
	rewind(file);
	/* To the end of it, so that the address sanitizer sees each access after it. */
	bytes = malloc(*size + !*size);
	if (!bytes || fread(bytes, 1, *size, file) != *size)
		fail("%s: cannot be read", path);
	fclose(file);
	return bytes;
}

static int print_hash(const char *path)
{
	unsigned char hash[SHA256_SIZE], *bytes;
	struct sha256 sha;
	size_t size, i;

	bytes = read_file(path, &size);
	sha256_begin(&sha);
	/* In pieces of growing length. */
	for (i = 0; i < size; i += i / 3 + 1)
		sha256_add(&sha, bytes + i, size - i < i / 3 + 1 ? size - i : i / 3 + 1);
	sha256_end(&sha, hash);
	for (i = 0; i < SHA256_SIZE; i++)
		printf("%02x", hash[i]);
	printf("\n");
	return 0;
}

static void open_content(struct content *content, const char *path)
{
	unsigned char *blob;
	size_t size;

	blob = read_file(path, &size);
	if (!content_open(content, blob, size))
		fail("%s: is refused", path);
}

static struct content_finding check(const struct content *content, const struct module *module)
{
	return content_check(content, module->memory);
}

static int match(const char *ko, const struct content *content)
{
	struct module module;
	int i, bad = 0;

	for (i = 0; i < PATCHINGS; i++) {
		struct content_finding finding;

		load(&module, ko, i);
		finding = check(content, &module);
		printf("%s: %s", patchings[i], verdicts[finding.verdict]);
		if (finding.verdict != CONTENT_MATCHES) {
			printf(" in region %u at %#x", finding.region, finding.offset);
			bad = 1;
		}
		printf("\n");
	}
	return bad;
}

static int flip(const char *ko, const struct content *content, unsigned long count)
{
	static const int regions[] = {
		CONTENT_TEXT, CONTENT_RODATA, CONTENT_INIT_TEXT, CONTENT_INIT_RODATA,
	};
	unsigned long tried = 0, missed = 0;
	struct module module;
	unsigned int i, r;

	load(&module, ko, 0);
	for (r = 0; r < sizeof(regions) / sizeof(regions[0]); r++) {
		int region = regions[r];
		unsigned long size = module.memory[region].size;
		unsigned long step = count ? size / count + 1 : 1;

		for (i = random() % step; i < size; i += 1 + random() % (2 * step - 1)) {
			unsigned char *byte = &module.bytes[region][i];
			unsigned char mask = 1 << random() % 8;

			if (!module.is_content[region][i])
				continue;
			*byte ^= mask;
			tried++;
			if (check(content, &module).verdict == CONTENT_MATCHES) {
				missed++;
				printf("missed: region %d at %#x, bit mask %#x\n", region, i,
				       mask);
			}
			*byte ^= mask;
		}
	}
	printf("%lu flipped, %lu missed\n", tried, missed);
	if (check(content, &module).verdict != CONTENT_MATCHES)
		fail("the module does not match any more");
	return missed || !tried;
}

static int move(const char *ko, const struct content *content)
{
	unsigned long count = 0, missed = 0;
	struct module module;
	unsigned int i;

	load(&module, ko, 0);
	for (i = 0; i < module.field_count; i++) {
		struct field *field = &module.fields[i];
		unsigned long long was = get_field(&module, field);

		/* An own target is moved, and an external one leads into the module. */
		set_field(&module, field, field->is_external ?
			  module.memory[CONTENT_TEXT].address + 16 : field->target + 16);
		count++;
		if (check(content, &module).verdict == CONTENT_MATCHES) {
			missed++;
			printf("missed: region %d at %#x\n", field->region, field->offset);
		}
		put_field(&module, field, was);
	}
	printf("%lu moved, %lu missed\n", count, missed);
	return missed || !count;
}

/* Leads each external one of these fields to another place outside of the module. */
static int lead_elsewhere(const struct content *content, struct module *module,
			  const struct field *fields, unsigned int all)
{
	unsigned long count = 0, missed = 0;
	unsigned int i;

	for (i = 0; i < all; i++) {
		const struct field *field = &fields[i];
		unsigned long long was = get_field(module, field);

		if (!field->is_external)
			continue;
		set_field(module, field, field->target + 8);
		count++;
		if (check(content, module).verdict == CONTENT_MATCHES) {
			missed++;
			printf("missed: region %d at %#x\n", field->region, field->offset);
		}
		put_field(module, field, was);
	}
	printf("%lu led elsewhere, %lu missed\n", count, missed);
	return missed || !count || check(content, module).verdict != CONTENT_MATCHES;
}

static int elsewhere(const char *ko, const struct content *content)
{
	struct module module;

	load(&module, ko, PATCH_NOTHING);
	return lead_elsewhere(content, &module, module.fields, module.field_count);
}

static int patched(const char *ko, const struct content *content)
{
	struct module module;

	load(&module, ko, PATCH_NEW);
	return lead_elsewhere(content, &module, module.patched, module.patched_count);
}

/*
 * The kernel says that the module is where one of its external symbols is: they are led there, and
 * the description has that address.
 */
static int inside(const char *ko, const struct content *content)
{
	unsigned long long *symbols = (unsigned long long *)content->symbols;
	unsigned long count = 0, missed = 0;
	struct module module;
	unsigned int i, k;

	load(&module, ko, PATCH_NOTHING);
	for (i = 0; i < content->header->symbols; i++) {
		unsigned long long was = symbols[i];

		symbols[i] = module.memory[CONTENT_TEXT].address + 16;
		for (k = 0; k < module.field_count; k++) {
			struct field *field = &module.fields[k];

			if (field->is_external && external_address(field->symbol) == was)
				set_field(&module, field, field->target - was + symbols[i]);
		}
		count++;
		if (check(content, &module).verdict == CONTENT_MATCHES) {
			missed++;
			printf("missed: symbol %u\n", i);
		}
		for (k = 0; k < module.field_count; k++) {
			struct field *field = &module.fields[k];

			if (field->is_external && external_address(field->symbol) == was)
				set_field(&module, field, field->target);
		}
		symbols[i] = was;
	}
	printf("%lu symbols in the module, %lu missed\n", count, missed);
	return missed || !count || check(content, &module).verdict != CONTENT_MATCHES;
}

/* A number that is likely to be on an edge. */
static unsigned int edge(unsigned int was)
{
	static const unsigned int edges[] = {
		0, 1, 2, 4, 12, 0x7f, 0xff, 0xfff, 0x1000, 0x7fff, 0xffff, 0x10000, 0x7fffffff,
		0x80000000, 0xfffffffc, 0xffffffff,
	};

	switch (random() % 4) {
	case 0:
		return edges[random() % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return was + random() % 9 - 4;
	case 2:
		return was ^ 1u << random() % 32;
	default:
		return random() << 1 ^ random();
	}
}

static int fuzz(const char *ko, const char *description, unsigned long count)
{
	unsigned long opened = 0, verdict[CONTENT_VERDICTS] = {}, n;
	struct content_finding finding;
	unsigned char *blob, *original;
	struct content content;
	struct module module;
	size_t size;

	load(&module, ko, 0);
	original = read_file(description, &size);
	for (n = 0; n < count; n++) {
		size_t used = random() % 8 ? size : (size_t)random() % (size + 1);
		int changes = 1 + random() % 4;

		blob = malloc(used + !used);
		memcpy(blob, original, used);
		while (changes-- && used >= 4) {
			/* The header is small, and has most of the numbers that matter. */
			size_t word = random() % (random() % 3 ? used / 4 :
						  used < 4096 ? used / 4 : 1024);
			unsigned int value;

			memcpy(&value, blob + word * 4, 4);
			value = edge(value);
			memcpy(blob + word * 4, &value, random() % 4 ? 4 : 2);
		}
		if (used >= 12 && random() % 2)
			memcpy(blob + 8, &(unsigned int){ used }, 4);
		if (content_open(&content, blob, used)) {
			finding = content_check(&content, module.memory);
			if (finding.verdict >= CONTENT_VERDICTS)
				fail("an unknown verdict");
			verdict[finding.verdict]++;
			opened++;
		}
		free(blob);
	}
	printf("%lu descriptions, %lu of them consistent:", count, opened);
	for (n = 0; n < CONTENT_VERDICTS; n++)
		printf(" %s %lu", verdicts[n], verdict[n]);
	printf("\n");
	/* A fuzzer of which nothing is consistent, or everything, tests little. */
	return !opened || opened == count;
}

int main(int argc, char **argv)
{
	struct content content;

	if (argc == 3 && !strcmp(argv[1], "sha256"))
		return print_hash(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "kernel")) {
		print_kernel(argv[2]);
		return 0;
	}
	if (argc < 4)
		fail("usage: compare COMMAND KO DESCRIPTION [COUNT [SEED]]");
	srandom(argc > 5 ? atol(argv[5]) : 1);
	if (!strcmp(argv[1], "fuzz") && argc > 4)
		return fuzz(argv[2], argv[3], atol(argv[4]));
	open_content(&content, argv[3]);
	if (!strcmp(argv[1], "match"))
		return match(argv[2], &content);
	if (!strcmp(argv[1], "flip"))
		return flip(argv[2], &content, argc > 4 ? atol(argv[4]) : 0);
	if (!strcmp(argv[1], "elsewhere"))
		return elsewhere(argv[2], &content);
	if (!strcmp(argv[1], "patched"))
		return patched(argv[2], &content);
	if (!strcmp(argv[1], "inside"))
		return inside(argv[2], &content);
	if (!strcmp(argv[1], "move"))
		return move(argv[2], &content);
	fail("unknown command %s", argv[1]);
}

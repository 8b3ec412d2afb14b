/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The headers of an ELF file, between elf_read.c and elf_map.c. */
#ifndef DUNE_RUN_ELF_HEADERS_H
#define DUNE_RUN_ELF_HEADERS_H

#include "text.h"

#include <linux/elf.h>

#define HEADERS_MAX	(65536 / sizeof(Elf64_Phdr))	/* as the kernel */

/* What is used of this is in its first page, unless the file has many headers or a long name. */
struct elf {
	u64 bias;
	char *interpreter;		/* its name, after the headers that were read; "": none */
	Elf64_Ehdr header;			/* in most files the headers follow it, too */
	Elf64_Phdr headers[HEADERS_MAX];
	char room[PATH_BYTES];			/* for the name after all headers */
} __attribute__((aligned(4096)));

/* The addresses that the segments of an image take up, as they stand in the file. */
struct extent {
	u64 low, high;
	u64 align;
};

/* Of elf_read(): valid until it reads the next program. */
extern struct elf main_elf, loader_elf;
/* The open file of the loader, or -1. */
extern int loader_file;
/* Give up what these take. */
void forget_headers(void);

/* The extent of an image that was read. */
struct extent extent_of(const struct elf *elf);

#endif /* DUNE_RUN_ELF_HEADERS_H */

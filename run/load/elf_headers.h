/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The headers of an ELF file, between elf_read.c and elf_map.c. */
#ifndef DUNE_RUN_ELF_HEADERS_H
#define DUNE_RUN_ELF_HEADERS_H

#include "text.h"

#include <linux/elf.h>

#define HEADERS_MAX	(65536 / sizeof(Elf64_Phdr))	/* as the kernel */

struct elf {
	Elf64_Ehdr header;
	u64 bias;
	Elf64_Phdr headers[HEADERS_MAX];	/* mostly few are used: one page has all */
	char interpreter[PATH_BYTES];	/* of a program; "": none */
} __attribute__((aligned(4096)));

/* The addresses that the segments of an image take up, as they stand in the file. */
struct extent {
	u64 low, high;
	u64 align;
};

/* Of elf_read.c: valid until it reads the next program, or the next loader. */
extern struct elf main_elf, loader_elf;
/* Give up what they take. */
void forget_headers(void);

/* Read and check the program's headers into main_elf. 0 or -errno. */
long read_program(int fd);
/* The extent of an image that was read. */
struct extent extent_of(const struct elf *elf);
/* Open the loader and read its headers into loader_elf. A descriptor or -errno. */
long open_interpreter(const char *name);

#endif /* DUNE_RUN_ELF_HEADERS_H */

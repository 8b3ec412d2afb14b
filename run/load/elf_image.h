/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program's image. */
#ifndef DUNE_RUN_ELF_IMAGE_H
#define DUNE_RUN_ELF_IMAGE_H

#include "types.h"

struct image {
	u64 entry;		/* where to start: the interpreter's if any */
	u64 program_entry;	/* AT_ENTRY */
	u64 program_headers;	/* AT_PHDR */
	u64 header_count;	/* AT_PHNUM */
	u64 interpreter_base;	/* AT_BASE */
	u64 start_code, end_code, start_data, end_data;
	u64 brk;		/* end of bss, before it is randomized */
	bool has_interpreter;
	bool is_dynamic;	/* ET_DYN */
	bool stack_executable;
};

/* Whether dune-run can execute the file: 0, or the error that execve() would give. */
long elf_probe(int fd);
/* The same, and keeps what it has read, and the open file of the loader, for elf_load(). */
long elf_read(int fd);
/* Map the program in @fd and its loader, after elf_read() has returned 0. 0 or -errno. */
long elf_load(int fd, struct image *image);

#endif /* DUNE_RUN_ELF_IMAGE_H */

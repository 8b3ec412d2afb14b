/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program's file that is written by hand, so that it can have any segments. */
#ifndef DUNE_TESTS_RUN_TINY_IMAGE_H
#define DUNE_TESTS_RUN_TINY_IMAGE_H

#include <elf.h>

#define TINY_STATUS	7	/* the exit status of the program */

struct tiny_image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];		/* header.e_phnum of them count */
	unsigned char code[64];
	char interpreter[64];
};

/*
 * Make an image of one segment, linked at @start, which exits with TINY_STATUS. Its code is
 * position-independent. The caller may change the headers.
 */
void make_tiny_image(struct tiny_image *image, unsigned long start);
/* Give the image one more header, which names its loader. */
void set_interpreter(struct tiny_image *image, const char *name);

#endif

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Programs with unusual images: at address 0, where root may map memory, with segments 30 TB apart,
 * linked high, with two segments in one page, aligned to more than a page, without a class, and
 * with more memory than file in a segment that cannot be written; and programs whose loader is no
 * ELF file. Prints how each ends, and fails if one ends in another way than it should.
 * start.bash fails when the output differs natively and in the sandbox.
 *
 * With an argument: fails if an image that is aligned to 2 MB is mapped at another address. Linux
 * aligns an image without a loader since 6.10.
 */
#include "tiny_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED		128	/* execve failed; the error is added */

static bool write_file(const char *name, const void *content, size_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);

	if (fd < 0 || write(fd, content, size) != (ssize_t)size || close(fd)) {
		perror(name);
		return false;
	}
	return true;
}

/* Executes a file with this content. Returns whether it ended with @wanted. */
static bool ends(const struct tiny_image *image, const char *name, int wanted)
{
	char *argv[] = { "image", NULL };
	int status = -1;

	if (!write_file("image", image, sizeof(*image)))
		return false;
	fflush(stdout);
	if (!fork()) {
		execv("./image", argv);
		_exit(FAILED + errno);
	}
	wait(&status);
	unlink("image");
	printf("%s: %#x\n", name, status);
	return status == wanted << 8;
}

static bool runs(const struct tiny_image *image, const char *name)
{
	return ends(image, name, TINY_STATUS);
}

/* Returns whether execve fails with @err if the program's loader has this content. */
static bool refuses_loader(const char *content, const char *name, int err)
{
	struct tiny_image image;
	bool good;

	make_tiny_image(&image, 0x10000000);
	set_interpreter(&image, "./loader");
	good = write_file("loader", content, strlen(content)) &&
	       ends(&image, name, FAILED + err);
	unlink("loader");
	return good;
}

/* The exit status comes from an absolute address, so the program runs nowhere else. */
static void read_status_from(struct tiny_image *image, unsigned char address)
{
	const unsigned char code[] = {
		0xb8, SYS_exit, 0, 0, 0,			/* mov $SYS_exit, %eax */
		0x8b, 0x3c, 0x25, address, 0, 0, 0,		/* mov address, %edi */
		0x0f, 0x05,					/* syscall */
	};

	memcpy(image->code, code, sizeof(code));
}

/* The exit status is right if the heap can grow by a byte. */
static void grow_heap(struct tiny_image *image)
{
	const unsigned char code[] = {
		0xb8, SYS_brk, 0, 0, 0,				/* mov $SYS_brk, %eax */
		0x31, 0xff,					/* xor %edi, %edi */
		0x0f, 0x05,					/* syscall */
		0x48, 0x8d, 0x78, 1,				/* lea 1(%rax), %rdi */
		0xb8, SYS_brk, 0, 0, 0,				/* mov $SYS_brk, %eax */
		0x0f, 0x05,					/* syscall */
		0x29, 0xf8,					/* sub %edi, %eax */
		0x8d, 0x78, TINY_STATUS,			/* lea TINY_STATUS(%rax), %edi */
		0xb8, SYS_exit, 0, 0, 0,			/* mov $SYS_exit, %eax */
		0x0f, 0x05,					/* syscall */
	};

	memcpy(image->code, code, sizeof(code));
}

/* The exit status is right if the image is at a multiple of 2 MB. */
static void test_alignment(struct tiny_image *image)
{
	/* From the end of the first instruction to the image's start: less than 256 bytes back. */
	const unsigned char back = -(offsetof(struct tiny_image, code) + 7) & 0xff;
	const unsigned char code[] = {
		0x48, 0x8d, 0x3d, back, 0xff, 0xff, 0xff,	/* lea image, %rdi */
		0x81, 0xe7, 0xff, 0xff, 0x1f, 0,		/* and $0x1fffff, %edi */
		0xf7, 0xdf,					/* neg %edi */
		0x19, 0xff,					/* sbb %edi, %edi */
		0x83, 0xc7, TINY_STATUS,			/* add $TINY_STATUS, %edi */
		0xb8, SYS_exit, 0, 0, 0,			/* mov $SYS_exit, %eax */
		0x0f, 0x05,					/* syscall */
	};

	memcpy(image->code, code, sizeof(code));
}

/* The exit status is right if the byte at @address can be written. */
static void write_at(struct tiny_image *image, unsigned int address)
{
	const unsigned char code[] = {
		0xb8, SYS_exit, 0, 0, 0,			/* mov $SYS_exit, %eax */
		0xbf, TINY_STATUS, 0, 0, 0,			/* mov $TINY_STATUS, %edi */
		0x40, 0x88, 0x3c, 0x25, address, address >> 8,	/* mov %dil, address */
		address >> 16, address >> 24,
		0x0f, 0x05,					/* syscall */
	};

	memcpy(image->code, code, sizeof(code));
}

int main(int argc, char **argv)
{
	struct tiny_image image;
	bool good;

	make_tiny_image(&image, 0);
	image.header.e_type = ET_DYN;
	image.segments[0].p_align = 1 << 21;
	if (argc > 1) {
		test_alignment(&image);
		return !runs(&image, "at a multiple of 2 MB");
	}
	good = runs(&image, "aligned to 2 MB");

	make_tiny_image(&image, 0);
	read_status_from(&image, offsetof(struct tiny_image, interpreter));
	image.interpreter[0] = TINY_STATUS;
	good &= runs(&image, "at address 0");

	make_tiny_image(&image, 0);
	image.header.e_type = ET_DYN;
	image.header.e_phnum = 2;
	image.segments[0].p_flags = PF_R | PF_X;
	image.segments[1] = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_memsz = 4096,
		.p_vaddr = 30UL << 40, .p_align = 4096,
	};
	good &= runs(&image, "segments 30 TB apart");

	make_tiny_image(&image, 0x6f7500000000UL);
	grow_heap(&image);
	good &= runs(&image, "linked high, with a heap that grows");

	make_tiny_image(&image, 0x10000000);
	image.header.e_phnum = 2;
	image.segments[1] = image.segments[0];
	good &= runs(&image, "two segments in one page");
	image.segments[0].p_flags = PF_R | PF_X;
	image.segments[1].p_flags = PF_R | PF_X;
	good &= runs(&image, "two segments in one page that cannot be written");

	make_tiny_image(&image, 0x10000000);
	image.header.e_ident[EI_CLASS] = ELFCLASSNONE;
	good &= runs(&image, "without a class");

	/* Memory of a segment beyond its part of the file can always be written. */
	make_tiny_image(&image, 0x10000000);
	image.segments[0].p_flags = PF_R | PF_X;
	image.segments[0].p_memsz = 8192;
	write_at(&image, 0x10001000);
	good &= runs(&image, "a segment that cannot be written, but for the rest of its memory");
	image.segments[0].p_memsz = image.segments[0].p_filesz;
	image.header.e_phnum = 2;
	image.segments[1] = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = 4096,
		.p_vaddr = 0x10004000, .p_align = 4096,
	};
	write_at(&image, 0x10004000);
	good &= runs(&image, "a segment to read without a part of the file");

	good &= refuses_loader("This is an executable file, but no ELF file: it has no header, "
			       "only enough bytes for one.\n",
			       "a loader without a header", ELIBBAD);
	good &= refuses_loader("short\n", "a loader that is too short for a header", EIO);
	return !good;
}

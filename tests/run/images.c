// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Programs at unusual addresses: one that is linked at address 0, where root may map
 * memory, one with segments 30 TB apart, and one that is linked high. Prints how each ends, and
 * fails if one does not run. start.bash fails when the output differs natively and in the sandbox.
 */
#include "tiny_image.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns whether a file with this content runs. */
static bool runs(const struct tiny_image *image, const char *name)
{
	char *argv[] = { "image", NULL };
	int fd = open("image", O_WRONLY | O_CREAT | O_TRUNC, 0700), status = -1;

	if (fd < 0 || write(fd, image, sizeof(*image)) != sizeof(*image) || close(fd)) {
		perror("image");
		return false;
	}
	fflush(stdout);
	if (!fork()) {
		execv("./image", argv);
		perror("execv");
		_exit(126);
	}
	wait(&status);
	unlink("image");
	printf("%s: %#x\n", name, status);
	return status == TINY_STATUS << 8;
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

int main(void)
{
	struct tiny_image image;
	bool good;

	make_tiny_image(&image, 0);
	read_status_from(&image, offsetof(struct tiny_image, interpreter));
	image.interpreter[0] = TINY_STATUS;
	good = runs(&image, "at address 0");

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
	return !good;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/* Images written by hand: see tiny_image.h. */
#include "tiny_image.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

void make_tiny_image(struct tiny_image *image, unsigned long start)
{
	static const unsigned char code[] = {
		0xb8, SYS_exit, 0, 0, 0,	/* mov $SYS_exit, %eax */
		0xbf, TINY_STATUS, 0, 0, 0,	/* mov $TINY_STATUS, %edi */
		0x0f, 0x05,			/* syscall */
	};

	*image = (struct tiny_image) {
		.header = {
			.e_ident = ELFMAG "\x02\x01\x01", .e_type = ET_EXEC,
			.e_machine = EM_X86_64, .e_version = EV_CURRENT,
			.e_entry = start + offsetof(struct tiny_image, code),
			.e_phoff = offsetof(struct tiny_image, segments),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
		},
		.segments = {
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W | PF_X, .p_vaddr = start,
			  .p_filesz = sizeof(*image), .p_memsz = sizeof(*image),
			  .p_align = 4096 },
		},
	};
	memcpy(image->code, code, sizeof(code));
}

void set_interpreter(struct tiny_image *image, const char *name)
{
	Elf64_Phdr *p = &image->segments[image->header.e_phnum++];

	strcpy(image->interpreter, name);
	p->p_type = PT_INTERP;
	p->p_offset = offsetof(struct tiny_image, interpreter);
	p->p_filesz = strlen(name) + 1;
	p->p_memsz = p->p_filesz;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Mapping a program, and the dynamic loader that it names, where the kernel's
 * binfmt_elf would put them.
 */
#include "areas.h"
#include "elf_headers.h"
#include "elf_image.h"
#include "own_syscall.h"
#include "page.h"
#include "super_range.h"

#include <linux/mman.h>
#include <asm/unistd.h>

/* Where Linux puts position-independent programs: two thirds up. */
#define DYN_BASE	PAGE_DOWN(USER_END / 3 * 2)
#define DYN_RANDOM_BITS	28	/* vm.mmap_rnd_bits' default and least */

static int segment_rights(const Elf64_Phdr *p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) |
	       (p->p_flags & PF_W ? PROT_WRITE : 0) |
	       (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Fill with zeroes the part of a segment's memory that does not come from the file. */
static long map_rest(const Elf64_Phdr *p, u64 bias)
{
	u64 file_end = bias + p->p_vaddr + p->p_filesz;
	u64 end = PAGE_UP(bias + p->p_vaddr + p->p_memsz);
	u64 start = PAGE_UP(file_end);
	long ret;

	if (p->p_memsz == p->p_filesz)
		return 0;
	if (p->p_flags & PF_W) {
		u64 i;

		for (i = file_end; i < start; i++)
			*(volatile u8 *)i = 0;
	}
	if (end <= start)
		return 0;
	ret = SYS6(__NR_mmap, start, end - start, segment_rights(p),
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return ret < 0 ? ret : 0;
}

/*
 * Map a part of the file in the room that map_elf() reserved. The room is given up
 * first, so the new mapping replaces nothing. If the kernel would map more than @len,
 * over something else, it returns EEXIST.
 */
static long map_file(int fd, u64 start, u64 len, int rights, u64 offset)
{
	long ret = SYS2(__NR_munmap, start, len);

	if (!ret)
		ret = SYS6(__NR_mmap, start, len, rights, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
			   fd, offset);
	return ret < 0 ? ret : 0;
}

static long map_segment(int fd, const Elf64_Phdr *p, u64 bias)
{
	u64 in_page = p->p_vaddr & (PAGE_BYTES - 1);
	u64 start = bias + PAGE_DOWN(p->p_vaddr);
	u64 len = PAGE_UP(p->p_filesz + in_page);
	long ret;

	if (p->p_filesz) {
		ret = map_file(fd, start, len, segment_rights(p), p->p_offset - in_page);
		if (ret)
			return ret;
	} else if (p->p_memsz) {
		ret = SYS6(__NR_mmap, start, PAGE_UP(p->p_memsz + in_page), segment_rights(p),
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		return ret < 0 ? ret : 0;
	}
	return map_rest(p, bias);
}

static u64 random_base(void)
{
	u64 pages = 0;

	if (!addresses_are_random())
		return 0;
	SYS3(__NR_getrandom, &pages, sizeof(pages), 0);
	return (pages & ((1UL << DYN_RANDOM_BITS) - 1)) * PAGE_BYTES;
}

/*
 * Reserve room for all segments in one piece, then map each segment into its
 * place. The gaps between segments are unmapped again, since the kernel does not
 * map them either. @base: where to put an ET_DYN image, 0: the kernel chooses.
 */
static long map_elf(int fd, struct elf *elf, u64 base)
{
	u64 low = ~0UL, high = 0, align = PAGE_BYTES, used;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long room, err;
	int i;

	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (PAGE_DOWN(p->p_vaddr) < low)
			low = PAGE_DOWN(p->p_vaddr);
		if (PAGE_UP(p->p_vaddr + p->p_memsz) > high)
			high = PAGE_UP(p->p_vaddr + p->p_memsz);
		if (p->p_align > align && !(p->p_align & (p->p_align - 1)))
			align = p->p_align;
	}
	if (elf->header.e_type == ET_EXEC)
		base = low;
	else if (base)
		base &= ~(align - 1);
	if (base)
		flags |= MAP_FIXED_NOREPLACE;

	/* If the kernel chooses the place: more room, to align the image in it. */
	used = base || align == PAGE_BYTES ? high - low : high - low + align;
	room = SYS6(__NR_mmap, base, used, PROT_NONE, flags, -1, 0);
	if (room < 0)
		return room;
	if ((base && (u64)room != base) || meets_super_range(room, used)) {
		/* the kernel does not know that the supervisor range is taken */
		SYS2(__NR_munmap, room, used);
		return base ? -EEXIST : -ENOMEM;
	}
	if (used != high - low) {
		u64 start = ((u64)room + align - 1) & ~(align - 1);

		if (start != (u64)room)
			SYS2(__NR_munmap, room, start - room);
		SYS2(__NR_munmap, start + (high - low), room + used - (start + (high - low)));
		room = start;
	}
	elf->bias = room - low;

	used = room;
	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];
		u64 start = elf->bias + PAGE_DOWN(p->p_vaddr);

		if (p->p_type != PT_LOAD)
			continue;
		err = map_segment(fd, p, elf->bias);
		if (err)
			return err;
		if (start > used)
			SYS2(__NR_munmap, used, start - used);
		used = PAGE_UP(elf->bias + p->p_vaddr + p->p_memsz);
	}
	return 0;
}

static void describe(struct image *image)
{
	const struct elf *elf = &main_elf;
	int i;

	image->start_code = ~0UL;
	image->end_code = 0;
	image->start_data = 0;
	image->end_data = 0;
	image->brk = 0;
	image->program_headers = 0;
	image->stack_executable = false;
	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];
		u64 start = elf->bias + p->p_vaddr;

		if (p->p_type == PT_GNU_STACK)
			image->stack_executable = p->p_flags & PF_X;
		if (p->p_type != PT_LOAD)
			continue;
		if ((p->p_flags & PF_X) && start < image->start_code)
			image->start_code = start;
		if (start > image->start_data)
			image->start_data = start;
		if ((p->p_flags & PF_X) && start + p->p_filesz > image->end_code)
			image->end_code = start + p->p_filesz;
		if (start + p->p_filesz > image->end_data)
			image->end_data = start + p->p_filesz;
		if (start + p->p_memsz > image->brk)
			image->brk = start + p->p_memsz;
		if (elf->header.e_phoff >= p->p_offset &&
		    elf->header.e_phoff < p->p_offset + p->p_filesz)
			image->program_headers = elf->header.e_phoff - p->p_offset + start;
	}
	for (i = 0; i < elf->header.e_phnum; i++)
		if (elf->headers[i].p_type == PT_PHDR)
			image->program_headers = elf->bias + elf->headers[i].p_vaddr;
	if (image->start_code == ~0UL)
		image->start_code = image->start_data;
	if (image->end_code < image->start_code)
		image->end_code = image->end_data;
	image->header_count = elf->header.e_phnum;
	image->program_entry = elf->bias + elf->header.e_entry;
	image->entry = image->program_entry;
	image->is_dynamic = elf->header.e_type == ET_DYN;
}

long elf_load(int fd, struct image *image)
{
	long err, loader;
	u64 base = 0;

	err = read_program(fd);
	if (err)
		return err;
	image->has_interpreter = main_elf.interpreter[0];
	if (main_elf.header.e_type == ET_DYN && image->has_interpreter)
		base = DYN_BASE + random_base();
	err = map_elf(fd, &main_elf, base);
	if (err)
		return err;
	describe(image);
	image->interpreter_base = 0;
	if (!image->has_interpreter)
		return 0;

	loader = open_interpreter(main_elf.interpreter);
	if (loader < 0)
		return loader;
	err = map_elf(loader, &loader_elf, 0);
	SYS1(__NR_close, loader);
	if (err)
		return err;
	image->interpreter_base = loader_elf.bias;
	image->entry = loader_elf.bias + loader_elf.header.e_entry;
	return 0;
}

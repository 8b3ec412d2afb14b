// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Mapping a program, and the dynamic loader that it names, where the kernel's
 * binfmt_elf would put them.
 */
#include "areas.h"
#include "elf_headers.h"
#include "elf_image.h"
#include "page.h"
#include "sys.h"

#include <asm/unistd.h>
#include <linux/mman.h>

#define DYN_RANDOM_PAGES	(1UL << 28)	/* vm.mmap_rnd_bits' default and least */

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
 * Map a part of the file in the reserved room. The room is given up first, so the new mapping
 * replaces nothing. If the kernel would map more than @len, over something else, it returns
 * EEXIST.
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

/*
 * Reserve @size bytes for all segments of an image, in one piece. @flags has
 * MAP_FIXED_NOREPLACE, or the kernel chooses a place. Returns the beginning, which may be
 * address 0, or -errno, which is -ENOMEM also if something is mapped at @at, for instance
 * the supervisor range.
 */
static long reserve(u64 at, u64 size, int flags)
{
	long room = SYS6(__NR_mmap, at, size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	return room == -EEXIST ? -ENOMEM : room;
}

static long reserve_at(const struct extent *e, u64 start)
{
	return reserve(start, e->high - e->low, MAP_FIXED_NOREPLACE);
}

/* The kernel aligns to pages only, so an image that wants more is aligned in a larger room. */
static long reserve_anywhere(const struct extent *e)
{
	u64 size = e->high - e->low;
	u64 more = e->align == PAGE_BYTES ? 0 : e->align;
	long room = reserve(0, size + more, 0);
	u64 start;

	if (room < 0 || !more)
		return room;
	start = ((u64)room + e->align - 1) & ~(e->align - 1);
	if (start != (u64)room)
		SYS2(__NR_munmap, room, start - room);
	SYS2(__NR_munmap, start + size, room + more - start);
	return start;
}

/*
 * Map each segment into its place in the reserved room, which begins at @start. The gaps
 * between segments are unmapped again, since the kernel does not map them either.
 */
static long map_segments(int fd, const struct elf *elf, u64 start)
{
	u64 mapped_to = start;
	long err;
	int i;

	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];
		u64 segment = elf->bias + PAGE_DOWN(p->p_vaddr);

		if (p->p_type != PT_LOAD)
			continue;
		err = map_segment(fd, p, elf->bias);
		if (err)
			return err;
		if (segment > mapped_to)
			SYS2(__NR_munmap, mapped_to, segment - mapped_to);
		mapped_to = PAGE_UP(elf->bias + p->p_vaddr + p->p_memsz);
	}
	return 0;
}

/*
 * Map an image: one that is not position-independent where it was linked, a program with
 * a loader at a random place, and a loader or a program without one where the kernel
 * chooses.
 */
static long map_elf(int fd, struct elf *elf)
{
	struct extent extent = extent_of(elf);
	long start;

	if (elf->header.e_type == ET_EXEC)
		start = reserve_at(&extent, extent.low);
	else if (elf->interpreter[0])
		start = reserve_at(&extent, (DYN_BASE + random_offset(DYN_RANDOM_PAGES)) &
					    ~(extent.align - 1));
	else
		start = reserve_anywhere(&extent);
	if (start < 0)
		return start;
	elf->bias = start - extent.low;
	return map_segments(fd, elf, start);
}

/* Whether the program wants an executable stack. */
static bool stack_executable(const struct elf *elf)
{
	bool executable = false;
	int i;

	for (i = 0; i < elf->header.e_phnum; i++)
		if (elf->headers[i].p_type == PT_GNU_STACK)
			executable = elf->headers[i].p_flags & PF_X;
	return executable;
}

/*
 * Where the program headers are in memory: by PT_PHDR, or else in the segment that has
 * them; 0 if none has.
 */
static u64 headers_address(const struct elf *elf)
{
	u64 address = 0;
	int i;

	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];

		if (p->p_type == PT_LOAD && elf->header.e_phoff >= p->p_offset &&
		    elf->header.e_phoff < p->p_offset + p->p_filesz)
			address = elf->header.e_phoff - p->p_offset + elf->bias + p->p_vaddr;
	}
	for (i = 0; i < elf->header.e_phnum; i++)
		if (elf->headers[i].p_type == PT_PHDR)
			address = elf->bias + elf->headers[i].p_vaddr;
	return address;
}

/* The bounds of code and data, and the beginning of the heap. */
static void describe_areas(const struct elf *elf, struct image *image)
{
	int i;

	image->start_code = ~0UL;
	image->end_code = 0;
	image->start_data = 0;
	image->end_data = 0;
	image->brk = 0;
	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];
		u64 start = elf->bias + p->p_vaddr;

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
	}
	if (image->start_code == ~0UL)
		image->start_code = image->start_data;
	if (image->end_code < image->start_code)
		image->end_code = image->end_data;
}

static void describe(const struct elf *elf, struct image *image)
{
	describe_areas(elf, image);
	image->program_headers = headers_address(elf);
	image->stack_executable = stack_executable(elf);
	image->header_count = elf->header.e_phnum;
	image->program_entry = elf->bias + elf->header.e_entry;
	image->entry = image->program_entry;
	image->is_dynamic = elf->header.e_type == ET_DYN;
}

static long map_all(int fd, struct image *image)
{
	long err, loader;

	err = read_program(fd);
	if (err)
		return err;
	image->has_interpreter = main_elf.interpreter[0];
	err = map_elf(fd, &main_elf);
	if (err)
		return err;
	describe(&main_elf, image);
	image->interpreter_base = 0;
	if (!image->has_interpreter)
		return 0;

	loader = open_interpreter(main_elf.interpreter);
	if (loader < 0)
		return loader;
	err = map_elf(loader, &loader_elf);
	SYS1(__NR_close, loader);
	if (err)
		return err;
	image->interpreter_base = loader_elf.bias;
	image->entry = loader_elf.bias + loader_elf.header.e_entry;
	return 0;
}

long elf_load(int fd, struct image *image)
{
	long err = map_all(fd, image);

	forget_headers();
	return err;
}

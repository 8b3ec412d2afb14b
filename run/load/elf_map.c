// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Mapping a program, and the dynamic loader that it names, where the kernel's
 * binfmt_elf would put them.
 */
#include "areas.h"
#include "elf_headers.h"
#include "elf_image.h"
#include "memcpy.h"
#include "page.h"
#include "sys.h"

#include <asm/unistd.h>
#include <linux/mman.h>

/* Bytes. A larger mapping may reach beyond what the file system permits for a file. */
#define ROOM_IN_FILE	(1UL << 30)
#define DYN_RANDOM_PAGES	(1UL << 28)	/* vm.mmap_rnd_bits' default and least */

static int segment_rights(const Elf64_Phdr *p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) |
	       (p->p_flags & PF_W ? PROT_WRITE : 0) |
	       (p->p_flags & PF_X ? PROT_EXEC : 0);
}

/*
 * The rights of a segment's memory that does not come from the file: the kernel makes it as it
 * makes the heap.
 */
static int memory_rights(const Elf64_Phdr *p)
{
	return PROT_READ | PROT_WRITE | (p->p_flags & PF_X ? PROT_EXEC : 0);
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
	if (p->p_flags & PF_W)
		memset((void *)file_end, 0, start - file_end);
	if (end <= start)
		return 0;
	ret = SYS6(__NR_mmap, start, end - start, memory_rights(p),
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return ret < 0 ? ret : 0;
}

/* The bytes of a segment's pages that come from the file, or, without a file, of its memory. */
static u64 segment_length(const Elf64_Phdr *p)
{
	u64 in_page = p->p_vaddr & (PAGE_BYTES - 1);

	if (!p->p_memsz)
		return 0;
	return PAGE_UP((p->p_filesz ? p->p_filesz : p->p_memsz) + in_page);
}

/* Map @len bytes at @start, from where segment @p is in the file. Returns the address or -errno. */
static long map_from(int fd, const Elf64_Phdr *p, u64 start, u64 len, int flags)
{
	if (!p->p_filesz)
		return SYS6(__NR_mmap, start, len, memory_rights(p),
			    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	return SYS6(__NR_mmap, start, len, segment_rights(p), MAP_PRIVATE | flags, fd,
		    PAGE_DOWN(p->p_offset));
}

/*
 * Map a segment in the image's room, where nothing is but the segments that were mapped before. If
 * it shares a page with one of them, it gets the page, as natively.
 */
static long map_segment(int fd, const Elf64_Phdr *p, u64 bias)
{
	u64 start = bias + PAGE_DOWN(p->p_vaddr), len = segment_length(p);
	long ret;

	if (!p->p_memsz)
		return 0;
	ret = map_from(fd, p, start, len, MAP_FIXED_NOREPLACE);
	if (ret == -EEXIST) {
		ret = SYS2(__NR_munmap, start, len);
		if (!ret)
			ret = map_from(fd, p, start, len, MAP_FIXED_NOREPLACE);
	}
	if (ret < 0 || !p->p_filesz)
		return ret < 0 ? ret : 0;
	return map_rest(p, bias);
}

/*
 * Find @size free bytes at @at, if @flags has MAP_FIXED_NOREPLACE, or where the kernel chooses.
 * Returns the address or -errno.
 */
static long find_room(u64 at, u64 size, int flags)
{
	long room = SYS6(__NR_mmap, at, size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	if (room >= 0)
		SYS2(__NR_munmap, room, size);
	return room;
}

/*
 * Map the lowest segment, @p, at the beginning of room for all segments: @size free bytes in one
 * piece, at @at or where the kernel chooses (@flags: see find_room()). The kernel's loader does the
 * same: it maps the segment as large as the room, and unmaps the rest of that mapping, which is
 * then free for the others. Where the file cannot be mapped so far, or where all of the room would
 * count as memory that can be written, find_room() finds the room instead, and the segment alone is
 * mapped. Returns the beginning, which may be address 0, or -errno, which is -ENOMEM also if
 * something is mapped at @at, for instance the supervisor range.
 */
static long map_lowest(int fd, const Elf64_Phdr *p, u64 at, u64 size, int flags)
{
	u64 len = segment_length(p);
	long start;

	if (!p->p_filesz || p->p_flags & PF_W || size > ROOM_IN_FILE) {
		start = find_room(at, size, flags);
		if (start >= 0 && len)
			start = map_from(fd, p, start, len, MAP_FIXED_NOREPLACE);
	} else {
		start = map_from(fd, p, at, size, flags);
		if (start >= 0 && size > len)
			SYS2(__NR_munmap, start + len, size - len);
	}
	return start == -EEXIST ? -ENOMEM : start;
}

/*
 * Returns an address with @e's alignment, where the kernel would map it, or -errno. The kernel
 * aligns to pages only, so it is asked for more.
 */
static long aligned_place(const struct extent *e)
{
	long room = find_room(0, e->high - e->low + e->align, 0);

	return room < 0 ? room : (long)(((u64)room + e->align - 1) & ~(e->align - 1));
}

static const Elf64_Phdr *lowest_segment(const struct elf *elf, const struct extent *e)
{
	const Elf64_Phdr *p = elf->headers;

	while (p->p_type != PT_LOAD || PAGE_DOWN(p->p_vaddr) != e->low)
		p++;
	return p;
}

/*
 * Map an image: one that is not position-independent where it was linked, a program with
 * a loader at a random place, and a loader or a program without one where the kernel
 * chooses.
 */
static long map_elf(int fd, struct elf *elf)
{
	struct extent extent = extent_of(elf);
	const Elf64_Phdr *lowest = lowest_segment(elf, &extent);
	int flags = MAP_FIXED_NOREPLACE, i;
	long start = 0, err;

	if (elf->header.e_type == ET_EXEC)
		start = extent.low;
	else if (elf->interpreter[0])
		start = (DYN_BASE + random_offset(DYN_RANDOM_PAGES)) & ~(extent.align - 1);
	else if (extent.align == PAGE_BYTES)
		flags = 0;
	else
		start = aligned_place(&extent);
	if (start < 0)
		return start;
	start = map_lowest(fd, lowest, start, extent.high - extent.low, flags);
	/* Ring 0 clears the rest of a segment: a forged result must be no address of its own. */
	if ((u64)start > USER_END - (extent.high - extent.low))
		return start < 0 ? start : -EFAULT;
	elf->bias = start - extent.low;
	err = lowest->p_filesz ? map_rest(lowest, elf->bias) : 0;
	for (i = 0; i < elf->header.e_phnum && !err; i++)
		if (elf->headers[i].p_type == PT_LOAD && &elf->headers[i] != lowest)
			err = map_segment(fd, &elf->headers[i], elf->bias);
	return err;
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
	long err;

	image->has_interpreter = main_elf.interpreter[0];
	err = map_elf(fd, &main_elf);
	if (err)
		return err;
	describe(&main_elf, image);
	image->interpreter_base = 0;
	if (!image->has_interpreter)
		return 0;

	err = map_elf(loader_file, &loader_elf);
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

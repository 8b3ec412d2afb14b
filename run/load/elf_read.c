// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reading the headers of a program and of the dynamic loader that it names, with the
 * checks and the errors of the kernel's binfmt_elf.
 */
#include "elf_headers.h"
#include "elf_image.h"
#include "executable.h"
#include "page.h"
#include "super_range.h"
#include "sys.h"

#include <dune_runtime.h>
#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/magic.h>

/* The bytes that are read first: those of the header, and more. */
#define READ_AT_ONCE	1024

/* Too large for a stack; a process loads or probes one program at a time. */
struct elf main_elf, loader_elf;
int loader_file = -1;

static void close_loader(void)
{
	if (loader_file >= 0)
		SYS1(__NR_close, loader_file);
	loader_file = -1;
}

void forget_headers(void)
{
	close_loader();
	dune_runtime_forget(&main_elf, sizeof(main_elf));
	dune_runtime_forget(&loader_elf, sizeof(loader_elf));
}

static long read_all(int fd, void *to, u64 len, u64 at)
{
	long n = sys_pread(fd, to, len, at);

	if (n < 0)
		return n;
	return (u64)n == len ? 0 : -EIO;
}

/*
 * Whether the kernel maps exactly the pages of the file that it is asked for. It
 * rounds the length of a mapping of a file on hugetlbfs up to huge pages, and then a
 * segment takes more than its place. A file system whose type the kernel does not
 * tell may be hugetlbfs.
 */
static bool maps_as_asked(int fd)
{
	struct statfs fs;

	return sys_fstatfs(fd, &fs) == 0 && fs.f_type != HUGETLBFS_MAGIC;
}

/* Returns 0, -ENOEXEC, or the error of reading the header: -EIO if the file is shorter than it. */
static long read_elf(int fd, struct elf *elf)
{
	const Elf64_Ehdr *h = &elf->header;
	u64 size;
	long n;

	if (!maps_as_asked(fd))
		return -ENOEXEC;
	n = sys_pread(fd, &elf->header, READ_AT_ONCE, 0);
	if (n < (long)sizeof(*h))
		return n < 0 ? n : -EIO;
	if (*(const u32 *)h->e_ident != *(const u32 *)ELFMAG ||
	    h->e_machine != EM_X86_64 ||
	    (h->e_type != ET_EXEC && h->e_type != ET_DYN))
		return -ENOEXEC;
	size = (u64)h->e_phnum * sizeof(Elf64_Phdr);
	if (h->e_phentsize != sizeof(Elf64_Phdr) || size == 0 || h->e_phnum > HEADERS_MAX)
		return -ENOEXEC;
	elf->interpreter = (char *)&elf->headers[h->e_phnum];
	if (h->e_phoff == sizeof(*h) && sizeof(*h) + size <= (u64)n)
		return 0;
	return read_all(fd, elf->headers, size, h->e_phoff) ? -ENOEXEC : 0;
}

struct extent extent_of(const struct elf *elf)
{
	struct extent e = { .low = ~0UL, .high = 0, .align = PAGE_BYTES };
	int i;

	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (PAGE_DOWN(p->p_vaddr) < e.low)
			e.low = PAGE_DOWN(p->p_vaddr);
		if (PAGE_UP(p->p_vaddr + p->p_memsz) > e.high)
			e.high = PAGE_UP(p->p_vaddr + p->p_memsz);
		if (p->p_align > e.align && !(p->p_align & (p->p_align - 1)))
			e.align = p->p_align;
	}
	return e;
}

/*
 * Returns 0 if a program may have each segment at [vaddr, vaddr + memsz), or the error. The
 * loader maps all segments where room for them is free in one piece, so the supervisor range cannot
 * be there.
 */
static long check_segments(const struct elf *elf)
{
	struct extent extent;
	int i;

	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_filesz > p->p_memsz || p->p_memsz > USER_END ||
		    p->p_vaddr > USER_END - p->p_memsz ||
		    ((p->p_vaddr ^ p->p_offset) & (PAGE_BYTES - 1)))
			return -EINVAL;
	}
	extent = extent_of(elf);
	if (extent.low > extent.high)
		return -ENOEXEC;	/* there is no segment */
	if (elf->header.e_type == ET_EXEC &&
	    meets_super_range(extent.low, extent.high - extent.low))
		return -ENOMEM;
	return 0;
}

/* Copy the name in PT_INTERP to elf->interpreter, which is empty if there is none. */
static long find_interpreter(int fd, struct elf *elf)
{
	int i;

	elf->interpreter[0] = 0;
	for (i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *p = &elf->headers[i];

		if (p->p_type != PT_INTERP)
			continue;
		if (p->p_filesz < 2 || p->p_filesz > PATH_BYTES)
			return -ENOEXEC;
		if (read_all(fd, elf->interpreter, p->p_filesz, p->p_offset))
			return -EIO;
		return elf->interpreter[p->p_filesz - 1] ? -ENOEXEC : 0;
	}
	return 0;
}

static long read_program(int fd)
{
	long err;

	if (read_elf(fd, &main_elf))
		return -ENOEXEC;
	err = check_segments(&main_elf);
	if (!err)
		err = find_interpreter(fd, &main_elf);
	return err;
}

/* Open the loader and read its headers into loader_elf. Returns 0 or -errno. */
static long open_loader(const char *name)
{
	long fd = executable_open(AT_FDCWD, name, 0), err;

	if (fd < 0)
		return fd;
	loader_file = fd;
	err = read_elf(fd, &loader_elf);
	if (err == -ENOEXEC || (!err && check_segments(&loader_elf)))
		err = -ELIBBAD;
	if (err)
		close_loader();
	else
		loader_elf.interpreter[0] = 0;		/* a loader's own is ignored */
	return err;
}

long elf_read(int fd)
{
	long err = read_program(fd);

	/* A vfork child that was killed may have left a number, which was in its own table. */
	loader_file = -1;
	if (!err && main_elf.interpreter[0])
		err = open_loader(main_elf.interpreter);
	return err;
}

long elf_probe(int fd)
{
	long err = elf_read(fd);

	close_loader();
	return err;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The process as the program finds it when it starts: its argument vector and
 * auxiliary vector on the stack, its heap, and the areas that /proc shows. The
 * strings, the environment, the random bytes and the vDSO are those that the
 * kernel made for dune-run; only what describes dune-run itself is rewritten.
 */
#include "run.h"

#include <linux/mman.h>
#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/elf.h>
#include <linux/prctl.h>

#define AT_RSEQ_FEATURE_SIZE	27
#define AT_RSEQ_ALIGN		28

#define BRK_RANDOM_PAGES	(0x02000000 / PAGE_BYTES)

void start_find(struct start *s, u64 *stack)
{
	u64 *p = stack + 1;

	s->argc = stack;
	s->argv = (char **)p;
	p += *stack + 1;
	s->envp = (char **)p;
	while (*p)
		p++;
	s->auxv = ++p;
	while (p[0] != AT_NULL)
		p += 2;
	s->auxv_end = p + 2;
}

u64 *start_aux(const struct start *s, u64 type)
{
	u64 *p;

	for (p = s->auxv; p[0] != AT_NULL; p += 2)
		if (p[0] == type)
			return p + 1;
	return NULL;
}

static void store(u64 *at, u64 value)
{
	if (at)
		*at = value;
}

static void set_aux(const struct start *s, u64 type, u64 value)
{
	store(start_aux(s, type), value);
}

/* Remove an entry for something that the sandbox does not have. */
static void drop_aux(const struct start *s, u64 type)
{
	u64 *p = start_aux(s, type);

	if (p)
		p[-1] = AT_IGNORE;
}

static u64 string_end(const char *s)
{
	return (u64)s + text_len(s) + 1;
}

/* What start_areas() and start_describe() need to know. */
static void note(struct start *s)
{
	char **last = (char **)s->auxv - 2;

	s->arg_start = (u64)s->argv[0];
	s->arg_end = string_end(s->argv[*s->argc - 1]);
	s->env_start = s->envp[0] ? (u64)s->envp[0] : s->arg_end;
	s->env_end = s->envp[0] ? string_end(*last) : s->env_start;
	s->program_headers = start_aux(s, AT_PHDR);
	s->header_count = start_aux(s, AT_PHNUM);
	s->interpreter_base = start_aux(s, AT_BASE);
	s->program_entry = start_aux(s, AT_ENTRY);
}

/*
 * The new count goes right before the first argument. The ABI demands a stack
 * pointer that is a multiple of 16: if it is not, all vectors move down by one word,
 * over the dropped arguments.
 */
u64 start_stack(struct start *s, unsigned int drop, const char *name)
{
	u64 count = *s->argc - drop;
	u64 *sp = s->argc + drop;

	if ((u64)sp & 15) {
		u64 *from;

		for (from = sp + 1; from < s->auxv_end; from++)
			from[-1] = *from;
		sp--;
		s->auxv--;
		s->auxv_end--;
		s->envp--;
	}
	*sp = count;
	s->argc = sp;
	s->argv = (char **)(sp + 1);

	set_aux(s, AT_PHENT, sizeof(Elf64_Phdr));
	set_aux(s, AT_FLAGS, 0);
	set_aux(s, AT_EXECFN, (u64)name);
	drop_aux(s, AT_RSEQ_FEATURE_SIZE);
	drop_aux(s, AT_RSEQ_ALIGN);
	note(s);
	return (u64)sp;
}

void start_describe(const struct start *s, const struct image *image)
{
	store(s->program_headers, image->program_headers);
	store(s->header_count, image->header_count);
	store(s->interpreter_base, image->interpreter_base);
	store(s->program_entry, image->program_entry);
}

/*
 * Where addresses are random the kernel has put dune-run's own heap somewhere above
 * its bss, and else right after it. This costs nothing, needs no /proc, and accounts
 * for the boot options and the personality.
 */
bool start_randomized(void)
{
	static int known = -1;

	if (known < 0)
		known = SYS1(__NR_brk, 0) != (long)PAGE_UP((u64)_end);
	return known;
}

/*
 * The guard region is a mapping without rights: a mapping whose
 * place the kernel chooses cannot reach from below into the range. It replaces a
 * vDSO that the kernel has put there, which happens only with an odd limit on the
 * stack (start_patch_vdso() then hides the vDSO from the program).
 */
void start_guard_region(void)
{
	long at = SYS6(__NR_mmap, SUPER_BASE, GUARD_REGION_SIZE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (at < 0)
		die(126, "no memory for the runtime", text_errno(at),
		    "raise the limit on address space (ulimit -v)");
}

/*
 * The data is the table of system calls, the pointers to functions and the like. It
 * is in PT_GNU_RELRO, which a C library would evaluate.
 */
static void seal(u64 limit)
{
	extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
	const Elf64_Phdr *p = (const void *)((u64)&__ehdr_start + __ehdr_start.e_phoff);
	u32 i;

	for (i = 0; i < __ehdr_start.e_phnum; i++, p++) {
		u64 start = PAGE_DOWN(p->p_vaddr), end = p->p_vaddr + p->p_memsz;

		if (p->p_type != PT_GNU_RELRO)
			continue;
		if (end > limit)
			end = limit;
		if (SYS3(__NR_mprotect, start, end - start, PROT_READ) < 0)
			die(126, "cannot make the runtime's tables read-only", NULL, NULL);
	}
}

/* All before the page of libdune's variables (sealed.ld). */
void start_seal_tables(void)
{
	extern const char __start_dune_ro_after_start[] __attribute__((visibility("hidden")));

	seal((u64)__start_dune_ro_after_start);
}

void start_seal(void)
{
	seal(~0UL);
}

static u64 heap_start(const struct image *image)
{
	u64 start = PAGE_UP(image->brk);
	u64 pages = 0;

	if (!start_randomized())
		return start;
	/* a static PIE or a loader run by hand lies among the mappings */
	if (image->is_dynamic && !image->has_interpreter)
		start = PAGE_DOWN(USER_END / 3 * 2);
	SYS3(__NR_getrandom, &pages, sizeof(pages), 0);
	return start + pages % BRK_RANDOM_PAGES * PAGE_BYTES;
}

long start_areas(const struct start *s, const struct image *image)
{
	struct prctl_mm_map map = {
		.start_code = image->start_code,
		.end_code = image->end_code,
		.start_data = image->start_data,
		.end_data = image->end_data,
		.start_stack = (u64)s->argc,
		.auxv = (void *)s->auxv,
		.auxv_size = (u64)s->auxv_end - (u64)s->auxv,
		.arg_start = s->arg_start,
		.arg_end = s->arg_end,
		.env_start = s->env_start,
		.env_end = s->env_end,
		.exe_fd = -1,
	};

	map.start_brk = heap_start(image);
	map.brk = map.start_brk;
	return SYS5(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
}

/*
 * The vDSO's getcpu reads the limit of a segment that Linux keeps in its own
 * descriptor table (arch/x86/include/asm/segment.h, vdso_read_cpunode), and the
 * guest has a table of its own: replace getcpu by a system call. The time
 * functions read the TSC and need no change.
 *
 * Returns false where the vDSO cannot be executed any more, because it could be
 * made writable but not executable again (PR_SET_MDWE, MemoryDenyWriteExecute= of
 * systemd).
 */
static bool patch_vdso(u64 vdso)
{
	static const u8 code[] = {
		0xb8, 0x35, 0x01, 0x00, 0x00,	/* mov $__NR_getcpu, %eax */
		0x0f, 0x05,			/* syscall */
		0xc3,				/* ret */
	};
	const Elf64_Ehdr *h = (const void *)vdso;
	const Elf64_Phdr *p = (const void *)(vdso + h->e_phoff);
	u64 size = h->e_shoff + (u64)h->e_shnum * h->e_shentsize;
	const Elf64_Dyn *d = NULL;
	const Elf64_Sym *symbols = NULL;
	const char *names = NULL;
	const u32 *hash = NULL;
	u32 i;

	for (i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC)
			d = (const void *)(vdso + p[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = (const void *)(vdso + d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			names = (const void *)(vdso + d->d_un.d_ptr);
		else if (d->d_tag == DT_HASH)
			hash = (const void *)(vdso + d->d_un.d_ptr);
	}
	if (!symbols || !names || !hash)
		return true;
	size = PAGE_UP(size);
	for (i = 0; i < hash[1]; i++) {
		volatile u8 *to = (volatile u8 *)(vdso + symbols[i].st_value);
		size_t k;

		if (!text_equal(names + symbols[i].st_name, "__vdso_getcpu"))
			continue;
		/* the mapping cannot be split: all of it, for a moment */
		if (SYS3(__NR_mprotect, vdso, size, PROT_READ | PROT_WRITE) < 0)
			return true;
		for (k = 0; k < sizeof(code); k++)
			to[k] = code[k];
		return !SYS3(__NR_mprotect, vdso, size, PROT_READ | PROT_EXEC);
	}
	return true;
}

void start_patch_vdso(const struct start *s)
{
	u64 *vdso = start_aux(s, AT_SYSINFO_EHDR);

	/* libc makes system calls where there is no vDSO */
	if (vdso && (in_super_range(*vdso) || !patch_vdso(*vdso)))
		drop_aux(s, AT_SYSINFO_EHDR);
}

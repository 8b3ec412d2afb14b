// SPDX-License-Identifier: MIT OR Apache-2.0
/* The vDSO, which the kernel made for dune-run and which the program uses. */
#include "initial_stack.h"
#include "memcpy.h"
#include "page.h"
#include "sys.h"
#include "text.h"
#include "vdso.h"

#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/dune.h>
#include <linux/elf.h>
#include <linux/mman.h>

/*
 * Find the vDSO's symbol @name by the tables of its dynamic section. Returns its address,
 * 0 if the vDSO has no such symbol, or -ENOEXEC if it lacks a table.
 */
static long find_symbol(u64 vdso, const char *name)
{
	const Elf64_Ehdr *h = (const void *)vdso;
	const Elf64_Phdr *p = (const void *)(vdso + h->e_phoff);
	const Elf64_Dyn *d = NULL;
	const Elf64_Sym *symbols = NULL;
	const char *names = NULL;
	const u32 *hash = NULL;		/* word 1 is the number of symbols */
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
		return -ENOEXEC;
	for (i = 0; i < hash[1]; i++)
		if (text_equal(names + symbols[i].st_name, name))
			return vdso + symbols[i].st_value;
	return 0;
}

/* The length of the vDSO's mapping. The section headers are the end of its image. */
static u64 mapped_bytes(u64 vdso)
{
	const Elf64_Ehdr *h = (const void *)vdso;

	return PAGE_UP(h->e_shoff + (u64)h->e_shnum * h->e_shentsize);
}

/*
 * The vDSO's getcpu reads the limit of a segment that Linux keeps in its own
 * descriptor table (arch/x86/include/asm/segment.h, vdso_read_cpunode). The guest has a
 * table of its own, with a copy that may be out of date (libdune's dune_gdt_set_limit()):
 * replace getcpu by a system call. The time functions read the TSC and need no change.
 *
 * Returns false if the program must not use the vDSO: getcpu could not be replaced, or
 * the mapping could not be made executable again (PR_SET_MDWE, MemoryDenyWriteExecute= of
 * systemd).
 */
static bool replace_getcpu(u64 vdso)
{
	static const u8 code[] = {
		0xb8, 0x35, 0x01, 0x00, 0x00,	/* mov $__NR_getcpu, %eax */
		0x0f, 0x05,			/* syscall */
		0xc3,				/* ret */
	};
	long getcpu = find_symbol(vdso, "__vdso_getcpu");

	if (getcpu <= 0)
		return getcpu == 0;
	/* The vDSO's tables are memory of the process. */
	if ((u64)getcpu >= USER_END - sizeof(code))
		return false;
	/* The mapping cannot be split, so all of it is writable for a moment. */
	if (SYS3(__NR_mprotect, vdso, mapped_bytes(vdso), PROT_READ | PROT_WRITE) < 0)
		return false;
	memcpy((void *)getcpu, code, sizeof(code));
	return !SYS3(__NR_mprotect, vdso, mapped_bytes(vdso), PROT_READ | PROT_EXEC);
}

void vdso_patch(const struct initial_stack *s)
{
	u64 vdso = SYS0(DUNE_FIND_VDSO);

	/* Without a vDSO, libc makes system calls. */
	if (vdso && !replace_getcpu(vdso))
		stack_drop_aux(s, AT_SYSINFO_EHDR);
}

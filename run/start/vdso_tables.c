// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The tables of the vDSO. They are memory of the process, so only the native start of the first
 * process of a tree reads them: all others have the same vDSO.
 */
#include "page.h"
#include "text.h"
#include "vdso_tables.h"

#include <linux/elf.h>

/*
 * Find the vDSO's symbol @name by the tables of its dynamic section. Returns its offset, 0 if the
 * vDSO has no such symbol, or -1 if it lacks a table.
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
		return -1;
	for (i = 0; i < hash[1]; i++)
		if (text_equal(names + symbols[i].st_name, name))
			return symbols[i].st_value;
	return 0;
}

/* The length of the vDSO's mapping. The section headers are the end of its image. */
static u64 mapped_bytes(u64 vdso)
{
	const Elf64_Ehdr *h = (const void *)vdso;

	return PAGE_UP(h->e_shoff + (u64)h->e_shnum * h->e_shentsize);
}

void vdso_find(u64 vdso, struct dune_start *start)
{
	long getcpu = find_symbol(vdso, "__vdso_getcpu");

	if (getcpu < 0)
		return;
	start->vdso_bytes = mapped_bytes(vdso);
	start->vdso_getcpu = getcpu;
}

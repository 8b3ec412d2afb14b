// SPDX-License-Identifier: MIT OR Apache-2.0
/* The vDSO, which the kernel made for dune-run and which the program uses. */
#include "initial_stack.h"
#include "own_syscall.h"
#include "page.h"
#include "super_range.h"
#include "text.h"
#include "vdso.h"

#include <linux/mman.h>
#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/elf.h>

/*
 * The vDSO's getcpu reads the limit of a segment that Linux keeps in its own
 * descriptor table (arch/x86/include/asm/segment.h, vdso_read_cpunode), and the
 * guest has a table of its own: replace getcpu by a system call. The time
 * functions read the TSC and need no change.
 *
 * Returns false if the vDSO cannot be executed any more, because it could be
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
		/* The mapping cannot be split, so all of it is writable for a moment. */
		if (SYS3(__NR_mprotect, vdso, size, PROT_READ | PROT_WRITE) < 0)
			return true;
		for (k = 0; k < sizeof(code); k++)
			to[k] = code[k];
		return !SYS3(__NR_mprotect, vdso, size, PROT_READ | PROT_EXEC);
	}
	return true;
}

void vdso_patch(const struct initial_stack *s)
{
	u64 *vdso = stack_aux(s, AT_SYSINFO_EHDR);

	/* Without a vDSO, libc makes system calls. */
	if (vdso && (in_super_range(*vdso) || !patch_vdso(*vdso)))
		stack_drop_aux(s, AT_SYSINFO_EHDR);
}

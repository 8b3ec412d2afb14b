// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What protects the runtime's own mappings: the guard region at the beginning of the
 * supervisor range, and tables that are read-only while the program runs.
 */
#include "mappings.h"
#include "message.h"
#include "own_syscall.h"
#include "page.h"
#include "super_range.h"

#include <linux/mman.h>
#include <asm/unistd.h>
#include <linux/elf.h>

/*
 * The guard region is a mapping without rights, so a mapping whose place the kernel
 * chooses cannot reach from below into the range. The guard region replaces a vDSO
 * that the kernel has put there, which happens only with an odd limit on the stack
 * (vdso_patch() then hides the vDSO from the program).
 */
void map_guard_region(void)
{
	long at = SYS6(__NR_mmap, SUPER_BASE, GUARD_REGION_SIZE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (at < 0)
		die(126, "no memory for the runtime", text_errno(at),
		    "raise the limit on address space (ulimit -v)");
}

/*
 * Make the data that is in PT_GNU_RELRO, up to @limit, read-only: the table of system
 * calls, pointers to functions and the like. Other programs have a C library that does so.
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

/* Seal everything before the page of libdune's variables (sealed.ld). */
void seal_tables(void)
{
	extern const char __start_dune_ro_after_start[] __attribute__((visibility("hidden")));

	seal((u64)__start_dune_ro_after_start);
}

void seal_rest(void)
{
	seal(~0UL);
}

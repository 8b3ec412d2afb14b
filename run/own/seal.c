// SPDX-License-Identifier: MIT OR Apache-2.0
/* Sealing: the runtime's tables are read-only while the program runs. */
#include "message.h"
#include "page.h"
#include "seal.h"
#include "sys.h"

#include <asm/unistd.h>
#include <linux/elf.h>
#include <linux/mman.h>

/*
 * Make the data that is in PT_GNU_RELRO, up to @limit, read-only: the table of system
 * calls, pointers to functions and the like. Other programs have a C library that does so.
 */
static void seal(u64 limit)
{
	extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));
	const Elf64_Phdr *p = (const void *)((u64)&__ehdr_start + __ehdr_start.e_phoff);
	long err;
	u32 i;

	for (i = 0; i < __ehdr_start.e_phnum; i++, p++) {
		u64 start = PAGE_DOWN(p->p_vaddr), end = p->p_vaddr + p->p_memsz;

		if (p->p_type != PT_GNU_RELRO)
			continue;
		if (end > limit)
			end = limit;
		err = SYS3(__NR_mprotect, start, end - start, PROT_READ);
		if (err < 0)
			die(126, "cannot make the runtime's tables read-only", NULL, err,
			    "permit mprotect() in the seccomp filter or security policy");
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

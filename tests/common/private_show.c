// SPDX-License-Identifier: MIT OR Apache-2.0
/* Private memory in a guest's page table: see private_show.h. */
#include "private_show.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PRIVATE_SLOT	(PRIVATE_AT >> 39 & 511)	/* of the guest's top-level table */

void private_show(struct guest *g, u64 gpa)
{
	u64 *pdpt = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 *pd = pdpt + 512;

	if (pdpt == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	pd[0] = gpa | PTE_P | PTE_W | PTE_U | PTE_PS;
	pdpt[0] = guest_gpa(g, (u64)pd) | PTE_P | PTE_W | PTE_U;
	g->mem->pml4[PRIVATE_SLOT] = guest_gpa(g, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
}

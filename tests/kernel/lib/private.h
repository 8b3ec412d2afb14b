/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the tests of private memory (DUNE_ADD_PRIVATE): more of it, and a way to it in a guest. */
#ifndef DUNE_TESTS_PRIVATE_H
#define DUNE_TESTS_PRIVATE_H

#include "guest.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* The address at which private_show() puts it in the guest: no process has this address. */
#define PRIVATE_AT	0xffff800000000000UL
#define PRIVATE_SLOT	256

/* 0, with the guest-physical address in @gpa, or -errno. */
static inline int private_add(struct guest *g, u64 pages, u64 *gpa)
{
	struct dune_private p = { .size = sizeof(p), .pages = pages };
	int err = ioctl(g->fd, DUNE_ADD_PRIVATE, &p) ? -errno : 0;

	*gpa = p.guest;
	return err;
}

/* Let the guest's page table have the 2 MB at @gpa at PRIVATE_AT, for every access. */
static inline void private_show(struct guest *g, u64 gpa)
{
	u64 *pdpt = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 *pd = pdpt + 512;

	if (pdpt == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	pd[0] = gpa | PTE_P | PTE_W | PTE_U | PTE_PS;
	pdpt[0] = guest_gpa(g, (u64)pd) | PTE_P | PTE_W | PTE_U;
	g->mem->pml4[PRIVATE_SLOT] = guest_gpa(g, (u64)pdpt) | PTE_P | PTE_W | PTE_U;
}

/* Skip all tests where the processor has no private memory: whether it has. */
static inline bool private_exists(const struct guest *g)
{
	if (!g->info.private_pages)
		skip("this processor's guest-physical addresses are too narrow", "private memory");
	return g->info.private_pages;
}

#endif

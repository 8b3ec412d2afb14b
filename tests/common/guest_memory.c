// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The memory that a guest's processor looks at: page tables that map the process's own memory,
 * descriptor tables, and on Intel the granules of guest-physical space. See guest_memory.h; the
 * functions for tests are in guest.h.
 */
#define _GNU_SOURCE
#include "guest_memory.h"
#include "tap.h"
#include "x86.h"

#include <cpuid.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#define GRANULES_MAX	256

/*
 * The gigabytes that granules were mapped to, in the order of granules, of which @first is the
 * number of the first. They hold for all guests of the process; a child after fork has to map them
 * again.
 */
static struct {
	int lock;
	u32 first;
	u32 used;
	u64 place[GRANULES_MAX];
} granules = { .first = 1 };

void guest_granules_from(u32 first)
{
	granules.first = first;
	granules.used = 0;
}

static int map_granule(struct guest *g, u32 n)
{
	struct dune_granule granule = {
		.size = sizeof(granule),
		.guest = (granules.first + n) * GB,
		.address = granules.place[n],
	};

	return raw_syscall(SYS_ioctl, g->fd, DUNE_MAP_GRANULE, (long)&granule, 0, 0, 0);
}

int guest_map_granules(struct guest *g)
{
	for (u32 n = 0; n < granules.used; n++) {
		int err = map_granule(g, n);

		if (err)
			return err;
	}
	return 0;
}

u64 guest_gpa(struct guest *g, u64 address)
{
	u64 place = address & -GB;
	u32 n;

	if (!g->info.granules)
		return address;
	while (__atomic_exchange_n(&granules.lock, 1, __ATOMIC_ACQUIRE))
		;
	for (n = 0; n < granules.used && granules.place[n] != place; n++)
		;
	if (n == granules.used) {
		if (n == GRANULES_MAX || granules.first + n >= g->info.granules)
			bail("no granule left for %#lx", address);
		granules.place[n] = place;
		int err = map_granule(g, n);

		if (err)
			bail("DUNE_MAP_GRANULE: %s", strerror(-err));
		granules.used++;
	}
	__atomic_store_n(&granules.lock, 0, __ATOMIC_RELEASE);
	return (granules.first + n) * GB + address % GB;
}

/* The regions where Linux puts programs: low, position independent, and on top. */
static const u16 slots[GUEST_PDPTS] = { 0, 1, 170, 171, 252, 253, 254, 255 };

/* CPUID: 1-GByte pages. */
static bool large_pages(void)
{
	u32 eax, ebx, ecx, edx;

	__cpuid(0x80000001, eax, ebx, ecx, edx);
	return edx >> 26 & 1;
}

/* The entry that maps the gigabyte around @address to itself. */
static u64 identity(struct guest *g, u64 address)
{
	u64 page = guest_gpa(g, address & -GB) | PTE_P | PTE_W | PTE_U | PTE_PS | PTE_A | PTE_D;

	if (large_pages())
		return page;
	if (g->pds == GUEST_PDS)
		bail("no table left for %#lx", address);

	u64 *pd = g->mem->pd[g->pds++];

	for (u64 i = 0; i < 512; i++)
		pd[i] = page + (i << 21);
	return guest_gpa(g, (u64)pd) | PTE_P | PTE_W | PTE_U;
}

void guest_cover(struct guest *g, u64 address)
{
	for (int i = 0; i < GUEST_PDPTS; i++) {
		u64 *entry = &g->mem->pdpt[i][address >> 30 & 511];

		if (slots[i] == address >> 39 && !*entry)
			*entry = identity(g, address);
	}
}

static void cover_neighbours(struct guest *g, u64 address)
{
	guest_cover(g, address - GB);
	guest_cover(g, address);
	guest_cover(g, address + GB);
}

void guest_set_gate(struct guest *g, unsigned int vector, const void *handler, u64 ist, u64 ring)
{
	u64 at = (u64)handler;

	g->mem->idt[vector * 2] = (at & 0xffff) | GUEST_CS0 << 16 | ist << 32 |
				  (DESC_P | DESC_DPL(ring) | GATE_INTERRUPT) << 40 |
				  (at >> 16 & 0xffff) << 48;
	g->mem->idt[vector * 2 + 1] = at >> 32;
}

void guest_make_tables(struct guest *g)
{
	struct guest_memory *m = g->mem;
	bool all = !g->info.granules && large_pages();

	for (int i = 0; i < GUEST_PDPTS; i++) {
		m->pml4[slots[i]] = guest_gpa(g, (u64)m->pdpt[i]) | PTE_P | PTE_W | PTE_U;
		for (u64 j = 0; all && j < 512; j++)
			m->pdpt[i][j] = identity(g, (u64)slots[i] << 39 | j << 30);
	}
	if (!all) {
		guest_cover(g, 0);			/* text, data, heap */
		cover_neighbours(g, (u64)m);		/* mappings */
		cover_neighbours(g, (u64)__builtin_frame_address(0));
		guest_cover(g, getauxval(AT_SYSINFO_EHDR));
	}

	m->gdt[GUEST_CS0 >> 3] = DESC_CODE64_0;
	m->gdt[GUEST_SS0 >> 3] = DESC_DATA_0;
	m->gdt[GUEST_CS32 >> 3] = DESC_CODE32_3;
	m->gdt[GUEST_SS3 >> 3] = DESC_DATA_3;
	m->gdt[GUEST_CS3 >> 3] = DESC_CODE64_3;

	u64 tss = (u64)&m->tss;

	m->gdt[GUEST_TR >> 3] = (sizeof(m->tss) - 1) | (tss & 0xffffff) << 16 |
				(DESC_P | DESC_TSS_BUSY) << 40 | (tss >> 24 & 0xff) << 56;
	m->gdt[(GUEST_TR >> 3) + 1] = tss >> 32;
	m->tss.rsp[0] = (u64)m->trap_stack + sizeof(m->trap_stack);
	m->tss.ist[0] = m->tss.rsp[0];
	m->tss.iomap = sizeof(m->tss);

	for (int v = 0; v < 256; v++) {
		bool user = v == X86_TRAP_BP || v == X86_TRAP_OF || v >= IA32_SYSCALL_VECTOR;

		guest_set_gate(g, v, guest_stubs + v * 16, 1, user ? 3 : 0);
	}
}

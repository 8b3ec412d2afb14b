// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The code of the KVM guest: see vm.h. No exception has a handler: one that
 * comes is the effect of a disturbance, and becomes a triple fault.
 */
#include "registers.h"
#include "vm.h"
#include "x86.h"

static const uint32_t msrs[] = {
	MSR_STAR, MSR_LSTAR, MSR_CSTAR, MSR_SYSCALL_MASK, MSR_FS_BASE, MSR_GS_BASE,
	MSR_KERNEL_GS_BASE,
};

#define NR_MSRS	(sizeof(msrs) / sizeof(msrs[0]))

static void out(uint16_t port, uint32_t value)
{
	asm volatile("outl %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static uint32_t in(uint16_t port)
{
	uint32_t value;

	asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static void fail(struct vm_cpu *cpu, enum vm_check check, uint64_t expected, uint64_t got)
{
	cpu->detail[0] = expected;
	cpu->detail[1] = got;
	for (;;)
		out(VM_PORT_FAIL, check);
}

static uint64_t value(struct vm_cpu *cpu, uint64_t round, uint64_t page)
{
	return cpu->number << 56 | page << 40 | (round & 0xffffffffff);
}

static void check_memory(struct vm_cpu *cpu, uint64_t round)
{
	for (uint64_t i = 0; i < VM_PAGES; i++) {
		volatile uint64_t *p = &cpu->pattern[i][(round - 1) % 512];

		if (*p != value(cpu, round - 1, i))
			fail(cpu, VM_MEMORY, value(cpu, round - 1, i), *p);
		cpu->pattern[i][round % 512] = value(cpu, round, i);
	}
}

static uint64_t msr_value(struct vm_cpu *cpu, uint32_t msr)
{
	uint64_t v = vm_msr_value(cpu->number, msr);

	/* Reserved bits of SFMASK; STAR's low half is of no use. */
	return msr == MSR_SYSCALL_MASK ? v & 0xffff00 : v;
}

static void check_msrs(struct vm_cpu *cpu)
{
	uint32_t low, high, aux;

	for (unsigned int i = 0; i < NR_MSRS; i++) {
		if (rdmsr(msrs[i]) != msr_value(cpu, msrs[i]))
			fail(cpu, VM_MSR, msrs[i], rdmsr(msrs[i]));
	}
	if (!cpu->has_tsc_aux)
		return;
	asm volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(aux));
	if (aux != 77 + cpu->number)
		fail(cpu, VM_TSC_AUX, 77 + cpu->number, aux);
}

static void check_debug_registers(struct vm_cpu *cpu)
{
	uint64_t d0, d3;

	asm volatile("mov %%dr0, %0; mov %%dr3, %1" : "=r"(d0), "=r"(d3));
	if (d0 != 0x1000 + cpu->number || d3 != 0x3000 + cpu->number)
		fail(cpu, VM_DEBUG_REGISTER, 0x1000 + cpu->number, d0);
}

/* Registers before and after a loop of some length, an exit in its middle. */
static void check_registers(struct vm_cpu *cpu, uint64_t round)
{
	uint64_t bad, port = VM_PORT_ROUND, x = round * 0x9e3779b97f4a7c15;

	asm volatile("movq %[x], %%xmm0; movq %[x], %%xmm7; movq %[x], %%xmm15\n"
		     FILL_REGISTERS
		     "mov %[round], %%rax\n"
		     "outl %%eax, %%dx\n"
		     WAIT_IN_LOOP(300)
		     COMPARE_REGISTERS
		     : "=&c"(bad)
		     : [x] "D"(x), [round] "S"(round), "d"(port)
		     : FILLED_REGISTERS, "memory");
	if (bad)
		fail(cpu, VM_REGISTERS, round, bad);

	uint64_t x0, x7, x15;

	asm volatile("movq %%xmm0, %0; movq %%xmm7, %1; movq %%xmm15, %2"
		     : "=r"(x0), "=r"(x7), "=r"(x15));
	if (x0 != x || x7 != x || x15 != x)
		fail(cpu, VM_XMM, x, x0);
}

/* The guest's own page table: one address, two pages in turn. */
static void check_remap(struct vm_cpu *cpu, uint64_t round)
{
	volatile uint64_t *alias = (void *)VM_ALIAS;

	for (unsigned int i = 0; i < 2; i++) {
		cpu->alias_table[0] = (uint64_t)cpu->pattern[i] | PTE_P | PTE_W;
		asm volatile("invlpg (%0)" : : "r"(alias) : "memory");
		if (alias[round % 512] != value(cpu, round, i))
			fail(cpu, VM_REMAP, value(cpu, round, i), alias[round % 512]);
	}
}

/* The host replaces the page, then publishes the number that is in it. */
static void check_stale(struct vm_cpu *cpu)
{
	uint64_t published = vm_shared.published;
	uint64_t stamp = vm_shared.stamp[0];

	if (stamp < published)
		fail(cpu, VM_STALE, published, stamp);
}

void vm_guest(struct vm_cpu *cpu)
{
	for (unsigned int i = 0; i < NR_MSRS; i++)
		wrmsr(msrs[i], msr_value(cpu, msrs[i]));
	if (cpu->has_tsc_aux)
		wrmsr(MSR_TSC_AUX, 77 + cpu->number);
	asm volatile("mov %0, %%dr0; mov %1, %%dr3"
		     : : "r"(0x1000 + cpu->number), "r"(0x3000 + cpu->number));
	for (uint64_t i = 0; i < VM_PAGES; i++)
		cpu->pattern[i][0] = value(cpu, 0, i);

	for (uint64_t round = 1; ; round++) {
		check_memory(cpu, round);
		check_msrs(cpu);
		check_debug_registers(cpu);
		check_registers(cpu, round);
		check_remap(cpu, round);
		check_stale(cpu);
		if (in(VM_PORT_ECHO) != (uint32_t)(round * 3))
			fail(cpu, VM_ECHO, round * 3, 0);
		if (round % 4 == 0)
			asm volatile("hlt");
		cpu->round = round;
	}
}

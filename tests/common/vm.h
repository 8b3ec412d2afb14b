/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A KVM guest on the bare interface of /dev/kvm, one vCPU and thread for each
 * CPU. It verifies all that it relies on, round after round: its registers,
 * MSRs and memory, that a page replaced below it is the new one, and that
 * what it sends by port I/O arrives. So a disturbance of KVM shows here.
 *
 * The guest is C code of this program (vm_guest.c): its physical memory is the
 * program's image, at the same addresses. Its linear addresses are therefore those of
 * Dune's guests in the tests, so that a TLB entry of one kind of guest would be used
 * by the other.
 *
 * A process has at most one machine. A test that needs another one forks.
 */
#ifndef DUNE_TESTS_VM_H
#define DUNE_TESTS_VM_H

#include <stdbool.h>
#include <stdint.h>

#define VM_CPUS		4
#define VM_PAGES	32	/* of pattern, a vCPU */

/* Ports that the guest writes and reads. */
#define VM_PORT_ROUND	0x10
#define VM_PORT_ECHO	0x11
#define VM_PORT_FAIL	0x12

/* The errors that the guest finds; vm_guest.c sends their numbers, vm_moves() prints them. */
enum vm_check {
	VM_OK,
	VM_MEMORY,
	VM_REGISTERS,
	VM_MSR,
	VM_TSC_AUX,
	VM_XMM,
	VM_DEBUG_REGISTER,
	VM_REMAP,
	VM_STALE,
	VM_ECHO,
	VM_HOST,	/* KVM_RUN failed or ended in a way it must not */
};

/* The memory that a vCPU and its thread share. */
struct vm_cpu {
	uint64_t pattern[VM_PAGES][512];
	uint64_t stack[1024];
	uint64_t alias_table[512];	/* maps VM_ALIAS to pattern 0 or 1 */
	uint64_t pml4[512];
	uint64_t pdpt[512];
	uint64_t low[512];		/* the first 1 GB, 2 MB pages */
	uint64_t alias_directory[512];
	volatile uint64_t round;
	volatile uint64_t detail[2];
	bool has_tsc_aux;
	uint64_t number;
} __attribute__((aligned(4096)));

/* A page that the host replaces, and the number that it must have reached. */
struct vm_shared {
	volatile uint64_t stamp[512];
	volatile uint64_t published;
} __attribute__((aligned(4096)));

extern struct vm_cpu vm_cpus[VM_CPUS];
extern struct vm_shared vm_shared;

/* vm_guest.c: where vCPU @cpu begins; never returns. */
void vm_guest(struct vm_cpu *cpu) __attribute__((noreturn));

/* Linear address of the page whose mapping the guest changes back and forth. */
#define VM_ALIAS	0x40000000UL

static inline uint64_t vm_msr_value(uint64_t number, uint32_t msr)
{
	/* Canonical for any number. */
	return 0x1234560000UL + ((uint64_t)msr << 4 & 0xffff0) + number * 0x1000000;
}

/* 0, or -errno of /dev/kvm. */
int vm_available(void);

/* How many CPUs this program may use, VM_CPUS at most. */
unsigned int vm_usable_cpus(void);
/*
 * Make a machine of @cpus vCPUs (VM_CPUS at most) and run it, each thread on its own CPU.
 * 0 or -errno.
 */
int vm_start(unsigned int cpus);
/* End the threads and close everything. */
void vm_stop(void);
/* The sum of the rounds of all vCPUs. */
uint64_t vm_rounds(void);
/* Whether every vCPU makes progress, and none has failed; waits for it, and prints the error. */
bool vm_moves(void);
/* Let the threads run where they like, or each on its CPU again. */
void vm_pin(bool pinned);

#endif

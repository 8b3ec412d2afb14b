// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * DUNE_RUN by itself: from user mode into a guest that leaves at once, and back
 * to user mode, compared with an ioctl of the same device that does nothing.
 */
#include "bench.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "x86.h"

/*
 * Attributes of segments as in a VMCB (APM vol. 2, 15.5.1): the byte with the type and
 * DESC_P, and above it AVL, L, D and G.
 */
#define ATTRIBUTES_CODE64	0xa9b	/* present, code, readable, accessed; L, G */
#define ATTRIBUTES_DATA		0xc93	/* present, data, writable, accessed; D, G */
#define ATTRIBUTES_TSS		(DESC_P | DESC_TSS_BUSY)
#define ATTRIBUTES_LDT		(DESC_P | DESC_LDT)

#define PTE_USABLE	(PTE_P | PTE_W | PTE_U)
#define LARGE_PAGE_SIZE	(1UL << 21)

static uint64_t *table(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static int vcpu;
static struct dune_info info = { .size = sizeof(info) };

/* The guest-physical address of this process's memory, in a granule if need be. */
static uint64_t guest_physical(const void *p)
{
	static uint64_t places[8];
	static unsigned int used;
	struct dune_granule granule = { .size = sizeof(granule) };
	uint64_t address = (uint64_t)p;
	unsigned int n;

	if (!info.granules)
		return address;
	granule.address = address & -DUNE_GRANULE_SIZE;
	for (n = 0; n < used && places[n] != granule.address; n++)
		;
	if (n == used) {
		if (used == sizeof(places) / sizeof(places[0])) {
			errno = ENOSPC;
			die("granules for the guest's memory");
		}
		places[used++] = granule.address;
	}
	granule.guest = (n + 1) * DUNE_GRANULE_SIZE;
	if (ioctl(vcpu, DUNE_MAP_GRANULE, &granule))
		die("DUNE_MAP_GRANULE");
	return granule.guest + address % DUNE_GRANULE_SIZE;
}

/* The 2 MB around @address, mapped to itself. */
static void map_around(uint64_t *root, const void *address)
{
	uint64_t *upper = table(), *lower = table(), at = (uint64_t)address;

	lower[at >> 21 & 511] = (guest_physical(address) & -LARGE_PAGE_SIZE) | PTE_USABLE | PTE_PS;
	upper[at >> 30 & 511] = guest_physical(lower) | PTE_USABLE;
	root[at >> 39 & 511] = guest_physical(upper) | PTE_USABLE;
}

static void guest_svm(void)
{
	for (;;)
		__asm__ volatile("vmmcall" : : "a" (DUNE_HOSTCALL) : "memory");
}

static void guest_vmx(void)
{
	for (;;)
		__asm__ volatile("vmcall" : : "a" (DUNE_HOSTCALL) : "memory");
}

static uint64_t exits(const struct dune_run *run)
{
	return run->counters[DUNE_COUNT_EXITS] - run->counters[DUNE_COUNT_INTERRUPT];
}

/* The exits of one run, but for those for the host's interrupts. */
static double exits_of_run(const struct dune_run *run)
{
	uint64_t before = exits(run);
	int i;

	for (i = 0; i < ROUNDS; i++)
		if (ioctl(vcpu, DUNE_RUN, 0))
			die("DUNE_RUN");
	return (double)(exits(run) - before) / ROUNDS;
}

int main(void)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	struct dune_segment data = { 16, ATTRIBUTES_DATA, ~0U, 0 };
	struct dune_state state = {
		.size = sizeof(state),
		.cs = { 8, ATTRIBUTES_CODE64, ~0U, 0 },
		.ss = data, .ds = data, .es = data, .fs = data, .gs = data,
		.tr = { 24, ATTRIBUTES_TSS, 0x67, 0 },
		.ldtr = { 0, ATTRIBUTES_LDT, 0, 0 },
	};
	uint64_t *root = table();
	uint64_t nothing, cost;
	struct dune_run *run;
	void (*guest)(void);
	int device;

	device = open("/dev/dune", O_RDWR);
	if (device < 0)
		die("/dev/dune");
	if (ioctl(device, DUNE_GET_INFO, &info))
		die("DUNE_GET_INFO");
	guest = info.vendor == DUNE_VENDOR_VMX ? guest_vmx : guest_svm;
	vcpu = ioctl(device, DUNE_CREATE_VCPU, &create);
	if (vcpu < 0)
		die("DUNE_CREATE_VCPU");
	run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	if (run == MAP_FAILED)
		die("mmap of the vCPU");
	map_around(root, guest);
	state.cr3 = guest_physical(root);
	if (ioctl(vcpu, DUNE_SET_STATE, &state))
		die("DUNE_SET_STATE");
	run->regs.rip = (uint64_t)guest;
	run->regs.rflags = X86_EFLAGS_FIXED;
	do {
		if (ioctl(vcpu, DUNE_RUN, 0))
			die("DUNE_RUN");
	} while (run->exit_reason == DUNE_EXIT_INTR);
	if (run->exit_reason != DUNE_EXIT_HOSTCALL) {
		fprintf(stderr, "the guest ended with exit reason %u\n", run->exit_reason);
		return 1;
	}
	nothing = MEASURE(ioctl(device, _IO(DUNE_IOC_TYPE, 0x7f), 0));
	cost = MEASURE(ioctl(vcpu, DUNE_RUN, 0));
	figure("roundtrip", nothing, cost, exits_of_run(run));
	return 0;
}

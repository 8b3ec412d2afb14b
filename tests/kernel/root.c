// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The top level of the second-level page table, where that table is the kernel's
 * own for the process: a guest's walk never enters the kernel's half of it, and
 * follows when regions of 512 GB, an entry each, are mapped and unmapped. Fails
 * when the error code of a nested fault reveals that the kernel has a page at an
 * address, or when the guest still reads the old contents of such a region, or
 * cannot read the new ones.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"
#include "x86.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION		(1UL << 39)	/* no other mapping of the process is in it */
#define ROUNDS		(env_number("ROOT_ROUNDS", 200))
#define LINEAR		(300UL << 39 | 0xffffUL << 48)

static struct guest g;
static sigjmp_buf env;
static volatile u64 expected, stale, reads;
static volatile int stop, entered;

static u64 symbol(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], found[256], type;
	u64 address, result = 0;

	while (f && !result && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %c %255s", &address, &type, found) == 3 &&
		    !strcmp(found, name))
			result = address;
	if (f)
		fclose(f);
	return result;
}

extern const char root_load[];
asm(".globl root_load\nroot_load: movb (%rax), %al\n\thlt\n");

/* Whether a nested fault at @gpa reports a page; -1: no such fault. */
static int is_present(u64 *entry, u64 gpa)
{
	*entry = (gpa & PTE_ADDRESS) | PTE_P | PTE_W | PTE_A | PTE_D;
	for (int i = 0; i < 50; i++) {
		g.run->regs.rip = (u64)root_load;
		g.run->regs.rax = LINEAR;
		if (guest_run(&g))
			return -1;
		if (g.run->exit_reason == DUNE_EXIT_FAULT &&
		    g.run->fault_address == (gpa & PTE_ADDRESS))
			return g.run->hw_info1 & 1;
		if (g.run->exit_reason != DUNE_EXIT_INTR)
			return -1;
	}
	return -1;
}

static void kernel_half(void)
{
	const char *names[] = { "_text", "_printk", "dune_vcpu_create" };
	u64 *tables;

	if (g.info.vendor != DUNE_VENDOR_SVM) {
		skip("the second level is a mirror here", "the guest's walk of the kernel's half");
		return;
	}
	tables = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	guest_cover(&g, (u64)tables);
	g.mem->pml4[300] = guest_gpa(&g, (u64)tables) | PTE_P | PTE_W;
	tables[0] = guest_gpa(&g, (u64)(tables + 512)) | PTE_P | PTE_W;
	tables[512] = guest_gpa(&g, (u64)(tables + 1024)) | PTE_P | PTE_W;
	guest_prepare_code(&g, NULL);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		u64 address = symbol(names[i]) & 0xffffffffffffUL;

		ok(address && is_present(tables + 1024, address) == 0,
		   "the guest's walk finds no page at the kernel's %s", names[i]);
	}
	ok(is_present(tables + 1024, 1UL << 47) == 0,
	   "the guest's walk finds no page at the start of the kernel's half");
}

static void caught(int sig)
{
	siglongjmp(env, sig);
}

/* The guest reads @p into @value: 0, or the signal that the process got for it. */
static int read_by_guest(volatile u64 *p, u64 *value)
{
	int sig = sigsetjmp(env, 1);

	if (sig)
		return sig;
	if (guest_call(&g, guest_load, (void *)p) != GUEST_DONE)
		return -1;
	*value = g.value;
	return 0;
}

static volatile u64 *map_region(u64 at)
{
	void *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (void *)at)
		bail("mmap at %#lx: %s", at, strerror(errno));
	return p;
}

static void come_and_go(void)
{
	bool seen = true, gone = true, touched = true;
	u64 value = 0;

	for (u64 n = 1; n <= 20; n++) {
		volatile u64 *p = map_region(REGION);

		if (n % 2)
			*p = n;
		seen &= !read_by_guest(p, &value) && value == (n % 2 ? n : 0);
		*p = n + 100;
		touched &= !read_by_guest(p, &value) && value == n + 100;
		munmap((void *)p, 4096);
		gone &= read_by_guest(p, &value) == SIGSEGV;
	}
	ok(seen, "the guest reads what is in a new region of 512 GB");
	ok(touched, "the guest reads what is written later to a region of 512 GB");
	ok(gone, "the guest reads nothing of a region of 512 GB that is gone");
}

static u64 reader(void *arg)
{
	volatile u64 *p = arg;

	entered = 1;
	while (!stop) {
		u64 least = __atomic_load_n(&expected, __ATOMIC_SEQ_CST);
		u64 value = __atomic_load_n(p, __ATOMIC_SEQ_CST);

		/* 0: mapped again, but not written yet */
		if (value && value < least)
			stale++;
		reads++;
	}
	return 0;
}

static void *changer(void *arg)
{
	long rounds = ROUNDS;

	while (!entered)
		;
	for (long n = 1; n <= rounds; n++) {
		volatile u64 *p;

		munmap(arg, 4096);
		p = map_region((u64)arg);
		*p = n;
		__atomic_store_n(&expected, n, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	stop = 1;
	return NULL;
}

static void under_a_run(void)
{
	volatile u64 *p = map_region(REGION);
	pthread_t thread;

	pthread_create(&thread, NULL, changer, (void *)p);
	while (!stop) {
		if (!sigsetjmp(env, 1) && guest_call(&g, reader, (void *)p) != GUEST_DONE)
			break;
	}
	pthread_join(thread, NULL);
	ok(stop && reads && !stale,
	   "a region of 512 GB that is mapped anew in a run: no stale data (%lu of %lu reads)",
	   stale, reads);
	munmap((void *)p, 4096);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = caught, .sa_flags = SA_NODEFER };
	struct klog log;

	begin(120);
	klog_begin(&log);
	guest_open(&g);
	guest_cover(&g, REGION);
	sigaction(SIGSEGV, &sa, NULL);
	kernel_half();
	come_and_go();
	under_a_run();
	klog_end(&log);
	return done();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Private memory (DUNE_ADD_PRIVATE): a guest reads, writes and executes it and has page
 * tables in it, and nobody else reaches it. Fails when a page is not there, is not zeroed
 * or not kept; when an access after the last page does anything but end the run; when the
 * request accepts what it must refuse, or leaves something after it has failed; when the
 * kernel reads or writes a page for the process (write, read, /proc/PID/mem,
 * process_vm_readv, ptrace, a core dump), or shows it in /proc/PID/maps; and when another
 * address space or a child has it.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest_calls.h"
#include "klog.h"
#include "private.h"
#include "proc.h"
#include "timing.h"
#include "uapi.h"

#include <cpuid.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES	8
#define SECRETS	64

static struct guest g;
static u64 first;	/* guest-physical address of the first page */
static volatile u64 seed = 0x1234567;	/* the guest makes secrets of it */

/* ---- in the guest ---- */

/* A number that is nowhere in memory until it is made. */
static u64 secret(u64 n)
{
	return (seed + n) * 0x9e3779b97f4a7c15;
}

static u64 keep_secrets(void *page)
{
	for (u64 i = 0; i < SECRETS; i++)
		((volatile u64 *)page)[i] = secret(i);
	return 0;
}

/* How many secrets are still there. */
static u64 count_secrets(void *page)
{
	u64 n = 0;

	for (u64 i = 0; i < SECRETS; i++)
		n += ((volatile u64 *)page)[i] == secret(i);
	return n;
}

static u64 sum(void *at)
{
	volatile u64 *p = at;
	u64 total = 0;

	for (u64 i = 0; i < PAGES * 512; i++)
		total += p[i];
	return total;
}

/* The sum of all words; then one word of each page is written. */
static u64 sum_and_write(void *at)
{
	volatile u64 *p = at;
	u64 before = sum(at);

	for (u64 i = 0; i < PAGES; i++)
		p[i * 512 + i] = 0x1234000 + i;
	return before;
}

static u64 execute(void *at)
{
	static const u8 text[] = { 0xb8, 0x2a, 0, 0, 0, 0xc3 };	/* mov $42, %eax; ret */
	volatile u8 *p = at;

	for (u64 i = 0; i < sizeof(text); i++)
		p[i] = text[i];
	return ((u64 (*)(void))at)();
}

/* The top level of the page table, copied to a page, in use from there on. */
static u64 move_tables(void *at)
{
	volatile u64 *p = at;

	for (int i = 0; i < 512; i++)
		p[i] = g.mem->pml4[i];
	write_cr3(first + ((u64)at - PRIVATE_AT));
	p[0x1fe] = 77;	/* a slot of the top level that nothing uses, in the table itself */
	return p[0x1fe];
}

struct transfer {
	long nr;
	int fd;
	u64 address;
};

static u64 transfer(void *arg)
{
	struct transfer *t = arg;

	return hypercall3(t->nr, t->fd, t->address, 8);
}

/* ---- a guest by itself ---- */

/* Whether the last exit was for an access to @gpa, where nothing is. */
static bool no_memory_at(const struct guest *h, u64 gpa)
{
	if (h->run->exit_reason == DUNE_EXIT_FAULT && h->run->fault_address == gpa &&
	    h->run->fault_flags & DUNE_FAULT_GUEST)
		return true;
	diag("exit %u, fault at %#llx, flags %#x", h->run->exit_reason, h->run->fault_address,
	     h->run->fault_flags);
	return false;
}

static void use(void)
{
	u64 more;

	is(private_add(&g, PAGES, &first), 0, "%d pages are added", PAGES);
	private_show(&g, first);
	ok(guest_call(&g, sum_and_write, (void *)PRIVATE_AT) == GUEST_DONE && !g.value,
	   "the pages are zeroed, and the guest writes them");
	ok(guest_call(&g, sum, (void *)PRIVATE_AT) == GUEST_DONE &&
	   g.value == PAGES * 0x1234000 + PAGES * (PAGES - 1) / 2,
	   "the guest reads what it wrote in an earlier run");
	ok(guest_call3(&g, sum, (void *)PRIVATE_AT) == GUEST_DONE && g.value,
	   "ring 3 of the guest reads it, too");
	ok(guest_call(&g, execute, (void *)PRIVATE_AT) == GUEST_DONE && g.value == 42,
	   "the guest executes a page");
	ok(guest_call(&g, move_tables, (void *)(PRIVATE_AT + 4096)) == GUEST_DONE &&
	   g.value == 77, "the guest's page table is in a page");

	guest_first_exit(&g, guest_load, PRIVATE_AT + PAGES * 4096);
	ok(no_memory_at(&g, first + PAGES * 4096), "an access after the last page ends the run");
	is(private_add(&g, 2, &more), 0, "two more pages are added");
	ok(more == first + PAGES * 4096, "they follow the others");
	ok(guest_resume(&g) == GUEST_DONE && !g.value, "the access is repeated, and finds a page");
	guest_first_exit(&g, guest_load, PRIVATE_AT + (PAGES + 2) * 4096);
	ok(no_memory_at(&g, first + (PAGES + 2) * 4096),
	   "an access after the new last page ends the run");
}

/* Addresses that no part of a guest-physical space has: the run ends, at this address. */
static void nowhere(void)
{
	static const u64 bits[] = { 39, 40, 46, 47, 48, 49, 51 };

	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		u64 gpa = (1UL << bits[i]) + (100UL << 30);

		if (bits[i] < 47 && !g.info.granules)
			continue;
		private_show(&g, gpa);
		guest_first_exit(&g, guest_load, PRIVATE_AT);
		/* A reserved bit of a page table is a page fault of the guest. */
		ok(g.run->exit_reason == DUNE_EXIT_HOSTCALL ? g.run->regs.rax != GUEST_CALL_DONE :
		   no_memory_at(&g, gpa),
		   "the guest reads nothing at guest-physical 2^%lu + 100 GB", bits[i]);
	}
	private_show(&g, first);
}

/* Memory of the process whose address is the same number, if a process has that address. */
static void same_number(void)
{
	volatile u64 *p = mmap((void *)first, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if ((u64)p != first) {
		skip("no process has that address here", "memory at the same number");
		return;
	}
	guest_call(&g, keep_secrets, (void *)PRIVATE_AT);
	*p = 77;
	/* The next entry flushes, and reads the process's top level again. */
	mprotect((void *)p, 4096, PROT_READ);
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	ok(g.value == SECRETS && *p == 77,
	   "the process's memory at an address of the same number is another one");
	munmap((void *)p, 4096);
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	is(g.value, SECRETS, "nothing has changed when that memory is unmapped");
}

static void refused(void)
{
	static const u32 sizes[] = { 0, 8, 23, 25, 4096 };
	struct dune_private p = { .size = sizeof(p), .pages = 1 };
	struct dune_private *edge;
	u64 before, after;

	is(private_add(&g, 1, &before), 0, "a page is added");
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		p.size = sizes[i];
		is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL, "size %u: EINVAL", sizes[i]);
	}
	p.size = sizeof(p);
	p.flags = 1;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL, "a flag: EINVAL");
	p.flags = 0;
	is(call(g.dev, DUNE_ADD_PRIVATE, &p), -ENOTTY, "on the device: ENOTTY");
	p.pages = 0;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -EINVAL, "no page: EINVAL");
	p.pages = g.info.private_pages;
	is(call(g.fd, DUNE_ADD_PRIVATE, &p), -ENOSPC, "more pages than are left: ENOSPC");
	for (int bit = 32; bit < 64; bit += 5) {
		p.pages = 1UL << bit;
		is(call(g.fd, DUNE_ADD_PRIVATE, &p), -ENOSPC, "2^%d pages: ENOSPC", bit);
	}
	is(call(g.fd, DUNE_ADD_PRIVATE, NULL), -EFAULT, "at 0: EFAULT");
	edge = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*edge = (struct dune_private){ .size = sizeof(p), .pages = 1 };
	mprotect(edge, 4096, PROT_READ);
	is(call(g.fd, DUNE_ADD_PRIVATE, edge), -EFAULT, "in read-only memory: EFAULT");
	munmap(edge, 4096);
	is(private_add(&g, 1, &after), 0, "a page is added after all that");
	ok(after == before + 4096, "what was refused has added nothing");
}

/* ---- the kernel ---- */

/* The calling process's kernel accesses @address, in every way; 1 for each that works. */
static int reached(pid_t pid, u64 address)
{
	char path[40], data[8] = "";
	struct iovec here = { data, 8 }, there = { (void *)address, 8 };
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);

	int mem = open(path, O_RDWR);

	lseek(mem, address, SEEK_SET);
	if (read(mem, data, 8) != -1 || errno != EIO)
		n |= 1;
	lseek(mem, address, SEEK_SET);
	if (write(mem, data, 8) != -1 || errno != EIO)
		n |= 2;
	close(mem);
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != -1 || errno != EFAULT)
		n |= 4;
	if (process_vm_writev(pid, &here, 1, &there, 1, 0) != -1 || errno != EFAULT)
		n |= 8;
	if (mem < 0)
		n |= 16;
	return n;
}

static void by_system_calls(void)
{
	const u64 at[] = { PRIVATE_AT, first };
	struct transfer t;
	int ends[2];

	if (pipe(ends) || write(ends[1], "12345678", 8) != 8)
		bail("pipe: %m");
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "guest-physical" : "linear";

		t = (struct transfer){ SYS_write, ends[1], at[i] };
		guest_call(&g, transfer, &t);
		is(g.value, -EFAULT, "write(2) from the %s address: EFAULT", name);
		t = (struct transfer){ SYS_read, ends[0], at[i] };
		guest_call(&g, transfer, &t);
		is(g.value, -EFAULT, "read(2) to the %s address: EFAULT", name);
		is(reached(getpid(), at[i]), 0,
		   "/proc/self/mem: EIO, process_vm_*: EFAULT at the %s address", name);
	}
	close(ends[0]);
	close(ends[1]);
}

struct place {
	volatile u64 gpa;
	volatile int kept;
};

/* A child with private memory of its own, which waits to be looked at. */
static void owner(void *arg)
{
	struct place *place = arg;
	struct guest h;
	u64 gpa;

	guest_open(&h);
	if (private_add(&h, PAGES, &gpa))
		child_fails("no pages are added");
	private_show(&h, gpa);
	if (guest_call(&h, keep_secrets, (void *)PRIVATE_AT) != GUEST_DONE)
		child_fails("the guest does not write its secrets");
	place->gpa = gpa;
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	if (guest_call(&h, count_secrets, (void *)PRIVATE_AT) != GUEST_DONE)
		child_fails("the guest does not read its secrets");
	if (h.value != SECRETS)
		child_fails("%ld of %d secrets are left", (long)h.value, SECRETS);
	_exit(0);
}

static void by_a_tracer(void)
{
	struct place *place = shared_alloc(sizeof(*place));
	int status, pid = fork();

	if (!pid)
		owner(place);
	waitpid(pid, &status, 0);
	ok(WIFSTOPPED(status), "a traced child has private memory");
	for (int i = 0; i < 2; i++) {
		u64 at = i ? place->gpa : PRIVATE_AT;
		const char *name = i ? "guest-physical" : "linear";

		errno = 0;
		ptrace(PTRACE_PEEKDATA, pid, (void *)at, 0);
		is(errno, EIO, "PTRACE_PEEKDATA at the %s address: EIO", name);
		errno = 0;
		ptrace(PTRACE_POKEDATA, pid, (void *)at, 0);
		is(errno, EIO, "PTRACE_POKEDATA at the %s address: EIO", name);
		is(reached(pid, at), 0,
		   "/proc/PID/mem: EIO, process_vm_*: EFAULT at the %s address", name);
	}
	ptrace(PTRACE_CONT, pid, 0, 0);

	struct outcome o = wait_child(pid, 20);

	ok(!o.code && !o.signal, "the child's secrets are unchanged (%s)", outcome_text(o));
}

static long maps(char *text, unsigned long size)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	long n = 0, more;

	while ((more = read(fd, text + n, size - n)) > 0)
		n += more;
	close(fd);
	return n;
}

static void in_maps(void)
{
	static char before[65536], after[65536];
	long n = maps(before, sizeof(before));
	u64 gpa;

	private_add(&g, 4, &gpa);
	ok(n == maps(after, sizeof(after)) && !memcmp(before, after, n),
	   "/proc/self/maps is the same before and after pages are added");
}

/* ---- a core dump ---- */

static u64 *decoy;	/* ordinary memory with the same kind of numbers */

static void dumped(void *arg)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct guest h;
	u64 gpa;

	setrlimit(RLIMIT_CORE, &unlimited);
	guest_open(&h);
	decoy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guest_cover(&h, (u64)decoy);
	if (private_add(&h, 1, &gpa))
		child_fails("no page is added");
	private_show(&h, gpa);
	guest_call(&h, keep_secrets, (void *)PRIVATE_AT);
	seed += 1000;
	guest_call(&h, keep_secrets, decoy);
	seed -= 1000;
	abort();
}

/* Whether the file has two secrets after each other. */
static bool has_secrets(const char *path, u64 from)
{
	static u64 page[512];
	FILE *f = fopen(path, "r");
	bool found = false;

	while (f && fread(page, sizeof(page), 1, f))
		for (int i = 0; i < 511; i++)
			found |= page[i] == secret(from) && page[i + 1] == secret(from + 1);
	if (f)
		fclose(f);
	return found;
}

static void in_a_core_dump(void)
{
	static char pattern[256];
	const char *path = "/tmp/dune-core";
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");

	if (!f || !fgets(pattern, sizeof(pattern), f))
		bail("core_pattern: %m");
	fclose(f);
	unlink(path);
	file_write("/proc/sys/kernel/core_pattern", path);
	file_write("/proc/sys/kernel/core_uses_pid", "0");

	struct outcome o = in_child(dumped, NULL, 60);

	file_write("/proc/sys/kernel/core_pattern", pattern);
	is(o.signal, SIGABRT, "a child with private memory dumps its core");
	ok(has_secrets(path, 1000), "the core has the child's ordinary memory");
	ok(!has_secrets(path, 0), "the core has nothing of its private memory");
	unlink(path);
}

/* ---- others ---- */

static void another_address_space(void)
{
	struct guest h;
	u64 gpa;

	guest_call(&g, keep_secrets, (void *)PRIVATE_AT);
	guest_open(&h);
	private_show(&h, first);
	guest_first_exit(&h, guest_load, PRIVATE_AT);
	ok(no_memory_at(&h, first),
	   "another address space of the process has nothing at the same address");
	is(private_add(&h, 1, &gpa), 0, "the other address space adds a page");
	guest_first_exit(&h, guest_load, PRIVATE_AT + 4096);
	ok(gpa == first && no_memory_at(&h, first + 4096), "it has one page, and no second one");
	guest_call(&h, count_secrets, (void *)PRIVATE_AT);
	is(h.value, 0, "the page has nothing of the first address space");
	guest_call(&h, execute, (void *)PRIVATE_AT);
	guest_close(&h);
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	is(g.value, SECRETS, "the first address space has its own after the other one was closed");
}

static void *second_vcpu(void *arg)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	u64 *result = arg;
	struct guest h;
	u64 gpa;

	result[0] = -private_add(&g, 1, &gpa);
	if (guest_adopt(&h, ioctl(g.dev, DUNE_CREATE_VCPU, &create)))
		return NULL;
	private_show(&h, first);
	guest_call(&h, count_secrets, (void *)PRIVATE_AT);
	result[1] = h.value;
	guest_close(&h);
	return NULL;
}

static void another_thread(void)
{
	u64 result[2] = { 0 };
	pthread_t t;

	pthread_create(&t, NULL, second_vcpu, result);
	pthread_join(t, NULL);
	is(result[0], EPERM, "another thread on this thread's vCPU: EPERM");
	is(result[1], SECRETS, "another vCPU of the address space reads its private memory");
}

/* Two threads, each with a vCPU of one new address space, add pages at the same time. */
#define ADDS	40

static int shared_device;
static u8 added[2 * ADDS];

static void *adder(void *arg)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	struct guest h = { .fd = ioctl(shared_device, DUNE_CREATE_VCPU, &create) };

	for (int i = 0; i < ADDS; i++) {
		u64 gpa;

		if (!private_add(&h, 1, &gpa) && (gpa - first) / 4096 < 2 * ADDS)
			__atomic_add_fetch(&added[(gpa - first) / 4096], 1, __ATOMIC_SEQ_CST);
	}
	close(h.fd);
	return NULL;
}

static void at_the_same_time(void)
{
	int bad = 0;

	for (int round = 0; round < 20; round++) {
		pthread_t t[2];

		shared_device = open("/dev/dune", O_RDWR);
		memset(added, 0, sizeof(added));
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, adder, NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < 2 * ADDS; i++)
			bad += added[i] != 1;
		close(shared_device);
	}
	is(bad, 0, "two threads that add pages at the same time each get their own");
}

static void child(void *arg)
{
	struct dune_renew_vcpu renew = { .size = sizeof(renew), .fd = g.fd };
	struct guest h;
	u64 gpa;

	if (private_add(&g, 1, &gpa) != -EPERM)
		child_fails("a page for the parent's vCPU is not EPERM");
	if (ioctl(g.fd, DUNE_RENEW_VCPU, &renew) || guest_adopt(&h, g.fd))
		child_fails("the child gets no vCPU of its own");
	private_show(&h, first);
	guest_first_exit(&h, guest_load, PRIVATE_AT);
	if (!no_memory_at(&h, first))
		child_fails("the child has memory at the address of the parent's");
	if (private_add(&h, 1, &gpa) || gpa != first)
		child_fails("the child's first page is not added, or has another address");
	if (guest_call(&h, count_secrets, (void *)PRIVATE_AT) != GUEST_DONE || h.value)
		child_fails("the child's page cannot be read, or has the parent's secrets");
}

static void a_child(void)
{
	struct outcome o = in_child(child, NULL, 20);

	ok(!o.code && !o.signal,
	   "a child has nothing of it, and gets its own with a vCPU of its own (%s)",
	   outcome_text(o));
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	is(g.value, SECRETS, "the parent's is unchanged");
}

/* Guest-physical addresses that the processor has; AMD's private memory is at the last bit. */
static bool wide_enough(void)
{
	u32 eax, ebx, ecx, edx, bits;

	if (guest_vmx)
		return true;
	__cpuid(0x80000008, eax, ebx, ecx, edx);
	bits = (eax >> 16 & 0xff) ?: (eax & 0xff);
	__cpuid_count(7, 0, eax, ebx, ecx, edx);
	return bits >= (ecx >> 16 & 1 ? 49 : 48);
}

int main(void)
{
	struct klog log;

	begin(180);
	klog_begin(&log);
	guest_open(&g);
	is(!!g.info.private_pages, wide_enough(),
	   "dune_info has private pages where guest-physical addresses are wide enough");
	if (private_exists(&g)) {
		use();
		nowhere();
		same_number();
		refused();
		by_system_calls();
		by_a_tracer();
		in_maps();
		in_a_core_dump();
		another_address_space();
		another_thread();
		at_the_same_time();
		a_child();
	} else {
		is(private_add(&g, 1, &first), -ENOTTY, "DUNE_ADD_PRIVATE: ENOTTY");
	}
	guest_close(&g);
	klog_end(&log);
	return done();
}

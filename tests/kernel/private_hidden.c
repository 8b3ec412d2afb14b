// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The kernel does not reach a guest's private memory on behalf of any process. Fails when
 * write(2) or read(2) by the guest, /proc/PID/mem, process_vm_readv(2), process_vm_writev(2) or
 * ptrace(2) transfers a word of it, from the linear or from the guest-physical address; when
 * /proc/PID/maps shows it; and when a core dump contains it.
 */
#define _GNU_SOURCE
#include "child.h"
#include "private.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES	8

static struct guest g;
static u64 first;	/* guest-physical address of the first page */

/* ---- system calls ---- */

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

/*
 * How the kernel reads or writes @address of process @pid for this process, or NULL where each way
 * has its own error.
 */
static const char *way_to(pid_t pid, u64 address)
{
	char path[40], data[8] = "";
	struct iovec here = { data, 8 }, there = { (void *)address, 8 };
	const char *way = NULL;
	int mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDWR);
	if (mem < 0)
		bail("%s: %m", path);
	lseek(mem, address, SEEK_SET);
	if (read(mem, data, 8) != -1 || errno != EIO)
		way = "reading /proc/PID/mem";
	lseek(mem, address, SEEK_SET);
	if (write(mem, data, 8) != -1 || errno != EIO)
		way = "writing /proc/PID/mem";
	close(mem);
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != -1 || errno != EFAULT)
		way = "process_vm_readv()";
	if (process_vm_writev(pid, &here, 1, &there, 1, 0) != -1 || errno != EFAULT)
		way = "process_vm_writev()";
	return way;
}

/* One verdict: the kernel does not reach @address of process @pid; @name is the address's kind. */
static void not_reached(pid_t pid, u64 address, const char *name)
{
	const char *way = way_to(pid, address);

	ok(!way, "/proc/PID/mem: EIO, process_vm_*: EFAULT at the %s address (%s)", name,
	   way ? way : "no way");
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
		not_reached(getpid(), at[i], name);
	}
	close(ends[0]);
	close(ends[1]);
}

/* ---- a tracer, and the list of mappings ---- */

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
	int status, pid = checked_fork();

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
		not_reached(pid, at, name);
	}
	ptrace(PTRACE_CONT, pid, 0, 0);

	struct outcome o = wait_child(pid, 20);

	ok(outcome_is(o, 0), "the child's secrets are unchanged (%s)", outcome_text(o));
}

static void in_maps(void)
{
	static char before[65536], after[65536];
	int n = file_read("/proc/self/maps", before, sizeof(before));
	u64 gpa;

	private_add(&g, 4, &gpa);
	ok(n > 0 && n == file_read("/proc/self/maps", after, sizeof(after)) &&
	   !memcmp(before, after, n),
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
	secret_seed += 1000;
	guest_call(&h, keep_secrets, decoy);
	secret_seed -= 1000;
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

int main(void)
{
	if (private_begin(&g, 120)) {
		is(private_add(&g, PAGES, &first), 0, "%d pages are added", PAGES);
		private_show(&g, first);
		by_system_calls();
		by_a_tracer();
		in_maps();
		in_a_core_dump();
	}
	guest_close(&g);
	return private_end();
}

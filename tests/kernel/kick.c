// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A change of memory gets the vCPUs out of the guest also where the kernel
 * interrupts nobody for it: always on Intel, where the second level is a mirror
 * of the page table; on AMD where the kernel flushes TLBs by broadcast. No
 * emulator has that, so the module is loaded with its parameter for it. Fails
 * when a change is not told, or told before it is counted, or reaches vCPUs of
 * other processes; when a process pays for it that need not; when there is no
 * limit to whom to interrupt.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "modules.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING	"/sys/kernel/tracing"

static struct guest g;
static volatile u64 spinning, stop;
static volatile u8 *page;
static int there;	/* the CPU of the guest */

/* No system call and no fault: nothing but an interrupt ends it. */
static u64 spin(void *arg)
{
	u64 sum = 0;

	(void)arg;
	sum += *page;
	spinning = 1;
	while (!stop)
		;
	return sum;
}

static void *runner(void *arg)
{
	pin_to(there);
	guest_open(&g);
	*(enum guest_end *)arg = guest_call(&g, spin, NULL);
	guest_close(&g);
	return NULL;
}

static int trace(const char *file, const char *text)
{
	char path[100];

	snprintf(path, sizeof(path), TRACING "/%s", file);
	return file_write(path, text);
}

/* Kicks in the trace of exactly one CPU. */
static int kicks(void)
{
	char line[1000];
	FILE *f = fopen(TRACING "/trace", "r");
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += !!strstr(line, " dune_kick: cpus=1 ");
	if (f)
		fclose(f);
	return n;
}

static volatile u8 *map_page(void)
{
	volatile u8 *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap");
	*p = 1;
	return p;
}

/* Its loader maps and unmaps. A fork() would change our own memory as well. */
static int other_process(void)
{
	int status = -1, pid = vfork();

	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

/*
 * Kicks after which the guest could go on without a flush: whose count is that of the
 * kick before, or an entry after which has a smaller count. The first entry that follows
 * may have been on its way in when the kick came, but not the second.
 */
static int stale(int *kicked)
{
	u64 kick = 0, tlb_gen;
	int entries = 2, wrong = 0;
	char line[1000];
	FILE *f = fopen(TRACING "/trace", "r");

	while (f && fgets(line, sizeof(line), f)) {
		char *count = strstr(line, " tlb_gen=");

		if (!count)
			continue;
		tlb_gen = strtoul(count + 9, NULL, 0);
		if (strstr(line, " dune_kick: ")) {
			if (!strstr(line, " cpus=1 "))
				continue;
			wrong += tlb_gen == kick;
			kick = tlb_gen;
			entries = 0;
			++*kicked;
		} else if (++entries >= 2) {
			wrong += tlb_gen < kick;
		}
	}
	if (f)
		fclose(f);
	return wrong;
}

/* Each mapping that a child gets a copy of is a change: it cannot be written any more. */
static void forked(void)
{
	int kicked = 0, without = 0;

	/* The order of what two CPUs do matters, and their clocks may differ. */
	trace("trace_clock", "global");
	trace("events/dune/dune_entry/enable", "1");
	for (int i = 0; i < 100 && kicked < 20; i++) {
		trace("trace", "\n");
		int pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		without += stale(&kicked);
	}
	trace("events/dune/dune_entry/enable", "0");
	trace("trace_clock", "local");
	ok(kicked >= 20 && !without, "each kick of a fork() has the next entry flush (%d, %d not)", kicked, without);
}

static void told(void)
{
	enum guest_end end = GUEST_ERROR;
	int n, status;
	pthread_t t;

	page = map_page();
	spinning = 0;
	stop = 0;
	pthread_create(&t, NULL, runner, &end);
	while (!spinning)
		sleep_ms(1);
	/*
	 * Names of tasks are learnt at each switch, by code in the scheduler
	 * that is patched for it: QEMU's TCG lets another processor execute it
	 * half changed.
	 */
	trace("options/record-cmd", "0");
	ok(!trace("events/dune/dune_kick/enable", "1"), "the module has a tracepoint for kicks");
	/* khugepaged and compaction may change our own memory meanwhile; not each time. */
	for (int i = 0; i < 5; i++) {
		trace("trace", "\n");
		status = other_process();
		n = kicks();
		if (!n)
			break;
	}
	ok(!n && !status, "another process's munmap() interrupts no guest of ours (%d, %d)", n, status);
	/* Once may be just when the guest is out, for an interrupt of the host's. */
	munmap((void *)page, 4096);
	for (int i = 0; i < 500 && !(n = kicks()); i++) {
		sleep_ms(1);
		munmap((void *)map_page(), 4096);
	}
	ok(n > 0, "our own does (%d)", n);
	forked();
	trace("events/dune/dune_kick/enable", "0");
	stop = 1;
	pthread_join(t, NULL);
	ok(end == GUEST_DONE, "the guest goes on (%s)", guest_end_name(&g, end));
}

/* With a vCPU, on AMD: the kernel's own interrupts are enough here. */
static void untold(void)
{
	char line[1000];
	FILE *f;
	int n = 0;

	if (trace("events/dune/dune_kick/enable", "1")) {
		skip("no tracefs", "a change of memory kicks nobody");
		return;
	}
	trace("trace", "\n");
	munmap((void *)map_page(), 4096);
	f = fopen(TRACING "/trace", "r");
	while (f && fgets(line, sizeof(line), f))
		n += !!strstr(line, " dune_kick: ");
	if (f)
		fclose(f);
	trace("events/dune/dune_kick/enable", "0");
	ok(!n, "without the parameter a change of memory kicks nobody (%d)", n);
}

/* The status is the first thing that is wrong. */
static int limited(void)
{
	struct rlimit files = { 5000, 5000 };
	struct dune_create_vcpu c = { .size = sizeof(c) };
	int dune, fd, n;

	if (setrlimit(RLIMIT_NOFILE, &files))
		return 1;
	dune = open("/dev/dune", O_RDWR | O_CLOEXEC);
	if (dune < 0)
		return 2;
	for (n = 0; n < 4097; n++) {
		int next = ioctl(dune, DUNE_CREATE_VCPU, &c);

		if (next < 0)
			break;
		fd = next;
	}
	if (n != 4096 || errno != ENOSPC)
		return 3;
	/* Of the process, not of the open file. */
	close(dune);
	dune = open("/dev/dune", O_RDWR | O_CLOEXEC);
	if (ioctl(dune, DUNE_CREATE_VCPU, &c) >= 0 || errno != ENOSPC)
		return 4;
	close(fd);
	return ioctl(dune, DUNE_CREATE_VCPU, &c) < 0 ? 5 : 0;
}

static void limit(void)
{
	fflush(stdout);

	int pid = fork();

	if (!pid)
		_exit(limited());
	struct outcome o = wait_child(pid, 120);

	ok(!o.code && !o.signal, "the 4,097th vCPU of a process is ENOSPC (%d, %d)", o.code, o.signal);
}

/* The program that changes memory in every way, in this machine. */
static void coherent(const char *self)
{
	char path[400], command[500];
	char *copy = strdup(self);

	snprintf(path, sizeof(path), "%s/coherence.t", dirname(copy));
	snprintf(command, sizeof(command), "%s | grep '^not ok' | sed 's/^/# /'; exit ${PIPESTATUS[0]}", path);
	fflush(stdout);

	int pid = fork();

	if (!pid) {
		execlp("bash", "bash", "-c", command, NULL);
		_exit(127);
	}
	struct outcome o = wait_child(pid, 300);

	ok(!o.code, "coherence.t passes so (%d, %d)", o.code, o.signal);
	free(copy);
}

int main(int argc, char **argv)
{
	int err, here = usable_cpu(0);

	(void)argc;
	begin(400);
	mount("tracefs", TRACING, "tracefs", 0, NULL);
	there = usable_cpu(1);
	pin_to(here);
	if (guest_vcpu(&g))
		bail("no vCPU");
	if (!guest_vmx)
		untold();
	guest_close(&g);
	if (!guest_vmx) {
		err = dune_unload();
		if (!err)
			err = dune_load("notify_flushes=1");
		if (!ok(!err, "the module is loaded with notify_flushes=1 (%d)", err))
			return done();
	}
	limit();
	if (here == there)
		skip("one processor", "a munmap() on one processor, a guest on another");
	else if (access(TRACING "/events/dune", F_OK))
		skip("no tracefs", "a munmap() on one processor, a guest on another");
	else
		told();
	if (!guest_vmx) {
		coherent(argv[0]);
		err = dune_unload();
		if (!err)
			err = dune_load("");
		ok(!err, "and loaded without it again (%d)", err);
	}
	return done();
}

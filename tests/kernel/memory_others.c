// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory that somebody else fills while the guest uses it: another process, through
 * shared memory or /proc/PID/mem; a thread that serves userfaultfd; and the kernel,
 * in the vDSO's data page. Fails when what they write does not reach the guest.
 */
#define _GNU_SOURCE
#include "child.h"
#include "memory.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct guest g;

/* ---- another process ---- */

static u64 until_nine(void *arg)
{
	volatile u64 *p = arg;

	while (*p != 9)
		;
	return *p;
}

static void other_process(void)
{
	u64 *p = shared_alloc(4096);
	int pid;

	pid = checked_fork();
	if (!pid) {
		sleep_ms(30);
		p[0] = 9;
		_exit(0);
	}
	enum guest_end end = guest_call(&g, until_nine, p);

	ok(end == GUEST_DONE && g.value == 9, "shared memory: another process's write arrives (%s)",
	   guest_end_name(&g, end));
	wait_child(pid, 20);

	volatile u64 *own = new_memory(4096);
	int self = getpid();

	pid = checked_fork();
	if (!pid) {
		char path[40];
		u64 nine = 9;

		sleep_ms(30);
		snprintf(path, sizeof(path), "/proc/%d/mem", self);
		int fd = open(path, O_RDWR);

		_exit(pwrite(fd, &nine, 8, (off_t)own) == 8 ? 0 : 1);
	}
	end = guest_call(&g, until_nine, (void *)own);
	ok(end == GUEST_DONE && g.value == 9,
	   "private memory: a write through /proc/PID/mem arrives (%s)",
	   guest_end_name(&g, end));
	wait_child(pid, 20);
}

/* ---- userfaultfd ---- */

#define SERVED	32UL	/* pages */

static int uffd = -1;

static void *serve_faults(void *arg)
{
	struct uffd_msg m;
	u64 *page = new_memory(4096);

	while (read(uffd, &m, sizeof(m)) == sizeof(m)) {
		if (m.event != UFFD_EVENT_PAGEFAULT)
			continue;
		page[0] = m.arg.pagefault.address >> 12;
		struct uffdio_copy c = { .dst = m.arg.pagefault.address & -4096UL, .src = (u64)page,
					 .len = 4096 };

		ioctl(uffd, UFFDIO_COPY, &c);
	}
	return NULL;
}

/* How many pages do not hold their own number. */
static u64 check_numbers(void *arg)
{
	u64 bad = 0;

	for (u64 i = 0; i < SERVED; i++)
		bad += *(volatile u64 *)((u64)arg + i * 4096) != ((u64)arg + i * 4096) >> 12;
	return bad;
}

static void userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	u8 *p = new_memory(SERVED * 4096);
	struct uffdio_register reg = { .range = { (u64)p, SERVED * 4096 },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t t;
	u64 v = 99;

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg)) {
		skip("no userfaultfd", "pages that a thread gives by userfaultfd");
		return;
	}
	pthread_create(&t, NULL, serve_faults, NULL);
	ok(access_by(&g, check_numbers, p, &v) == 0 && v == 0,
	   "userfaultfd: pages given by another thread (%lu)", v);
	madvise(p, SERVED * 4096, MADV_DONTNEED);
	ok(access_by(&g, check_numbers, p, &v) == 0 && v == 0,
	   "userfaultfd: pages that were dropped are given again (%lu)", v);
}

/* ---- the kernel: the process's vDSO and its data page are mappings like others ---- */

/* Returns 0, or what is wrong (const char *). */
static u64 clock_in_guest(void *arg)
{
	struct timespec ts[2];

	for (int i = 0; i < 100; i++) {
		if (clock_gettime(CLOCK_MONOTONIC, &ts[0]) ||
		    clock_gettime(CLOCK_MONOTONIC, &ts[1]))
			return (u64)"clock_gettime() fails";
		if (ts[1].tv_sec < ts[0].tv_sec)
			return (u64)"the clock goes back";
	}
	return 0;
}

static void vdso(void)
{
	enum guest_end end = guest_call(&g, clock_in_guest, NULL);

	ok(end == GUEST_DONE && g.value == 0, "the vDSO works in the guest (%s)",
	   guest_end_name(&g, end));
	if (end == GUEST_DONE && g.value)
		diag("%s", (const char *)g.value);
}

int main(void)
{
	memory_begin(&g, 60);
	userfault();
	other_process();
	vdso();
	return memory_end();
}

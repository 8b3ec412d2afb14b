// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest sees the process's memory as it is, while other threads and
 * processes change the mappings. Each case changes mappings under a guest that
 * reads or writes all the time, and looks for values that the memory no longer
 * has. Fails when the guest's translations outlive the kernel's.
 * (An emulator that flushes at each entry hides some of that: DUNE_RUN is
 * kept long on purpose, the guest leaves only for interrupts.)
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

#define ROUNDS	(env_number("COHERENCE_ROUNDS", 150))

static struct guest g;
static volatile u64 *area;	/* one page, unless a case needs more */
static volatile int stop, entered;
static volatile u64 expected;	/* what the guest must read from now on */
static volatile u64 stale, reads;

static void *map(unsigned long size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	return p;
}

/*
 * The changer makes the page hold n + 1 and then sets @expected. A
 * guest that reads @expected first, the page after, must find at least it.
 */
static u64 reader(void *arg)
{
	entered = 1;
	while (!stop) {
		u64 least = __atomic_load_n(&expected, __ATOMIC_SEQ_CST);
		u64 value = __atomic_load_n(area, __ATOMIC_SEQ_CST);

		/* 0: between two mappings, where the case allows for that. */
		if (value && value < least)
			stale++;
		reads++;
	}
	return 0;
}

typedef void (*change_fn)(u64 n);

static void *changer(void *arg)
{
	change_fn fn = arg;
	long rounds = ROUNDS;

	while (!entered)
		;
	for (long n = 2; n < 2 + rounds; n++) {
		fn(n);
		__atomic_store_n(&expected, n, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	stop = 1;
	return NULL;
}

static void under_change(const char *name, change_fn fn)
{
	pthread_t t;

	stop = 0;
	entered = 0;
	stale = 0;
	reads = 0;
	expected = 1;
	area[0] = 1;
	pthread_create(&t, NULL, changer, fn);
	enum guest_end end = guest_call(&g, reader, NULL);

	stop = 1;
	pthread_join(t, NULL);
	ok(end == GUEST_DONE && !stale && reads, "%s: no stale data in %lu reads (%s, %lu stale)",
	   name, reads,
	   guest_end_name(&g, end), stale);
}

/* A page elsewhere takes the place of the area's. */
static void by_mremap(u64 n)
{
	u64 *p = map(4096, PROT_READ | PROT_WRITE);

	*p = n;
	if (mremap(p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)area) != area)
		bail("mremap: %s", strerror(errno));
}

static int file;

static void by_mmap_file(u64 n)
{
	if (pwrite(file, &n, 8, n % 64 * 4096) != 8 ||
	    mmap((void *)area, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		 n % 64 * 4096) != area)
		bail("mmap of a file: %s", strerror(errno));
}

/* A write through the file, not through the mapping. */
static void by_pwrite(u64 n)
{
	if (pwrite(file, &n, 8, 0) != 8)
		bail("pwrite");
}

/* The kernel drops the page; the next is zero, then gets the number. */
static void by_dontneed(u64 n)
{
	madvise((void *)area, 4096, MADV_DONTNEED);
	area[0] = n;
}

static void by_protect(u64 n)
{
	mprotect((void *)area, 4096, PROT_READ);
	mprotect((void *)area, 4096, PROT_READ | PROT_WRITE);
	area[0] = n;
}

/*
 * fork makes the page copy-on-write: the child's writes are its own, the parent's
 * end the sharing.
 */
static void by_fork(u64 n)
{
	int pid;

	if (n % 10) {
		area[0] = n;
		return;
	}
	pid = fork();
	if (!pid) {
		area[0] = 1;
		_exit(0);
	}
	area[0] = n;
	waitpid(pid, NULL, 0);
}

static void by_remap_anonymous(u64 n)
{
	if (mmap((void *)area, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) != area)
		bail("mmap: %s", strerror(errno));
	area[0] = n;
}

/* ---- writes of the guest after its page was taken away ---- */

static u64 writer(void *arg)
{
	u64 n = 0;

	entered = 1;
	while (!stop)
		__atomic_store_n(&area[8], ++n, __ATOMIC_SEQ_CST);
	return n;
}

static u64 *alias;
static bool replaces;
static long lost;

static void *take_away(void *arg)
{
	long rounds = ROUNDS;

	while (!entered)
		;
	for (long n = 0; n < rounds; n++) {
		if (replaces)
			mmap((void *)area, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		else
			mprotect((void *)area, 4096, PROT_NONE);
		u64 then = __atomic_load_n(&alias[8], __ATOMIC_SEQ_CST);

		for (volatile int k = 0; k < 5000; k++)
			;
		lost += __atomic_load_n(&alias[8], __ATOMIC_SEQ_CST) != then;
		mmap((void *)area, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
		for (volatile int k = 0; k < 2000; k++)
			;
	}
	stop = 1;
	return NULL;
}

static void write_on(void *arg)
{
	struct guest own;
	pthread_t t;

	replaces = arg;
	area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	guest_open(&own);
	stop = 0;
	entered = 0;
	pthread_create(&t, NULL, take_away, NULL);
	guest_prepare(&own, 0, writer, NULL);
	while (!stop) {
		int err = guest_run(&own);

		/*
		 * A host half that accessed a PROT_NONE page would get SIGSEGV: run
		 * again instead.
		 */
		if (err == -EINTR || (!err && (own.run->exit_reason == DUNE_EXIT_INTR ||
					       own.run->exit_reason == DUNE_EXIT_FAULT)))
			continue;
		break;
	}
	pthread_join(t, NULL);
	_exit(lost ? 1 : 0);
}

/*
 * Once mprotect() or mmap() has returned, no write of the guest may reach
 * the page that was taken away, which another mapping still shows.
 */
static void writes_after_unmap(void)
{
	alias = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	for (long i = 0; i < 2; i++) {
		struct outcome o = in_child(write_on, (void *)i, 60);

		ok(o.code == 0, "%s: no write reaches a page taken away (%s)",
		   i ? "mmap over it" : "mprotect", outcome_text(o));
	}
	munmap(alias, 4096);
}

/* ---- single cases ---- */

static u64 store(void *arg)
{
	*(volatile u64 *)arg = 0x5a5a;
	return 0;
}

static sigjmp_buf env;

static void caught(int sig)
{
	siglongjmp(env, sig);
}

/* A guest access that must end as signal @want of the host half, or 0: as a value. */
static int access_by(u64 (*fn)(void *arg), volatile void *p, u64 *value)
{
	struct sigaction sa = { .sa_handler = caught, .sa_flags = SA_NODEFER };
	int sig;

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sig = sigsetjmp(env, 1);
	if (!sig) {
		if (guest_call(&g, fn, (void *)p) != GUEST_DONE)
			sig = -1;
		else if (value)
			*value = g.value;
	}
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	return sig;
}

static void rights(void)
{
	u64 *p = map(8192, PROT_READ | PROT_WRITE), v;

	p[0] = 77;
	ok(access_by(guest_load, p, &v) == 0 && v == 77,
	   "the guest reads a page that the process wrote");
	ok(access_by(store, p, NULL) == 0 && p[0] == 0x5a5a,
	   "the process sees what the guest writes to a page");
	mprotect(p, 4096, PROT_READ);
	ok(access_by(guest_load, p, &v) == 0 && v == 0x5a5a, "the guest reads a read-only page");
	ok(access_by(store, p, NULL) == SIGSEGV, "a write to a read-only page is SIGSEGV");
	mprotect(p, 4096, PROT_NONE);
	ok(access_by(guest_load, p, NULL) == SIGSEGV, "a read of a PROT_NONE page is SIGSEGV");
	mprotect(p, 4096, PROT_READ | PROT_WRITE);
	ok(access_by(store, p, NULL) == 0, "the guest writes a page that is writable again");
	munmap(p, 8192);
	ok(access_by(guest_load, p, NULL) == SIGSEGV, "a read of an unmapped page is SIGSEGV");

	/* The zero page first, then a page of its own: the guest must not keep the zero page. */
	p = map(4096, PROT_READ | PROT_WRITE);
	ok(access_by(guest_load, p, &v) == 0 && v == 0,
	   "a page that was never written reads as zero");
	p[0] = 3;
	ok(access_by(guest_load, p, &v) == 0 && v == 3,
	   "the guest sees what the process writes after the guest read the zero page");
	ok(access_by(store, p, NULL) == 0 && p[0] == 0x5a5a,
	   "the process sees what the guest writes after the guest read the zero page");
	munmap(p, 4096);
}

static void truncated(void)
{
	int fd = memfd_create("truncated", 0);
	u64 *p, v;

	if (ftruncate(fd, 8192))
		bail("ftruncate");
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[512] = 9;
	ok(access_by(guest_load, p + 512, &v) == 0 && v == 9, "the guest reads a page of a file");
	if (ftruncate(fd, 4096))
		bail("ftruncate");
	ok(access_by(guest_load, p + 512, NULL) == SIGBUS,
	   "a read of a page that was cut off a file is SIGBUS");
	if (ftruncate(fd, 8192))
		bail("ftruncate");
	ok(access_by(guest_load, p + 512, &v) == 0 && v == 0,
	   "a page that a file regained reads as zero");
	munmap(p, 8192);
	close(fd);
}

static void forked(void)
{
	volatile u64 *p = map(4096, PROT_READ | PROT_WRITE);
	int to[2], from[2], pid;
	char c;

	p[0] = 1;
	access_by(guest_load, p, NULL);
	if (pipe(to) || pipe(from))
		bail("pipe");
	pid = fork();
	if (!pid) {
		(void)!read(to[0], &c, 1);
		_exit(p[0] == 1 ? 0 : 1);
	}
	ok(access_by(store, p, NULL) == 0, "the guest writes to a page after fork");
	(void)!write(to[1], "x", 1);
	struct outcome o = wait_child(pid, 20);

	ok(o.code == 0, "the child does not see the guest's write after fork (%s)",
	   outcome_text(o));

	p[0] = 5;
	pid = fork();
	if (!pid) {
		p[0] = 6;
		_exit(0);
	}
	wait_child(pid, 20);
	u64 v = 0;

	ok(access_by(guest_load, p, &v) == 0 && v == 5,
	   "the guest does not see the child's write after fork");
}

static u64 sum(void *arg)
{
	volatile u64 *p = arg;
	u64 s = 0;

	for (int i = 0; i < 512; i++)
		s += p[i * 512];
	return s;
}

static void huge(void)
{
	u8 *raw = map(4UL << 20, PROT_READ | PROT_WRITE);
	u64 *p = (u64 *)(((u64)raw + (2 << 20) - 1) & ~((2UL << 20) - 1));
	u64 v;

	madvise(p, 2 << 20, MADV_HUGEPAGE);
	for (int i = 0; i < 512; i++)
		p[i * 512] = i;
	long huge_kb = file_key("/proc/self/smaps_rollup", "AnonHugePages");

	if (huge_kb <= 0)
		diag("no huge page was given");
	ok(access_by(sum, p, &v) == 0 && v == 511 * 512 / 2, "a huge page (%ld KB) is read",
	   huge_kb);
	mprotect(p + 512 * 5, 4096, PROT_READ);
	ok(access_by(sum, p, &v) == 0 && v == 511 * 512 / 2,
	   "a huge page that mprotect split reads the same");
	ok(access_by(store, p + 512 * 5, NULL) == SIGSEGV,
	   "the page of a huge page that mprotect made read-only cannot be written");
	ok(access_by(store, p + 512 * 6, NULL) == 0 && p[512 * 6] == 0x5a5a,
	   "the neighbour of that page in the huge page can be written");
	p[512 * 6] = 6;
	madvise(p + 512 * 7, 4096, MADV_DONTNEED);
	ok(access_by(sum, p, &v) == 0 && v == 511 * 512 / 2 - 7,
	   "a huge page of which one page was dropped reads as zero there alone");
	p[512 * 7] = 7;
	mprotect(p, 2 << 20, PROT_READ | PROT_WRITE);
	int err = madvise(p, 2 << 20, MADV_COLLAPSE) ? errno : 0;

	ok(access_by(sum, p, &v) == 0 && v == 511 * 512 / 2,
	   "a huge page that was collapsed again (%s) reads the same",
	   err ? strerror(err) : "done");
	munmap(raw, 4UL << 20);
}

static u8 *collapse_area;

static void by_collapse(u64 n)
{
	area[0] = n;
	if (n % 8 == 0)
		madvise(collapse_area, 2 << 20, MADV_COLLAPSE);
	if (n % 8 == 4) {
		mprotect(collapse_area + 4096, 4096, PROT_READ);
		mprotect(collapse_area + 4096, 4096, PROT_READ | PROT_WRITE);
	}
}

static int uffd = -1;

static void *serve_faults(void *arg)
{
	struct uffd_msg m;
	u64 *page = map(4096, PROT_READ | PROT_WRITE);

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

static u64 check_numbers(void *arg)
{
	u64 bad = 0;

	for (u64 i = 0; i < 32; i++)
		bad += *(volatile u64 *)((u64)arg + i * 4096) != ((u64)arg + i * 4096) >> 12;
	return bad;
}

static void userfault(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	u8 *p = map(32 * 4096, PROT_READ | PROT_WRITE);
	struct uffdio_register reg = { .range = { (u64)p, 32 * 4096 },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t t;
	u64 v = 99;

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg)) {
		skip("no userfaultfd", "userfaultfd");
		return;
	}
	pthread_create(&t, NULL, serve_faults, NULL);
	ok(access_by(check_numbers, p, &v) == 0 && v == 0,
	   "userfaultfd: pages given by another thread (%lu)", v);
	madvise(p, 32 * 4096, MADV_DONTNEED);
	ok(access_by(check_numbers, p, &v) == 0 && v == 0,
	   "userfaultfd: pages that were dropped are given again (%lu)", v);
}

static void same_page(void)
{
	u64 *p = map(16 * 4096, PROT_READ | PROT_WRITE), v;

	if (access("/sys/kernel/mm/ksm/run", W_OK)) {
		skip("no KSM", "KSM");
		return;
	}
	for (int i = 0; i < 16; i++)
		p[i * 512] = 0x1234;
	access_by(guest_load, p, NULL);
	madvise(p, 16 * 4096, MADV_MERGEABLE);
	file_write("/sys/kernel/mm/ksm/sleep_millisecs", "1");
	file_write("/sys/kernel/mm/ksm/pages_to_scan", "2000");
	file_write("/sys/kernel/mm/ksm/run", "1");
	for (int i = 0; i < 2000 && file_number("/sys/kernel/mm/ksm/pages_sharing") < 15; i++)
		sleep_ms(1);
	diag("KSM shares %ld pages", file_number("/sys/kernel/mm/ksm/pages_sharing"));
	ok(access_by(store, p + 512, NULL) == 0 && p[512] == 0x5a5a && p[0] == 0x1234 &&
	   p[1024] == 0x1234,
	   "KSM: a guest's write parts one page from the shared one");
	ok(access_by(guest_load, p + 1024, &v) == 0 && v == 0x1234,
	   "KSM: the guest reads the pages that are still shared");
	file_write("/sys/kernel/mm/ksm/run", "0");
}

/*
 * move_pages() to the same node still unmaps and remaps on machines with one;
 * compaction does too.
 */
static void by_compaction(u64 n)
{
	area[0] = n;
	if (n % 30 == 0)
		file_write("/proc/sys/vm/compact_memory", "1");
}

#define SWAP	"/sys/block/zram0/"

/* Where pages can be written out to; needs swapon of util-linux. */
static bool swap_on(void)
{
	return !system("modprobe -q zram num_devices=1 2>/dev/null") &&
	       !file_write(SWAP "disksize", "16M") &&
	       !system("mknod -m 600 /dev/coherence-swap b $(tr : ' ' <" SWAP "dev) && "
		       "mkswap -q /dev/coherence-swap >/dev/null && swapon /dev/coherence-swap");
}

static void swap_off(void)
{
	(void)!system("swapoff /dev/coherence-swap && rm /dev/coherence-swap && "
		      "echo 1 >" SWAP "reset && rmmod zram");
}

static long swapped_out(void)
{
	char text[8192], *line;
	int fd = open("/proc/vmstat", O_RDONLY);
	int n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	line = strstr(text, "pswpout ");
	return line ? atol(line + 8) : 0;
}

/*
 * A guest that reads all the time, on another CPU, gets the page again before
 * it is written out: the page is only unmapped and mapped.
 */
static void by_swap_advice(u64 n)
{
	area[0] = n;
	madvise((void *)area, 4096, MADV_PAGEOUT);
}

static void swapped(void)
{
	bool swap = swap_on(), same = true;
	u64 *p = map(16 * 4096, PROT_READ | PROT_WRITE), v;

	under_change("MADV_PAGEOUT", by_swap_advice);
	if (!swap) {
		skip("no zram or no swapon", "swap");
		return;
	}
	access_by(store, p, NULL);
	for (u64 i = 1; i < 16; i++)
		p[i * 512] = i;
	access_by(guest_load, p + 512, NULL);

	/*
	 * A page that was used lately stays. This advice clears the process's
	 * accessed bits, not those of EPT; reclaim finds those and clears
	 * them, and the page is kept until the next round. On a processor
	 * without these bits each mapped page counts as used, once.
	 * Compaction empties the CPUs' lists of pages on their way to the
	 * LRU, which would stay as well.
	 */
	long out = -swapped_out();
	int rounds = 0;

	while (out + swapped_out() < 16 && rounds < 8) {
		file_write("/proc/sys/vm/compact_memory", "1");
		madvise(p, 16 * 4096, MADV_PAGEOUT);
		rounds++;
	}
	out += swapped_out();
	ok(out >= 16, "pages are swapped out (%ld, in %d rounds)", out, rounds);
	for (u64 i = 0; i < 16; i++)
		same &= access_by(guest_load, p + i * 512, &v) == 0 && v == (i ? i : 0x5a5a);
	ok(same, "the guest reads the pages that were swapped out");
	munmap(p, 16 * 4096);
	swap_off();
}

/* The process's vDSO and its data page are mappings like others. */
static u64 clock_in_guest(void *arg)
{
	struct timespec ts[2];

	for (int i = 0; i < 100; i++) {
		if (clock_gettime(CLOCK_MONOTONIC, &ts[0]) ||
		    clock_gettime(CLOCK_MONOTONIC, &ts[1]))
			return 1;
		if (ts[1].tv_sec < ts[0].tv_sec)
			return 2;
	}
	return 0;
}

static u64 until_nine(void *arg)
{
	volatile u64 *p = arg;

	entered = 1;
	while (*p != 9)
		;
	return *p;
}

/* Another process writes this process's memory. */
static void outside(void)
{
	u64 *p = shared_alloc(4096);
	int pid;

	pid = fork();
	if (!pid) {
		sleep_ms(30);
		p[0] = 9;
		_exit(0);
	}
	enum guest_end end = guest_call(&g, until_nine, p);

	ok(end == GUEST_DONE && g.value == 9, "shared memory: another process's write arrives (%s)",
	   guest_end_name(&g, end));
	wait_child(pid, 20);

	volatile u64 *own = map(4096, PROT_READ | PROT_WRITE);
	int self = getpid();

	pid = fork();
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

int main(void)
{
	struct klog log;

	begin(200);
	klog_begin(&log);
	guest_open(&g);
	file = memfd_create("coherence", 0);
	if (ftruncate(file, 64 * 4096))
		bail("ftruncate");
	rights();
	truncated();
	forked();
	huge();
	userfault();
	same_page();
	outside();
	enum guest_end end = guest_call(&g, clock_in_guest, NULL);

	ok(end == GUEST_DONE && g.value == 0, "the vDSO works in the guest (%s)",
	   guest_end_name(&g, end));

	area = map(4096, PROT_READ | PROT_WRITE);
	under_change("mremap over the page", by_mremap);
	under_change("mmap over the page", by_remap_anonymous);
	under_change("mmap of other pages of a file", by_mmap_file);
	area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	under_change("write() to a mapped file", by_pwrite);
	area = map(4096, PROT_READ | PROT_WRITE);
	under_change("MADV_DONTNEED", by_dontneed);
	under_change("mprotect back and forth", by_protect);
	under_change("fork with copy on write", by_fork);
	under_change("compaction", by_compaction);
	swapped();
	collapse_area = map(4UL << 20, PROT_READ | PROT_WRITE);
	collapse_area = (u8 *)(((u64)collapse_area + (2 << 20) - 1) & ~((2UL << 20) - 1));
	madvise(collapse_area, 2 << 20, MADV_HUGEPAGE);
	memset(collapse_area, 0, 2 << 20);
	area = (u64 *)(collapse_area + 64 * 4096);
	under_change("huge page split and collapsed", by_collapse);
	writes_after_unmap();
	klog_end(&log);
	return done();
}

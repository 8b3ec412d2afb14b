// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Children of a vCPU without a host half (DUNE_MAKE_CHILD, DUNE_MAKE_SHARED_CHILD). Fails when a
 * child by fork has not a copy of its parent's private memory, registers and state, or shares a
 * page with it that is not sealed; when a child has a granule that its parent got later; when a
 * guest writes a sealed page; when a child by vfork has other private memory than its parent; when
 * a child gets a descriptor that it should not have, or needs one; when another process than the
 * child for which it was made enters an unborn vCPU; and when a signal that comes while a child
 * begins ends it.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "cpu.h"
#include "klog.h"
#include "private.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES	8

/* What guests leave for the parent. */
static volatile struct shared {
	int pid, vcpu;
	u64 count, bad;
	u64 result[64];
	struct dune_regs regs;
	bool go, stop;
} *shared;

static char *pages;	/* private pages, where the guest has them */

static struct outcome outcome_of(u64 (*fn)(void *arg), void *arg)
{
	memset((void *)shared, 0, sizeof(*shared));
	return alone_in_child(fn, arg, 60);
}

/* One verdict: fn(arg) in a guest without a host half returns 0. */
static void run_guest(const char *name, u64 (*fn)(void *arg), void *arg)
{
	struct outcome o = outcome_of(fn, arg);

	ok(!o.code, "%s (%s; %#lx, %#lx, %#lx, %#lx)", name, outcome_text(o), shared->result[0],
	   shared->result[1], shared->result[2], shared->result[3]);
}

/* ---- a copy */

static u64 copy(void *arg)
{
	long pid, status;

	pages = child_private_add(PAGES, NULL);
	if (!pages)
		return 1;
	keep_secrets(pages);
	pages[4096] = 1;
	alone_run->counters[15] = 77;
	pid = child_fork(SIGCHLD);
	if (!pid) {
		u64 same = count_secrets(pages);

		pages[0] ^= 1;
		pages[4096] = 2;
		/* A new run page, at the same place. */
		child_exit(same != SECRETS || alone_run->counters[15] ? 2 : 0);
	}
	if (pid < 0)
		return shared->result[0] = pid, 3;
	status = child_wait(pid);
	shared->result[0] = status;
	shared->result[1] = count_secrets(pages);
	if (status || count_secrets(pages) != SECRETS || pages[4096] != 1 ||
	    alone_run->counters[15] != 77)
		return 4;
	/* What the parent writes after its fork is not the child's. */
	shared->go = false;
	pid = child_fork(SIGCHLD);
	if (!pid) {
		while (!shared->go)
			hypercall0(SYS_sched_yield);
		child_exit(count_secrets(pages) != SECRETS);
	}
	pages[0] ^= 1;
	shared->go = true;
	return child_wait(pid) ? 5 : 0;
}

/* Registers that no call changes, control registers, and the registers of segments. */
static u64 registers(void *arg)
{
	u64 cr3, gs, fs, before[3];
	u16 tr_before, tr_after;
	long pid;

	asm volatile("mov %%cr3, %0" : "=r"(before[0]));
	asm volatile("rdgsbase %0\n rdfsbase %1" : "=r"(before[1]), "=r"(before[2]));
	asm volatile("str %0" : "=r"(tr_before));
	asm volatile("wrgsbase %0" : : "r"(0x123456789UL));
	pid = child_fork(SIGCHLD);
	asm volatile("mov %%cr3, %0" : "=r"(cr3));
	asm volatile("rdgsbase %0\n rdfsbase %1" : "=r"(gs), "=r"(fs));
	asm volatile("str %0" : "=r"(tr_after));
	if (!pid)
		child_exit(cr3 != before[0] || gs != 0x123456789 || fs != before[2] ||
			   tr_before != tr_after);
	return child_wait(pid);
}

/* The child's child, and so on: each has what its parent had. */
static u64 generations(void *arg)
{
	pages = child_private_add(PAGES, NULL);
	for (u64 n = 0; n < (u64)arg; n++) {
		long pid;

		((volatile u64 *)pages)[n] = n * n;
		pid = child_fork(SIGCHLD);
		if (pid < 0)
			return 100;
		if (pid) {
			long status = child_wait(pid);

			return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
		}
		for (u64 i = 0; i <= n; i++)
			if (((volatile u64 *)pages)[i] != i * i)
				child_exit(102);
	}
	return 0;
}

/* ---- granules */

#define FAR	0x300000000000UL	/* nothing is here */

static long map_granule(u64 guest, u64 address)
{
	static struct dune_granule granule;

	granule = (struct dune_granule) {
		.size = sizeof(granule), .guest = guest, .address = address,
	};
	return privileged(SYS_ioctl, alone_guest.fd, DUNE_MAP_GRANULE, (long)&granule, 0);
}

/* Lets no child run before its parent, the caller, waits. */
static long run_before_child(long cpu)
{
	static const struct sched_param first = { .sched_priority = 1 };
	static u64 cpus[16];

	cpus[cpu / 64] = 1UL << cpu % 64;
	if (hypercall3(SYS_sched_setaffinity, 0, sizeof(cpus), (long)cpus) < 0)
		return -1;
	return hypercall3(SYS_sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK,
			  (long)&first);
}

/* A child has its parent's granules, but for one that is mapped before the child has entered. */
static u64 later_granule(void *arg)
{
	u64 last = (alone_guest.info.granules - 1) * DUNE_GRANULE_SIZE;
	u64 before = last - DUNE_GRANULE_SIZE;
	long pid;

	if (!alone_guest.info.granules)
		return CHILD_SKIPS;
	if (map_granule(before, FAR) || run_before_child((long)arg))
		return 1;
	pid = child_fork(SIGCHLD);
	if (!pid) {
		if (map_granule(before, FAR + 2 * DUNE_GRANULE_SIZE) != -EEXIST)
			child_exit(2);
		child_exit(map_granule(last, FAR + 3 * DUNE_GRANULE_SIZE) ? 3 : 0);
	}
	shared->result[0] = map_granule(last, FAR + DUNE_GRANULE_SIZE);
	shared->result[1] = child_wait(pid);
	return shared->result[0] || shared->result[1];
}

static void granules(void)
{
	struct outcome o = outcome_of(later_granule, (void *)(long)usable_cpu(0));

	if (o.code == CHILD_SKIPS)
		skip("this processor needs no granules", "a child's granules");
	else
		ok(!o.code, "a child has the granules of the time when its vCPU was made "
		   "(%s; parent's %ld, child's status %#lx)", outcome_text(o),
		   (long)shared->result[0], shared->result[1]);
}

/* ---- sealed pages */

static volatile u64 faults, fault_error;
extern const char after_store[];

static void note_fault(struct guest_frame *frame, u64 cr2)
{
	faults++;
	fault_error = frame->error;
	frame->rip = (u64)after_store;
}

static __attribute__((noinline, noclone)) void store_byte(char *to)
{
	asm volatile("movb $1, (%0)\n"
		     ".globl after_store\n"
		     "after_store:\n" : : "r"(to) : "memory");
}

static bool store_faults(char *to)
{
	u64 before = faults;

	store_byte(to);
	return faults == before + 1 && fault_error == (DUNE_PF_NESTED | 3);
}

static u64 sealed(void *arg)
{
	static const u8 text[] = { 0xb8, 0x2a, 0, 0, 0, 0xc3 };	/* mov $42, %eax; ret */
	static char contents[3 * 4096] __attribute__((aligned(4096)));
	char *unaligned = contents + 5, *after;
	long pid;

	alone_on_fault = note_fault;
	memcpy(unaligned, text, sizeof(text));
	contents[2 * 4096 + 4] = 9;
	pages = child_private_add(2, unaligned);
	after = child_private_add(1, NULL);
	if (!pages || after != pages + 2 * 4096)
		return 1;
	memset(contents, 0, sizeof(contents));
	pid = child_fork(SIGCHLD);
	/* In the parent and in the child. */
	if (memcmp(pages, text, sizeof(text)) || pages[2 * 4096 - 1] != 9 ||
	    ((u64 (*)(void))pages)() != 42 || !store_faults(pages) ||
	    !store_faults(pages + 2 * 4096 - 1) || store_faults(after))
		return child_exit(2), 2;
	if (memcmp(pages, text, sizeof(text)) || pages[2 * 4096 - 1] != 9 || *after != 1)
		return child_exit(3), 3;
	return pid ? child_wait(pid) : 0;
}

static u64 sealed_interface(void *arg)
{
	static struct dune_private p;
	static const struct {
		u32 flags;
		u64 address, pages;
		long wanted;
	} bad[] = {
		{ DUNE_PRIVATE_SEALED, 0, 1, -EINVAL },
		{ 0, 0x10, 1, -EFAULT },
		{ DUNE_PRIVATE_SHOWN, 4096, 1, -EINVAL },
		{ 4, 0, 1, -EINVAL },
		{ DUNE_PRIVATE_SEALED, 0x10, 1, -EFAULT },
		{ DUNE_PRIVATE_SEALED, 1UL << 63, 1, -EFAULT },
		{ DUNE_PRIVATE_SEALED, 0x10, 0, -EINVAL },
		{ DUNE_PRIVATE_SEALED, 0x10, 1UL << 40, -ENOSPC },
	};
	char *first = child_private_add(1, NULL);

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = (struct dune_private) {
			.size = sizeof(p), .flags = bad[i].flags, .pages = bad[i].pages,
			.address = bad[i].address,
		};
		shared->result[0] = privileged(SYS_ioctl, alone_guest.fd, DUNE_ADD_PRIVATE,
					       (long)&p, 0);
		if (shared->result[0] != (u64)bad[i].wanted)
			return 10 + i;
	}
	/* None of them has added anything. */
	return child_private_add(1, NULL) != first + 4096;
}

/* ---- memory that is shared */

#define VFORK	(CLONE_VM | CLONE_VFORK | SIGCHLD)

static u64 in_shared_child(void *arg)
{
	struct dune_run *mine = private_at(child_run);

	if (mine == alone_run || mine->counters[15] || count_secrets(pages) != SECRETS)
		return 1;
	mine->counters[15] = 5;
	pages[4096] = 7;
	shared->result[1] = child_run;
	return (u64)arg;
}

static u64 share(void *arg)
{
	u64 first = 0;

	pages = child_private_add(PAGES, NULL);
	keep_secrets(pages);
	alone_run->counters[15] = 77;
	for (u64 n = 0; n < (u64)arg; n++) {
		long pid, status;

		pages[4096] = 0;
		pid = child_share(VFORK, in_shared_child, (void *)9);
		if (pid < 0)
			return shared->result[0] = pid, 2;
		status = child_wait(pid);
		shared->result[0] = status;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 9 || pages[4096] != 7 ||
		    alone_run->counters[15] != 77)
			return 3;
		first = first ?: shared->result[1];
		/* The kernel may close a dead child's vCPU a little later. */
		if (shared->result[1] > first + 8 * 4096)
			return 4;
	}
	return 0;
}

/* A child of vfork forks, and its child has a copy. */
static u64 fork_in_shared(void *arg)
{
	struct dune_run *mine = private_at(child_run), *run = alone_run;
	long pid;

	alone_run = mine;
	pid = child_fork(SIGCHLD);
	if (!pid) {
		pages[4096]++;
		child_exit(pages[4096] != 1);
	}
	alone_run = run;
	return child_wait(pid) || pages[4096];
}

static u64 share_and_fork(void *arg)
{
	pages = child_private_add(PAGES, NULL);
	return child_wait(child_share(VFORK, fork_in_shared, NULL));
}

/* A thread, while its maker waits: it gets a descriptor of its own. */
static u64 in_thread(void *arg)
{
	shared->result[1] = hypercall0(SYS_getpid);
	shared->result[2] = hypercall0(SYS_gettid);
	for (;;)
		hypercall3(SYS_exit, 0, 0, 0);
	return 0;
}

static u64 thread(void *arg)
{
	long tid = child_share(CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS | CLONE_SIGHAND |
			       CLONE_THREAD, in_thread, NULL);

	shared->result[0] = tid;
	return tid < 0 || shared->result[1] != (u64)hypercall0(SYS_getpid) ||
	       shared->result[2] != (u64)tid;
}

/* ---- descriptors */

/* The descriptors from 0 to 127 that are open, as bits. */
static void open_descriptors(u64 open[2])
{
	open[0] = 0;
	open[1] = 0;
	for (int fd = 0; fd < 128; fd++)
		if (hypercall3(SYS_fcntl, fd, F_GETFD, 0) >= 0)
			open[fd / 64] |= 1UL << fd % 64;
}

static u64 descriptors(void *arg)
{
	static struct rlimit limit = { 0, 0 };
	static u64 before[2], after[2];
	long pid;

	/* No descriptor is free, no path leads to the device, and there is no right to open it. */
	open_descriptors(before);
	if (hypercall(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0, 0, 0) ||
	    hypercall3(SYS_chroot, (long)"/proc/self/fdinfo", 0, 0) ||
	    hypercall3(SYS_setresgid, 65534, 65534, 65534) ||
	    hypercall3(SYS_setresuid, 65534, 65534, 65534))
		return 1;
	pid = child_fork(SIGCHLD);
	open_descriptors(after);
	if (before[0] != after[0] || before[1] != after[1])
		return child_exit(2), 2;
	if (!pid)
		/* The child's own is closed by exec, too. */
		child_exit(hypercall3(SYS_fcntl, alone_guest.fd, F_GETFD, 0) != FD_CLOEXEC);
	return pid < 0 ? 3 : child_wait(pid);
}

/* A table of descriptors that is shared with the parent: the child's vCPU needs a number. */
static u64 shared_table(void *arg)
{
	static u64 before[2], after[2];
	long pid;

	open_descriptors(before);
	pid = child_fork(SIGCHLD | CLONE_FILES);
	if (!pid) {
		open_descriptors(after);
		child_exit(__builtin_popcountl(after[0]) != __builtin_popcountl(before[0]) + 1);
	}
	if (child_wait(pid))
		return 1;
	/* The parent still runs its own. */
	return hypercall0(SYS_getpid) < 0;
}

/* ---- who may not enter */

static u64 no_child_made(void *arg)
{
	/* The child comes back to where the parent is, if it comes. */
	long pid = child_clone(SYS_clone, SIGCHLD);

	return child_signal(pid) != SIGILL;
}

static u64 second_child(void *arg)
{
	long pid = child_fork(SIGCHLD), second;

	if (!pid)
		child_exit(0);
	second = child_clone(SYS_fork, 0);
	return child_wait(pid) || child_signal(second) != SIGILL;
}

static u64 wrong_kind(void *arg)
{
	/* A copy for a child that shares memory, and the other way round. */
	if (child_make(DUNE_MAKE_CHILD, child_exit) ||
	    child_signal(child_clone(SYS_clone, VFORK)) != SIGILL)
		return 1;
	if (child_make(DUNE_MAKE_SHARED_CHILD, child_exit) ||
	    child_signal(child_clone(SYS_clone, SIGCHLD)) != SIGILL)
		return 2;
	return 0;
}

static u64 hostile_rip(void *arg)
{
	static const u64 where[] = { 0, 1UL << 63, 0x800000000000, -1UL };

	for (unsigned int i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		long pid = child_make(DUNE_MAKE_CHILD, (void *)where[i]) ?:
			   child_clone(SYS_clone, SIGCHLD);

		if (pid <= 0 || !child_wait(pid))
			return 1 + i;
	}
	return 0;
}

static u64 be_found(void *arg)
{
	long pid;

	shared->vcpu = alone_guest.fd;
	shared->pid = hypercall0(SYS_getpid);
	if (child_make(DUNE_MAKE_SHARED_CHILD, child_exit))
		return 1;
	while (!shared->go)
		hypercall0(SYS_sched_yield);
	pid = child_make(DUNE_MAKE_CHILD, child_exit) ?: child_fork(SIGCHLD);
	if (!pid)
		child_exit(0);
	return child_wait(pid);
}

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static void enter_stolen(void *arg)
{
	int pidfd = syscall(SYS_pidfd_open, shared->pid, 0);
	int fd = syscall(SYS_pidfd_getfd, pidfd, shared->vcpu, 0);
	struct dune_stub argument;

	if (fd < 0)
		child_fails("pidfd_getfd: %m");
	alone_open();
	if (alone_bind(&argument, 0, ALONE_VECTOR))
		child_fails("no stub");
	/* This descriptor is the vCPU's. Another file has no such request (ENOTTY). */
	if (!ioctl(fd, DUNE_RUN, 0) || errno != EPERM)
		child_fails("DUNE_RUN: %m");
	stub_enter(alone_stub, fd);
}

/* Another process gets the maker's descriptor, and has a stub at the same place. */
static void stolen(void)
{
	struct outcome o, maker;
	int pid;

	memset((void *)shared, 0, sizeof(*shared));
	pid = checked_fork();
	if (!pid)
		alone_start(0, be_found, NULL);
	ok(WAIT_FOR(shared->pid, 20), "a guest has an unborn vCPU");
	o = in_child(enter_stolen, NULL, 20);
	ok(o.signal == SIGILL, "another process with its maker's descriptor does not enter it (%s)",
	   outcome_text(o));
	shared->go = true;
	maker = wait_child(pid, 20);
	ok(!maker.code, "its maker runs, and has children (%s)", outcome_text(maker));
}

/* A child that takes its stub away ends, and its parent does not. */
static u64 unmap_in_child(void *arg)
{
	long pid = child_fork(SIGCHLD);

	if (!pid) {
		hypercall3(SYS_munmap, (long)alone_stub, 4096, 0);
		child_exit(0);
	}
	return child_signal(pid) != SIGKILL || hypercall0(SYS_getpid) < 0;
}

static u64 inherited_rights(void *arg)
{
	long pid = child_fork(SIGCHLD);

	if (!pid)
		child_exit(hypercall3(SYS_mprotect, (long)alone_stub, 4096, 7) != -EACCES ||
			   hypercall3(SYS_rt_sigaction, 100, 0, 0) != -EPERM ||
			   hypercall3(SYS_fork, 0, 0, 0) != -EPERM);
	return child_wait(pid);
}

/* ---- signals */

static u64 fork_under_signals(void *arg)
{
	alone_stack();
	alone_catch(SIGUSR1, SA_RESTART);
	alone_unblock(0);
	shared->pid = hypercall0(SYS_getpid);
	for (int i = 0; i < 150 && !shared->bad; i++) {
		long pid = child_fork(SIGCHLD), status;

		if (!pid) {
			for (int n = 0; n < 20; n++) {
				alone_take();
				hypercall0(SYS_getppid);
				alone_again();
			}
			child_exit(0);
		}
		if (pid < 0) {
			shared->result[1] = pid;
			return 2;
		}
		status = child_wait(pid);
		if (status) {
			shared->result[0] = status;
			shared->bad++;
		}
		shared->count++;
		alone_take();
	}
	return !!shared->bad;
}

static void count_signal(const struct dune_signal *signal)
{
	shared->result[3]++;
	alone_unblock(0);
}

static void signals_in_group(void *arg)
{
	setpgid(0, 0);
	alone_on_signal = count_signal;
	alone_start(0, fork_under_signals, NULL);
}

static void signals(void)
{
	int pid, status = -1;
	u64 sent = 0;

	memset((void *)shared, 0, sizeof(*shared));
	pid = checked_fork();
	if (!pid)
		signals_in_group(NULL);
	if (!WAIT_FOR(shared->pid, 20))
		bail("no guest");
	while (!waitpid(pid, &status, WNOHANG) && sent < 10000000) {
		kill(-pid, SIGUSR1);
		sent++;
		usleep(sent % 700);
	}
	ok(WIFEXITED(status) && !WEXITSTATUS(status) && shared->count == 150 && shared->result[3],
	   "150 children begin while signals come (status %#x, %lu children, child's status %#lx, "
	   "fork %ld, %lu sent, %lu taken)", status, shared->count, shared->result[0],
	   (long)shared->result[1], sent, shared->result[3]);
}

int main(void)
{
	struct klog log;

	begin(240);
	klog_begin(&log);
	if (!alone_vcpus())
		return done();
	shared = shared_alloc(sizeof(*shared));
	run_guest("a child has a copy of private memory", copy, NULL);
	run_guest("a child has its parent's registers", registers, NULL);
	run_guest("12 generations have copies of copies", generations, (void *)12);
	granules();
	run_guest("sealed pages are read and executed, and not written", sealed, NULL);
	run_guest("a request of sealed pages is checked", sealed_interface, NULL);
	run_guest("40 children share private memory", share, (void *)40);
	run_guest("a child that shares memory has a child with a copy", share_and_fork, NULL);
	run_guest("a thread gets a vCPU of its own", thread, NULL);
	run_guest("fork needs no descriptor, no path and no right", descriptors, NULL);
	run_guest("a child with its parent's table has a descriptor of its own", shared_table,
		  NULL);
	run_guest("a child for which no vCPU was made ends", no_child_made, NULL);
	run_guest("one vCPU is for one child", second_child, NULL);
	run_guest("a vCPU is for a child of its kind", wrong_kind, NULL);
	run_guest("a child that begins nowhere ends", hostile_rip, NULL);
	stolen();
	run_guest("a child that unmaps the stub ends alone", unmap_in_child, NULL);
	run_guest("a child is refused what its parent is", inherited_rights, NULL);
	signals();
	klog_end(&log);
	return done();
}

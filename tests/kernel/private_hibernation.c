// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A computer with private memory does not hibernate, since the image on the disk would contain it.
 * Fails when hibernation begins while an address space has private pages, or cannot begin after
 * the last one has gone; and when a page is added while the computer hibernates. Also fails when
 * contents of private memory are still in a page in use after the last process of a tree has ended,
 * while another process has a vCPU of a second address space of one of them.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "cgroup.h"
#include "child.h"
#include "private.h"
#include "tap.h"
#include "timing.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT	(64UL << 20)
#define PAGES	8	/* of private memory */
#define CHUNK	512	/* pages whose cgroups are read at once */

static volatile struct shared {
	int pid, vcpu;
	bool kept;
} *shared;

/* Opening it is the first step of hibernation by a program, closing it the last. */
static int snapshot_open(void)
{
	int fd = open("/dev/snapshot", O_RDONLY);

	return fd < 0 ? -errno : fd;
}

/* Closes @g. */
static void hibernation(struct guest *g)
{
	int fd = snapshot_open();
	struct guest h;
	u64 gpa;

	if (fd < 0) {
		skip(strerror(-fd), "hibernation with private memory");
		guest_close(g);
		return;
	}
	is(private_add(g, 1, &gpa), -EBUSY, "no page is added while the computer hibernates");
	close(fd);
	is(private_add(g, 1, &gpa), 0, "a page is added after the hibernation has ended");
	is(snapshot_open(), -EBUSY, "the computer does not hibernate with private memory");
	guest_open(&h);
	private_add(&h, 1, &gpa);
	guest_close(g);
	is(snapshot_open(), -EBUSY,
	   "the computer does not hibernate while another address space has private memory");
	guest_close(&h);
	fd = snapshot_open();
	ok(fd >= 0, "the computer hibernates when no address space has private memory (%d)", fd);
	close(fd);
}

/* ---- contents that outlive the processes */

/* Whether the page at @address, physical, begins with the secrets of keep_secrets(). */
static bool has_secrets(int memory, u64 address)
{
	u64 page[SECRETS];
	Elf64_Ehdr header;
	Elf64_Phdr part;

	pread(memory, &header, sizeof(header), 0);
	for (int i = 0; i < header.e_phnum; i++) {
		pread(memory, &part, sizeof(part), header.e_phoff + i * sizeof(part));
		/*
		 * Memory without a physical address has -1. The part of the kernel's text has the
		 * frames of its init, too, which can be read only in the part of all memory.
		 */
		if (part.p_type == PT_LOAD && address >= part.p_paddr &&
		    address - part.p_paddr < part.p_filesz &&
		    pread(memory, page, sizeof(page), part.p_offset + address - part.p_paddr) ==
		    sizeof(page) && count_secrets(page) == SECRETS)
			return true;
	}
	return false;
}

/*
 * How many pages that are charged to a cgroup, and so in use, have secrets. A page that was freed
 * may have them still, and is in no image.
 */
static int secret_pages(void)
{
	int memory = open("/proc/kcore", O_RDONLY), groups = open("/proc/kpagecgroup", O_RDONLY);
	u64 group[CHUNK], first = 0;
	int count = 0;
	long bytes;

	if (memory < 0 || groups < 0)
		bail("/proc/kcore, /proc/kpagecgroup: %m");
	while ((bytes = read(groups, group, sizeof(group))) > 0) {
		for (u64 i = 0; i < bytes / sizeof(u64); i++)
			count += group[i] && has_secrets(memory, (first + i) * 4096);
		first += bytes / sizeof(u64);
	}
	close(memory);
	close(groups);
	return count;
}

/* In the guest of a child: fills the copy, and makes a vCPU of a second address space. */
static void fill_and_open(char *pages)
{
	static struct dune_create_vcpu create = { .size = sizeof(create) };
	long dev = privileged(SYS_openat, AT_FDCWD, (long)"/dev/dune", O_RDWR, 0);

	for (int i = 0; i < PAGES; i++)
		keep_secrets(pages + i * 4096);
	shared->pid = hypercall0(SYS_getpid);
	shared->vcpu = privileged(SYS_ioctl, dev, DUNE_CREATE_VCPU, (long)&create, 0);
	while (!shared->kept)
		hypercall0(SYS_sched_yield);
	child_exit(0);
}

/* In a guest: has a child that does this, and outlives it. */
static u64 tree(void *arg)
{
	char *pages = child_private_add(PAGES, NULL);
	long pid = pages ? child_fork(SIGCHLD) : -ENOMEM;

	if (!pid)
		fill_and_open(pages);
	return pid < 0 || child_wait(pid);
}

/* Takes the vCPU of the second address space, after which the processes of the tree end. */
static int keep_vcpu(void)
{
	int process, vcpu;

	if (!WAIT_FOR(shared->vcpu, 20))
		bail("the child does not begin");
	process = syscall(SYS_pidfd_open, shared->pid, 0);
	vcpu = syscall(SYS_pidfd_getfd, process, shared->vcpu, 0);
	close(process);
	ok(vcpu >= 0, "the vCPU of another process's second address space is kept (%d)",
	   shared->vcpu);
	return vcpu;
}

static void contents(void)
{
	int pid = checked_fork(), vcpu, fd;

	if (!pid) {
		cgroup_join();
		alone_start(0, tree, NULL);
	}
	vcpu = keep_vcpu();
	is(snapshot_open(), -EBUSY, "the computer does not hibernate while the processes live");
	is(secret_pages(), PAGES, "the pages with secrets are found");
	shared->kept = true;
	is(wait_child(pid, 60).code, 0, "the processes end");
	ok(WAIT_FOR((fd = snapshot_open()) >= 0, 10),
	   "the computer hibernates while a vCPU without private memory is left (%d)", fd);
	is(secret_pages(), 0, "no page in use has contents of private memory then");
	close(fd);
	close(vcpu);
}

/* contents() in a cgroup. */
static void contents_charged(void)
{
	shared = shared_alloc(sizeof(*shared));
	if (cgroup_mount() != CGROUPS_NONE && cgroup_make(LIMIT)) {
		contents();
		cgroup_empty();
		ok(cgroup_remove(), "the cgroup is removed");
	} else {
		skip("this kernel has no memory cgroups", "contents that outlive the processes");
	}
	cgroup_unmount();
}

int main(void)
{
	struct guest g;

	if (private_begin(&g, 120)) {
		hibernation(&g);
		contents_charged();
	}
	return private_end();
}

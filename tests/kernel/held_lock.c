// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process whose mmap_lock a FUSE server can hold for any time: a page fault on a file
 * of FUSE waits for the server with the lock held. open() of /dev/dune must not wait for
 * this lock, since the kernel holds the lock of all misc devices meanwhile;
 * DUNE_CREATE_VCPU waits for it when the module joins an mmu notifier. Fails when open()
 * waits, or when a thread that waits cannot be killed.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_NODE	2
#define FILE_SIZE	65536

static volatile struct {
	int reads, answered;	/* of the server */
	int changed, locked;	/* of the memory */
	int opened, creating, created, killed;
	int relative;
} *shared;
static char directory[] = "/tmp/held_lock.XXXXXX";
static int dune = -1;

/*
 * A READ that fails makes the kernel try the page fault again. The last attempt is made with the
 * lock held.
 */
static int read_file(void)
{
	int number = ++shared->reads;

	while (shared->answered < number)
		sleep_ms(10);
	return -EIO;
}

/* A file system of one file: error, or the size of the answer. */
static int serve(const struct fuse_in_header *in, void *out)
{
	struct fuse_attr attr = { .ino = in->nodeid, .nlink = 1, .mode = S_IFDIR | 0777 };
	struct fuse_init_out *init = out;
	struct fuse_entry_out *entry = out;
	struct fuse_attr_out *attributes = out;

	if (in->nodeid == FILE_NODE || in->opcode == FUSE_LOOKUP) {
		attr.ino = FILE_NODE;
		attr.mode = S_IFREG | 0666;
		attr.size = FILE_SIZE;
	}
	switch (in->opcode) {
	case FUSE_INIT:
		init->major = FUSE_KERNEL_VERSION;
		init->minor = 31;
		init->max_write = 4096;
		return sizeof(*init);
	case FUSE_LOOKUP:
		entry->nodeid = FILE_NODE;
		entry->attr = attr;
		entry->entry_valid = 1000;
		entry->attr_valid = 1000;
		return sizeof(*entry);
	case FUSE_GETATTR:
		attributes->attr = attr;
		attributes->attr_valid = 1000;
		return sizeof(*attributes);
	case FUSE_OPEN:
		return sizeof(struct fuse_open_out);
	case FUSE_READ:
		return read_file();
	default:
		return -ENOSYS;
	}
}

static void server(int fuse)
{
	static char in[FUSE_MIN_READ_BUFFER * 20];
	struct {
		struct fuse_out_header header;
		char body[256];
	} out;
	const struct fuse_in_header *header = (void *)in;
	ssize_t n;
	int size;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		n = read(fuse, in, sizeof(in));
		if (n < 0 && errno != EINTR && errno != ENOENT)
			_exit(0);
		if (n < 0 || header->opcode == FUSE_FORGET || header->opcode == FUSE_INTERRUPT)
			continue;
		memset(&out, 0, sizeof(out));
		size = serve(header, out.body);
		out.header.unique = header->unique;
		out.header.error = size < 0 ? size : 0;
		out.header.len = sizeof(out.header) + (size < 0 ? 0 : size);
		(void)!write(fuse, &out, out.header.len);
	}
}

static void *touch(void *page)
{
	return (void *)(u64)*(volatile char *)page;
}

static bool becomes(const volatile int *value)
{
	return WAIT_FOR(*value, 3);
}

/* In processes that share the memory, each of which can be killed alone. */
static int change_memory(void *page)
{
	mprotect(page, 4096, PROT_NONE);
	shared->changed = 1;
	return 0;
}

static int create_vcpu(void *unused)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	int fd;

	shared->creating = 1;
	fd = ioctl(dune, DUNE_CREATE_VCPU, &create);
	shared->created = fd < 0 ? -errno : fd;
	return 0;
}

static int relative(int (*fn)(void *argument), void *argument)
{
	static char stacks[5][65536] __attribute__((aligned(16)));
	static int n;

	return clone(fn, stacks[n++] + sizeof(stacks[0]), CLONE_VM | SIGCHLD, argument);
}

/* Answers the server's READs until one holds the lock: a change of memory then waits. */
static void lock_memory(void *page)
{
	for (int i = 1; i <= 4; i++) {
		int pid, n;

		while (shared->reads < i)
			sleep_ms(1);
		shared->changed = 0;
		pid = relative(change_memory, page);
		for (n = 0; n < 100 && !shared->changed; n++)
			sleep_ms(10);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		shared->locked = !shared->changed;
		if (shared->locked)
			return;
		shared->answered = i;
	}
	child_fails("no page fault of the thread kept the lock on the memory");
}

/* The process whose memory is locked. */
static void holder(void)
{
	char file[100];
	pthread_t thread;
	void *page, *other;
	int fd, status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(file, sizeof(file), "%s/file", directory);
	fd = open(file, O_RDONLY);
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	/* The end of a relative would wait for the server to flush its descriptor. */
	close(fd);
	other = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || page == MAP_FAILED || other == MAP_FAILED ||
	    pthread_create(&thread, NULL, touch, page))
		child_fails("the file system cannot be used, or no thread made");
	lock_memory(other);
	dune = open("/dev/dune", O_RDWR);
	shared->opened = dune < 0 ? -errno : dune;
	shared->relative = relative(create_vcpu, NULL);
	shared->killed = waitpid(shared->relative, &status, 0) == shared->relative &&
			 WIFSIGNALED(status);
	for (;;)
		pause();
}

static void locked(void)
{
	char options[100];
	int fuse, of_server, of_holder;

	fuse_load();
	fuse = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || !mkdtemp(directory) || mount("fuse", directory, "fuse", 0, options)) {
		skip("no FUSE", "a process whose memory is locked");
		return;
	}
	of_server = checked_fork();
	if (!of_server)
		server(fuse);
	of_holder = checked_fork();
	if (!of_holder) {
		close(fuse);
		holder();
	}
	ok(becomes(&shared->locked), "a page fault waits for the server with the memory locked");
	ok(becomes(&shared->opened) && shared->opened > 0,
	   "open() of /dev/dune does not wait for the lock of the memory (%d)", shared->opened);
	becomes(&shared->creating);
	sleep_ms(200);
	ok(!shared->created, "DUNE_CREATE_VCPU waits for the lock (%d)", shared->created);
	if (shared->relative > 0)
		kill(shared->relative, SIGKILL);
	ok(becomes(&shared->killed), "a thread that waits in DUNE_CREATE_VCPU can be killed");
	kill(of_holder, SIGKILL);
	shared->answered = 1000;
	waitpid(of_holder, NULL, 0);
	kill(of_server, SIGKILL);
	waitpid(of_server, NULL, 0);
	umount2(directory, MNT_DETACH);
	close(fuse);
	rmdir(directory);
}

int main(void)
{
	struct guest g;
	int err;

	begin(200);
	shared = shared_alloc(sizeof(*shared));
	err = guest_vcpu(&g);
	if (err)
		bail("no vCPU can be made: %s", strerror(-err));
	guest_close(&g);
	if (!guest_vmx) {
		err = dune_reload("notify_flushes=1");
		ok(!err, "the module is loaded with notify_flushes=1 (%s)", strerror(-err));
	}
	if (!err)
		locked();
	ok(!dune_users_left(), "nobody uses the module afterwards");
	if (!guest_vmx) {
		err = dune_reload("");
		ok(!err, "the module is loaded without notify_flushes again (%s)", strerror(-err));
	}
	return done();
}

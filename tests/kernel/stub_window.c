// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The window: pages of private memory that the process can read after its stub
 * (DUNE_PRIVATE_SHOWN). Fails when the process or the kernel reads something else there than what a
 * guest has written; when a page is shown that is not of the window of this address space; when
 * anybody but a guest can write the window, or can take a part of it away or put something else
 * in its place; when a child with a copy of the memory reads its parent's window, or a child of
 * vfork another one than its parent's; when a child gets a page of an earlier one that a pipe
 * still has; when a window outlives its mapping; when ring 0 adds pages, or executes a program, in
 * another way than <linux/dune.h> describes; and when a guest can use io_uring or can keep the stub
 * from children.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "klog.h"
#include "modules.h"
#include "private.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES	3
#define ROOM	16	/* pages of the mapping after the stub: more than the window has */
#define EXECUTED "executed"

static struct guest g;
static char *stub, *window;
static u64 gpa;		/* of the window */

/* ---- accesses of the process */

static sigjmp_buf jump;

static void on_signal(int nr)
{
	siglongjmp(jump, nr);
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* The signal of a read at @p, or 0; of a write, if @writes. */
static int fault_at(volatile char *p, bool writes)
{
	int nr = sigsetjmp(jump, 1);

	if (nr)
		return nr;
	if (writes)
		*p = 1;
	else
		(void)*p;
	return 0;
}

/* What the kernel reads at @p, by write(2). */
static u64 kernel_reads(const void *p)
{
	u64 value = 0;
	int pipes[2];

	if (pipe(pipes))
		return 0;
	if (write(pipes[1], p, sizeof(value)) != sizeof(value) ||
	    read(pipes[0], &value, sizeof(value)) != sizeof(value))
		value = 0;
	close(pipes[0]);
	close(pipes[1]);
	return value;
}

/* ---- the guest's side, at PRIVATE_AT */

struct store {
	volatile u64 *at;
	u64 value;
};

static u64 do_store(void *arg)
{
	struct store *s = arg;

	*s->at = s->value;
	return 0;
}

static void guest_stores(u64 page, u64 value)
{
	struct store s = { private_at(gpa + page * 4096), value };
	enum guest_end end = guest_call(&g, do_store, &s);

	if (end != GUEST_DONE)
		bail("the guest cannot write its window: %s", guest_end_name(&g, end));
}

static long add(struct guest *to, u32 flags, u64 pages, u64 *at)
{
	struct dune_private p = { .size = sizeof(p), .flags = flags, .pages = pages };
	long err = ioctl(to->fd, DUNE_ADD_PRIVATE, &p) ? -errno : 0;

	if (at)
		*at = p.guest;
	return err;
}

static char *map_window(struct guest *of, u64 pages)
{
	char *at = mmap(NULL, (1 + pages) * 4096, PROT_READ, MAP_SHARED, of->fd, DUNE_STUB_OFFSET);

	if (at == MAP_FAILED)
		bail("mmap of the stub and a window: %s", strerror(errno));
	return at;
}

/* ---- what it shows */

static void contents(void)
{
	u64 other, bad = 0;

	is(fault_at(window, false), SIGBUS, "without a window there is nothing after the stub");
	is(add(&g, 0, 2, &other), 0, "private memory");
	is(fault_at(window, false), SIGBUS, "private memory is not shown");
	is(add(&g, DUNE_PRIVATE_SHOWN, PAGES, &gpa), 0, "a window");
	is(add(&g, 0, 2, NULL), 0, "more private memory");
	private_show(&g, gpa & -(2UL << 20));
	for (u64 n = 0; n < PAGES; n++) {
		volatile u64 *word = (u64 *)(window + n * 4096);

		bad += *word != 0;
		guest_stores(n, secret(n));
		bad += *word != secret(n) || kernel_reads((void *)word) != secret(n);
	}
	is(bad, 0, "the process and the kernel read what a guest writes");
	for (u64 n = PAGES; n < ROOM; n++)
		bad += fault_at(window + n * 4096, false) != SIGBUS;
	is(bad, 0, "no page after the window is shown");
	is(add(&g, DUNE_PRIVATE_SHOWN, 1, NULL), -EEXIST, "a second window: EEXIST");
	is(add(&g, DUNE_PRIVATE_SHOWN | DUNE_PRIVATE_SEALED, 1, NULL), -EINVAL,
	   "a sealed window: EINVAL");
	is(add(&g, 4, 1, NULL), -EINVAL, "another flag: EINVAL");
	ok(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd, DUNE_STUB_OFFSET) ==
	   MAP_FAILED && errno == EINVAL, "a window that can be written: EINVAL");
	ok(mmap(NULL, 8192, PROT_READ, MAP_SHARED, g.fd, 0) == MAP_FAILED && errno == EINVAL,
	   "more than a page of dune_run: EINVAL");
}

/* ---- who can write it */

static int trace(void)
{
	int status, pid = getpid(), tracer = fork();

	if (!tracer) {
		bool bad;

		if (ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
			_exit(77);
		bad = ptrace(PTRACE_POKEDATA, pid, window, 1) != -1;
		ptrace(PTRACE_DETACH, pid, 0, 0);
		_exit(bad);
	}
	return waitpid(tracer, &status, 0) != tracer || status;
}

static void writers(void)
{
	struct iovec from = { "x", 1 }, to = { window, 1 };
	int pipes[2];
	char byte;

	is(fault_at(window, true), SIGSEGV, "the process cannot write the window");
	ok(!fails_with(read(open("/dev/zero", O_RDONLY), window, 8), EFAULT, "read"),
	   "nor can the kernel for it, by read()");
	ok(!fails_with(pwrite(open("/proc/self/mem", O_RDWR), "x", 1, (long)window), EIO, "mem"),
	   "nor by /proc/self/mem");
	ok(!fails_with(process_vm_writev(getpid(), &from, 1, &to, 1, 0), EFAULT, "vm_writev"),
	   "nor by process_vm_writev()");
	ok(!trace(), "nor a tracer");
	/* A page of a pipe is read, and written by nobody but its maker. */
	if (!pipe(pipes) && vmsplice(pipes[1], &to, 1, SPLICE_F_GIFT) == 1)
		byte = read(pipes[0], &byte, 1);
	ok(*(volatile u64 *)window == secret(0), "it is what the guest has written");
}

/* ---- what changes the mapping */

static int advise(void)
{
	int bad = 0;

	/* From MADV_HWPOISON on they declare pages defective, for the whole computer. */
	for (int advice = 0; advice < MADV_HWPOISON; advice++) {
		if (advice == MADV_DONTFORK)	/* it cannot be undone: MADV_DOFORK is refused */
			continue;
		madvise(stub, (1 + ROOM) * 4096, advice);
		madvise(window, 4096, advice);
		madvise(window + 4096, 4096, advice);
		for (u64 n = 0; n < PAGES; n++) {
			if (*(volatile u64 *)(window + n * 4096) == secret(n))
				continue;
			diag("after madvise %d page %lu has other contents", advice, n);
			bad++;
		}
		if (fault_at(window, true) != SIGSEGV) {
			diag("after madvise %d the window can be written", advice);
			bad++;
		}
	}
	return bad;
}

static void changes(void)
{
	char *page = window + 4096, *other = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int id = shmget(IPC_PRIVATE, 4096, 0700), bad = 0;

	ok(!fails_with(munmap(page, 4096), EINVAL, "munmap") &&
	   !fails_with(munmap(window, ROOM * 4096), EINVAL, "munmap of all but the stub") &&
	   !fails_with(munmap(stub, 4096), EINVAL, "munmap of the stub"),
	   "no part can be unmapped");
	ok(mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	   MAP_FAILED, "nothing can be mapped over a part (%s)", strerror(errno));
	ok((long)shmat(id, page, SHM_REMAP) == -1, "nor attached there (%s)", strerror(errno));
	shmctl(id, IPC_RMID, NULL);
	ok(mremap(other, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page) == MAP_FAILED,
	   "nor moved there (%s)", strerror(errno));
	ok(mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, other) == MAP_FAILED &&
	   mremap(stub, 8192, 4096, MREMAP_MAYMOVE) == MAP_FAILED &&
	   mremap(window, 0, 4096, MREMAP_MAYMOVE) == MAP_FAILED &&
	   mremap(stub, (1 + ROOM) * 4096, (2 + ROOM) * 4096, MREMAP_MAYMOVE) == MAP_FAILED,
	   "no part can be moved or copied, and the mapping cannot shrink or grow");
	for (int rights = 0; rights < 8; rights++)
		bad += fails_with(mprotect(page, 4096, rights), EACCES, "mprotect");
	is(bad, 0, "no part gets other rights");
	/* As in kernel/stub_page. */
	ok(!fails_with(syscall(SYS_remap_file_pages, stub, 8192, 0, 0, 0),
		       maps_no_code() ? EPERM : ENODEV, "remap") &&
	   syscall(SYS_remap_file_pages, page, 4096, 0, 0, 0) == -1, "remap_file_pages() fails");
	ok(madvise(page, 4096, MADV_DONTFORK) == -1, "no part can be kept from children");
	is(advise(), 0, "no advice of madvise() changes the contents or the rights");
}

/* ---- children, by guests without a host half */

static volatile struct shared {
	u64 bad, value[8];
	bool no_pipe;
} *shared;

static char *alias;	/* of the window, in the guest */

/* Makes the window of a guest of alone_start(), whose stub start() lets have more pages. */
static u64 open_window(void)
{
	static struct dune_private p;

	p = (struct dune_private) {
		.size = sizeof(p), .flags = DUNE_PRIVATE_SHOWN, .pages = PAGES,
	};
	if (privileged(SYS_ioctl, alone_guest.fd, DUNE_ADD_PRIVATE, (long)&p, 0))
		return 1;
	alias = private_at(p.guest);
	window = alone_stub + 4096;
	return 0;
}

/* What the kernel reads in the window, which the guest cannot be tricked about. */
static u64 shown_word(u64 page)
{
	static u64 value;
	static int pipes[2];

	value = 0;
	hypercall3(SYS_pipe2, (long)pipes, 0, 0);
	if (hypercall3(SYS_write, pipes[1], (long)window + page * 4096, 8) == 8)
		hypercall3(SYS_read, pipes[0], (long)&value, 8);
	hypercall3(SYS_close, pipes[0], 0, 0);
	hypercall3(SYS_close, pipes[1], 0, 0);
	return value;
}

static volatile u64 *word(u64 page)
{
	return (u64 *)(alias + page * 4096);
}

static u64 in_vfork_child(void *arg)
{
	if (shown_word(0) != 1)
		return 1;
	*word(0) = 5;
	return shown_word(0) != 5;
}

#define NO_PIPE	3	/* the exit status of a child whose page the kernel does not put there */

/*
 * A pipe has a page of the window of a child that has ended. The page is none of the next child's,
 * though that one gets pages of the first.
 */
static u64 spliced(void)
{
	static struct iovec what;
	static int pipes[2];
	static u64 value;
	long pid;

	if (hypercall3(SYS_pipe2, (long)pipes, 0, 0))
		return 1;
	pid = child_fork(SIGCHLD);
	if (!pid) {
		*word(0) = 21;
		what = (struct iovec) { window, sizeof(value) };
		child_exit(shown_word(0) != 21 ? 2 :
			   hypercall(SYS_vmsplice, pipes[1], (long)&what, 1, 0, 0, 0) !=
			   sizeof(value) ? NO_PIPE : 0);
	}
	shared->value[0] = child_wait(pid);
	shared->no_pipe = shared->value[0] == NO_PIPE << 8;
	if (shared->no_pipe)
		return 0;
	if (shared->value[0])
		return 10;
	pid = child_fork(SIGCHLD);
	if (!pid)
		child_exit(shown_word(0) == 21);
	shared->value[0] = child_wait(pid);
	if (shared->value[0])
		return 11;
	hypercall3(SYS_read, pipes[0], (long)&value, sizeof(value));
	shared->value[0] = value;
	hypercall3(SYS_close, pipes[0], 0, 0);
	hypercall3(SYS_close, pipes[1], 0, 0);
	return value == 21 ? 0 : 12;
}

static u64 children(void *arg)
{
	long pid, status;
	u64 bad;

	if (open_window())
		return 1;
	for (u64 n = 0; n < PAGES; n++)
		*word(n) = n + 1;
	if (shown_word(0) != 1 || shown_word(2) != 3)
		return 2;
	pid = child_fork(SIGCHLD);
	if (!pid) {
		/* Its own copy, which its parent does not change. */
		if (shown_word(0) != 1 || shown_word(2) != 3)
			child_exit(3);
		*word(0) = 11;
		if (shown_word(0) != 11)
			child_exit(4);
		pid = child_fork(SIGCHLD);
		if (!pid) {
			*word(1) = 12;
			child_exit(shown_word(0) != 11 || shown_word(1) != 12 ? 5 : 0);
		}
		status = child_wait(pid);
		child_exit(status ? 6 : shown_word(1) != 2 ? 7 : 0);
	}
	status = child_wait(pid);
	shared->value[0] = status;
	if (status || shown_word(0) != 1)
		return 8;
	bad = spliced();
	if (bad)
		return bad;
	/* A child of vfork has its parent's. */
	status = child_wait(child_share(CLONE_VM | CLONE_VFORK | SIGCHLD, in_vfork_child, NULL));
	shared->value[0] = status;
	if (status || shown_word(0) != 5 || *word(0) != 5)
		return 9;
	return 0;
}

/* Pages that ring 0 adds by registers alone. */
static u64 add_pages(void *arg)
{
	static struct dune_private p;
	long first, second;

	first = hypercall3(DUNE_ADD_PAGES, 2, 0, 0);
	second = hypercall3(DUNE_ADD_PAGES, 3, 0, 0);
	shared->value[0] = first;
	shared->value[1] = second;
	if (first < 0 || second != first + 2 * 4096)
		return 1;
	*(volatile char *)private_at(second + 2 * 4096) = 1;
	p = (struct dune_private) { .size = sizeof(p), .pages = 1 };
	if (privileged(SYS_ioctl, alone_guest.fd, DUNE_ADD_PRIVATE, (long)&p, 0) ||
	    p.guest != (u64)second + 3 * 4096)
		return 2;
	if (hypercall3(DUNE_ADD_PAGES, 0, 0, 0) != -EINVAL ||
	    hypercall3(DUNE_ADD_PAGES, 1L << 40, 0, 0) != -ENOSPC ||
	    hypercall3(DUNE_ADD_PAGES, -1, 0, 0) != -ENOSPC)
		return 3;
	return 0;
}

/* execveat() of the descriptor @fd by ring 0. */
static long execute(long fd, const char *name, long flags)
{
	static char *argv[] = { "stub_window", EXECUTED, NULL };

	return hypercall(DUNE_HOSTCALL | SYS_execveat, fd, (long)name, (long)argv, 0, flags, 0);
}

static int own_file, other_file, script_file, garbage_file;

#define X32		0x40000000	/* <asm/unistd.h>: __X32_SYSCALL_BIT */
#define X32_EXECVE	520
#define X32_EXECVEAT	545

/* A file is only executed if it is the program's own, however it is named. */
static u64 execute_others(void *arg)
{
	static char *argv[] = { "false", NULL };
	static const struct {
		int *fd;
		long error;
	} files[] = {
		{ &other_file, -EPERM }, { &script_file, -EPERM }, { &garbage_file, -EPERM },
		{ &alone_guest.fd, -EACCES },
	};

	for (unsigned int i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (execute(*files[i].fd, "", AT_EMPTY_PATH) != files[i].error)
			return 10 + i;
	if (execute(-1, "", AT_EMPTY_PATH) != -EBADF)
		return 2;
	if (execute(AT_FDCWD, "/bin/false", 0) != -EPERM ||
	    privileged(SYS_execve, (long)"/bin/false", (long)argv, 0, 0) != -EPERM ||
	    hypercall(DUNE_HOSTCALL_NOW | SYS_execveat, other_file, (long)"", (long)argv, 0,
		      AT_EMPTY_PATH, 0) != -EPERM)
		return 3;
	if (privileged(X32 | X32_EXECVE, (long)"/bin/false", (long)argv, 0, 0) != -ENOSYS ||
	    privileged(X32 | X32_EXECVEAT, other_file, (long)"", (long)argv, 0) != -ENOSYS)
		return 4;
	return 0;
}

/* A request of io_uring could keep the stub from children. */
static u64 use_ring(void *arg)
{
	static struct io_uring_params params;

	shared->value[0] = hypercall3(SYS_io_uring_setup, 1, (long)&params, 0);
	shared->value[1] = hypercall(SYS_io_uring_enter, own_file, 0, 0, 0, 0, 0);
	return shared->value[0] != (u64)-EPERM || shared->value[1] != (u64)-EPERM ||
	       hypercall(SYS_io_uring_register, own_file, 0, 0, 0, 0, 0) != -EPERM;
}

static long keep_from_children(u64 start, u64 bytes)
{
	return hypercall3(SYS_madvise, start, bytes, MADV_DONTFORK);
}

/* A child without the stub would continue with what is in its place. */
static u64 keep_stub(void *arg)
{
	u64 mapping = (u64)alone_stub, end = mapping + (1 + PAGES) * 4096;
	struct iovec range = { alone_stub, (1 + PAGES) * 4096 };
	int self = hypercall3(SYS_pidfd_open, hypercall0(SYS_getpid), 0, 0);

	shared->value[0] = keep_from_children(mapping, end - mapping);
	if (shared->value[0] != (u64)-EPERM ||
	    keep_from_children(mapping, end - mapping - 1) != -EPERM ||
	    keep_from_children(mapping - 4096, 4096 + end - mapping) != -EPERM ||
	    keep_from_children(0, -4096UL) != -EPERM ||
	    keep_from_children(mapping | 1UL << 57, end - mapping) != -EPERM)
		return 1;
	if (hypercall(SYS_process_madvise, self, (long)&range, 1, MADV_DONTFORK, 0, 0) != -EPERM)
		return 2;
	/* What is next to the stub is the program's. */
	shared->value[0] = keep_from_children(end, 4096);
	shared->value[1] = keep_from_children(mapping - 4096, 4096);
	if (shared->value[0] == (u64)-EPERM || shared->value[1] == (u64)-EPERM)
		return 3;
	return hypercall3(SYS_madvise, mapping, end - mapping, MADV_NORMAL) ? 4 : 0;
}

static u64 execute_own(void *arg)
{
	return execute(own_file, "", AT_EMPTY_PATH) ? 5 : 6;
}

/* Returns a descriptor of an executable file with @text. */
static int executable(const char *text)
{
	int fd = memfd_create("file", 0), readable;
	char path[32];

	if (fchmod(fd, 0700) || write(fd, text, strlen(text)) < 0)
		return -1;
	/* A file that is open to be written is not executed. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readable = open(path, O_RDONLY);
	close(fd);
	return readable;
}

static void start(void *arg)
{
	stub_pages = 1 + PAGES;
	own_file = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	other_file = open("/bin/false", O_RDONLY);
	/* A script of this program, whose interpreter would be the program's own file. */
	script_file = executable("#!/proc/self/exe\n");
	garbage_file = executable("\1\2\3\4");
	alone_start(0, arg, NULL);
}

static void run_guest(const char *name, u64 (*fn)(void *arg), int code)
{
	struct outcome o;

	memset((void *)shared, 0, sizeof(*shared));
	o = in_child(start, fn, 30);
	ok(o.code == code, "%s (%s, %#lx, %#lx)", name, outcome_text(o), shared->value[0],
	   shared->value[1]);
}

/* A child for which no vCPU was made. */
static void plain_child(void)
{
	int status, pid = fork();

	if (!pid)
		_exit(fault_at(window, false) != SIGBUS ||
		      fault_at(window + 4096, false) != SIGBUS);
	ok(waitpid(pid, &status, 0) == pid && !status,
	   "a child without a vCPU has no window (%#x)", status);
}

/* The mapping keeps the window, until the process ends. */
static void keep_mapping(void *arg)
{
	u64 n = 0;

	guest_open(&g);
	if (!g.info.private_pages)
		_exit(CHILD_SKIPS);
	stub = map_window(&g, ROOM);
	window = stub + 4096;
	add(&g, DUNE_PRIVATE_SHOWN, PAGES, &gpa);
	private_show(&g, gpa & -(2UL << 20));
	guest_stores(1, 77);
	n = *(volatile u64 *)(window + 4096);
	close(g.fd);
	close(g.dev);
	_exit(n != 77 || *(volatile u64 *)(window + 4096) != 77 ||
	      *(volatile u64 *)(window + 8192) != 0);
}

int main(int argc, char **argv)
{
	struct outcome o;
	struct klog log;

	if (argc > 1 && !strcmp(argv[1], EXECUTED))
		return 42;
	begin(120);
	klog_begin(&log);
	shared = shared_alloc(4096);
	catch_faults();
	o = in_child(keep_mapping, NULL, 20);
	if (o.code == CHILD_SKIPS) {
		skip("this processor's guest-physical addresses are too narrow", "private memory");
		return done();
	}
	ok(!o.code, "a mapping keeps its window (%s)", outcome_text(o));
	is(dune_users_left(), 0, "and nothing is left at the end of the process");
	/* They have a stub of their own: this process has none yet. */
	run_guest("children have their own window or their parent's", children, 0);
	if (shared->no_pipe)
		skip("this kernel puts no page of a window into a pipe",
		     "nor do they get a page that a pipe has");
	run_guest("ring 0 adds pages without memory", add_pages, 0);
	run_guest("ring 0 executes no other program", execute_others, 0);
	run_guest("a guest cannot use io_uring", use_ring, 0);
	run_guest("nor keep the stub from children", keep_stub, 0);
	run_guest("ring 0 executes its own program", execute_own, 42);
	guest_open(&g);
	stub = map_window(&g, ROOM);
	window = stub + 4096;
	contents();
	writers();
	changes();
	plain_child();
	guest_close(&g);
	klog_end(&log);
	return done();
}

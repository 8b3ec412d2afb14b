// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The stub's page defends itself, in a process one of whose threads always runs a guest by it. A
 * call that unmaps it, or maps something else in its place, kills all processes that share the
 * memory before they can execute that. No call makes it writable or writes it. A call that only
 * takes its entry out of the page table does no harm. A child inherits it. Fails when a thread
 * executes other code at the stub's address, when such a process lives on, when a child does not
 * execute the stub or ends its parent, or when a call that must fail succeeds, such as a second
 * mapping of a stub in the same memory. Each of these changes of the module makes it fail: no
 * VM_IO; VM_DONTCOPY; no .close, .mprotect or .fault. (VM_MAYWRITE makes no difference, since
 * VM_SHARED and .mprotect keep writers out, too.)
 */
#define _GNU_SOURCE
#include "child.h"
#include "by_alone.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char *stub;

#define ROOM	(64 * 4096)

/* Shared with the children. */
static volatile unsigned long *executed, *replaced, *after, *sharer;

/* movabs $replaced, %rax; lock incq (%rax); mov $1, %eax; ret. put_other_code() has the address. */
static const unsigned char other_code[] = {
	0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x48, 0xff, 0x00, 0xb8, 1, 0, 0, 0, 0xc3,
};

/* Calls DUNE_STUB_ENTER without a descriptor: returns 0, or 1 if other_code is there. */
static long execute(void)
{
	struct sigaction sa = { .sa_sigaction = stub_leave, .sa_flags = SA_SIGINFO }, old;
	long ret, rdi = -1;

	sigaction(SIGILL, &sa, &old);
	asm volatile("call *%[stub]"
		     : "=a"(ret), "+D"(rdi)
		     : [stub] "r"(stub + DUNE_STUB_ENTER), "S"(0), "d"(0)
		     : "rcx", "r11", "memory", "cc");
	sigaction(SIGILL, &old, NULL);
	return ret != -EBADF;
}

/* In the guest. Each call is made in the stub, which is where a page is replaced, too. */
static u64 execute_always(void *ppid)
{
	alone_slow(true);
	for (;;) {
		if (hypercall0(SYS_getppid) != (long)ppid)
			(*replaced)++;
		(*executed)++;
	}
	return 0;
}

/* A thread that runs a guest by the stub, in the middle of @room. */
static void *run_guest(void *room)
{
	stub_place = (char *)room + ROOM / 2;
	alone_open();
	stub = alone_stub;
	alone_enter(0, execute_always, (void *)(long)getppid());
}

static void put_other_code(char *page)
{
	volatile unsigned long *counter = replaced;
	char *code = page + 4096 - sizeof(other_code);

	memset(page, 0x90, 4096);
	memcpy(code, other_code, sizeof(other_code));
	memcpy(code + 2, &counter, sizeof(counter));
}

static char *other_page(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	put_other_code(page);
	return page;
}

static int other_file(void)
{
	char code[4096];
	int fd = memfd_create("code", 0);

	put_other_code(code);
	if (write(fd, code, sizeof(code)) != sizeof(code))
		child_fails("write: %m");
	return fd;
}

/* ---- what must kill: returns only if it did not */

static long unmap(void)
{
	return munmap(stub, 4096);
}

static long unmap_around(void)
{
	return munmap(stub - ROOM / 4, ROOM / 2);
}

static long map_memory_over(void)
{
	char *page = mmap(stub, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);

	put_other_code(page);
	return 0;
}

static long map_file_over(void)
{
	return (long)mmap(stub, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
			  other_file(), 0);
}

static long move_over(void)
{
	return (long)mremap(other_page(), 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, stub);
}

static long move_away(void)
{
	return (long)mremap(stub, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, other_page());
}

static long attach_over(void)
{
	int id = shmget(IPC_PRIVATE, 4096, 0700);

	return (long)shmat(id, stub, SHM_REMAP | SHM_EXEC);
}

static int map_in_process(void *arg)
{
	map_file_over();
	sleep_ms(200);
	_exit(0);
}

/* Another process that shares the memory, as a child of vfork() does. */
static long map_in_other_process(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	clone(map_in_process, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	sleep_ms(300);
	return 0;
}

/* A child of vfork(), whose parent waits. */
static long map_in_vfork_child(void)
{
	pid_t pid = vfork();

	if (!pid)
		map_in_process(NULL);
	sleep_ms(300);
	return 0;
}

static int live_in_process(void *arg)
{
	for (;;)
		pause();
	return 0;
}

/* Another process that shares the memory is killed, too: main() looks for it. */
static long unmap_with_other_process(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	*sharer = clone(live_in_process, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	return munmap(stub, 4096);
}

static void *map_after_main(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	map_file_over();
	*after = 1;
	sleep_ms(200);
	_exit(0);
}

/* The main thread has ended, and another one takes the stub away. */
static long map_without_main(void)
{
	static pthread_t main_thread;
	pthread_t thread;

	main_thread = pthread_self();
	pthread_create(&thread, NULL, map_after_main, &main_thread);
	return syscall(SYS_exit, 0);
}

static const struct attack {
	const char *name;
	long (*fn)(void);
} killing[] = {
	{ "munmap()", unmap },
	{ "munmap() of more around it", unmap_around },
	{ "memory mapped over it", map_memory_over },
	{ "a file mapped over it", map_file_over },
	{ "mremap() of another page over it", move_over },
	{ "mremap() away", move_away },
	{ "shmat() over it", attach_over },
	{ "a file mapped by another process with the same memory", map_in_other_process },
	{ "a file mapped by a child of vfork()", map_in_vfork_child },
	{ "munmap() while another process has the same memory", unmap_with_other_process },
	{ "a file mapped after the main thread has ended", map_without_main },
};

static void prepare(void)
{
	pthread_t thread;
	char *room;

	*executed = 0;
	/* Around the stub there is nothing that the threads need. */
	room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&thread, NULL, run_guest, room);
	if (!WAIT_FOR(*executed > 1000, 5))
		child_fails("the thread does not execute the stub");
	if (execute())
		child_fails("the stub is not executed");
}

static void be_killed(void *arg)
{
	const struct attack *a = arg;

	prepare();
	a->fn();
	*after = 1;
	sleep_ms(200);
	_exit(0);
}

/* ---- what must fail, or do no harm: returns 0 if it did so */

static int protect(void)
{
	static const int rights[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE | PROT_EXEC,
		PROT_READ | PROT_EXEC,
	};
	int bad = 0;

	for (unsigned int i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		bad += fails_with(mprotect(stub, 4096, rights[i]), EACCES, "mprotect");
	return bad;
}

static int write_by_mem(void)
{
	int fd = open("/proc/self/mem", O_RDWR);

	return fails_with(pwrite(fd, other_code, 6, (long)stub + DUNE_STUB_CALL), EIO,
			  "/proc/self/mem");
}

static int write_by_vm(void)
{
	struct iovec from = { (void *)other_code, 6 }, to = { stub + DUNE_STUB_CALL, 6 };

	return fails_with(process_vm_writev(getpid(), &from, 1, &to, 1, 0), EFAULT,
			  "process_vm_writev");
}

static int read_into(void)
{
	return fails_with(read(open("/dev/zero", O_RDONLY), stub, 100), EFAULT, "read");
}

static int advise(void)
{
	int bad = fails_with(madvise(stub, 4096, MADV_DOFORK), EINVAL, "MADV_DOFORK");

	for (int i = 0; i < 1000; i++) {
		madvise(stub, 4096, MADV_DONTNEED);
		if (execute())
			bad++;
	}
	return bad;
}

static int grow(void)
{
	return fails_with((long)mremap(stub, 4096, 8192, MREMAP_MAYMOVE), EFAULT, "mremap");
}

static int duplicate(void)
{
	return fails_with((long)mremap(stub, 0, 4096, MREMAP_MAYMOVE), EFAULT, "mremap");
}

static int split(void)
{
	return fails_with(munmap(stub + 64, 64), EINVAL, "munmap of a part");
}

/* The kernel would map the stub's file for execution, and that file has no mmap(). */
static int remap_pages(void)
{
	return fails_with(syscall(SYS_remap_file_pages, stub, 4096, 0, 0, 0),
			  maps_no_code() ? EPERM : ENODEV, "remap_file_pages");
}

/*
 * A process's memory has one stub. The end of a mapping looks at all processes: many of them,
 * unmapped at once, kept a killed process alive for minutes.
 */
static int map_another(void)
{
	static struct guest other;

	guest_open(&other);
	return fails_with((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, other.fd,
				     DUNE_STUB_OFFSET), EBUSY, "mmap");
}

static int map_another_in_child(void)
{
	int status, pid = fork();

	if (!pid)
		_exit(map_another());
	return waitpid(pid, &status, 0) != pid || status;
}

/* A child inherits it, and ends alone if it takes it away. */
static int make_child(void)
{
	int status, pid = fork();

	if (!pid)
		_exit(execute());
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	pid = fork();
	if (!pid) {
		munmap(stub, 4096);
		_exit(0);
	}
	return waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
	       WTERMSIG(status) != SIGKILL;
}

static int trace(void)
{
	int status, bad, pid = getpid(), tracer = fork();

	if (!tracer) {
		if (ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid(pid, &status, 0) != pid)
			_exit(77);
		bad = ptrace(PTRACE_POKETEXT, pid, stub + DUNE_STUB_CALL, 0x90909090) != -1;
		ptrace(PTRACE_DETACH, pid, 0, 0);
		_exit(bad);
	}
	return waitpid(tracer, &status, 0) != tracer || status;
}

static const struct harmless {
	const char *name;
	int (*fn)(void);
} harmless[] = {
	{ "mprotect()", protect },
	{ "a write to /proc/self/mem", write_by_mem },
	{ "process_vm_writev()", write_by_vm },
	{ "read() into it", read_into },
	{ "madvise()", advise },
	{ "mremap() that grows it", grow },
	{ "mremap() that duplicates it", duplicate },
	{ "munmap() of a part", split },
	{ "remap_file_pages()", remap_pages },
	{ "mmap() of a second one", map_another },
	{ "mmap() of a second one by a child", map_another_in_child },
	{ "fork()", make_child },
	{ "PTRACE_POKETEXT", trace },
};

static void live_on(void *arg)
{
	const struct harmless *a = arg;

	prepare();
	if (a->fn())
		_exit(1);
	*executed = 0;
	if (!WAIT_FOR(*executed > 1000, 5))
		child_fails("the thread does not execute the stub any more");
	_exit(execute());
}

static void becomes_another(void *arg)
{
	prepare();
	execl("/bin/true", "true", NULL);
}

int main(void)
{
	volatile unsigned long *shared = shared_alloc(4096);
	struct outcome o;
	int status = 0;

	begin(120);
	if (!alone_vcpus())
		return done();
	/* The sharer becomes a child of this process when its parent has died. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	executed = shared;
	replaced = shared + 1;
	after = shared + 2;
	sharer = shared + 3;
	for (unsigned int i = 0; i < sizeof(killing) / sizeof(killing[0]); i++) {
		*after = 0;
		*replaced = 0;
		o = in_child(be_killed, (void *)&killing[i], 20);
		/* A thread may get SIGSEGV before SIGKILL, where nothing is mapped in between. */
		ok((o.signal == SIGKILL || o.signal == SIGSEGV) &&
		   (!*after || killing[i].fn == map_in_other_process) && !*replaced,
		   "%s kills, and nothing is executed in its place (%s, after %lu, %lu)",
		   killing[i].name, outcome_text(o), *after, *replaced);
	}
	ok(*sharer && WAIT_FOR(waitpid(*sharer, &status, WNOHANG) == (pid_t)*sharer, 5) &&
	   WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	   "the other process is killed, too (%lu, status %#x)", *sharer, status);
	if (*sharer && !status)
		kill(*sharer, SIGKILL);
	for (unsigned int i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		*replaced = 0;
		o = in_child(live_on, (void *)&harmless[i], 20);
		ok(!o.code && !*replaced, "%s fails or does no harm (%s)", harmless[i].name,
		   outcome_text(o));
	}
	o = in_child(becomes_another, NULL, 20);
	ok(!o.code, "execve() of a process with a stub works (%s)", outcome_text(o));
	return done();
}

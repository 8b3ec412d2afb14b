// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A thread that is alone when the filters of a guest's call begin, and is not when they end:
 * io_uring makes a worker of the process in the stop for a tracer (SECCOMP_RET_TRACE). The
 * tracer changes the call to one for which the filter ends the thread, and not the process
 * (SECCOMP_RET_KILL_THREAD). Fails when the thread ends within its run: then the vCPU, its
 * address space and a reference of the module stay for ever.
 */
#define _GNU_SOURCE
#include "child.h"
#include "filter.h"
#include "guest.h"
#include "guest_calls.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	20
#define PAGES	100	/* of private memory */

/* Shared by the guest's process, which the test traces, and the test. */
static struct shared {
	volatile int ready, calls;	/* the guest waits; it is about to make the call */
	volatile int call;		/* the guest may make it */
} *shared;

static int ends[2];
static struct guest g;

static u64 one_call(void *arg)
{
	shared->ready = 1;
	while (!shared->call)
		continue;
	shared->calls = 1;
	hypercall3(SYS_kill, 0x3ffffff, 0, 0);
	return 0;
}

/* When the pipe can be read, the worker that is made then calls fsync(2), which may sleep. */
static void ring_begin(void)
{
	struct io_uring_params params = { 0 };
	int fd = syscall(SYS_io_uring_setup, 8, &params);

	if (fd < 0)
		child_fails("io_uring cannot be set up");

	char *queue = mmap(NULL, params.sq_off.array + params.sq_entries * 4,
			   PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries = mmap(NULL, params.sq_entries * sizeof(*entries),
					    PROT_READ | PROT_WRITE, MAP_SHARED, fd,
					    IORING_OFF_SQES);
	unsigned int *array = (void *)(queue + params.sq_off.array);

	entries[0] = (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD, .fd = ends[0], .flags = IOSQE_IO_LINK,
		.poll32_events = POLLIN,
	};
	entries[1] = (struct io_uring_sqe){ .opcode = IORING_OP_FSYNC, .fd = ends[0] };
	array[0] = 0;
	array[1] = 1;
	*(volatile unsigned int *)(queue + params.sq_off.tail) = 2;
	if (syscall(SYS_io_uring_enter, fd, 2, 0, 0, NULL, 0) != 2)
		child_fails("io_uring does not take two requests");
}

static void install(void)
{
	struct sock_filter policy[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_slowly(policy, FILTER_LEN(policy), SYS_kill);
}

static void run_guest(void)
{
	struct dune_private private = { .size = sizeof(private), .pages = PAGES };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	guest_open(&g);
	if (g.info.private_pages && ioctl(g.fd, DUNE_ADD_PRIVATE, &private))
		child_fails("no private memory");
	ring_begin();
	install();
	guest_call(&g, one_call, NULL);
	_exit(0);
}

/* Comes while the call is being filtered. Returns whether the filter asked for its tracer. */
static bool change_the_call(pid_t pid)
{
	struct user_regs_struct regs;
	siginfo_t info;

	/* If the tracer comes too late, the process ends, and stays for wait_child(). */
	if (write(ends[1], "x", 1) != 1 ||
	    ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACESECCOMP) ||
	    waitid(P_PID, pid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) ||
	    info.si_status != (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
		return false;
	ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	regs.orig_rax = SYS_getpgid;
	regs.rdi = 0;
	ptrace(PTRACE_SETREGS, pid, NULL, &regs);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return true;
}

/* Returns whether the call was changed. */
static bool one_process(int round)
{
	bool changed = false;

	memset(shared, 0, sizeof(*shared));
	if (pipe(ends))
		bail("pipe: %m");

	pid_t pid = checked_fork();

	if (!pid)
		run_guest();
	if (WAIT_FOR(shared->ready, 20)) {
		shared->call = 1;
		while (!shared->calls)
			continue;
		/* The filters have begun, at different places. */
		for (volatile int i = 0; i < 1000 * (1 + round % 8); i++)
			continue;
		changed = change_the_call(pid);
	}
	wait_child(pid, 20);
	close(ends[0]);
	close(ends[1]);
	return changed;
}

int main(void)
{
	int changed = 0;

	begin(120);
	shared = shared_alloc(sizeof(*shared));

	long before = dune_users_left();

	for (int round = 0; round < ROUNDS; round++)
		changed += one_process(round);
	diag("%d of %d calls were changed", changed, ROUNDS);
	if (!changed)
		skip("no tracer came in time", "no process leaves its vCPU");
	else
		is(dune_users_left(), before, "no process leaves its vCPU");
	return done();
}

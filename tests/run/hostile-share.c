// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes in the sandbox attack the runtime together: a parent and a child that
 * share memory or descriptors. Each attempt is a way out that once worked. Fails when
 * one of them works again.
 */
#define _GNU_SOURCE
#include "lib.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NATIVE	77		/* exit status of a program outside of the sandbox */

struct shared {
	volatile int ready, done;
	volatile unsigned int word;
	volatile long result;
	volatile int found;
	char buffer[64];
};

static struct shared *shared;
static char stack[2][65536] __attribute__((aligned(16)));

/* ---- the parent's vCPU -------------------------------------------------- */

static int map_all_vcpus(void *unused)
{
	int fds[16], i, n = find_descriptors("dune-vcpu", fds, 16);

	shared->found = n;
	shared->result = 0;
	for (i = 0; i < n; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0) != MAP_FAILED)
			shared->result++;
	return 0;
}

static void test_vcpu(const char *name, int flags)
{
	pid_t child;

	shared->result = 0;
	shared->found = -1;
	child = clone(map_all_vcpus, stack[0] + sizeof(stack[0]), flags | SIGCHLD, NULL,
		      NULL, NULL, NULL);
	if (child > 0)
		waitpid(child, NULL, 0);
	ok(child < 0 ? errno == EINVAL || errno == ENOSYS :
		       shared->found <= 1 && shared->result == 0, "%s", name);
}

/* ---- buffers of the runtime --------------------------------------------- */

static int pair[2];

static int receive(void *unused)
{
	struct iovec v[2] = { { shared->buffer, 32 }, { shared->buffer + 32, 32 } };
	struct mmsghdr m[2] = {
		{ .msg_hdr = { .msg_iov = v, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = v + 1, .msg_iovlen = 1 } },
	};

	shared->ready = 1;
	shared->result = recvmmsg(pair[0], m, 2, 0, NULL);
	shared->done = 1;
	return 0;
}

/*
 * One process waits in recvmmsg with checked vectors; the kernel reads the second one
 * only when the first message has come. Meanwhile the other process calls sendmsg with
 * bad vectors, which is refused. The test fails if their copy replaced the checked
 * vectors.
 */
static void test_buffers(void)
{
	struct iovec v[3] = { { (void *)SPARE, 32 }, { (void *)SPARE, 32 }, { (void *)SPARE, 32 } };
	struct msghdr bad = { .msg_iov = v, .msg_iovlen = 3 };
	pid_t child;
	int i;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		bail("socketpair: %s", strerror(errno));
	memset(shared, 0, sizeof(*shared));
	child = clone(receive, stack[1] + sizeof(stack[1]), CLONE_VM | SIGCHLD, NULL,
		      NULL, NULL, NULL);
	if (child < 0) {
		ok(errno == ENOSYS, "memory is not shared with a child that runs at the same time");
		return;
	}
	while (!shared->ready)
		usleep(1000);
	for (i = 0; i < 20; i++) {
		usleep(10000);
		sendmsg(pair[1], &bad, 0);
	}
	send(pair[1], "the first", 10, 0);
	send(pair[1], "the second", 11, 0);
	for (i = 0; i < 1000 && !shared->done; i++)
		usleep(1000);
	ok(shared->done && !strcmp(shared->buffer + 32, "the second"),
	   "memory is not shared with a child that runs at the same time");
	diag("received %ld: %s, %s", shared->result, shared->buffer, shared->buffer + 32);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* ---- dune-run's own file ------------------------------------------------ */

static char *self;

static int execute_at(int number)
{
	char *argv[] = { "x", "executed", NULL };
	int fd = open(self, O_RDONLY);

	if (number >= 0)
		fcntl(fd, F_DUPFD, number);
	execv(self, argv);
	return 1;
}

/* Has a vfork child move the descriptor away that the parent needs; execve. */
static int executed(int ours)
{
	int status, fds[4];
	pid_t child = fork();

	if (child) {
		waitpid(child, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	if (find_descriptors("dune-run", fds, 4) != 1)
		_exit(2);
	child = vfork();
	if (!child) {
		dup2(0, fds[0]);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	_exit(execute_at(ours ? fds[0] + 1 : -1));
}

/* ---- robust lists ------------------------------------------------------- */

static struct robust_list node;
static struct robust_list_head head;

/* The parent's death: does the kernel write by its list in memory that lives? */
static void test_robust_list(void)
{
	void *volatile old_head;
	size_t len = 0;
	pid_t child;
	int i;

	memset(shared, 0, sizeof(*shared));
	child = fork();
	if (!child) {
		shared->word = syscall(SYS_gettid);
		node.next = &head.list;
		head.list.next = &node;
		head.futex_offset = (char *)&shared->word - (char *)&node;
		syscall(SYS_set_robust_list, &head, sizeof(head));
		if (!vfork()) {
			pid_t parent = getppid();

			shared->ready = 1;
			while (getppid() == parent)
				usleep(1000);
			shared->done = 1;
			_exit(0);
		}
		_exit(1);
	}
	while (!shared->ready)
		usleep(1000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (i = 0; i < 10000 && !shared->done; i++)
		usleep(1000);
	ok(shared->done && shared->word == (unsigned int)child,
	   "no robust list is walked in memory that a vfork child still uses");

	child = fork();
	if (!child) {
		syscall(SYS_set_robust_list, &head, sizeof(head));
		if (!vfork())
			_exit(0);
		syscall(SYS_get_robust_list, 0, &old_head, &len);
		_exit(old_head == &head && len == sizeof(head) ? 0 : 1);
	}
	waitpid(child, &i, 0);
	ok(i == 0, "the parent of a vfork child has its robust list again afterwards");

	child = vfork();
	if (!child) {
		child = fork();
		if (!child)
			_exit(syscall(SYS_set_robust_list, &head, sizeof(head)) ? 1 : 0);
		waitpid(child, &i, 0);
		shared->result = i;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ok(shared->result == 0, "a process with memory of its own may set a robust list");
}

/* ---- three processes in one memory --------------------------------------- */

/* SIGKILL ends a wait for a vfork child: the child's own would live on. */
static void test_grandchild(void)
{
	int child = vfork();

	if (!child) {
		int grandchild = vfork();

		if (!grandchild)
			_exit(0);
		shared->result = grandchild < 0 ? -errno : grandchild;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ok(shared->result == -ENOSYS, "a vfork child cannot vfork");
}

/* ---- a segment that comes to life between a check and its use ------------- */

#define SEGMENT	(2UL << 20)
#define ROUNDS	300

static int next_id(int id)
{
	int index = (id & 0x7fff) + 1, sequence = id >> 15;

	return index < 64 ? sequence << 15 | index : (sequence + 1) << 15;
}

__attribute__((noreturn)) static void attach_over_runtime(void)
{
	for (;;) {
		void *at = shmat(shared->found, (void *)(SUPER_BASE - 4096),
				 SHM_REMAP | SHM_EXEC);

		shared->done++;
		if (at != (void *)-1) {
			shared->result = 1;
			_exit(0);
		}
	}
}

/* The other process stops between its calls, and finds another segment then. */
static void test_segment(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0777);
	int child, round, before, hits = 0;

	shmctl(id, IPC_RMID, NULL);
	shared->found = next_id(id);
	shared->done = 0;
	shared->result = 0;
	child = fork();
	if (!child)
		attach_over_runtime();
	for (round = 0; round < ROUNDS && !shared->result; round++) {
		usleep(round * 7 % 1000);
		kill(child, SIGSTOP);
		waitpid(child, NULL, WUNTRACED);
		id = shmget(IPC_PRIVATE, SEGMENT, IPC_CREAT | 0777);
		hits += id == shared->found;
		before = shared->done;
		kill(child, SIGCONT);
		while (shared->done < before + 2 && !shared->result &&
		       !waitpid(child, NULL, WNOHANG))
			usleep(100);
		shmctl(id, IPC_RMID, NULL);
		shared->found = next_id(id);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ok(hits > ROUNDS / 2 && !shared->result,
	   "no segment is attached over the runtime, whenever it is made");
}

#define FILE_BYTES	(96L << 20)

/* Whether something is mapped where the runtime of this program has nothing. */
static int mapped_in_super_range(void)
{
	unsigned long start;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	int n = 0;

	if (!maps)
		_exit(3);
	while (fgets(line, sizeof(line), maps)) {
		start = strtoul(line, NULL, 16);
		n += start >= SUPER_BASE + 0x20000000 && start < SUPER_BASE + 0x40000000;
	}
	fclose(maps);
	return n;
}

/*
 * All room is taken but that of the runtime. A vfork child is killed while the
 * kernel fills a mapping for it there: 1, and what the parent has there then; 0
 * if the kill came too early or too late.
 */
static int kill_in_mmap(int file, int delay, int *left)
{
	pid_t killer, child;
	volatile int *step = &shared->ready;

	shared->found = 0;
	*step = 0;
	killer = fork();
	if (!killer) {
		while (!shared->found)
			usleep(500);
		usleep(delay);
		kill(shared->found, SIGKILL);
		_exit(0);
	}
	for (unsigned long size = 1UL << 46; size >= 4096; size >>= 1)
		while (call(SYS_mmap, 0, size, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) > 0)
			;
	child = vfork();
	if (!child) {
		*step = 1;
		shared->found = call(SYS_getpid, 0, 0, 0, 0, 0, 0);
		call(SYS_mmap, 0, FILE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_SHARED | MAP_POPULATE, file, 0);
		*step = 2;
		for (;;)
			call(SYS_pause, 0, 0, 0, 0, 0, 0);
	}
	waitpid(child, NULL, 0);
	waitpid(killer, NULL, 0);
	*left = mapped_in_super_range();
	return *step == 1;
}

static void test_killed_mapping(void)
{
	int file = call(SYS_memfd_create, (long)"file", 0, 0, 0, 0, 0), status = 0, left, i;

	if (ftruncate(file, FILE_BYTES))
		bail("a file in memory: %s", strerror(errno));
	/* Each try in a process of its own, which has no room left afterwards. */
	for (i = 0; i < 8 && !status; i++) {
		fflush(stdout);
		if (!fork())
			_exit(kill_in_mmap(file, 3000 << i, &left) ? 1 + !left : 0);
		wait(&status);
	}
	if (!status)
		skip("no kill came in time", "a mapping that a killed vfork child began is gone");
	else
		ok(WIFEXITED(status) && WEXITSTATUS(status) == 2,
		   "a mapping that a killed vfork child began is gone");
	close(file);
}

/* ---- holes in the arena -------------------------------------------------- */

#define ARENA		(SUPER_BASE + 0x10000000UL)
#define ARENA_END	(ARENA + 0x100000UL)	/* at first */

/* The kernel could place a mapping of the program's in each. */
static int holes_in_arena(void)
{
	unsigned long from, to, at = ARENA;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int holes = 0;

	if (!maps)
		_exit(3);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to <= at)
			continue;
		holes += from > at && at < ARENA_END;
		at = to;
	}
	fclose(maps);
	return holes + (at < ARENA_END);
}

/* In a process with memory of its own: what it finds. */
static int holes_in_copy(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(holes_in_arena());
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_holes(void)
{
	struct rlimit limit, low;
	pid_t child;

	shared->result = -1;
	child = vfork();
	if (!child) {
		shared->result = holes_in_copy();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	is(shared->result, 0, "the arena has no hole in a child of a vfork child");

	/* with this limit the run page of the child that is gone stays */
	getrlimit(RLIMIT_DATA, &limit);
	low = limit;
	low.rlim_cur = 4096;
	child = vfork();
	if (!child) {
		prlimit(getppid(), RLIMIT_DATA, &low, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	setrlimit(RLIMIT_DATA, &limit);
	is(holes_in_copy(), 0,
	   "the arena has no hole after a vfork child that lowered its parent's limit");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "--tree=", 7))
		return NATIVE;
	if (argc > 1 && !strcmp(argv[1], "executed"))
		return 0;
	self = realpath(argv[0], NULL);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	test_vcpu("a vfork child with the parent's descriptors cannot map its vCPU",
		  CLONE_VM | CLONE_VFORK | CLONE_FILES);
	test_vcpu("a vfork child with copies of the parent's descriptors cannot map its vCPU",
		  CLONE_VM | CLONE_VFORK);
	test_vcpu("a child that its parent waits for cannot map its parent's vCPU",
		  CLONE_VFORK | CLONE_FILES);
	test_vcpu("the child of a fork cannot map its parent's vCPU", 0);
	ok(executed(1) == 0, "a vfork child cannot make its parent execute another file natively");
	ok(executed(0) == 0,
	   "a number that a vfork child uses does not matter to its parent's execve");
	test_robust_list();
	test_buffers();
	test_grandchild();
	test_segment();
	test_killed_mapping();
	test_holes();
	return done();
}

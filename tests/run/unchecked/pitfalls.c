// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox without checks: the known ways out of an isolation within one process,
 * a row each. Each row is a child, which may die of it or continue, with any result. The watcher
 * sees what must not happen (unchecked.h). Any executable memory here is full of INT 0x80, so that
 * native code would make a call.
 *
 *	pitfalls [SEED [ROW]]	all rows, or those whose name begins with ROW; the random choices
 *				depend on SEED
 *
 * Rows that begin with "control" need dune-run-unchecked-control, and are made by their name only.
 */
#define _GNU_SOURCE
#include "maps.h"
#include "unchecked.h"

#include <dune_addresses.h>
#include "base/super_range.h"

#include <asm/ldt.h>
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/dune.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE		4096UL
#define SLED_SIZE	(1UL << 20)
#define ROW_SECONDS	3
#define ATTACK_SECONDS	12	/* for rows in which another process attacks one */
#define ACTIONS		20
#define SA_RESTORER	0x04000000UL
#define RANGES		64
#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

u64 super_base;
static char *sled;
static char buffer[1 << 16];
static int seed;

/* The parts of the supervisor range, and what is in private memory. */
#define STUB		super_base
#define WINDOW		(super_base + PAGE)
#define SCRATCH		(super_base + STUB_SIZE)
#define FRAMES		(SCRATCH + SCRATCH_SIZE)

static const u64 private_memory[] = {
	DUNE_PRIVATE_BASE, DUNE_PRIVATE_BASE + 0x5000, DUNE_IMAGE_BASE, DUNE_IMAGE_BASE + 0x14000,
	DUNE_IMAGE_BASE + 0x20000, DUNE_SCRATCH_AT,
};

/*
 * How many raw calls this row has made, and how many succeeded, and how many rounds of
 * use_runtime() ended, in all of its processes. (The row "overwritten" overwrites them, too.)
 */
static struct {
	u64 made, succeeded, rounds;
} *counts;

/* A raw call: the module alone decides about it. */
static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret = syscall(RAW_BIT | nr, a, b, c, d, e, f);

	counts->made++;
	counts->succeeded += ret >= 0;
	return ret;
}

#define RAW(nr, a, b, c)	raw(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define RAW6(nr, a, b, c, d, e, f) \
	raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#define TARGETS	12

/* One of the addresses that are attacked. */
static u64 target(unsigned int i)
{
	const u64 parts[] = { STUB, WINDOW, SCRATCH, FRAMES, STUB + PAGE / 2, FRAMES + PAGE };

	_Static_assert(COUNT(parts) + COUNT(private_memory) == TARGETS, "TARGETS");
	i %= TARGETS;
	return i < COUNT(parts) ? parts[i] : private_memory[i - COUNT(parts)];
}

static void fill_sled(char *at, size_t size)
{
	size_t i;

	for (i = 0; i < size; i += 2)
		memcpy(at + i, "\xcd\x80", 2);
}

static char *make_sled(u64 at, size_t size, int flags)
{
	char *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p != MAP_FAILED)
		fill_sled(p, size);
	return p;
}

static void tick(int sig)
{
}

static void keep_ticking(int sig, long microseconds)
{
	struct itimerval often = { { 0, microseconds }, { 0, microseconds } };
	struct sigaction act = { .sa_handler = tick, .sa_flags = SA_RESTART };

	sigaction(sig, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

/* Random bytes, or addresses of the sled. */
static void random_words(u64 *to, size_t words)
{
	size_t i;

	for (i = 0; i < words; i++)
		to[i] = rand() % 3 ? (u64)sled + rand() % SLED_SIZE :
			(u64)rand() << 33 ^ (u64)rand() << 11 ^ rand();
}

/* Calls of each kind that the runtime makes itself, with memory of its own. */
static void use_runtime(void)
{
	static const struct timespec moment = { 0, 1000 };
	struct sigaction act = { .sa_handler = tick };
	char *p;
	pid_t pid, shares;

	sigaction(SIGUSR1, &act, NULL);
	kill(getpid(), SIGUSR1);
	nanosleep(&moment, NULL);
	p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED) {
		p[rand() % (16 * PAGE)] = 1;
		munmap(p, 16 * PAGE);
	}
	syscall(SYS_access, NULL, F_OK);
	pid = fork();
	if (!pid) {
		if (rand() & 1)
			execl("/bin/true", "true", NULL);
		_exit(0);
	}
	shares = vfork();
	if (!shares)
		_exit(0);
	/* Not for any child: one that attacks this process lives as long as this process does. */
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (shares > 0)
		waitpid(shares, NULL, 0);
	counts->rounds++;
}

static void work(int times)
{
	keep_ticking(SIGALRM, 700);
	while (times--)
		use_runtime();
}

/*
 * The same for a process that another one attacks: most of all, it changes actions of signals and
 * takes the signals, since the kernel's copy of an action decides where the thread continues.
 */
static void work_attacked(int times)
{
	unsigned int i;

	keep_ticking(SIGALRM, 700);
	while (times--) {
		for (i = 0; i < ACTIONS; i++) {
			struct sigaction act = { .sa_handler = i & 1 ? tick : SIG_IGN };

			sigaction(SIGUSR2, &act, NULL);
			kill(getpid(), SIGUSR2);
		}
		use_runtime();
	}
}

/* ---- signals --------------------------------------------------------------------- */

static void row_sigreturn(void)
{
	struct {
		u64 ret;
		ucontext_t uc;
		char rest[4096];
	} __attribute__((aligned(64))) *f = (void *)buffer;

	getcontext(&f->uc);
	f->uc.uc_mcontext.gregs[REG_RIP] = (u64)sled;
	f->uc.uc_mcontext.gregs[REG_RSP] = (u64)buffer + 32768;
	f->uc.uc_mcontext.gregs[REG_CSGSFS] = 0x002b000000000033;
	f->uc.uc_mcontext.fpregs = NULL;
	__asm__ volatile("mov %0, %%rsp; mov %1, %%eax; syscall; mov $60, %%eax; syscall"
			 : : "r" (&f->uc), "i" (RAW_BIT | SYS_rt_sigreturn) : "memory");
}

/* The kernel's own struct sigaction. */
struct action {
	u64 handler, flags, restorer, mask;
};

static void row_sigaction(void)
{
	struct action act = { (u64)sled, SA_RESTORER | SA_SIGINFO | SA_ONSTACK, (u64)sled, 0 };
	int sig;

	for (sig = 1; sig < 65; sig++)
		RAW6(SYS_rt_sigaction, sig, &act, NULL, 8, 0, 0);
	kill(getpid(), SIGURG);
	kill(getpid(), SIGSEGV);
	work(3);
}

static void row_sigaltstack(void)
{
	stack_t alt = { .ss_sp = buffer, .ss_size = sizeof(buffer) };
	stack_t off = { .ss_flags = SS_DISABLE };

	RAW(SYS_sigaltstack, &alt, NULL, 0);
	work(3);
	RAW(SYS_sigaltstack, &off, NULL, 0);
	work(3);
}

static void row_siginfo(void)
{
	u64 info[16];
	int sig;

	keep_ticking(SIGALRM, 700);
	for (sig = 1; sig < 65; sig++) {
		struct sigaction act = { .sa_handler = tick };

		sigaction(sig, &act, NULL);
		random_words(info, 16);
		info[0] = sig;
		((int *)info)[2] = rand() & 1 ? -rand() % 10 : rand() % 10;
		RAW(SYS_rt_sigqueueinfo, getpid(), sig, info);
		RAW6(SYS_rt_tgsigqueueinfo, getpid(), getpid(), sig, info, 0, 0);
	}
	work(3);
}

static void row_sigmask(void)
{
	u64 all = ~0UL, none = 0;
	int i;

	for (i = 0; i < 50; i++) {
		RAW6(SYS_rt_sigprocmask, SIG_SETMASK, i & 1 ? &all : &none, NULL, 8, 0, 0);
		work(1);
	}
}

/* ---- the same process's memory, by other ways ------------------------------------ */

static void row_proc_mem(void)
{
	int fd = RAW6(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR, 0, 0, 0);
	unsigned int i;

	for (i = 0; i < TARGETS; i++) {
		u64 at = target(i);

		RAW6(SYS_pread64, fd, buffer, PAGE, at, 0, 0);
		RAW(SYS_lseek, fd, at, SEEK_SET);
		RAW(SYS_read, fd, buffer + PAGE, PAGE);
		RAW6(SYS_pwrite64, fd, sled, at >= FRAMES ? PAGE : 64, at, 0, 0);
		work(1);
	}
}

/* Looks for the runtime's secret in what the row @name has read. */
static void report_secret(const char *name)
{
	if (has_secret(buffer, sizeof(buffer)))
		dprintf(2, "FOUND the runtime's memory was read: %s\n", name);
}

static void row_process_vm(void)
{
	unsigned int i;

	for (i = 0; i < TARGETS; i++) {
		struct iovec mine = { buffer, PAGE }, its = { (void *)target(i), PAGE };

		RAW6(SYS_process_vm_readv, getpid(), &mine, 1, &its, 1, 0);
		if (has_secret(buffer, PAGE))
			return;
		mine.iov_base = sled;
		RAW6(SYS_process_vm_writev, getpid(), &mine, 1, &its, 1, 0);
		work(1);
	}
}

/* Reads the writable mappings of process @pid. */
static int find_writable(pid_t pid, struct iovec *ranges)
{
	char name[64], line[512], rights[8];
	unsigned long start, end;
	int n = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[1] == 'w' &&
		    n < RANGES)
			ranges[n++] = (struct iovec){ (void *)start, end - start };
	if (f)
		fclose(f);
	return n;
}

/* A new process for each attempt, since the attacked one dies of many of them; until killed. */
static void repeat(void (*attempt)(void))
{
	for (;;) {
		unsigned int choice = rand();
		pid_t pid = fork();

		if (!pid) {
			srand(choice);
			attempt();
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

/* A child writes all writable memory of its parent, which works. */
static void overwrite_all(void)
{
	pid_t parent = getpid();
	struct iovec ranges[RANGES];
	u64 words[16];
	int n;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		n = find_writable(parent, ranges);
		while (n && rand() % 32) {
			struct iovec *r = &ranges[rand() % n], from = { words, 8 + rand() % 120 };
			struct iovec to = { (char *)r->iov_base + (rand() % (r->iov_len / 8)) * 8,
					    from.iov_len };

			random_words(words, 16);
			RAW6(SYS_process_vm_writev, parent, &from, 1, &to, 1, 0);
		}
	}
}

/*
 * The same for the scratch and the frames alone, so that the parent lives longer. The copies that
 * are used most are at the beginning.
 */
static void overwrite_part(u64 at, u64 size)
{
	pid_t parent = getpid();
	u64 words[64];

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		struct iovec from = { words, 8 + rand() % 500 };
		u64 offset = rand() % (rand() & 1 ? 256 : size - 512) / 8 * 8;
		struct iovec to = { (char *)at + offset, from.iov_len };

		random_words(words, 64);
		RAW6(SYS_process_vm_writev, parent, &from, 1, &to, 1, 0);
	}
}

static void overwrite_scratch(void)
{
	overwrite_part(SCRATCH, rand() & 1 ? 4096 : SCRATCH_SIZE);
}

static void overwrite_frames(void)
{
	/* the last frame begins at the end of the stack */
	overwrite_part(FRAMES + FRAMES_SIZE - 4096, 4096);
}

/* Shared memory in the place of the scratch, the frames or both, which a child changes. */
static void share_part(void)
{
	u64 at = rand() & 1 ? SCRATCH : FRAMES, end = FRAMES + FRAMES_SIZE;
	int fd = memfd_create("shared", MFD_ALLOW_SEALING);
	pid_t parent = getpid();
	u64 *p;

	if (rand() & 1 && at == SCRATCH)
		end = FRAMES;
	ftruncate(fd, end - at);
	pwrite(fd, (void *)at, end - at, 0);
	p = mmap(NULL, end - at, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	RAW6(SYS_mmap, at, end - at, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd,
	     0);
	if (fork()) {
		work_attacked(1000);
		return;
	}
	while (getppid() == parent) {
		u64 words = (end - at) / 8, i = rand() % (rand() & 1 ? 512 : words);

		random_words(p + (rand() & 1 ? i : words - 1 - i), 1);
		if (rand() % 100000 == 0)
			ftruncate(fd, rand() & 1 ? 0 : end - at);
		if (rand() % 1000000 == 0)
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	}
}

static void row_overwritten(void) { repeat(overwrite_all); }
static void row_overwritten_scratch(void) { repeat(overwrite_scratch); }
static void row_overwritten_frames(void) { repeat(overwrite_frames); }
static void row_shared(void) { repeat(share_part); }

static void row_vmsplice(void)
{
	unsigned int i, flags;
	int ends[2];

	for (i = 0; i < TARGETS; i++) {
		for (flags = 0; flags < 16; flags++) {
			struct iovec v = { (void *)target(i), PAGE };

			pipe2(ends, O_NONBLOCK);
			RAW6(SYS_vmsplice, ends[1], &v, 1, flags, 0, 0);
			read(ends[0], buffer, PAGE);
			write(ends[1], sled, PAGE);
			RAW6(SYS_vmsplice, ends[0], &v, 1, flags, 0, 0);
			close(ends[0]);
			close(ends[1]);
		}
		work(1);
	}
}

/* ---- other mappings -------------------------------------------------------------- */

/*
 * A child for each attempt, since the module kills those that take the stub away. The time may end
 * before the last one, so the seed decides which is the first.
 */
static void try(void (*attempt)(unsigned int), unsigned int count)
{
	unsigned int first = rand() % count, i;

	for (i = 0; i < count; i++) {
		if (!fork()) {
			attempt((first + i) % count);
			work(2);
			_exit(0);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

static void map_over(unsigned int i)
{
	make_sled(target(i) & ~(PAGE - 1), PAGE * (1 + rand() % 4), MAP_FIXED);
}

static void map_over_all(unsigned int i)
{
	make_sled(super_base - PAGE * i, SUPER_SIZE + 2 * PAGE * i, MAP_FIXED);
}

static void unmap(unsigned int i)
{
	RAW(SYS_munmap, target(i), PAGE, 0);
	make_sled(target(i) & ~(PAGE - 1), PAGE, MAP_FIXED);
}

static void protect(unsigned int i)
{
	static const int rights[] = { 0, 1, 2, 3, 4, 5, 6, 7, 0x01000003, 0x02000003 };

	RAW(SYS_mprotect, target(i), PAGE << i % 3, rights[rand() % COUNT(rights)]);
	RAW6(SYS_pkey_mprotect, target(i), PAGE, rights[rand() % COUNT(rights)],
	     RAW(SYS_pkey_alloc, 0, rand() % 4, 0), 0, 0);
}

static void move(unsigned int i)
{
	u64 to = (u64)sled + PAGE * (rand() % 16);

	if (i & 1)
		RAW6(SYS_mremap, target(i / 2), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED |
		     (rand() & 1 ? MREMAP_DONTUNMAP : 0), to, 0);
	else
		RAW6(SYS_mremap, sled, PAGE << rand() % 3, PAGE << rand() % 3,
		     MREMAP_MAYMOVE | MREMAP_FIXED | (rand() & 1 ? MREMAP_DONTUNMAP : 0),
		     target(i / 2) & ~(PAGE - 1), 0);
	/* A second view of the stub's and the window's pages: an old size of 0 duplicates. */
	RAW6(SYS_mremap, target(i / 2), 0, STUB_SIZE, MREMAP_MAYMOVE, 0, 0);
	RAW6(SYS_mremap, super_base, STUB_SIZE, STUB_SIZE + PAGE, MREMAP_MAYMOVE, 0, 0);
	RAW6(SYS_remap_file_pages, target(i / 2), PAGE, 0, rand() % 8, 0, 0);
}

/* But for those by which root declares a page defective. */
static void advise(unsigned int i)
{
	RAW(SYS_madvise, target(i / 30) & ~(PAGE - 1), PAGE << rand() % 4, i % 30);
	if (i % 30 == 4)
		work(1);
}

static void attach(unsigned int i)
{
	int id = shmget(IPC_PRIVATE, SUPER_SIZE, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0);

	fill_sled(p, SUPER_SIZE);
	RAW(SYS_shmat, id, target(i), SHM_REMAP | (rand() & 1 ? SHM_EXEC : 0) |
	    (rand() & 1 ? SHM_RDONLY : 0));
	shmctl(id, IPC_RMID, NULL);
}

static void others(unsigned int i)
{
	u64 nodes = 1;

	RAW6(SYS_mlock2, target(i), PAGE, rand() & 1, 0, 0, 0);
	RAW6(SYS_mbind, target(i), PAGE, rand() % 5, &nodes, 64, rand() % 8);
	RAW6(SYS_move_pages, 0, 1, (u64[]){ target(i) }, (int[]){ 0 }, buffer, 2);
	RAW6(SYS_msync, target(i), PAGE, rand() % 8, 0, 0, 0);
	RAW6(462 /* mseal */, target(i), PAGE, 0, 0, 0, 0);
	RAW6(SYS_process_madvise, RAW(SYS_pidfd_open, getpid(), 0, 0),
	     (&(struct iovec){ (void *)target(i), PAGE }), 1, rand() % 26, 0, 0);
	RAW6(453 /* map_shadow_stack */, target(i), PAGE, 0, 0, 0, 0);
	RAW(SYS_mincore, target(i), PAGE, target(i + 1));
}

static void row_map_over(void) { try(map_over, TARGETS); }
static void row_map_over_all(void) { try(map_over_all, 3); }
static void row_unmap(void) { try(unmap, TARGETS); }
static void row_mprotect(void) { try(protect, 2 * TARGETS); }
static void row_mremap(void) { try(move, 2 * TARGETS); }
static void row_madvise(void) { try(advise, 30 * 4); }
static void row_shmat(void) { try(attach, 6); }
static void row_other_mapping_calls(void) { try(others, TARGETS); }

static void row_unmap_everything(void)
{
	RAW(SYS_munmap, 0, 1UL << 46, 0);
	RAW(SYS_munmap, (u64)sled & ~((1UL << 39) - 1), 1UL << 39, 0);
}

/* ---- asynchronous access --------------------------------------------------------- */

/* The module refuses each of them, so nothing asynchronous can be tried. */
static void row_io_uring(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL };

	if (RAW(SYS_io_uring_setup, 16, &params, 0) >= 0 ||
	    RAW6(SYS_io_uring_enter, 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM ||
	    RAW6(SYS_io_uring_register, 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
		dprintf(2, "FOUND a call of io_uring that was not refused\n");
}

static void row_aio(void)
{
	u64 context = 0, block[8] = { 0 }, *list = block;
	int file = memfd_create("file", 0);
	unsigned int i;

	write(file, sled, sizeof(buffer));
	RAW(SYS_io_setup, 8, &context, 0);
	for (i = 0; i < TARGETS; i++) {
		block[2] = 0;			/* IOCB_CMD_PREAD */
		block[2] |= (u64)file << 32;
		block[3] = target(i);
		block[4] = PAGE;
		RAW(SYS_io_submit, context, 1, &list);
		RAW6(SYS_io_getevents, context, 0, 8, target(i + 1), 0, 0);
		work(1);
	}
	RAW6(SYS_mremap, context, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, SCRATCH, 0);
	work(2);
}

/* A child answers the faults of its parent's scratch and frames, with a sled. */
static void row_userfaultfd(void)
{
	int fd = RAW(SYS_userfaultfd, O_CLOEXEC | (rand() & 1 ? UFFD_USER_MODE_ONLY : 0), 0, 0);
	struct uffdio_api api = { .api = UFFD_API };
	u64 parts[] = { STUB, WINDOW, SCRATCH, FRAMES };
	u64 sizes[] = { PAGE, STUB_SIZE - PAGE, SCRATCH_SIZE, FRAMES_SIZE };
	pid_t parent = getpid();
	unsigned int i;

	ioctl(fd, UFFDIO_API, &api);
	for (i = 0; i < 4; i++) {
		struct uffdio_register r = {
			.range = { parts[i], sizes[i] }, .mode = UFFDIO_REGISTER_MODE_MISSING,
		};

		ioctl(fd, UFFDIO_REGISTER, &r);
	}
	if (!fork()) {
		struct uffd_msg m;

		while (getppid() == parent && read(fd, &m, sizeof(m)) == sizeof(m)) {
			struct uffdio_copy c = {
				.dst = m.arg.pagefault.address & ~(PAGE - 1), .src = (u64)sled,
				.len = PAGE,
			};

			ioctl(fd, UFFDIO_COPY, &c);
			for (i = 0; i < 4; i++) {
				c.dst = parts[i];
				ioctl(fd, UFFDIO_COPY, &c);
			}
		}
		_exit(0);
	}
	for (i = 0; i < 200; i++) {
		madvise((void *)parts[2 + i % 2], sizes[2 + i % 2], MADV_DONTNEED);
		work_attacked(1);
	}
}

/* ---- tracing and descriptors ----------------------------------------------------- */

static void row_ptrace(void)
{
	struct {
		u64 words[27];
	} regs;
	pid_t parent = getpid(), child = fork();
	int status;

	if (!child) {
		RAW6(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0, 0, 0);
		raise(SIGSTOP);
		work(5);
		_exit(0);
	}
	RAW6(SYS_ptrace, PTRACE_SEIZE, child, 0, 0, 0, 0);
	RAW6(SYS_ptrace, PTRACE_ATTACH, child, 0, 0, 0, 0);
	usleep(50000);
	waitpid(child, &status, WUNTRACED | WNOHANG);
	if (!RAW6(SYS_ptrace, PTRACE_GETREGS, child, 0, &regs, 0, 0)) {
		regs.words[16] = (u64)sled;
		RAW6(SYS_ptrace, PTRACE_SETREGS, child, 0, &regs, 0, 0);
	}
	RAW6(SYS_ptrace, PTRACE_POKETEXT, child, STUB, 0x80cd80cd80cd80cd, 0, 0);
	RAW6(SYS_ptrace, PTRACE_CONT, child, 0, 0, 0, 0);
	kill(child, SIGCONT);
	usleep(50000);
	RAW6(SYS_ptrace, PTRACE_ATTACH, parent, 0, 0, 0, 0);
	kill(child, SIGKILL);
}

/* The number of the vCPU's descriptor, or -1. */
static int vcpu_number(void)
{
	char name[40], link[100];
	int fd;

	for (fd = 0; fd < 1100; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		if (strstr(link, "[dune-vcpu"))
			return fd;
	}
	return -1;
}

static void vcpu_call(unsigned int i)
{
	static const u64 offsets[] = { 0, PAGE, 2 * PAGE, 3 * PAGE, 1UL << 32 };
	int vcpu = vcpu_number(), other = memfd_create("other", 0);
	u64 argument[64];
	unsigned int n;

	memset(argument, 0, sizeof(argument));
	switch (i % 8) {
	case 0:		/* the file in the vCPU's place returns an offset that the program chose */
		ftruncate(other, 1UL << 40);
		RAW(SYS_lseek, other, rand() & 1 ? (u64)sled & 0xffffffffff : SYS_execve, SEEK_SET);
		RAW(SYS_dup2, other, vcpu, 0);
		break;
	case 1:
		RAW(SYS_close, vcpu, 0, 0);
		break;
	case 2:
		for (n = 0; n < 64; n++) {
			random_words(argument, 64);
			argument[0] = n;
			RAW(SYS_ioctl, vcpu, 0xde00 | n, argument);
			RAW(SYS_ioctl, vcpu, 0xc000de00 | n | (8 * (rand() % 60)) << 16, argument);
			RAW(SYS_ioctl, vcpu, 0x4000de00 | n | (8 * (rand() % 60)) << 16, argument);
		}
		break;
	case 3:
		for (n = 0; n < 2 * COUNT(offsets); n++) {
			RAW6(SYS_mmap, n & 1 ? 0 : SCRATCH, PAGE, n % 4 < 2 ? 7 : 5,
			     MAP_SHARED | (n & 1 ? 0 : MAP_FIXED), vcpu, offsets[n / 2]);
			RAW6(SYS_mmap, 0, STUB_SIZE, 3, MAP_PRIVATE, vcpu, offsets[n / 2]);
		}
		break;
	case 4:
		for (n = 0; n < 4; n++)
			RAW(SYS_lseek, vcpu, n & 1 ? (u64)sled : FRAMES, n);
		RAW(SYS_read, vcpu, buffer, PAGE);
		RAW(SYS_write, vcpu, buffer, PAGE);
		break;
	case 5:		/* the parent's vCPU in the place of its own */
		n = RAW(SYS_pidfd_getfd, RAW(SYS_pidfd_open, getppid(), 0, 0), vcpu, 0);
		RAW(SYS_ioctl, n, DUNE_RENEW_VCPU, 0);
		RAW(SYS_lseek, n, 0, 0);
		RAW(SYS_dup2, n, vcpu, 0);
		break;
	case 6:		/* a new address space of the device's */
		n = RAW6(SYS_openat, AT_FDCWD, "/dev/dune", O_RDWR, 0, 0, 0);
		RAW(SYS_ioctl, n, DUNE_CREATE_VCPU, argument);
		RAW(SYS_dup2, n, vcpu, 0);
		break;
	case 7:
		RAW(SYS_close_range, 3, ~0U, 0);
		RAW(SYS_unshare, 0x400, 0, 0);
		break;
	}
}

static void row_vcpu(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	try(vcpu_call, 16);
}

static void row_vcpu_received(void)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec v = { buffer, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c),
	};
	int ends[2], vcpu = vcpu_number();

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	if (!fork()) {
		memcpy(CMSG_DATA(&c.h), &vcpu, sizeof(vcpu));
		RAW(SYS_sendmsg, ends[0], &m, 0);
		work(3);
		_exit(0);
	}
	RAW(SYS_recvmsg, ends[1], &m, 0);
	memcpy(&vcpu, CMSG_DATA(&c.h), sizeof(vcpu));
	RAW(SYS_lseek, vcpu, 0, 0);
	RAW(SYS_ioctl, vcpu, DUNE_RUN, 0);
	RAW(SYS_dup2, vcpu, vcpu_number(), 0);
	work(2);
}

/* ---- processes ------------------------------------------------------------------- */

static void clone_raw(unsigned int i)
{
	static const u64 flags[] = {
		0, CLONE_VM, CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD,
		CLONE_VM | CLONE_FILES, CLONE_FILES, CLONE_FS, CLONE_SETTLS, CLONE_PTRACE,
		CLONE_PARENT, CLONE_VM | CLONE_SIGHAND, CLONE_VM | CLONE_SETTLS,
	};
	struct {
		u64 words[11];
	} args = { { flags[i % COUNT(flags)], 0, 0, 0, SIGCHLD, (u64)buffer, sizeof(buffer),
		     (u64)sled } };
	u64 *stack = (u64 *)(buffer + sizeof(buffer)) - 16;

	random_words(stack, 16);
	RAW6(SYS_clone, flags[i % COUNT(flags)] | SIGCHLD, stack, buffer, buffer, sled, 0);
	RAW(435 /* clone3 */, &args, sizeof(args), 0);
	RAW(SYS_fork, 0, 0, 0);
	RAW(SYS_vfork, 0, 0, 0);
	/* by libdune, which has checks of its own for what it does not support */
	if (!syscall(SYS_clone, (flags[i % COUNT(flags)] & ~CLONE_SETTLS) | SIGCHLD, stack, buffer,
		     buffer, 0))
		_exit(0);
}

static void execute_raw(unsigned int i)
{
	char *argv[] = { "true", NULL };
	int fd = open("/bin/true", O_RDONLY);

	if (i & 1)
		RAW(SYS_execve, "/bin/true", argv, argv + 1);
	else
		RAW6(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH, 0);
	/* by dune-run, with another file at the number of the vCPU's descriptor */
	if (i & 4)
		RAW(SYS_dup2, i & 1 ? fd : memfd_create("other", 0), vcpu_number(), 0);
	/* by dune-run, while its own file has another number or none */
	if (i & 2)
		RAW(SYS_close_range, 61, 2000, 0);
	else
		for (fd = 1000; fd < 1030; fd++)
			RAW(SYS_dup2, 3, fd, 0);
	execv("/bin/true", argv);
}

static void row_clone(void) { try(clone_raw, 12); }
static void row_execute(void) { try(execute_raw, 8); }

/*
 * The supervisor of a seccomp filter replaces the descriptor of the file that is executed, before
 * the kernel looks at it. This works only where the process has no other filter with a listener.
 */
static void row_replaced_execution(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { COUNT(f), f };
	struct seccomp_notif_addfd replace = { .flags = SECCOMP_ADDFD_FLAG_SETFD };
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct seccomp_notif call = { 0 };
	int listener;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
	if (listener < 0)
		return;
	if (!fork()) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	if (RAW(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return;
	replace.id = call.id;
	replace.srcfd = open("/bin/true", O_RDONLY);
	replace.newfd = call.data.args[0];
	RAW(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_ADDFD, &replace);
	answer.id = call.id;
	RAW(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void row_robust_list(void)
{
	u64 list[3], entry[2];
	unsigned int i;

	for (i = 0; i < TARGETS; i++) {
		if (!fork()) {
			entry[0] = (u64)list;
			list[0] = i & 1 ? target(i) : (u64)entry;
			list[1] = target(i) - (u64)entry;
			list[2] = target(i + 1);
			RAW(SYS_set_robust_list, i & 2 ? (u64)list : target(i), 24, 0);
			RAW(SYS_set_tid_address, target(i), 0, 0);
			RAW(SYS_exit, 0, 0, 0);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

static void row_rseq(void)
{
	static struct {
		u32 cpu_start, cpu;
		u64 cs;
		u32 flags, node, mm, pad;
	} area __attribute__((aligned(32)));
	static struct {
		u32 version, flags;
		u64 start, size, abort;
	} cs __attribute__((aligned(32)));

	memcpy(sled + 28, "\x53\x30\x05\x53", 4);
	cs.start = STUB;
	cs.size = PAGE;
	cs.abort = (u64)sled + 32;
	area.cs = (u64)&cs;
	RAW6(SYS_rseq, &area, 32, 0, 0x53053053, 0, 0);
	area.cs = (u64)&cs;
	work(5);
}

/* ---- the thread's other state ---------------------------------------------------- */

static void row_prctl(void)
{
	static const int options[] = { PR_SET_MM, 59 /* syscall user dispatch */, PR_SET_TSC };
	unsigned int i, option;

	for (option = 1; option < 82; option++) {
		if (option == PR_SET_SECCOMP || option == PR_SET_PDEATHSIG || option == PR_SET_TSC)
			continue;
		for (i = 0; i < 16; i++)
			RAW6(SYS_prctl, option, option == PR_SET_MM ? i : (u64)rand() % 4,
			     i < TARGETS ? target(i) : (u64)sled, PAGE, target(i), 0);
		if (option % 16 == 0)
			work(1);
	}
	for (i = 0; i < COUNT(options); i++) {
		RAW6(SYS_prctl, options[i], 1, 0, 0, target(i), 0);
		work(1);
	}
}

static void row_arch_prctl(void)
{
	unsigned int i, option;

	for (i = 0; i < TARGETS; i++)
		for (option = 0x1001; option < 0x1027; option++)
			if (option != ARCH_SET_CPUID)
				RAW(SYS_arch_prctl, option, target(i), 0);
	RAW(SYS_arch_prctl, 0x2003 /* ARCH_MAP_VDSO_64 */, (u64)sled & ~(PAGE - 1), 0);
	work(2);
	RAW(SYS_arch_prctl, ARCH_SET_CPUID, 0, 0);
	work(1);
}

static void row_ldt(void)
{
	struct user_desc d = {
		.base_addr = (unsigned int)(u64)sled, .limit = 0xfffff, .seg_32bit = 1,
		.contents = MODIFY_LDT_CONTENTS_CODE, .limit_in_pages = 1,
	};
	unsigned int i;

	for (i = 0; i < 32; i++) {
		d.entry_number = i;
		RAW(SYS_modify_ldt, i & 1 ? 1 : 0x11, &d, sizeof(d));
	}
	d.entry_number = 12;
	RAW(SYS_set_thread_area, &d, 0, 0);
	__asm__ volatile("mov %0, %%fs" : : "r" (7));
	work(2);
}

static void row_personality(void)
{
	static const u32 bits[] = {
		READ_IMPLIES_EXEC, ADDR_NO_RANDOMIZE, ADDR_COMPAT_LAYOUT, MMAP_PAGE_ZERO,
		ADDR_LIMIT_3GB, ADDR_LIMIT_32BIT, SHORT_INODE, STICKY_TIMEOUTS, 8 /* PER_LINUX32 */,
	};
	unsigned int i;

	for (i = 0; i < COUNT(bits); i++) {
		RAW(SYS_personality, bits[i], 0, 0);
		make_sled(0, PAGE, 0);
		RAW(SYS_mprotect, SCRATCH, SUPER_SIZE - STUB_SIZE, PROT_READ);
		RAW(SYS_mprotect, SCRATCH, SUPER_SIZE - STUB_SIZE, PROT_READ | PROT_WRITE);
		work(2);
	}
}

static void filter_calls(u32 what, long nr)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { COUNT(f), f };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
}

static void filtered(unsigned int i)
{
	static const u32 answers[] = {
		SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO | 512, SECCOMP_RET_ERRNO, SECCOMP_RET_TRACE,
		SECCOMP_RET_KILL_THREAD, SECCOMP_RET_ERRNO | 513, SECCOMP_RET_ERRNO | 516,
	};
	static const short numbers[] = {
		SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_nanosleep, SYS_getppid, SYS_clone,
		SYS_execveat, SYS_mmap, SYS_lseek, SYS_munmap, SYS_openat, SYS_ioctl,
	};

	filter_calls(answers[i % COUNT(answers)], numbers[i / COUNT(answers) % COUNT(numbers)]);
}

static void row_seccomp(void) { try(filtered, 77); }

static void row_limits(void)
{
	static const int limits[] = {
		RLIMIT_STACK, RLIMIT_DATA, RLIMIT_AS, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK,
		RLIMIT_NPROC, RLIMIT_NOFILE,
	};
	struct rlimit none = { 0, 0 };
	unsigned int i;

	for (i = 0; i < COUNT(limits); i++) {
		setrlimit(limits[i], &none);
		work(1);
	}
}

static void row_namespaces(void)
{
	static const u32 flags[] = {
		CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_FS,
		CLONE_SYSVSEM, CLONE_FILES, CLONE_SIGHAND, CLONE_VM, CLONE_THREAD, 0x80,
	};
	unsigned int i;

	for (i = 0; i < COUNT(flags); i++) {
		RAW(SYS_unshare, flags[i], 0, 0);
		work(1);
	}
	RAW(SYS_chroot, "/proc", 0, 0);
	work(2);
}

/* The dump is a file that the watcher searches for the runtime's memory. */
static void row_core(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	u64 filter = 0x1ff;
	int fd = open("/proc/self/coredump_filter", O_WRONLY);

	dprintf(fd, "0x%lx\n", filter);
	setrlimit(RLIMIT_CORE, &all);
	RAW(SYS_madvise, super_base, SUPER_SIZE, MADV_DODUMP);
	RAW(SYS_madvise, SCRATCH, SUPER_SIZE - STUB_SIZE, MADV_DODUMP);
	prctl(PR_SET_DUMPABLE, 1);
	signal(SIGSEGV, SIG_DFL);
	kill(getpid(), SIGSEGV);
}

static void row_numbers(void)
{
	static const long numbers[] = {
		SYS_restart_syscall, 335, 336, 453, SYS_uselib, SYS_iopl, SYS_ioperm,
		SYS_set_thread_area, SYS_get_thread_area, SYS_vhangup, 0x40000000 | 512,
		0x40000000 | 513, 0x40000000 | 520, 0x40000000 | 545, -1, 0x7fffffff, 600,
		SYS_membarrier, SYS_perf_event_open, SYS_bpf,
	};
	struct action act = { (u64)sled, SA_RESTORER | SA_ONSTACK, (u64)sled, 0 };
	unsigned int i, n;

	for (i = 0; i < COUNT(numbers); i++) {
		for (n = 0; n < TARGETS; n++) {
			RAW6(numbers[i], n, target(n), target(n + 1), 8, sled, 0);
			RAW6(numbers[i], SIGALRM, &act, 0, 8, 0, 0);
			RAW6(numbers[i], target(n), PAGE, 7, 8, 0, 0);
		}
		work(1);
	}
}

/*
 * Ring 3 jumps to private memory, reads and writes it, and tries the instructions that enter ring 0
 * or the host in other ways than SYSCALL.
 */
static void row_ring3(void)
{
	unsigned int i;

	for (i = 0; i < COUNT(private_memory); i++) {
		if (!fork())
			((void (*)(void))private_memory[i])();
		if (!fork()) {
			/* A page that is not there ends the child. */
			memcpy(buffer, (void *)private_memory[i], PAGE);
			dprintf(2, "FOUND ring 3 reads %#lx\n", private_memory[i]);
			_exit(0);
		}
		if (!fork())
			memset((void *)private_memory[i], 0xcd, PAGE);
	}
	if (!fork())
		__asm__ volatile("int $0x80" : : "a" (20));
	if (!fork())
		__asm__ volatile("vmmcall" : : "a" (DUNE_HOSTCALL | SYS_getpid));
	if (!fork())
		__asm__ volatile("sysenter" : : "a" (20));
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* ---- what the watcher has to find with dune-run-unchecked-control ---------------- */

static void control(enum control what, u64 argument)
{
	syscall(CONTROL_BIT, what, argument, 0, 0, 0, 0);
}

static void row_control_native(void)
{
	struct action act = { (u64)sled, SA_RESTORER | SA_SIGINFO | SA_ONSTACK, (u64)sled, 0 };

	syscall(PRIVILEGED_BIT | SYS_rt_sigaction, SIGURG, &act, NULL, 8, 0, 0);
	kill(getpid(), SIGURG);
}

static void row_control_read(void) { control(CONTROL_READ, (u64)buffer); }
static void row_control_write(void) { control(CONTROL_WRITE, 0); }

static void row_control_code(void)
{
	int i;

	control(CONTROL_CODE, 0);
	for (i = 0; i < 100; i++)
		getppid();
}

static void row_control_jump(void) { control(CONTROL_JUMP, (u64)sled); }

static void row_control_file(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0666);

	control(CONTROL_READ, (u64)buffer);
	write(fd, buffer, 4096);
	_exit(0);
}

/* ---- the rows -------------------------------------------------------------------- */

#define ROW(name)		{ #name, row_##name, ROW_SECONDS }
#define ATTACKED_ROW(name)	{ #name, row_##name, ATTACK_SECONDS }

static const struct {
	const char *name;
	void (*make)(void);
	unsigned int seconds;
} rows[] = {
	ROW(sigreturn), ROW(sigaction), ROW(sigaltstack), ROW(siginfo), ROW(sigmask),
	ROW(proc_mem), ROW(process_vm), ATTACKED_ROW(overwritten),
	ATTACKED_ROW(overwritten_scratch), ATTACKED_ROW(overwritten_frames),
	ATTACKED_ROW(shared), ROW(vmsplice), ROW(map_over), ROW(map_over_all),
	ROW(unmap), ROW(mprotect), ROW(mremap), ROW(madvise), ROW(shmat),
	ROW(other_mapping_calls), ROW(unmap_everything), ROW(io_uring), ROW(aio),
	ATTACKED_ROW(userfaultfd), ROW(ptrace), ROW(vcpu), ROW(vcpu_received), ROW(clone),
	ROW(execute), ROW(replaced_execution), ROW(robust_list), ROW(rseq), ROW(prctl),
	ROW(arch_prctl), ROW(ldt), ROW(personality), ROW(seccomp), ROW(limits), ROW(namespaces),
	ROW(core), ROW(numbers), ROW(ring3),
	ROW(control_native), ROW(control_read), ROW(control_write), ROW(control_code),
	ROW(control_jump), ROW(control_file),
};

static void make_row(unsigned int i)
{
	u64 until = time(NULL) + rows[i].seconds;
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		setpgid(0, 0);
		srand(seed * 1000 + i);
		rows[i].make();
		report_secret(rows[i].name);
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG) && (u64)time(NULL) < until)
		usleep(20000);
	kill(-pid, SIGKILL);
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("row %s: status 0x%x, %lu of %lu raw calls succeeded, %lu rounds\n", rows[i].name,
	       status, counts->succeeded, counts->made, counts->rounds);
	memset(counts, 0, sizeof(*counts));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : "";
	unsigned int i;

	seed = argc > 1 ? atoi(argv[1]) : 1;
	counts = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	super_base = mapping_start("[dune-stub]");
	if (!super_base || RAW(SYS_getpid, 0, 0, 0) < 0) {
		fprintf(stderr, "pitfalls: start this by watch --unchecked\n");
		return 2;
	}
	sled = make_sled(0, SLED_SIZE, 0);
	mkdir("/tmp/attack-pitfalls", 0777);
	if (chdir("/tmp/attack-pitfalls"))
		return 2;
	for (i = 0; i < COUNT(rows); i++)
		if (!strncmp(rows[i].name, only, strlen(only)) &&
		    (*only || strncmp(rows[i].name, "control", 7)))
			make_row(i);
	return 0;
}

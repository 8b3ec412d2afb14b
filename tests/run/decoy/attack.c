// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox that tries to make the kernel touch the decoy: in
 * each case a process makes some hundred system calls, all chosen by a seed,
 * with addresses in the decoy or right below it wherever a word may be one.
 * It knows kinds of calls, but nothing of what run/ checks.
 *
 *	attack FIRST COUNT CALLS [NAME]	cases FIRST to FIRST + COUNT - 1, of at
 *					most CALLS calls; NAME: of this kind alone
 *
 * It runs as the first process of a process-ID name space (watch.c), so that
 * kill(-1) after a case leaves nobody.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoy.h"

#define PAGE		4096UL
#define LOW_SIZE	(16UL << 20)	/* ours, right below the supervisor range */
#define LOW_BASE	(RUNTIME_BASE - LOW_SIZE)
#define POOL_SIZE	(1UL << 20)
#define CASE_LIMIT	4000	/* milliseconds */
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

static struct decoy_log *record;
static const char *own_path;

/* Numbers, for a node of a device can be made anywhere; filled in at the start. */
static struct {
	const char *name;
	dev_t number;
} devices[] = { { .name = "/dev/mem" }, { .name = "/dev/dune" }, { .name = "/dev/kvm" } };
static char *pool;
static size_t pool_used;
static u64 seed_state;
static int depth;
static u64 current_seed;

/* ---- what the seed chooses ---------------------------------------------- */

/* splitmix64 */
static u64 any(void)
{
	u64 z = seed_state += 0x9e3779b97f4a7c15UL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
	return z ^ z >> 31;
}

static u64 below(u64 n)
{
	return any() % n;
}

static bool one_in(u64 n)
{
	return below(n) == 0;
}

#define PICK(array) ((array)[below(ARRAY_LEN(array))])

static u64 in_decoy(void)
{
	static const u64 near[] = { 0, 8, 16, 64, 2048, 4088, 4096, 8192, 65536 };

	return DECOY_BASE + (one_in(4) ? below(DECOY_SIZE) & ~7UL : PICK(near));
}

/* Ours, but what begins there may reach into the supervisor range. */
static u64 below_range(void)
{
	static const u64 near[] = { 1, 4, 8, 12, 16, 24, 32, 48, 56, 64, 128, 256, 1024, 4096, 65536 };

	return RUNTIME_BASE - (one_in(4) ? below(LOW_SIZE) & ~3UL : PICK(near));
}

static u64 number(void)
{
	static const u64 known[] = {
		0, 1, 2, 3, 4, 6, 7, 8, 9, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1000, 1024,
		4096, 65536, GUARD_REGION_SIZE, GUARD_REGION_SIZE / 4 + 1, 2 * GUARD_REGION_SIZE,
		0x7fffffff, 0x80000000, 0xffffffff, -1UL, -2UL, -100UL, 1UL << 32, 1UL << 63,
	};

	switch (below(4)) {
	case 0:
		return 1UL << below(64);
	case 1:
		return below(64);
	case 2:
		return below(1UL << below(33));
	}
	return PICK(known);
}

static u64 buffer(void);

/* One 8-byte word of some structure. */
static u64 word(void)
{
	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		return in_decoy();
	case 3:
		return below_range();
	case 4:
		return 0;
	case 5:
		return below(4096) << 32 | below(64);
	case 6:
		return depth < 3 ? buffer() : (u64)pool;
	case 7:
		return below(16);
	}
	return number();
}

static void *take(size_t size)
{
	char *p;

	size = (size + 15) & ~15UL;
	if (pool_used + size > POOL_SIZE)
		pool_used = 0;
	p = pool + pool_used;
	pool_used += size;
	return p;
}

static void fill(u64 *to, size_t words)
{
	u64 kind = below(6), start = one_in(2) ? 1 : 1 + below(3);
	size_t i;

	depth++;
	for (i = 0; i < words; i++) {
		/* most structures begin with small numbers, and go on with pointers */
		if (kind == 0)
			to[i] = in_decoy();
		else if (kind < 4 && i < start)
			to[i] = below(32) | (one_in(2) ? below(256) : 8 * below(16)) << 32;
		else if (kind < 4)
			to[i] = one_in(4) ? below(64) : in_decoy();
		else
			to[i] = word();
	}
	depth--;
}

/* A structure at some depth; now and then one that ends at the supervisor range. */
static u64 buffer(void)
{
	static const size_t words[] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 32, 64, 512 };
	size_t n = PICK(words);
	u64 *to = take(8 * n);

	fill(to, n);
	if (one_in(8)) {
		u64 at = RUNTIME_BASE - 8 * (1 + below(n));

		memcpy((void *)at, to, RUNTIME_BASE - at);
		return at;
	}
	return (u64)to;
}

static u64 name(void)
{
	static const char * const names[] = {
		"", ".", "a", "b", "folder", "folder/c", "link", "/proc/self/exe", "/proc/self/mem",
		"/proc/self/maps", "/dev/null", "/dev/zero", "/dev/mem", "/dev/dune", "/dev/kvm",
		"/proc/self/fd/3", "/proc/thread-self/mem", "/proc/kcore", "tmpfs", "user", "keyring",
		"logon", "security.x", "user.x", "proc", "/proc/self/ns/net", "/dev/ptmx", "/dev/fuse",
		"/dev/userfaultfd", "/dev/net/tun", "/dev/uinput", "/dev/vhost-net", "/dev/loop0",
	};
	const char *chosen = PICK(names);
	char *to = take(strlen(chosen) + 1);

	return (u64)strcpy(to, chosen);
}

/* Descriptors of all kinds; number 2 is where messages go. */
static int files[64], files_used;

static void keep(int fd)
{
	if (fd < 0)
		return;
	if (files_used < (int)ARRAY_LEN(files))
		files[files_used++] = fd;
	else
		files[below(ARRAY_LEN(files))] = fd;
}

static u64 file(void)
{
	if (one_in(12))
		return one_in(2) ? (u64)AT_FDCWD : 3 + below(1100);
	return files_used ? files[below(files_used)] : 1;
}

static u64 pointer(void)
{
	switch (below(12)) {
	case 0:
		return in_decoy();
	case 1:
		return 0;
	case 2:
	case 3:
		return below_range();
	case 4:
	case 5:
		return name();
	}
	return buffer();
}

static u64 value(void)
{
	switch (below(6)) {
	case 0:
		return in_decoy();
	case 1:
		return buffer();
	case 2:
		return file();
	}
	return number();
}

/* ---- without libc: a child that shares memory has no thread-local storage --- */

static inline long raw(long nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	register u64 r10 __asm__("r10") = d;
	register u64 r8 __asm__("r8") = e;
	register u64 r9 __asm__("r9") = f;
	long ret = nr;

	__asm__ volatile("syscall" : "+a" (ret)
			 : "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define RAW(nr, a, b, c) raw(nr, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)

static char *text(char *to, const char *from)
{
	while ((*to = *from++))
		to++;
	return to;
}

static char *digits(char *to, u64 n)
{
	if (n >= 10)
		to = digits(to, n / 10);
	*to++ = '0' + n % 10;
	*to = 0;
	return to;
}

static bool has(const char *where, const char *what)
{
	for (; *where; where++) {
		size_t i = 0;

		while (what[i] && where[i] == what[i])
			i++;
		if (!what[i])
			return true;
	}
	return false;
}

static void found(const char *what, const char *detail, u64 n)
{
	char line[700];
	char *p = text(line, "FOUND seed ");

	p = digits(p, current_seed);
	p = text(text(text(p, ": "), what), " ");
	p = digits(text(text(p, detail), " "), n);
	p = text(p, "\n");
	RAW(SYS_write, 2, line, p - line);
}

/*
 * No descriptor that the program can use may lead to a vCPU, dune-run's own
 * file, or memory, whichever way it came here. What is hidden is EBADF. O_PATH
 * gives no access (what is opened by way of it is judged), but dune-run's file
 * is not named that way either.
 */
static void judge_descriptor(const char *name)
{
	static const char * const forbidden[] = {
		"dune-run", "anon_inode:[dune-vcpu", "/memfd:dune-stats", "/mem$", "/kcore$",
	};
	char link[40], target[400];
	struct stat st;
	u64 fd = 0, i;
	long n, flags;

	text(text(link, "/proc/self/fd/"), name);
	while (*name >= '0' && *name <= '9')
		fd = fd * 10 + (*name++ - '0');
	if (*name)
		return;
	flags = RAW(SYS_fcntl, fd, F_GETFL, 0);
	n = RAW(SYS_readlink, link, target, sizeof(target) - 2);
	if (flags < 0 || n <= 0)
		return;
	text(target + n, "$");
	/* The name of a memory file is the program's own choice. */
	for (i = 0; i < (flags & O_PATH ? 1 : ARRAY_LEN(forbidden)); i++)
		if (has(target, forbidden[i]) &&
		    (!has(target, "/memfd:") || has(forbidden[i], "/memfd:")))
			found("a descriptor in reach:", target, fd);
	if (flags & O_PATH || fstat(fd, &st) || !S_ISCHR(st.st_mode))
		return;
	for (i = 0; i < ARRAY_LEN(devices); i++)
		if (st.st_rdev == devices[i].number)
			found("a descriptor in reach:", devices[i].name, fd);
}

struct directory_entry {	/* struct linux_dirent64 */
	u64 ino, off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static void scan_descriptors(void)
{
	long dir = RAW(SYS_open, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0), n, at;
	char entries[1024] __attribute__((aligned(8)));

	while (dir >= 0 && (n = RAW(SYS_getdents64, dir, entries, sizeof(entries))) > 0) {
		for (at = 0; at < n; ) {
			struct directory_entry *e = (void *)(entries + at);

			judge_descriptor(e->name);
			at += e->len;
		}
	}
	RAW(SYS_close, dir, 0, 0);
}

/* Whatever lies in the supervisor range is the runtime's, and at the places known for that. */
static void scan_mappings(void)
{
	u64 from, to, decoy = 0;
	char line[600];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &from, &to) != 2 || !meets_runtime(from, to - from))
			continue;
		if (from >= DECOY_BASE && to <= DECOY_BASE + DECOY_SIZE)
			decoy += to - from;
		else if (from == RUNTIME_BASE && to == RUNTIME_BASE + GUARD_REGION_SIZE &&
			 strstr(line, " ---p "))
			continue;	/* the guard region */
		else if (from < LOG_BASE || to > RUNTIME_BASE + RUNTIME_SIZE)
			found("a mapping in the supervisor range:", line, 0);
	}
	if (f) {
		fclose(f);
		if (decoy != DECOY_SIZE)
			found("the decoy's mapping is not whole:", "bytes", decoy);
	}
}

/* Natively it is EINVAL or EPERM, in the sandbox ENOSYS. */
static void check_confined(const char *who)
{
	if (raw(SYS_bpf, -1, 0, 0, 0, 0, 0) != -ENOSYS)
		found("runs natively:", who, getpid());
}

/*
 * A child by clone() itself, with a stack of its own where it shares memory.
 * It calls @fn and exits.
 */
static long spawn(u64 flags, void (*fn)(void *), void *arg)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 *top = (u64 *)(stack + 65536) - 4;
	long ret = SYS_clone;

	if (stack == MAP_FAILED)
		return -ENOMEM;
	top[0] = (u64)fn;
	top[1] = (u64)arg;
	__asm__ volatile("xor %%r10d, %%r10d\n"
			 "xor %%r8d, %%r8d\n"
			 "syscall\n"
			 "test %%rax, %%rax\n"
			 "jnz 1f\n"
			 "xor %%ebp, %%ebp\n"
			 "pop %%rax\n"
			 "pop %%rdi\n"
			 "and $-16, %%rsp\n"
			 "call *%%rax\n"
			 "xor %%edi, %%edi\n"
			 "mov $60, %%eax\n"
			 "syscall\n"
			 "hlt\n"
			 "1:"
			 : "+a" (ret)
			 : "D" (flags), "S" (top), "d" (0UL)
			 : "rcx", "r8", "r10", "r11", "memory");
	return ret;
}

static void nap(u64 microseconds)
{
	struct timespec t = { 0, microseconds * 1000 };

	RAW(SYS_nanosleep, &t, 0, 0);
}

/* ---- the table ---------------------------------------------------------- */

enum kind { V, P, B, F, N, R, A6, A8, A12 };

struct entry {
	int nr;
	bool denied;
	enum kind args[6];
};

#define PASS(nr, name, ...)		{ nr, false, { __VA_ARGS__ } },
#define OWN(nr, name, ...)		{ nr, false, { __VA_ARGS__ } },
#define CALL(nr, name, fn, ...)		{ nr, false, { __VA_ARGS__ } },
#define DENY(nr, name, err)		{ nr, true, { V } },

static const struct entry table[] = {
#include "syscalls.def"
};

/* What ends the case, stops it, or takes its memory: rarely. */
static bool spared(u64 nr)
{
	static const short numbers[] = {
		SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_pause, SYS_vfork, SYS_fork,
		SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_kill, SYS_tkill, SYS_tgkill,
		SYS_reboot, SYS_rt_sigsuspend, SYS_sync, SYS_vhangup, SYS_swapon, SYS_acct,
		SYS_sched_setscheduler, SYS_sched_setattr, SYS_rt_sigqueueinfo,
		SYS_rt_tgsigqueueinfo, SYS_munmap, SYS_brk, SYS_mremap, SYS_setrlimit,
		SYS_prlimit64, SYS_mprotect, SYS_close_range, SYS_pidfd_send_signal,
		SYS_getrandom, SYS_mlockall, SYS_fork,
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i] == (long)nr)
			return !one_in(200);
	return false;
}

static void tick(int sig)
{
}

/* A call that waits is interrupted soon, as often as it is called again. */
static void keep_ticking(void)
{
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	struct sigaction act = { .sa_handler = tick };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static long call(u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	long ret;

	if (nr == SYS_close && (u32)a <= 2)
		return 0;
	if ((nr == SYS_dup2 || nr == SYS_dup3) && (u32)b <= 2)
		return 0;
	ret = syscall(nr, a, b, c, d, e, f);
	if (ret > 2 && ret < 2000)
		keep(ret);
	return ret;
}

static u64 argument(enum kind kind)
{
	if (one_in(10))
		return value();
	switch (kind) {
	case F:
		return file();
	case V:
		return value();
	case N:
		return name();
	default:
		return pointer();
	}
}

static void do_any(void)
{
	const struct entry *e = &PICK(table);
	u64 args[6], nr = e->nr;
	int i;

	for (i = 0; i < 6; i++)
		args[i] = argument(e->denied ? (one_in(2) ? P : V) : e->args[i]);
	if (one_in(100))
		nr = below(600);
	if (!spared(nr))
		call(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* ---- commands within calls ------------------------------------------------- */

static const u32 ioctls[] = {
#include "ioctls.h"
};

/*
 * What a file answers to: every number is tried on one file a few times, then
 * those again and again that were not simply unknown.
 */
struct known {
	u64 fd;
	u64 next;
	u64 used;
	u64 alive[256];
};

static u64 choose(struct known *k, u64 count, u64 tries)
{
	u64 at;

	if (!k->next) {
		k->fd = file();
		k->used = 0;
	}
	if (k->next < count * tries)
		return k->next++ / tries;
	if (k->used && !one_in(50))
		return k->alive[below(k->used)];
	at = below(count);
	if (one_in(8))
		k->next = 0;
	return at;
}

/* @pointer: what was passed. One that is refused whatever the number is tells nothing. */
static void learn(struct known *k, u64 what, u64 pointer, long ret)
{
	u64 i;

	if (ret < 0 && errno == EFAULT && pointer - (u64)pool >= POOL_SIZE)
		return;
	if (ret < 0 && (errno == ENOTTY || errno == EINVAL || errno == ENOPROTOOPT || errno == EBADF ||
			errno == EOPNOTSUPP || errno == ENOTSOCK || errno == ENOSYS))
		return;
	for (i = 0; i < k->used; i++)
		if (k->alive[i] == what)
			return;
	if (k->used < ARRAY_LEN(k->alive))
		k->alive[k->used++] = what;
}

static u64 ioctl_argument(u32 cmd)
{
	u64 n = cmd >> 16 & 0x3fff;

	if (n > 8 && n <= 1024 && !one_in(4)) {
		u64 *to = take(n + 8);

		fill(to, n / 8);
		return (u64)to;
	}
	return one_in(4) ? value() : pointer();
}

static void do_ioctl(void)
{
	static struct known known;
	u32 cmd = PICK(ioctls);
	u64 argument;
	long ret;

	if (!one_in(8)) {
		u64 i = choose(&known, ARRAY_LEN(ioctls), 1);

		argument = ioctl_argument(ioctls[i]);
		ret = call(SYS_ioctl, known.fd, ioctls[i], argument, 0, 0, 0);
		learn(&known, i, argument, ret);
		return;
	}
	switch (below(4)) {
	case 0:	/* from before sizes were part of the number */
		cmd = below(0x10000);
		break;
	case 1:	/* one that a later kernel may have */
		cmd = (cmd & ~0xffU) | below(256);
		break;
	case 2:
		cmd = (cmd & 0xffff) | (u32)below(0x10000) << 16;
		break;
	}
	call(SYS_ioctl, one_in(2) ? known.fd : file(), cmd, ioctl_argument(cmd), 0, 0, 0);
}

static long one_option(u64 fd, u64 level, u64 option, u64 *argument)
{
	static const u32 sizes[] = { 1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 64, 128, 136, 256, 4096 };
	u64 size = PICK(sizes);
	u64 *to = take(size + 16);
	u32 *len = take(8);

	fill(to, size / 8 + 1);
	*len = size;
	*argument = one_in(4) ? pointer() : (u64)to;
	if (one_in(2))
		return call(SYS_getsockopt, fd, level, option, *argument, one_in(8) ? pointer() : (u64)len, 0);
	return call(SYS_setsockopt, fd, level, option, *argument, size, 0);
}

static void do_option(void)
{
	static const u32 levels[] = { 0, 1, 6, 17, 41, 58, 132, 136, 255, 263, 270, 281, 282, 286, 40 };
	static struct known known;
	u64 i, argument;
	long ret;

	if (one_in(8)) {
		one_option(file(), below(300), number(), &argument);
		return;
	}
	i = choose(&known, ARRAY_LEN(levels) * 130, 1);
	ret = one_option(known.fd, levels[i / 130], i % 130, &argument);
	learn(&known, i, argument, ret);
}

/* Calls with many meanings: which argument chooses, and from what range. */
static const struct command {
	short nr;
	short place;
	u32 first, last;
} commands[] = {
	{ SYS_prctl, 0, 1, 82 }, { SYS_prctl, 0, 1, 82 }, { SYS_prctl, 0, 1, 82 },
	{ SYS_prctl, 0, 0x53564d41, 0x53564d41 }, { SYS_prctl, 0, 0x41555856, 0x41555856 },
	{ SYS_prctl, 0, 0x59616d61, 0x59616d61 },
	{ SYS_fcntl, 1, 0, 17 }, { SYS_fcntl, 1, 32, 40 }, { SYS_fcntl, 1, 1024, 1045 },
	{ SYS_keyctl, 0, 0, 34 }, { SYS_keyctl, 0, 0, 34 },
	{ SYS_shmctl, 1, 0, 16 }, { SYS_semctl, 2, 0, 24 }, { SYS_msgctl, 1, 0, 16 },
	{ SYS_futex, 1, 0, 13 }, { SYS_futex, 1, 128, 141 }, { SYS_futex, 1, 256, 270 },
	{ SYS_madvise, 2, 0, 26 }, { SYS_madvise, 2, 100, 103 },
	{ SYS_arch_prctl, 0, 0x1001, 0x1026 }, { SYS_arch_prctl, 0, 0x2001, 0x2003 },
	{ SYS_arch_prctl, 0, 0x4001, 0x4004 }, { SYS_arch_prctl, 0, 0x5001, 0x5005 },
	{ SYS_quotactl, 0, 0x800001, 0x80000a }, { SYS_quotactl_fd, 1, 0x800001, 0x80000a },
	{ SYS_fsconfig, 1, 0, 9 }, { SYS_bpf, 0, 0, 40 }, { SYS_seccomp, 0, 0, 4 },
	{ SYS_membarrier, 0, 0, 512 }, { SYS_kcmp, 2, 0, 8 }, { SYS_epoll_ctl, 1, 1, 3 },
	{ SYS_timer_create, 0, 0, 11 }, { SYS_clock_nanosleep, 0, 0, 11 },
	{ SYS_mq_notify, 0, 0, 100 }, { SYS_capget, 0, 0, 0 }, { SYS_get_mempolicy, 4, 0, 7 },
	{ SYS_mbind, 2, 0, 7 }, { SYS_set_mempolicy, 0, 0, 7 }, { SYS_waitid, 0, 0, 4 },
	{ SYS_sysfs, 0, 1, 3 }, { SYS_io_uring_register, 1, 0, 32 }, { SYS_landlock_add_rule, 1, 1, 2 },
	{ SYS_fanotify_mark, 1, 0, 2048 }, { SYS_statx, 2, 0, 0x8000 }, { SYS_rt_sigaction, 0, 1, 64 },
	{ SYS_process_madvise, 3, 0, 26 }, { SYS_vmsplice, 3, 0, 15 }, { SYS_pidfd_send_signal, 1, 0, 0 },
	{ SYS_mount, 3, 0, 0xffff },
};

static const struct entry *entry_of(long nr)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].nr == nr)
			return &table[i];
	return &table[0];
}

static void do_command(void)
{
	const struct command *c = &PICK(commands);
	const struct entry *e = entry_of(c->nr);
	u64 args[6];
	int i;

	for (i = 0; i < 6; i++)
		args[i] = e->args[i] == F && !e->denied ? file() : one_in(3) ? value() : pointer();
	args[c->place] = c->first + below(c->last - c->first + 1);
	call(c->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* ---- messages and vectors ------------------------------------------------- */

static struct iovec *vector(u64 count)
{
	struct iovec *v = take(count * sizeof(*v));
	u64 i;

	for (i = 0; i < count; i++) {
		v[i].iov_base = (void *)(one_in(3) ? in_decoy() : one_in(3) ? below_range() : buffer());
		v[i].iov_len = one_in(3) ? number() : 1 + below(64);
	}
	return v;
}

static void message(struct msghdr *m)
{
	u64 count = 1 + below(12);
	size_t len = CMSG_SPACE(16 * 4);
	struct cmsghdr *c = take(len);

	fill((u64 *)m, sizeof(*m) / 8);
	if (!one_in(6)) {
		m->msg_iov = vector(count);
		m->msg_iovlen = count;
	}
	if (!one_in(3)) {
		m->msg_name = (void *)pointer();
		m->msg_namelen = below(130);
	}
	if (one_in(2)) {
		fill((u64 *)c, len / 8);
		c->cmsg_len = CMSG_LEN(4 * below(16));
		c->cmsg_level = one_in(2) ? SOL_SOCKET : (int)below(300);
		c->cmsg_type = below(64);
		m->msg_control = c;
		m->msg_controllen = c->cmsg_len;
	} else if (one_in(2)) {
		m->msg_control = NULL;
	}
}

static void do_message(void)
{
	static const short calls[] = { SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg };
	static const short vectors[] = {
		SYS_readv, SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2,
		SYS_vmsplice, SYS_process_vm_readv,
	};
	u64 n = 1 + below(20), i;

	if (one_in(3)) {
		call(PICK(vectors), file(), one_in(8) ? below_range() : (u64)vector(n), n, below(4096),
		     0, below(64));
		return;
	}
	struct mmsghdr *m = take(n * sizeof(*m));

	for (i = 0; i < n; i++)
		message(&m[i].msg_hdr);
	switch (below(4)) {
	case 0:
		/* the last of them at the range's edge */
		memcpy((void *)(RUNTIME_BASE - 64), m, 64);
		m = (void *)(RUNTIME_BASE - 64);
		break;
	case 1:
		write(file(), m, 64);
		break;
	}
	call(PICK(calls), file(), (u64)m, one_in(2) ? n : number() & 0xff,
	     one_in(2) ? MSG_DONTWAIT : number(), one_in(2) ? 0 : pointer(), 0);
}

/* ---- processes -------------------------------------------------------------- */

/*
 * Two processes in one memory and on one socket: @good is received by one while
 * the other tries bad vectors, with raw calls alone.
 */
struct race {
	int sk[2];
	u64 state;
	struct mmsghdr *bad;
	struct iovec *vectors;
};

static void racer(void *arg)
{
	struct race *r = arg;
	u64 i;

	for (i = 0; i < 400; i++) {
		r->state = r->state * 6364136223846793005UL + 1442695040888963407UL;
		switch (r->state >> 60) {
		case 0 ... 5:
			RAW(SYS_sendmsg, r->sk[0], &r->bad[r->state >> 40 & 7], MSG_DONTWAIT);
			break;
		case 6 ... 7:
			raw(SYS_sendmmsg, r->sk[0], (u64)r->bad, 8, MSG_DONTWAIT, 0, 0);
			break;
		case 8:
			RAW(SYS_writev, r->sk[0], r->vectors, 16);
			break;
		case 9:
			RAW(SYS_sched_yield, 0, 0, 0);
			break;
		default:
			raw(SYS_sendto, r->sk[0], (u64)pool, 16, MSG_DONTWAIT, 0, 0);
		}
	}
}

static void do_race(void)
{
	struct race *r = take(sizeof(*r));
	struct mmsghdr *good = take(16 * sizeof(*good));
	struct timespec limit = { 0, 20000000 };
	u64 i, flags = CLONE_VM | SIGCHLD;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, r->sk))
		return;
	r->state = any();
	r->bad = take(8 * sizeof(*r->bad));
	r->vectors = vector(16);
	memset(r->bad, 0, 8 * sizeof(*r->bad));
	memset(good, 0, 16 * sizeof(*good));
	for (i = 0; i < 8; i++) {
		struct iovec *v = vector(1 + i % 4);

		v[i % 4].iov_base = (void *)in_decoy();
		v[i % 4].iov_len = 1 + below(64);
		r->bad[i].msg_hdr.msg_iov = v;
		r->bad[i].msg_hdr.msg_iovlen = 1 + i % 4;
	}
	for (i = 0; i < 16; i++) {
		struct iovec *v = take(4 * sizeof(*v));
		u64 k, n = 1 + below(4);

		for (k = 0; k < n; k++)
			v[k] = (struct iovec){ take(64), 64 };
		good[i].msg_hdr.msg_iov = v;
		good[i].msg_hdr.msg_iovlen = n;
	}
	if (one_in(4))
		flags |= (one_in(2) ? CLONE_FS : 0) | (one_in(2) ? CLONE_SIGHAND : 0) |
			 (one_in(3) ? CLONE_FILES : 0) | (one_in(4) ? CLONE_PARENT : 0);
	spawn(flags, racer, r);
	for (i = 0; i < 12; i++) {
		call(SYS_recvmmsg, r->sk[1], (u64)good, 2 + below(6), 0, one_in(2) ? (u64)&limit : 0, 0);
		if (one_in(3))
			do_message();
	}
}

/* What a child does that shares whatever @flags say. */
struct child {
	u64 state;
	u64 steps;
	u64 robust[3];	/* struct robust_list_head */
	u64 entry[2];
	int own;	/* this program's file */
};

static void other_numbers(struct child *c)
{
	u64 n = 1000 + (c->state >> 40) % 20;

	switch (c->state >> 61) {
	case 0 ... 2:
		RAW(SYS_dup2, c->own, n, 0);
		break;
	case 3:
		RAW(SYS_dup3, c->own, n, O_CLOEXEC);
		break;
	case 4:
		RAW(SYS_close_range, n, n + 3, 0);
		break;
	case 5:
		RAW(SYS_close, n, 0, 0);
		break;
	default:
		RAW(SYS_fcntl, c->own, F_DUPFD, n);
	}
}

static void child(void *arg)
{
	struct child *c = arg;
	u64 i;

	for (i = 0; i < c->steps; i++) {
		c->state = c->state * 6364136223846793005UL + 1442695040888963407UL;
		switch (c->state >> 33 & 15) {
		case 0:
			scan_descriptors();
			break;
		case 1:
			RAW(SYS_set_robust_list, c->robust, 24, 0);
			break;
		case 2:
			RAW(SYS_set_tid_address, in_decoy(), 0, 0);
			break;
		case 3:
		case 4:
			nap(500);
			break;
		case 5:
			RAW(SYS_munmap, LOW_BASE, PAGE, 0);
			break;
		case 6:
			RAW(SYS_getppid, 0, 0, 0);
			break;
		default:
			other_numbers(c);
		}
	}
	scan_descriptors();
}

static struct child *new_child(void)
{
	struct child *c = take(sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->state = any();
	c->steps = below(16);
	c->own = open(own_path, O_PATH | O_CLOEXEC);
	c->entry[0] = one_in(2) ? in_decoy() : (u64)c->robust;
	c->robust[0] = one_in(2) ? in_decoy() : (u64)c->entry;
	c->robust[1] = one_in(2) ? 0 : in_decoy() - (u64)c->entry;
	c->robust[2] = one_in(2) ? 0 : in_decoy();
	return c;
}

static u64 clone_flags(void)
{
	static const u64 known[] = {
		CLONE_VM, CLONE_VM, CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_FILES, CLONE_SIGHAND,
		CLONE_VFORK, CLONE_VFORK, CLONE_PARENT, CLONE_THREAD, CLONE_NEWNS, CLONE_SYSVSEM,
		CLONE_SETTLS, CLONE_PARENT_SETTID, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID,
		CLONE_NEWIPC, CLONE_NEWUSER, CLONE_IO, CLONE_PIDFD, CLONE_UNTRACED, CLONE_PTRACE,
	};
	u64 flags = SIGCHLD, n = below(5);

	while (n--)
		flags |= PICK(known);
	return flags;
}

static void do_clone(void)
{
	spawn(clone_flags(), child, new_child());
	scan_descriptors();
}

/* Become this program again: in the sandbox, whatever the child did before. */
static void do_exec(void)
{
	char * const argv[] = { "attack", "--marker", NULL };
	char * const envp[] = { NULL };
	struct child *c = new_child();
	u64 n = 30;

	c->steps = 1 + below(8);
	spawn(CLONE_VM | CLONE_VFORK | SIGCHLD, child, c);
	while (n-- && one_in(10) == false)
		fcntl(c->own, one_in(2) ? F_DUPFD : F_DUPFD_CLOEXEC, 1000 + below(16));
	if (one_in(2))
		dup2(c->own, 1000 + below(16));
	if (!fork())
		execve(own_path, argv, envp);
	wait(NULL);
}

/*
 * A process whose memory lives on, in a child, while it is killed: what the
 * kernel does at its end it does to that memory.
 */
static void survivor(void *arg)
{
	u64 i;

	for (i = 0; i < 40; i++)
		nap(1000);
}

static void do_end(void)
{
	u64 vfork = one_in(3) ? 0 : CLONE_VFORK, when = below(6000), before = below(3);
	struct child *c = new_child();
	pid_t pid = fork();

	if (pid == 0) {
		if (before)
			syscall(SYS_set_robust_list, c->robust, 24);
		if (one_in(3))
			syscall(SYS_set_tid_address, in_decoy());
		spawn(CLONE_VM | vfork | SIGCHLD, survivor, NULL);
		if (!before)
			syscall(SYS_set_robust_list, c->robust, 24);
		_exit(0);
	}
	nap(4000 + when);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* the survivor looks at its memory while it naps */
	nap(15000);
}

/* ---- signals, and images ------------------------------------------------------ */

static u64 stack_place(void)
{
	return one_in(2) ? in_decoy() & ~15UL : one_in(2) ? RUNTIME_BASE - 16 * below(64) :
	       DECOY_BASE + 16 * below(300);
}

/* Signals whose frame would lie in the decoy; a return from one that lies there. */
static void do_signal(void)
{
	struct sigaction act = { .sa_handler = tick, .sa_flags = SA_ONSTACK | SA_NODEFER };
	stack_t alt = { .ss_sp = (void *)stack_place(), .ss_size = one_in(2) ? 8192 : number() };
	u64 place = stack_place(), how = below(4);
	long nr = how == 3 ? SYS_rt_sigreturn : SYS_kill;
	pid_t pid;

	if (one_in(3)) {
		alt.ss_sp = (void *)(RUNTIME_BASE - below(LOW_SIZE));
		alt.ss_size = 2 * LOW_SIZE;
	}
	pid = fork();
	if (pid == 0) {
		sigaction(SIGUSR1, &act, NULL);
		sigaction(SIGSEGV, &act, NULL);
		if (how & 1)
			syscall(SYS_sigaltstack, &alt, NULL);
		pid = getpid();
		if (how == 0) {
			raise(SIGUSR1);
			_exit(0);
		}
		__asm__ volatile("mov %%rdx, %%rsp; syscall; mov $39, %%eax; syscall; ud2"
				 : : "a" (nr), "D" ((long)pid), "S" ((long)SIGUSR1), "d" (place)
				 : "rcx", "r11", "memory");
	}
	nap(2000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* An executable file whose segments are anywhere; its code makes a call and ends. */
static void do_image(void)
{
	static const unsigned char code[] = {
		0xb8, 39, 0, 0, 0, 0x0f, 0x05,		/* getpid */
		0xb8, 39, 0, 0, 0, 0x0f, 0x05,
		0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05,	/* exit */
	};
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr p[4];
	} elf;
	u64 base = one_in(2) ? 0 : 0x400000, i, n = 1 + below(4);
	static const u64 spans[] = { 1UL << 30, 1UL << 40, 30UL << 40, 60UL << 40, 120UL << 40, 127UL << 40 };
	int type = base && one_in(2) ? ET_EXEC : ET_DYN;
	char * const argv[] = { "image", NULL };
	char page[8192];
	pid_t pid;
	int fd;

	memset(page, 0, sizeof(page));
	memset(&elf, 0, sizeof(elf));
	memcpy(elf.h.e_ident, "\177ELF\2\1\1", 7);
	elf.h.e_type = type;
	elf.h.e_machine = EM_X86_64;
	elf.h.e_version = 1;
	elf.h.e_entry = base + 0x200;
	elf.h.e_phoff = one_in(8) ? below(200) : sizeof(elf.h);
	elf.h.e_ehsize = sizeof(elf.h);
	elf.h.e_phentsize = sizeof(elf.p[0]);
	elf.h.e_phnum = n;
	for (i = 0; i < n; i++) {
		Elf64_Phdr *p = &elf.p[i];

		p->p_type = PT_LOAD;
		p->p_flags = i ? 1 + below(7) : PF_R | PF_X;
		p->p_filesz = one_in(2) ? sizeof(page) : below(sizeof(page));
		p->p_memsz = p->p_filesz + (one_in(2) ? 0 : one_in(2) ? below(1UL << 20) : PICK(spans));
		p->p_vaddr = base;
		if (!i) {
			p->p_filesz = sizeof(page);
			p->p_memsz = sizeof(page);
			continue;
		}
		switch (below(4)) {
		case 0:
			p->p_vaddr = in_decoy() & ~(PAGE - 1);
			break;
		case 1:
			p->p_vaddr = RUNTIME_BASE - PAGE * (1 + below(600));
			break;
		case 2:
			p->p_vaddr = PICK(spans);
			break;
		default:
			p->p_vaddr = base + PAGE * (2 + below(100));
		}
	}
	memcpy(page, &elf, sizeof(elf));
	memcpy(page + 0x200, code, sizeof(code));
	unlink("image");
	fd = open("image", O_WRONLY | O_CREAT, 0777);
	write(fd, page, sizeof(page));
	close(fd);
	pid = fork();
	if (pid == 0) {
		execve("image", argv, one_in(3) ? (char **)vector(2) : NULL);
		_exit(0);
	}
	nap(20000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- descriptors that nobody opened ---------------------------------------- */

static void do_fanotify(void)
{
	static const char * const paths[] = {
		"/proc/self/mem", "/proc/self/mem", "/dev/null", "a", ".", "/dev/zero",
		"/proc/self/exe", "/dev/mem", "/dev/kvm", "/dev/dune", "/proc/self/maps",
	};
	static const u32 modes[] = { O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_LARGEFILE };
	const char *path = PICK(paths);
	int fd = fanotify_init(FAN_NONBLOCK | (one_in(4) ? below(0x2000) : 0), PICK(modes));
	char events[4096];
	long n, at;

	if (fd < 0)
		return;
	fanotify_mark(fd, FAN_MARK_ADD | (one_in(4) ? FAN_MARK_MOUNT : 0),
		      FAN_OPEN | FAN_ACCESS | FAN_MODIFY | FAN_CLOSE, AT_FDCWD, path);
	keep(open(path, one_in(2) ? O_RDONLY : O_RDWR));
	n = read(fd, events, sizeof(events));
	for (at = 0; at + (long)sizeof(struct fanotify_event_metadata) <= n; ) {
		struct fanotify_event_metadata *e = (void *)(events + at);

		keep(e->fd);
		at += e->event_len ? e->event_len : n;
	}
	scan_descriptors();
	close(fd);
}

/* ---- memory policy -------------------------------------------------------- */

/*
 * move_pages() stores the status of a page that it cannot move at once, and of
 * those before it only when they were moved: the first store may be as far up
 * as there are pages. Wide enough to jump over the guard region, this takes
 * memory.
 */
static void wide_move(void)
{
	u64 count = GUARD_REGION_SIZE / 4 + 4096, i;
	void **pages = mmap(NULL, 8 * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int *nodes = mmap(NULL, 4 * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory = mmap(NULL, PAGE * count, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED || nodes == MAP_FAILED || memory == MAP_FAILED)
		return;
	madvise(memory, PAGE * count, MADV_NOHUGEPAGE);
	for (i = 0; i < count; i++) {
		nodes[i] = 1;
		pages[i] = memory + PAGE * i;
		if (i < count - 64)
			memory[PAGE * i] = 1;
	}
	/* the last ones are not there: an error to store */
	call(SYS_move_pages, 0, count, (u64)pages, (u64)nodes, RUNTIME_BASE - PAGE, 2);
}

static void do_numa(void)
{
	u64 count = one_in(3) ? below(300000) : below(64), i;
	u64 *pages = take(64 * 8);
	int *nodes = take(64 * 4);

	for (i = 0; i < 64; i++) {
		pages[i] = one_in(4) ? in_decoy() : one_in(3) ? below_range() : (u64)pool + PAGE * below(200);
		nodes[i] = one_in(8) ? (int)number() : (int)below(2);
	}
	if (count > 64)
		pages = (u64 *)(LOW_BASE + 8 * below(1000));
	call(SYS_move_pages, 0, count, (u64)pages, one_in(3) ? 0 : (u64)nodes,
	     one_in(2) ? below_range() : pointer(), one_in(2) ? 2 : below(8));
	call(SYS_mbind, one_in(2) ? (u64)pool : below_range(), number(), below(7), pointer(), below(70),
	     below(8));
	call(SYS_get_mempolicy, pointer(), pointer(), below(70), one_in(2) ? in_decoy() : pointer(),
	     below(8), 0);
	call(SYS_migrate_pages, 0, below(70), pointer(), pointer(), 0, 0);
}

/* ---- cases ------------------------------------------------------------------ */

static void do_mixed(void)
{
	static void (* const all[])(void) = {
		do_any, do_any, do_any, do_ioctl, do_option, do_command, do_message, do_numa,
		do_fanotify,
	};

	all[below(ARRAY_LEN(all))]();
}

/* @cost: how many plain calls one of these is. */
static const struct {
	const char *name;
	void (*step)(void);
	u32 cost;
	bool focused;
} kinds[] = {
	{ "any", do_any, 1, false },
	{ "mixed", do_mixed, 1, false },
	{ "ioctl", do_ioctl, 1, true },
	{ "ioctl", do_ioctl, 1, true },
	{ "command", do_command, 1, false },
	{ "option", do_option, 1, true },
	{ "message", do_message, 1, false },
	{ "numa", do_numa, 2, false },
	{ "race", do_race, 40, false },
	{ "clone", do_clone, 20, false },
	{ "exec", do_exec, 60, false },
	{ "end", do_end, 40, false },
	{ "fanotify", do_fanotify, 10, false },
	{ "signal", do_signal, 20, false },
	{ "image", do_image, 60, false },
};

static void keep_two(int ret, const int *fd)
{
	if (!ret) {
		keep(fd[0]);
		keep(fd[1]);
	}
}

static void open_files(void)
{
	static const char * const paths[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/ptmx", "/dev/net/tun",
		"/dev/fuse", "/dev/loop-control", "/dev/rfkill", "/dev/tty0", "/dev/tty1", "/dev/vcs",
		"/dev/input/event0", "/dev/input/event1", "/dev/input/event1", "/dev/input/event2",
		"/dev/input/mice", "/dev/uinput", "/dev/rtc0", "/dev/hwrng",
		"/proc/self/maps", "/proc/self/pagemap", "/proc/self/ns/net", "/proc/self/ns/user",
		"/proc/self/ns/mnt", "/proc/self/comm", "/proc/self/clear_refs", "/proc/self/oom_score_adj",
		"/proc/sys/kernel/hostname", "/proc/net/tcp", "/dev/autofs", "/dev/btrfs-control",
		"/dev/snapshot", "/dev/userfaultfd", "/dev/vhost-vsock",
	};
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, 40 };
	sigset_t none;
	size_t i;
	int fd[2];

	sigemptyset(&none);
	keep_two(pipe2(fd, O_NONBLOCK), fd);
	keep_two(pipe(fd), fd);
	keep_two(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), fd);
	keep_two(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), fd);
	for (i = 0; i < 12; i++)
		keep(socket(PICK(families), PICK(types) | (one_in(2) ? SOCK_NONBLOCK : 0),
			    one_in(2) ? 0 : below(24)));
	keep(epoll_create1(0));
	keep(eventfd(1, 0));
	keep(timerfd_create(1, 0));
	keep(signalfd(-1, &none, 0));
	keep(inotify_init1(IN_NONBLOCK));
	keep(syscall(SYS_memfd_create, "m", 0));
	keep(syscall(SYS_pidfd_open, getpid(), 0));
	keep(open("a", O_RDWR | O_CREAT, 0666));
	keep(open(".", O_RDONLY));
	keep(open("a", O_PATH));
	for (i = 0; i < 14; i++) {
		const char *path = PICK(paths);
		int n = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY);

		keep(n >= 0 ? n : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
	}
}

static void one_case(u64 seed, u64 calls, u64 kind)
{
	struct rlimit memory = { 1UL << 31, 1UL << 31 }, size = { 1UL << 24, 1UL << 24 }, none = { 0, 0 };
	char folder[40];
	u64 i;

	seed_state = seed * 0xd1342543de82ef95UL + kind;
	current_seed = seed;
	snprintf(folder, sizeof(folder), "/tmp/attack-%lu", seed);
	mkdir(folder, 0777);
	if (chdir(folder))
		return;
	chmod(".", 0777);
	mkdir("folder", 0777);
	symlink("a", "link");
	pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mmap((void *)LOW_BASE, LOW_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)LOW_BASE)
		found("no memory below the supervisor range", "", 0);
	fill((u64 *)LOW_BASE, 65536 / 8);
	fill((u64 *)(RUNTIME_BASE - 65536), 65536 / 8);
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	open_files();
	if (kinds[kind].focused) {
		/* the sockets come early, the devices late */
		files[0] = files[one_in(3) ? below(files_used) : kinds[kind].step == do_option ?
				 8 + below(12) : files_used - 1 - below(10)];
		files_used = 1;
	}
	if (one_in(4)) {
		setgid(65534);
		setuid(65534);
	}
	for (i = 0; i < calls; i += kinds[kind].cost) {
		if (i % 16 == 0)
			keep_ticking();
		kinds[kind].step();
	}
	scan_descriptors();
	scan_mappings();
}

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000UL + t.tv_nsec / 1000000;
}

/* Wait for @pid so long; then nobody but this process is left. */
static void end_all(pid_t pid, u64 limit)
{
	struct timespec step = { 0, 20000000 };
	u64 until = now() + limit;
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (now() >= until) {
			fprintf(stderr, "case %lu is killed\n", record->seed);
			break;
		}
		sigtimedwait(&children, NULL, &step);
	}
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int main(int argc, char **argv)
{
	u64 first, count, calls, seed;
	static char path[PATH_MAX];
	sigset_t children;
	struct stat st;
	int fd;

	check_confined("a program that was executed");
	if (argc > 1 && !strcmp(argv[1], "--marker"))
		return 0;
	if (argc < 4) {
		fprintf(stderr, "usage: attack FIRST COUNT CALLS [NAME]\n");
		return 2;
	}
	first = strtoul(argv[1], NULL, 0);
	count = strtoul(argv[2], NULL, 0);
	calls = strtoul(argv[3], NULL, 0);
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 2;
	own_path = path;
	for (fd = 0; fd < (int)ARRAY_LEN(devices); fd++)
		devices[fd].number = stat(devices[fd].name, &st) ? 0 : st.st_rdev;
	fd = open(LOG_FILE, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		record = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || record == MAP_FAILED) {
		fprintf(stderr, "attack: %s: start this by watch\n", LOG_FILE);
		return 2;
	}
	close(fd);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	if (argc > 4 && !strcmp(argv[4], "wide-move")) {
		wide_move();
		return 0;
	}
	for (seed = first; seed < first + count; seed++) {
		u64 kind = seed % ARRAY_LEN(kinds), k;
		pid_t pid;

		for (k = 0; argc > 4 && k < ARRAY_LEN(kinds); k++)
			if (!strcmp(argv[4], kinds[k].name))
				kind = k;
		record->seed = seed;
		pid = fork();
		if (pid == 0) {
			u64 mine = seed;

			sigprocmask(SIG_UNBLOCK, &children, NULL);
			setsid();
			munmap(record, LOG_SIZE);
			one_case(mine, calls, kind);
			_exit(0);
		}
		seed_state = seed;
		/* some are killed at any moment */
		end_all(pid, seed / ARRAY_LEN(kinds) % 4 == 3 ? below(2000) : CASE_LIMIT);
	}
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A hypercall is a system call: results, error numbers, memory effects and registers are those
 * of the native call, on the fast path (in the kernel) and on the slow one (by the host half).
 * Fails when a call is dispatched with wrong arguments, when an error is lost, when a register
 * or a flag changes, or when SYSCALL from ring 3 does not enter at the guest's LSTAR.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "request.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct guest g;
static char memory[4096] __attribute__((aligned(4096)));	/* what calls write to */

#define M ((long)memory)

static struct request requests[] = {
	{ "getpid", SYS_getpid, {0}, 0 },
	{ "getppid", SYS_getppid, {0}, 0 },
	{ "gettid", SYS_gettid, {0}, 0 },
	{ "getuid", SYS_getuid, {0}, 0 },
	{ "geteuid", SYS_geteuid, {0}, 0 },
	{ "getgid", SYS_getgid, {0}, 0 },
	{ "getpgid(0)", SYS_getpgid, {0}, 0 },
	{ "getsid(0)", SYS_getsid, {0}, 0 },
	{ "getsid(-1): ESRCH", SYS_getsid, {-1}, 0 },
	{ "uname", SYS_uname, {M}, 0 },
	{ "uname at 0: EFAULT", SYS_uname, {0}, 0 },
	{ "uname in the kernel: EFAULT", SYS_uname, {(long)0xffff888000000000}, 0 },
	{ "getcwd", SYS_getcwd, {M, 4096}, 0 },
	{ "getcwd too small: ERANGE", SYS_getcwd, {M, 1}, 0 },
	{ "open of nothing: ENOENT", SYS_open, {(long)"/nothing/at/all", O_RDONLY}, 0 },
	{ "openat: ENOTDIR", SYS_openat, {AT_FDCWD, (long)"/dev/null/x", O_RDONLY}, 0 },
	{ "open a bad path: EFAULT", SYS_open, {1, O_RDONLY}, 0 },
	{ "access /", SYS_access, {(long)"/", R_OK}, 0 },
	{ "stat /dev/null", SYS_stat, {(long)"/dev/null", M}, 0 },
	{ "fstat(-1): EBADF", SYS_fstat, {-1, M}, 0 },
	{ "read(-1): EBADF", SYS_read, {-1, M, 1}, 0 },
	{ "write(-1): EBADF", SYS_write, {-1, M, 1}, 0 },
	{ "close(-1): EBADF", SYS_close, {-1}, 0 },
	{ "lseek on a pipe: ESPIPE", SYS_lseek, {PIPE_OUT, 0, SEEK_SET}, 0 },
	{ "fcntl(F_GETFL)", SYS_fcntl, {PIPE_OUT, F_GETFL}, 0 },
	{ "fcntl of nonsense: EINVAL", SYS_fcntl, {PIPE_OUT, 4711}, 0 },
	{ "ioctl: ENOTTY", SYS_ioctl, {PIPE_OUT, 0x5401, M}, 0 },
	{ "dup2 onto itself", SYS_dup2, {PIPE_OUT, PIPE_OUT}, 0 },
	{ "dup3 onto itself: EINVAL", SYS_dup3, {PIPE_OUT, PIPE_OUT, 0}, 0 },
	{ "umask", SYS_umask, {022}, 0 },
	{ "umask again", SYS_umask, {022}, 0 },
	{ "mmap: EINVAL", SYS_mmap, {0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}, 0 },
	{ "mmap of fd -1: EBADF", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE, -1, 0}, 0 },
	{ "mmap, sixth argument: EINVAL", SYS_mmap,
		{0, 4096, PROT_READ, MAP_PRIVATE, PIPE_OUT, 1}, 0 },
	{ "mmap fixed", SYS_mmap, {0x10000000, 8192, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0}, 0 },
	{ "mprotect", SYS_mprotect, {0x10000000, 4096, PROT_READ}, 0 },
	{ "uname into read-only memory: EFAULT", SYS_uname, {0x10000000}, 0 },
	{ "munmap", SYS_munmap, {0x10000000, 8192}, 0 },
	{ "munmap odd: EINVAL", SYS_munmap, {0x10000001, 8192}, 0 },
	{ "mprotect of nothing: ENOMEM", SYS_mprotect, {0x10000000, 4096, PROT_READ}, 0 },
	{ "mprotect of the kernel: ENOMEM", SYS_mprotect,
		{(long)0xffffc00000000000, 4096, PROT_READ}, 0 },
	{ "brk(0)", SYS_brk, {0}, 0 },
	{ "kill(0 signal)", SYS_kill, {0, 0}, 0 },
	{ "kill nonsense: EINVAL", SYS_kill, {0, 100}, 0 },
	{ "nanosleep: EINVAL", SYS_nanosleep, {M + 2048}, 0 },
	{ "clock_getres", SYS_clock_getres, {CLOCK_MONOTONIC, M}, 0 },
	{ "clock_gettime of nonsense: EINVAL", SYS_clock_gettime, {4711, M}, 0 },
	{ "futex: EAGAIN", SYS_futex, {M + 1024, FUTEX_WAIT, 1}, 0 },
	{ "futex wakes none", SYS_futex, {M + 1024, FUTEX_WAKE, 1}, 0 },
	{ "wait4: ECHILD", SYS_wait4, {-1, 0, WNOHANG, 0}, 0 },
	{ "sched_getaffinity", SYS_sched_getaffinity, {0, 128, M}, 0 },
	{ "sched_yield", SYS_sched_yield, {0}, 0 },
	{ "prlimit64", SYS_prlimit64, {0, RLIMIT_NOFILE, 0, M}, 0 },
	{ "getrlimit of nonsense: EINVAL", SYS_getrlimit, {4711, M}, 0 },
	{ "getrandom: EINVAL", SYS_getrandom, {M, 1, 4711}, 0 },
	{ "rt_sigprocmask", SYS_rt_sigprocmask, {SIG_BLOCK, 0, M, 8}, 0 },
	{ "rt_sigprocmask: EINVAL", SYS_rt_sigprocmask, {SIG_BLOCK, 0, M, 4}, 0 },
	{ "rt_sigpending", SYS_rt_sigpending, {M, 8}, 0 },
	{ "pread64: ESPIPE", SYS_pread64, {PIPE_OUT, M, 1, 0}, 0 },
	{ "poll of nothing", SYS_poll, {0, 0, 0}, 0 },
	{ "select: EINVAL", SYS_select, {-1, 0, 0, 0, 0}, 0 },
	{ "getpriority", SYS_getpriority, {0, 0}, 0 },
	{ "personality", SYS_personality, {0xffffffff}, 0 },
	{ "prctl(PR_GET_DUMPABLE)", SYS_prctl, {3}, 0 },
	{ "prctl of nonsense: EINVAL", SYS_prctl, {4711}, 0 },
	{ "arch_prctl of nonsense: EINVAL", SYS_arch_prctl, {4711}, 0 },
	{ "readlink", SYS_readlink, {(long)"/proc/self/exe", M, 4096}, 0 },
	{ "setrlimit: EFAULT", SYS_setrlimit, {RLIMIT_CORE, 1}, 0 },
	{ "mincore", SYS_mincore, {M, 4096, M + 100}, 0 },
	{ "msync", SYS_msync, {M, 4096, MS_SYNC}, 0 },
	{ "madvise: EINVAL", SYS_madvise, {M, 4096, 4711}, 0 },
	{ "mremap: EFAULT", SYS_mremap, {0x10000000, 4096, 8192, 0}, 0 },
	{ "shmctl: EINVAL", SYS_shmctl, {-1, 0, 0}, 0 },
	{ "getitimer", SYS_getitimer, {0, M}, 0 },
	{ "membarrier query", SYS_membarrier, {0, 0, 0}, 0 },
	{ "rseq of nonsense: EINVAL", SYS_rseq, {1, 4711, 0, 0}, 0 },
	{ "number 1000: ENOSYS", 1000, {0}, 0 },
	{ "number 400: ENOSYS", 400, {0}, 0 },
	{ "x32 getpid: as the kernel was built", 0x40000000 | SYS_getpid, {0}, 0 },
	{ "number 0xffffffff: ENOSYS", 0xffffffff, {0}, 0 },
	{ "number 0x80000000: ENOSYS", 0x80000000, {0}, 0 },
};

#define COUNT ((int)(sizeof(requests) / sizeof(requests[0])))

static void fill(void)
{
	memset(memory, 0xa5, sizeof(memory));
	memset(memory + 1024, 0, 64);
	((long *)(memory + 2048))[0] = 0;
	((long *)(memory + 2048))[1] = 2000000000;
}

static void compare(bool slow)
{
	static char expected[4096];
	const char *path = slow ? "slow" : "fast";

	for (int i = 0; i < COUNT; i++) {
		struct request *r = &requests[i];

		fill();
		long native = raw_syscall(r->nr, r->arg[0], r->arg[1], r->arg[2],
					  r->arg[3], r->arg[4], r->arg[5]);

		memcpy(expected, memory, sizeof(memory));
		fill();
		g.run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
		enum guest_end end = guest_call(&g, make_request, r);

		ok(end == GUEST_DONE && r->result == native &&
		   !memcmp(memory, expected, sizeof(memory)) && (!slow || g.slow == 1),
		   "%s: %s (%ld)", path, r->name, native);
		if (end != GUEST_DONE)
			diag("%s", guest_end_name(&g, end));
		else if (r->result != native)
			diag("guest %ld native %ld", r->result, native);
	}
	g.run->flags = 0;
}

/*
 * A transfer through a pipe and a file, both ends in the guest. Returns 0, or what is wrong
 * (const char *).
 */
static u64 transfer(void *arg)
{
	char *from = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int p[2];

	if (from == MAP_FAILED || pipe(p))
		return (u64)"mmap() or pipe() fails";
	for (int i = 0; i < 32768; i++)
		from[i] = i * 7;
	if (write(p[1], from, 32768) != 32768 || read(p[0], from + 32768, 32768) != 32768)
		return (u64)"the pipe does not transfer all bytes";
	if (memcmp(from, from + 32768, 32768))
		return (u64)"the pipe transfers other bytes";
	close(p[1]);
	if (read(p[0], from, 1))	/* end of file: the delayed fput ran */
		return (u64)"the pipe has no end";
	close(p[0]);

	int fd = memfd_create("x", 0);

	if (write(fd, from, 32768) != 32768 || pread(fd, from + 32768, 100, 777) != 100 ||
	    memcmp(from + 777, from + 32768, 100))
		return (u64)"the file has other bytes";
	close(fd);
	munmap(from, 65536);

	struct stat st;

	if (stat("/dev/null", &st) || !S_ISCHR(st.st_mode) || stat("/nothing", &st) != -1 ||
	    errno != ENOENT)
		return (u64)"stat() has another result";
	return 0;
}

/* All registers but RAX survive a hypercall. */
static u64 registers_kept(void *arg)
{
	u64 bad = 0;

	asm volatile("mov $0x1111, %%rcx; mov $0x2222, %%r11; mov $0x3333, %%rbx\n"
		     "mov $0x4444, %%r12; mov $0x5555, %%r13\n"
		     "mov $0x6666, %%r14; mov $0x7777, %%r15\n"
		     "mov $0x88, %%rdi; mov $0x99, %%rsi; mov $0xaa, %%rdx; mov $0xbb, %%r10\n"
		     "mov $0xcc, %%r8; mov $0xdd, %%r9; mov $39, %%eax\n"
		     "std; stc\n"
		     HYPERCALL
		     "setnc %%al; pushfq; cld; btq $10, (%%rsp); lea 8(%%rsp), %%rsp\n"
		     "setnc %%ah; movzwl %%ax, %%eax\n"
		     "sub $0x1111, %%rcx; or %%rcx, %%rax; sub $0x2222, %%r11; or %%r11, %%rax\n"
		     "sub $0x3333, %%rbx; or %%rbx, %%rax; sub $0x4444, %%r12; or %%r12, %%rax\n"
		     "sub $0x5555, %%r13; or %%r13, %%rax; sub $0x6666, %%r14; or %%r14, %%rax\n"
		     "sub $0x7777, %%r15; or %%r15, %%rax; sub $0x88, %%rdi; or %%rdi, %%rax\n"
		     "sub $0x99, %%rsi; or %%rsi, %%rax; sub $0xaa, %%rdx; or %%rdx, %%rax\n"
		     "sub $0xbb, %%r10; or %%r10, %%rax; sub $0xcc, %%r8; or %%r8, %%rax\n"
		     "sub $0xdd, %%r9; or %%r9, %%rax\n"
		     : "=a"(bad) : : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
		     "r12", "r13", "r14", "r15", "cc", "memory");
	return bad;
}

/* SYSCALL in ring 3 arrives at the guest's own LSTAR, and its hypercall is a system call. */
static u64 ring3_calls(void *arg)
{
	for (int i = 0; i < 100; i++) {
		if (raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != *(volatile int *)memory)
			return 1;
	}
	return raw_syscall(SYS_close, -1, 0, 0, 0, 0, 0) != -EBADF;
}

int main(void)
{
	begin(120);
	guest_open(&g);
	open_pipe();
	ok(g.info.features & DUNE_FEATURE_FAST_SYSCALL, "this kernel has the fast path");
	compare(false);
	compare(true);
	for (int slow = 0; slow < 2; slow++) {
		g.run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
		enum guest_end end = guest_call(&g, transfer, NULL);

		ok(end == GUEST_DONE && g.value == 0, "%s: pipes, files and libc (%s)",
		   slow ? "slow" : "fast",
		   guest_end_name(&g, end));
		if (end == GUEST_DONE && g.value)
			diag("%s", (const char *)g.value);
		end = guest_call(&g, registers_kept, NULL);
		ok(end == GUEST_DONE && g.value == 0,
		   "%s: a hypercall keeps all registers and flags (%s)",
		   slow ? "slow" : "fast", guest_end_name(&g, end));
	}
	g.run->flags = 0;

	*(int *)memory = getpid();
	enum guest_end end = guest_call3(&g, ring3_calls, NULL);

	ok(end == GUEST_DONE && g.value == 0,
	   "SYSCALL from ring 3 enters at the guest's LSTAR (%s)", guest_end_name(&g, end));
	guest_close(&g);
	return done();
}

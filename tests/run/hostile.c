// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox attacks the runtime. It runs in the sandbox only and
 * prints TAP: one line for every pointer argument of every system call in
 * syscalls.def, then the attempts that need more than that. Fails when a call that
 * names the runtime's memory or a hidden descriptor does anything but give its
 * error, or when the program reaches that memory itself.
 */
#define _GNU_SOURCE
#include "lib.h"
#include "tap.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- the table ---------------------------------------------------------- */

enum kind { V, P, B, F, N, R, A6, A8, A12 };

/* Is the next argument the length of what this one points to? */
static int has_length(enum kind k)
{
	return k == B || k == R || k == A6 || k == A8 || k == A12;
}

struct entry {
	int nr;
	const char *name;
	int deny;		/* an error number */
	enum kind args[6];
};

#define PASS(nr, name, ...)		{ nr, #name, 0, { __VA_ARGS__ } },
#define OWN(nr, name, ...)		{ nr, #name, 0, { __VA_ARGS__ } },
#define CALL(nr, name, fn, ...)		{ nr, #name, 0, { __VA_ARGS__ } },
#define DENY(nr, name, err)		{ nr, #name, err, { V } },

static const struct entry table[] = {
#include "calls/syscalls.def"
};

/* One of dune-run's own descriptors; the first three are not. */
static int hidden_fd(void)
{
	int fds[16], n = find_descriptors("dune", fds, 16);

	return n && fds[n - 1] > 2 ? fds[n - 1] : -1;
}

static void test_table(void)
{
	int hidden = hidden_fd();
	size_t i;
	int k;

	ok(hidden >= 0, "dune-run's own descriptors can be seen in /proc");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct entry *t = &table[i];
		long got;

		if (t->deny) {
			got = call(t->nr, 0, 0, 0, 0, 0, 0);
			is(got, -t->deny, "%s is refused", t->name);
			continue;
		}
		for (k = 0; k < 6; k++) {
			long args[6] = { 0 };
			long want = t->args[k] == R ? -ENOMEM : -EFAULT;

			if (t->args[k] == V)
				continue;
			if (t->args[k] == F) {
				args[k] = hidden;
				want = -EBADF;
			} else {
				args[k] = IMAGE;
			}
			if (k < 5 && has_length(t->args[k]))
				args[k + 1] = 64;
			got = call(t->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
			is(got, want,
			   "%s() refuses an address or a descriptor of the runtime as argument %d",
			   t->name, k);

			/* a buffer that begins outside and reaches in */
			if (k < 5 && has_length(t->args[k])) {
				args[k] = SUPER_BASE - 4096;
				args[k + 1] = 0x102000;
				got = call(t->nr, args[0], args[1], args[2], args[3], args[4],
					   args[5]);
				is(got, want,
				   "%s() refuses a buffer that reaches into the runtime as argument %d",
				   t->name, k);
			}
		}
	}
	is(call(463, 0, 0, 0, 0, 0, 0), -ENOSYS, "a system call of a later kernel is ENOSYS");
	is(call(400, 0, 0, 0, 0, 0, 0), -ENOSYS, "a number that no system call has is ENOSYS");
	is(call(0x40000000 | 39, 0, 0, 0, 0, 0, 0), -ENOSYS,
	   "a system call of the x32 ABI is ENOSYS");
	is(call(-1, 0, 0, 0, 0, 0, 0), -ENOSYS, "system call number -1 is ENOSYS");
}

/* ---- memory ------------------------------------------------------------- */

static sigjmp_buf fault_jump;
static volatile int fault_code;
static void *volatile fault_address;

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	fault_code = info->si_code;
	fault_address = info->si_addr;
	siglongjmp(fault_jump, sig);
}

static int fault_of(void (*f)(void *), void *arg)
{
	static char other_stack[65536];
	stack_t alt = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	int sig;

	sigaltstack(&alt, NULL);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	sigaction(SIGILL, &act, NULL);
	sig = sigsetjmp(fault_jump, 1);
	if (!sig)
		f(arg);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	return sig;
}

static void do_read(void *p)
{
	(void)*(volatile char *)p;
}

static void do_write(void *p)
{
	*(volatile char *)p = 1;
}

static void do_exec(void *p)
{
	((void (*)(void))p)();
}

static void do_vmmcall(void *p)
{
	__asm__ volatile("vmmcall" : : "a" (39) : "memory");
}

static void do_vmcall(void *p)
{
	__asm__ volatile("vmcall" : : "a" (39) : "memory");
}

static void do_stack(void *p)
{
	/* a push, and a system call, with the stack in the runtime */
	__asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; push %%rax; mov %%rbx, %%rsp"
			 : : "r" (p) : "rbx", "memory");
}

static void test_direct(void)
{
	static const unsigned long places[] = {
		SUPER_BASE, IMAGE, SUPER_BASE + 0x10000000, SUPER_BASE + SUPER_SIZE - 1
	};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *p = (void *)places[i];

		ok(fault_of(do_read, p) == SIGSEGV && fault_address == p &&
		   fault_code == SEGV_MAPERR,
		   "reading the runtime is SIGSEGV, as where nothing is mapped");
		ok(fault_of(do_write, p) == SIGSEGV && fault_address == p,
		   "writing the runtime is SIGSEGV");
		ok(fault_of(do_exec, p) == SIGSEGV && fault_address == p,
		   "executing the runtime is SIGSEGV");
	}
	ok(fault_of(do_stack, (void *)(IMAGE + 64)) == SIGSEGV,
	   "the use of a stack in the runtime is SIGSEGV");
	ok(fault_of(do_vmmcall, NULL) == SIGILL, "AMD's hypercall in ring 3 is SIGILL");
	ok(fault_of(do_vmcall, NULL) == SIGILL, "Intel's hypercall in ring 3 is SIGILL");
}

/* All that the runtime maps must lie in the supervisor range, the vCPU's page first. */
static int outside_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from;
	char line[500];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "dune") && !strstr(line, "hostile") &&
		    sscanf(line, "%lx", &from) == 1 && from - SUPER_BASE >= SUPER_SIZE)
			n++;
	if (f)
		fclose(f);
	return n;
}

static void test_mappings(void)
{
	char *own = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p;
	int id;

	ok(outside_mappings() == 0,
	   "nothing of the runtime is mapped outside of the supervisor range");
	is(call(SYS_mmap, IMAGE, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), -ENOMEM,
	   "mmap() with MAP_FIXED over the runtime is ENOMEM");
	is(call(SYS_mmap, SUPER_BASE - 4096, 8192, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), -ENOMEM,
	   "mmap() with MAP_FIXED that reaches into the runtime is ENOMEM");
	is(call(SYS_mmap, IMAGE, 4096, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), -EEXIST,
	   "mmap() with MAP_FIXED_NOREPLACE over the runtime is EEXIST");
	p = mmap((void *)(SUPER_BASE + SUPER_SIZE / 2), 4096, PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ok(p != MAP_FAILED && (unsigned long)p - SUPER_BASE >= SUPER_SIZE,
	   "a hint into the supervisor range does not place a mapping there");
	/* as where nothing is mapped; the runtime still works */
	is(call(SYS_munmap, IMAGE & ~4095UL, 4096, 0, 0, 0, 0), 0,
	   "munmap() of a page of the runtime succeeds and changes nothing");
	is(call(SYS_munmap, SUPER_BASE - 4096, 2 * SUPER_SIZE, 0, 0, 0, 0), 0,
	   "munmap() from below the runtime to above it succeeds and changes nothing");
	is(call(SYS_munmap, SUPER_BASE, SUPER_SIZE, 0, 0, 0, 0), 0,
	   "munmap() of all of the runtime succeeds and changes nothing");
	is(call(SYS_munmap, SUPER_BASE - 4096, 8192 - 1, 0, 0, 0, 0), 0,
	   "munmap() up to the middle of a page of the runtime changes nothing");
	is(call(SYS_munmap, SUPER_BASE + 1, 4096, 0, 0, 0, 0), -EINVAL,
	   "munmap() of an address that is not aligned is EINVAL");
	is(call(SYS_munmap, SUPER_BASE, 0, 0, 0, 0, 0), -EINVAL,
	   "munmap() of no bytes is EINVAL");
	is(call(SYS_munmap, SUPER_BASE - 4096, 1UL << 63, 0, 0, 0, 0), -EINVAL,
	   "munmap() of more than the address space is EINVAL");
	is(call(SYS_munmap, SUPER_BASE + 4096, -8192UL, 0, 0, 0, 0), -EINVAL,
	   "munmap() beyond the end of the addresses is EINVAL");
	is(call(SYS_mremap, IMAGE, 4096, 4096, MREMAP_MAYMOVE, 0, 0), -EFAULT,
	   "mremap() of the runtime is EFAULT");
	is(call(SYS_mremap, (long)own, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, IMAGE, 0),
	   -EINVAL, "mremap() onto the runtime is EINVAL");
	ok(call(SYS_brk, IMAGE, 0, 0, 0, 0, 0) == call(SYS_brk, 0, 0, 0, 0, 0, 0),
	   "brk() into the runtime changes nothing");
	id = shmget(IPC_PRIVATE, 3 * 4096, IPC_CREAT | 0600);
	is(call(SYS_shmat, id, IMAGE & ~4095UL, 0, 0, 0, 0), -EINVAL,
	   "shmat() at an address in the runtime is EINVAL");
	is(call(SYS_shmat, id, SUPER_BASE - 4096, SHM_REMAP, 0, 0, 0), -EINVAL,
	   "shmat() that reaches into the runtime is EINVAL");
	shmctl(id, IPC_RMID, NULL);
	is(call(SYS_pkey_mprotect, (long)own, 4096, PROT_READ, 1, 0, 0), -EINVAL,
	   "pkey_mprotect() with a key is EINVAL");
	is(call(SYS_prctl, PR_SET_MM, PR_SET_MM_START_BRK, IMAGE, 0, 0, 0), -EINVAL,
	   "PR_SET_MM is EINVAL");
}

/* ---- pointers in structures --------------------------------------------- */

static void test_nested(void)
{
	struct iovec good = { "x", 1 };
	struct iovec bad[2] = { { "x", 1 }, { (void *)IMAGE, 16 } };
	struct iovec wide = { (void *)(SUPER_BASE - 4096), 0x200000 };
	struct msghdr m = { .msg_iov = bad, .msg_iovlen = 2 };
	struct mmsghdr mm = { .msg_hdr = m };
	unsigned long sigset[2] = { IMAGE, 8 };
	struct timespec none = { 0, 0 };
	struct clone_args ca = { .flags = CLONE_PARENT_SETTID, .exit_signal = SIGCHLD,
				 .parent_tid = IMAGE };
	struct { unsigned long val, uaddr; unsigned int flags, r; } w = { 0, IMAGE, 2, 0 };
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct { int len; int pad; unsigned long p; } ifc = { 4096, 0, IMAGE };
	const char *argv[2] = { "x", NULL };
	struct { unsigned short len; unsigned long filter; } prog = { 1, IMAGE };
	struct cmsghdr *c;
	int fd[2], sk[2], null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR);
	int inet = socket(AF_INET, SOCK_DGRAM, 0);

	if (pipe(fd) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sk))
		bail("pipe or socketpair: %s", strerror(errno));
	is(call(SYS_writev, null, (long)&good, 1, 0, 0, 0), 1,
	   "writev() of the program's own memory succeeds");
	is(call(SYS_writev, null, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "writev() of the runtime is EFAULT");
	is(call(SYS_writev, fd[1], (long)&wide, 1, 0, 0, 0), -EFAULT,
	   "writev() of memory that reaches into the runtime is EFAULT");
	is(call(SYS_readv, zero, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "readv() into the runtime is EFAULT");
	is(call(SYS_preadv, zero, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "preadv() into the runtime is EFAULT");
	is(call(SYS_pwritev2, null, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "pwritev2() of the runtime is EFAULT");
	is(call(SYS_vmsplice, fd[1], (long)bad, 2, 0, 0, 0), -EFAULT,
	   "vmsplice() of the runtime is EFAULT");
	is(call(SYS_readv, zero, (long)bad, 5000, 0, 0, 0), -EINVAL,
	   "readv() with too many buffers is EINVAL");
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EFAULT,
	   "sendmsg() of a buffer in the runtime is EFAULT");
	is(call(SYS_recvmsg, sk[0], (long)&m, MSG_DONTWAIT, 0, 0, 0), -EFAULT,
	   "recvmsg() into a buffer in the runtime is EFAULT");
	is(call(SYS_sendmmsg, sk[0], (long)&mm, 1, 0, 0, 0), -EFAULT,
	   "sendmmsg() of a buffer in the runtime is EFAULT");
	is(call(SYS_recvmmsg, sk[0], (long)&mm, 1, MSG_DONTWAIT, 0, 0), -EFAULT,
	   "recvmmsg() into a buffer in the runtime is EFAULT");
	m.msg_iov = &good;
	m.msg_iovlen = 1;
	m.msg_name = (void *)IMAGE;
	m.msg_namelen = 100;
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EFAULT,
	   "sendmsg() to a name in the runtime is EFAULT");
	is(call(SYS_recvmsg, sk[0], (long)&m, MSG_DONTWAIT, 0, 0, 0), -EFAULT,
	   "recvmsg() of a name into the runtime is EFAULT");
	m.msg_name = NULL;
	m.msg_control = (void *)IMAGE;
	m.msg_controllen = 100;
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EFAULT,
	   "sendmsg() of control data in the runtime is EFAULT");
	is(call(SYS_recvmsg, sk[0], (long)&m, MSG_DONTWAIT, 0, 0, 0), -EFAULT,
	   "recvmsg() of control data into the runtime is EFAULT");
	m.msg_control = control;
	m.msg_controllen = sizeof(control);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	*(int *)CMSG_DATA(c) = hidden_fd();
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EBADF,
	   "sendmsg() of a hidden descriptor is EBADF");
	*(int *)CMSG_DATA(c) = null;
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), 1,
	   "sendmsg() of a descriptor of the program's own succeeds");
	is(call(SYS_pselect6, 0, 0, 0, 0, (long)&none, (long)sigset), -EFAULT,
	   "pselect6() with a signal mask in the runtime is EFAULT");
	is(call(SYS_clone3, (long)&ca, sizeof(ca), 0, 0, 0, 0), -EFAULT,
	   "clone3() with parent_tid in the runtime is EFAULT");
	is(call(SYS_futex_waitv, (long)&w, 1, 0, 0, 0, 0), -EFAULT,
	   "futex_waitv() for a word in the runtime is EFAULT");
	is(call(SYS_futex, (long)&none, FUTEX_WAKE_OP, 1, 1, IMAGE, 0), -EFAULT,
	   "futex() with its second word in the runtime is EFAULT");
	is(call(SYS_ioctl, inet, 0x8912, (long)&ifc, 0, 0, 0), -EFAULT,
	   "SIOCGIFCONF into the runtime is EFAULT");
	is(call(SYS_setsockopt, inet, SOL_SOCKET, SO_ATTACH_FILTER, (long)&prog, 16, 0), -EFAULT,
	   "SO_ATTACH_FILTER of a program in the runtime is EFAULT");
	is(call(SYS_setsockopt, inet, 0, 64, (long)&prog, 16, 0), -ENOPROTOOPT,
	   "setsockopt() of firewall tables is ENOPROTOOPT");
	is(call(SYS_ioctl, null, 0xc0506401, (long)control, 0, 0, 0), -ENOTTY,
	   "an ioctl() that the sandbox does not know is ENOTTY");
	is(call(SYS_execve, (long)"/bin/true", IMAGE, 0, 0, 0, 0), -EFAULT,
	   "execve() with a vector in the runtime is EFAULT");
	bad[0].iov_base = (void *)IMAGE;
	bad[0].iov_len = 0;
	is(call(SYS_execve, (long)"/bin/true", (long)bad, 0, 0, 0, 0), -EFAULT,
	   "execve() with an argument in the runtime is EFAULT");
	is(call(SYS_execve, (long)"/bin/true", (long)argv, (long)bad, 0, 0, 0), -EFAULT,
	   "execve() with an environment in the runtime is EFAULT");
	is(call(SYS_prctl, PR_GET_NAME, IMAGE, 0, 0, 0, 0), -EFAULT,
	   "PR_GET_NAME into the runtime is EFAULT");
	is(call(SYS_arch_prctl, 0x1003, IMAGE, 0, 0, 0, 0), -EFAULT,
	   "ARCH_GET_FS into the runtime is EFAULT");
	is(call(SYS_fcntl, null, F_GETLK, IMAGE, 0, 0, 0), -EFAULT,
	   "F_GETLK into the runtime is EFAULT");
}

/*
 * Before the kernel looks at the number of an option, it finds that the length
 * cannot be read (EFAULT), or that it is too short for a value to be set
 * (EINVAL). So ENOPROTOOPT is the sandbox's, with any configuration of the kernel.
 */
static void test_tcp_options(void)
{
	static const struct { int nr, get, set; const char *name; } options[] = {
		{ 1, EFAULT, EINVAL, "TCP_NODELAY" },
		{ 35, ENOPROTOOPT, ENOPROTOOPT, "TCP_ZEROCOPY_RECEIVE" },
		{ 37, EFAULT, EINVAL, "TCP_TX_DELAY" },
		{ 38, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_ADD_KEY" },
		{ 39, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_DEL_KEY" },
		{ 40, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_INFO" },
		{ 41, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_GET_KEYS" },
	};
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		is(call(SYS_getsockopt, tcp, SOL_TCP, options[i].nr, 0, 0, 0),
		   -options[i].get,
		   "getsockopt() of %s gives the error that it must", options[i].name);
		is(call(SYS_setsockopt, tcp, SOL_TCP, options[i].nr, 0, 0, 0),
		   -options[i].set,
		   "setsockopt() of %s gives the error that it must", options[i].name);
	}
	close(tcp);
}

/* ---- files -------------------------------------------------------------- */

static void test_files(void)
{
	struct { unsigned long flags, mode, resolve; } how = { O_RDWR, 0, 0 };
	char path[100], self[200] = "";
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY), fd = hidden_fd(), n;
	pid_t child;

	is(call(SYS_open, (long)"/proc/self/mem", O_RDWR, 0, 0, 0, 0), -EACCES,
	   "opening /proc/self/mem to read and write is EACCES");
	is(call(SYS_open, (long)"/proc/self/mem", O_RDONLY, 0, 0, 0, 0), -EACCES,
	   "opening /proc/self/mem to read is EACCES");
	is(call(SYS_openat, dir, (long)"mem", O_RDONLY, 0, 0, 0), -EACCES,
	   "opening mem below a descriptor of /proc/self is EACCES");
	is(call(SYS_openat2, dir, (long)"mem", (long)&how, sizeof(how), 0, 0), -EACCES,
	   "opening mem by openat2() is EACCES");
	is(call(SYS_open, (long)"/proc/self/task/../mem", O_RDWR, 0, 0, 0, 0), -EACCES,
	   "opening mem by a path with .. is EACCES");
	if (symlink("/proc/thread-self/mem", "link"))
		bail("symlink: %s", strerror(errno));
	is(call(SYS_open, (long)"link", O_RDWR, 0, 0, 0, 0), -EACCES,
	   "opening mem by a symbolic link is EACCES");
	unlink("link");
	is(call(SYS_open, (long)"/proc/self/mem", O_PATH, 0, 0, 0, 0), -EACCES,
	   "opening mem with O_PATH is EACCES");
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -EACCES,
	   "opening the mem of a child is EACCES");
	is(call(SYS_ptrace, 16, child, 0, 0, 0, 0), -EPERM, "ptrace() of a child is EPERM");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
	is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -EACCES,
	   "opening the mem of the parent is EACCES");

	if (geteuid() == 0) {
		static const struct { const char *name; int type, major, minor, error; } nodes[] = {
			{ "mem", S_IFCHR, 1, 1, ENXIO }, { "port", S_IFCHR, 1, 4, ENXIO },
			{ "kvm", S_IFCHR, 10, 232, ENODEV }, { "vhost", S_IFCHR, 10, 238, ENODEV },
			{ "null", S_IFCHR, 1, 3, 0 }, { "zero", S_IFCHR, 1, 5, 0 },
		};
		size_t i;

		is(call(SYS_open, (long)"/proc/kcore", O_RDONLY, 0, 0, 0, 0), -EPERM,
		   "opening /proc/kcore is EPERM for root");
		chmod("/proc/kcore", 0444);
		is(call(SYS_open, (long)"/proc/kcore", O_RDONLY, 0, 0, 0, 0), -EPERM,
		   "opening /proc/kcore is EPERM where everybody may read it");
		chmod("/proc/kcore", 0400);
		for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
			long got;

			unlink("node");
			if (mknod("node", nodes[i].type | 0600,
				  makedev(nodes[i].major, nodes[i].minor))) {
				skip(strerror(errno), "opening a new node of %s", nodes[i].name);
				continue;
			}
			got = call(SYS_open, (long)"node", O_RDWR, 0, 0, 0, 0);
			is(got < 0 ? -got : 0, nodes[i].error,
			   "opening a new node of %s is refused unless it is harmless",
			   nodes[i].name);
		}
		unlink("node");
	}
	is(call(SYS_open, (long)"/dev/dune", O_RDWR, 0, 0, 0, 0), -ENODEV,
	   "opening /dev/dune is ENODEV");

	is(call(SYS_dup, fd, 0, 0, 0, 0, 0), -EBADF, "dup() of a hidden descriptor is EBADF");
	is(call(SYS_fcntl, fd, F_DUPFD, 3, 0, 0, 0), -EBADF,
	   "F_DUPFD of a hidden descriptor is EBADF");
	is(call(SYS_close, fd, 0, 0, 0, 0, 0), -EBADF, "close() of a hidden descriptor is EBADF");
	is(call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), -EBADF,
	   "mmap() of a hidden descriptor is EBADF");
	is(call(SYS_ioctl, fd, 0xde10, 0, 0, 0, 0), -EBADF,
	   "ioctl() of a hidden descriptor is EBADF");
	is(call(SYS_dup2, 0, fd, 0, 0, 0, 0), fd,
	   "dup2() to the number of a hidden descriptor succeeds");
	is(call(SYS_close, fd, 0, 0, 0, 0, 0), 0,
	   "close() of a number that a hidden descriptor had succeeds");
	is(call(SYS_close_range, 3, ~0U, 0, 0, 0, 0), 0,
	   "close_range() of all descriptors succeeds");
	child = fork();
	if (!child)
		_exit(0);
	ok(child > 0 && waitpid(child, &n, 0) == child && !n,
	   "a child can be made after close_range() of all descriptors");
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	ok(n > 0 && strstr(self, "hostile"), "/proc/self/exe is the program");
	fd = open("/proc/self/exe", O_RDONLY);
	ok(fd >= 0 && read(fd, self, 4) == 4 && !memcmp(self, "\177ELF", 4),
	   "/proc/self/exe can be opened");
	close(fd);
}

/* ---- processes ---------------------------------------------------------- */

static char *shared;
static char stack[65536];

static int thread_body(void *arg)
{
	return 0;
}

static void test_processes(void)
{
	pid_t child;
	int status;

	ok(clone(thread_body, stack + sizeof(stack),
		 CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) == -1,
	   "threads are refused");
	ok(clone(thread_body, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL) == -1 &&
	   errno == EINVAL, "descriptors cannot be shared with a child that runs at the same time");
	is(call(SYS_unshare, 0, 0, 0, 0, 0, 0), 0, "unshare() of nothing succeeds");

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = vfork();
	if (!child) {
		shared[0] = 1;
		shared[1] = call(SYS_set_robust_list, (long)shared, 24, 0, 0, 0, 0) == -ENOSYS;
		_exit(3);
	}
	waitpid(child, &status, 0);
	ok(WEXITSTATUS(status) == 3 && shared[0] == 1, "vfork, and the child's end");
	ok(shared[1], "no robust list in the parent's memory");

	/* a child in the sandbox is in it, too */
	child = fork();
	if (!child)
		_exit(call(SYS_open, (long)"/proc/self/mem", O_RDWR, 0, 0, 0, 0) == -EACCES &&
		      call(SYS_read, 0, IMAGE, 1, 0, 0, 0) == -EFAULT &&
		      outside_mappings() == 0 &&
		      fault_of(do_read, (void *)IMAGE) == SIGSEGV ? 0 : 1);
	waitpid(child, &status, 0);
	ok(status == 0, "a child is in the sandbox");
}

/* This program's own, from the linker. */
extern const char __ehdr_start[64];

/*
 * Two processes share the vector: one makes it bad while the other uses it.
 * Should a check ever look at other bytes than the kernel, the call would read
 * the runtime's image into the pipe, which begins with an ELF header. (Other
 * bytes than x are no leak: a pointer that is read while it changes may be
 * part of each, and name other memory of this program, even its own header.)
 */
static void test_race(void)
{
	struct iovec *v = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static char x[64] = "fine and public";
	char got[sizeof(x)];
	int fd[2], i, leaks = 0, fine = 0, refused = 0;
	pid_t child;

	v->iov_base = x;
	v->iov_len = sizeof(x);
	if (pipe(fd))
		bail("pipe: %s", strerror(errno));
	child = fork();
	if (!child)
		for (;;) {
			*(void *volatile *)&v->iov_base = (void *)HEADER;
			*(void *volatile *)&v->iov_base = x;
		}
	/* While the child's processor is not emulated, what is seen is always the same. */
	for (i = 0; i < 20000 || (!fine && i < 2000000); i++) {
		ssize_t n = writev(fd[1], v, 1);

		if (n <= 0) {
			refused++;
			continue;
		}
		n = read(fd[0], got, sizeof(got));
		if (n >= 4 && !memcmp(got, "\x7f" "ELF", 4) && memcmp(got, __ehdr_start, n))
			leaks++;
		fine++;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ok(leaks == 0 && fine > 0, "a vector that changes all the time never leaks");
	diag("%d written, %d of them a leak, %d refused", fine, leaks, refused);
}

/* ---- protection keys ---------------------------------------------------- */

#define XFEATURE_PKRU	9

static uint64_t handler_mask;

static void on_ud2(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	memcpy(&handler_mask, &uc->uc_sigmask, sizeof(handler_mask));
	uc->uc_mcontext.gregs[REG_RIP] += 2;
}

/*
 * XRSTOR loads PKRU, by which the kernel's accesses to user memory go. If it
 * stayed, the runtime's calls could not write their results.
 */
static void test_keys(void)
{
	struct sigaction sa = { .sa_sigaction = on_ud2, .sa_flags = SA_SIGINFO };
	static unsigned char area[8192] __attribute__((aligned(64)));
	unsigned int low = 0, high, offset, a, c, d;
	struct timespec now;

	__cpuid(1, a, high, c, d);
	if (c & bit_OSXSAVE)
		asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if (!(low & 1 << XFEATURE_PKRU)) {
		skip("the kernel uses no protection keys here", "XRSTOR of PKRU");
		return;
	}
	__cpuid_count(13, XFEATURE_PKRU, a, offset, c, d);
	*(uint64_t *)(area + 512) = 1 << XFEATURE_PKRU;
	memset(area + offset, 0xaa, 4);
	sigaction(SIGILL, &sa, NULL);
	/* It leaves an address on the runtime's stack. */
	call(SYS_fsopen, (long)"no such file system", 0, 0, 0, 0, 0);
	asm volatile("xrstor64 (%0)\n\tud2"
		     : : "r"(area), "a"(1 << XFEATURE_PKRU), "d"(0) : "memory");
	is(handler_mask, 0, "the signal mask that a handler sees after XRSTOR of PKRU");
	asm volatile("xrstor64 (%0)" : : "r"(area), "a"(1 << XFEATURE_PKRU), "d"(0) : "memory");
	is(call(SYS_clock_gettime, 0, (long)&now, 0, 0, 0, 0), 0, "a call after XRSTOR of PKRU");
	signal(SIGILL, SIG_DFL);
}

int main(int argc, char **argv)
{
	/*
	 * If the runtime passes on a call that it should refuse, the call must not affect
	 * other processes: a session of its own, and no SIGPIPE or SIGALRM.
	 */
	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
	test_table();
	test_direct();
	test_mappings();
	test_nested();
	test_tcp_options();
	test_processes();
	test_race();
	test_keys();
	test_files();
	return done();
}

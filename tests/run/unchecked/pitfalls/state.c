// SPDX-License-Identifier: MIT OR Apache-2.0
/* The thread's other state. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <asm/ldt.h>
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void row_prctl(void)
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

void row_arch_prctl(void)
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

void row_ldt(void)
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

void row_personality(void)
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

void row_seccomp(void) { try(filtered, 77); }

void row_limits(void)
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

void row_namespaces(void)
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
void row_core(void)
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

void row_numbers(void)
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
void row_ring3(void)
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

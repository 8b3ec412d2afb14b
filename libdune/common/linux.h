/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's view of signals and processes: structures and numbers that the
 * kernel's own headers keep out of programs, or that libc's headers define
 * differently. The core includes no header of libc.
 */
#ifndef LIBDUNE_LINUX_H
#define LIBDUNE_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <asm/unistd_64.h>
#include <linux/errno.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;

#define NSIG		64
#define SIGSET_SIZE	(NSIG / 8)	/* of a mask of signals, in bytes */
#define SIGILL		4
#define SIGTRAP		5
#define SIGABRT		6
#define SIGBUS		7
#define SIGFPE		8
#define SIGKILL		9
#define SIGSEGV		11
#define SIGSTOP		19

#define SIG_DFL		0UL
#define SIG_IGN		1UL

#define SIG_BLOCK	0
#define SIG_UNBLOCK	1
#define SIG_SETMASK	2

#define SA_NOCLDSTOP	0x00000001
#define SA_NOCLDWAIT	0x00000002
#define SA_SIGINFO	0x00000004
#define SA_EXPOSE_TAGBITS 0x00000800
#define SA_RESTORER	0x04000000
#define SA_ONSTACK	0x08000000
#define SA_RESTART	0x10000000
#define SA_NODEFER	0x40000000
#define SA_RESETHAND	0x80000000

#define SS_ONSTACK	1
#define SS_DISABLE	2
#define SS_AUTODISARM	(1U << 31)
#define MINSIGSTKSZ	2048

#define SI_KERNEL	0x80
#define ILL_ILLOPN	2
#define FPE_INTDIV	1
#define FPE_FLTDIV	3
#define FPE_FLTOVF	4
#define FPE_FLTUND	5
#define FPE_FLTRES	6
#define FPE_FLTINV	7
#define SEGV_MAPERR	1
#define SEGV_ACCERR	2
#define BUS_ADRALN	1
#define TRAP_BRKPT	1
#define TRAP_TRACE	2

/* in the kernel only; see dune_run.restart */
#define ERESTARTSYS		512
#define ERESTARTNOINTR		513
#define ERESTARTNOHAND		514
#define ERESTART_RESTARTBLOCK	516

#define CLONE_VM		0x00000100
#define CLONE_FILES		0x00000400
#define CLONE_SIGHAND		0x00000800
#define CLONE_VFORK		0x00004000
#define CLONE_THREAD		0x00010000
#define CLONE_SETTLS		0x00080000
#define CLONE_CLEAR_SIGHAND	0x100000000ULL

#define ARCH_SET_GS		0x1001
#define ARCH_SET_FS		0x1002
#define ARCH_GET_FS		0x1003
#define ARCH_GET_GS		0x1004

#define O_RDWR			2
#define O_CLOEXEC		02000000
#define F_DUPFD_CLOEXEC		1030
#define PROT_NONE		0
#define PROT_READ		1
#define PROT_WRITE		2
#define MAP_SHARED		1
#define MAP_PRIVATE		2
#define MAP_FIXED		0x10
#define MAP_ANONYMOUS		0x20
#define MAP_NORESERVE		0x4000
#define MAP_FIXED_NOREPLACE	0x100000
#define MADV_NOHUGEPAGE		15

struct ksigaction {
	u64 handler;
	u64 flags;
	u64 restorer;
	u64 mask;
};

/* siginfo_t, of which the library itself fills only faults */
struct ksiginfo {
	int signo, err, code, pad;
	u64 addr;
	u64 rest[13];
};

_Static_assert(sizeof(struct ksiginfo) == 128, "siginfo");

struct kstack {
	u64 sp;
	u32 flags, pad;
	u64 size;
};

struct ksigcontext {
	u64 r8, r9, r10, r11, r12, r13, r14, r15;
	u64 rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
	u16 cs, gs, fs, ss;
	u64 err, trapno, oldmask, cr2, fpstate, reserved[8];
};

struct kucontext {
	u64 flags;
	u64 link;
	struct kstack stack;
	struct ksigcontext mc;
	u64 sigmask;
};

_Static_assert(sizeof(struct kucontext) == 304, "ucontext");

struct kclone_args {
	u64 flags, pidfd, child_tid, parent_tid, exit_signal;
	u64 stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

#define PAGE		4096ULL
#define GB_SHIFT	30
#define GB		(1ULL << GB_SHIFT)

/* User addresses of Linux with 4-level tables end a page below 2^47. */
#define USER_BITS	47
#define USER_TOP	(1ULL << USER_BITS)
#define USER_END	(USER_TOP - PAGE)

/* Returns whether a system call that returns an address has failed. */
static inline bool is_error(long ret)
{
	return ret < 0 && ret > -4096;
}

static inline u64 sigbit(int sig)
{
	return 1ULL << (sig - 1);
}

#define __aligned(n)	__attribute__((aligned(n)))
#define __packed	__attribute__((packed))
#define __noreturn	__attribute__((noreturn))

/* Written only while starting; a program that is one image may make it read-only. */
#define __ro_after_start __attribute__((section("dune_ro_after_start")))
#define noinline	__attribute__((noinline))
#define ALWAYS_INLINE	static inline __attribute__((always_inline))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define barrier()	__asm__ volatile("" : : : "memory")
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

/*
 * A plain system call, for the host half and dune_enter(), in user mode. The
 * guest half calls dune_hypercall().
 */
ALWAYS_INLINE long sys6(long nr, long a0, long a1, long a2, long a3, long a4,
			long a5)
{
	register long r10 __asm__("r10") = a3;
	register long r8 __asm__("r8") = a4;
	register long r9 __asm__("r9") = a5;
	long ret;

	__asm__ volatile("syscall"
			 : "=a" (ret)
			 : "a" (nr), "D" (a0), "S" (a1), "d" (a2), "r" (r10),
			   "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return ret;
}

ALWAYS_INLINE long sys3(long nr, long a0, long a1, long a2)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a" (ret)
			 : "a" (nr), "D" (a0), "S" (a1), "d" (a2)
			 : "rcx", "r11", "memory");
	return ret;
}

ALWAYS_INLINE long sys4(long nr, long a0, long a1, long a2, long a3)
{
	return sys6(nr, a0, a1, a2, a3, 0, 0);
}

/*
 * The compiler may call these for copies and clears of structures. Under their
 * usual names they would replace libc's in programs that are linked with libdune.
 */
void *memcpy(void *dst, const void *src, size_t n) __asm__("dune_memcpy");
void *memset(void *dst, int c, size_t n) __asm__("dune_memset");

#endif /* LIBDUNE_LINUX_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Linux's interface for user mode on x86-64: structures and numbers that the kernel's own
 * headers keep out of programs, or that libc's headers define differently.
 */
#ifndef LIBDUNE_LINUX_H
#define LIBDUNE_LINUX_H

#include <asm/unistd_64.h>
#include <linux/errno.h>
#include "compiler.h"

#define NSIG		64
#define SIGSET_SIZE	(NSIG / 8)	/* of a mask of signals, in bytes */
#define SIGILL		4
#define SIGTRAP		5
#define SIGABRT		6
#define SIGBUS		7
#define SIGFPE		8
#define SIGKILL		9
#define SIGSEGV		11
#define SIGCHLD		17
#define SIGCONT		18
#define SIGSTOP		19
#define SIGTSTP		20
#define SIGTTIN		21
#define SIGTTOU		22
#define SIGURG		23
#define SIGWINCH	28

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
#define TRAP_TRACE	2

/* Results of calls that a signal interrupted. Programs see them only in dune_run.restart. */
#define ERESTARTSYS		512
#define ERESTARTNOINTR		513
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

static inline u64 sigbit(int sig)
{
	return 1ULL << (sig - 1);
}

#endif /* LIBDUNE_LINUX_H */

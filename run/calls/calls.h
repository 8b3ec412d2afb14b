/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the files of calls/ share: the arguments of a call, its answers, and the
 * functions that syscalls.def names, by the file they are in. Each of these runs after
 * the checks of its line in the table, and ends in exactly one of these:
 *
 * - refuse(): dune-run found the error;
 * - dune_syscall_result(): @tf gets the kernel's result, which may be DUNE_AGAIN, or the
 *   result that dune-run gives instead;
 * - dune_syscall_pass() or dune_syscall_clone3(): libdune stores the result.
 *
 * An error is a negative errno number (-EFAULT) everywhere; only the rows of syscalls.def
 * have the positive number.
 */
#ifndef DUNE_RUN_CALLS_H
#define DUNE_RUN_CALLS_H

#include "types.h"

#include <dune_runtime.h>
#include <linux/errno.h>

/* The arguments of a system call as they stand in the trap frame. */
#define ARG0(tf)	((tf)->rdi)
#define ARG1(tf)	((tf)->rsi)
#define ARG2(tf)	((tf)->rdx)
#define ARG3(tf)	((tf)->r10)
#define ARG4(tf)	((tf)->r8)
#define ARG5(tf)	((tf)->r9)

#define IOV_LIMIT	1024	/* the kernel's UIO_MAXIOV */

/*
 * No call transfers more bytes or items by one buffer: the kernel shortens or refuses longer ones
 * (MAX_RW_COUNT), or takes 32 bits of the length.
 */
#define TRANSFER_LIMIT	(1UL << 32)

/*
 * check.c. forward() makes the call of @tf as it is, and returns the kernel's value, for
 * dune_syscall_result(). refuse() gives the program @err as the call's result.
 */
long forward(struct dune_tf *tf);
void refuse(struct dune_tf *tf, long err);

/* mapping.c */
void call_mmap(struct dune_tf *tf);
void call_munmap(struct dune_tf *tf);
void call_mremap(struct dune_tf *tf);
void call_shmat(struct dune_tf *tf);
void call_shmdt(struct dune_tf *tf);
void call_pkey_mprotect(struct dune_tf *tf);

/* open.c */
void call_open(struct dune_tf *tf);
void call_truncate(struct dune_tf *tf);

/* descriptors.c */
void call_dup2(struct dune_tf *tf);
void call_close_range(struct dune_tf *tf);

/* self_exe.c */
void call_readlink(struct dune_tf *tf);
void call_at(struct dune_tf *tf);

/* structures.c */
struct iovec;

long take_vector(struct iovec *v, u64 from, u64 count);
void call_iovec(struct dune_tf *tf);
void call_mq_notify(struct dune_tf *tf);
void call_futex_waitv(struct dune_tf *tf);
void call_futex_requeue(struct dune_tf *tf);

/* buffers.c */
void call_select(struct dune_tf *tf);
void call_pselect6(struct dune_tf *tf);
void call_mincore(struct dune_tf *tf);
void call_move_pages(struct dune_tf *tf);
void call_keyctl(struct dune_tf *tf);

/* mount.c */
void call_mount(struct dune_tf *tf);
void call_umount2(struct dune_tf *tf);
void call_fsopen(struct dune_tf *tf);

/* socket_messages.c */
void call_sendmsg(struct dune_tf *tf);
void call_recvmsg(struct dune_tf *tf);
void call_sendmmsg(struct dune_tf *tf);
void call_recvmmsg(struct dune_tf *tf);

/* socket_options.c */
void call_socket(struct dune_tf *tf);
void call_setsockopt(struct dune_tf *tf);
void call_getsockopt(struct dune_tf *tf);

/* ioctl.c */
void call_ioctl(struct dune_tf *tf);

/* process.c */
void call_fork(struct dune_tf *tf);
void call_clone(struct dune_tf *tf);
void call_clone3(struct dune_tf *tf);
void call_exit(struct dune_tf *tf);
void call_set_tid_address(struct dune_tf *tf);
void call_set_robust_list(struct dune_tf *tf);

/* prctl.c */
void call_prctl(struct dune_tf *tf);
void call_arch_prctl(struct dune_tf *tf);

/* execve.c */
void call_execve(struct dune_tf *tf);
void call_execveat(struct dune_tf *tf);

#endif /* DUNE_RUN_CALLS_H */

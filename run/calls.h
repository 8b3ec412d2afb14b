/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that syscalls.def names, by the file they are in. Each runs
 * after the checks of its line in the table and leaves the result in the
 * frame.
 */
#ifndef DUNE_RUN_CALLS_H
#define DUNE_RUN_CALLS_H

#include "run.h"

/* mem.c: mappings */
void call_mmap(struct dune_tf *tf);
void call_munmap(struct dune_tf *tf);
void call_mremap(struct dune_tf *tf);
void call_brk(struct dune_tf *tf);
void call_shmat(struct dune_tf *tf);
void call_shmdt(struct dune_tf *tf);
void call_pkey_mprotect(struct dune_tf *tf);

/* files.c: descriptors and names */
void call_open(struct dune_tf *tf);
void call_truncate(struct dune_tf *tf);
void call_dup2(struct dune_tf *tf);
void call_close_range(struct dune_tf *tf);
void call_readlink(struct dune_tf *tf);
void call_newfstatat(struct dune_tf *tf);
void call_statx(struct dune_tf *tf);

/* nested.c: structures with pointers in them */
void call_iovec(struct dune_tf *tf);
void call_select(struct dune_tf *tf);
void call_mincore(struct dune_tf *tf);
void call_move_pages(struct dune_tf *tf);
void call_fsopen(struct dune_tf *tf);
void call_pselect6(struct dune_tf *tf);
void call_mq_notify(struct dune_tf *tf);
void call_futex_waitv(struct dune_tf *tf);
void call_futex_requeue(struct dune_tf *tf);
void call_keyctl(struct dune_tf *tf);
void call_mount(struct dune_tf *tf);

/* socket.c */
void call_socket(struct dune_tf *tf);
void call_sendmsg(struct dune_tf *tf);
void call_recvmsg(struct dune_tf *tf);
void call_sendmmsg(struct dune_tf *tf);
void call_recvmmsg(struct dune_tf *tf);
void call_setsockopt(struct dune_tf *tf);
void call_getsockopt(struct dune_tf *tf);

/* ioctl.c */
void call_ioctl(struct dune_tf *tf);

/* process.c */
void call_clone(struct dune_tf *tf);
void call_clone3(struct dune_tf *tf);
void call_fork(struct dune_tf *tf);
void call_exit(struct dune_tf *tf);
void call_set_tid_address(struct dune_tf *tf);
void call_set_robust_list(struct dune_tf *tf);
void call_prctl(struct dune_tf *tf);
void call_arch_prctl(struct dune_tf *tf);
void call_seccomp(struct dune_tf *tf);

/* exec.c */
void call_execve(struct dune_tf *tf);
void call_execveat(struct dune_tf *tf);

#endif /* DUNE_RUN_CALLS_H */

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * System calls in the guest. Most are the host's business and are passed on;
 * the ones in dune_special[] are about the caller's registers, signal frames,
 * or descriptors of ours, and are done here (signal.c, process.c).
 */
#include "guest.h"

#define BIT(nr, word) ((nr) / 64 == (word) ? 1ULL << ((nr) % 64) : 0)

#define SPECIAL(word) (							\
	BIT(__NR_close, word) | BIT(__NR_rt_sigaction, word) |		\
	BIT(__NR_rt_sigreturn, word) | BIT(__NR_dup2, word) |		\
	BIT(__NR_clone, word) | BIT(__NR_fork, word) |			\
	BIT(__NR_vfork, word) | BIT(__NR_rt_sigsuspend, word) |		\
	BIT(__NR_sigaltstack, word) | BIT(__NR_arch_prctl, word) |	\
	BIT(__NR_sched_setaffinity, word) | BIT(__NR_pselect6, word) |	\
	BIT(__NR_ppoll, word) | BIT(__NR_epoll_pwait, word) |		\
	BIT(__NR_dup3, word) | BIT(__NR_io_pgetevents, word) |		\
	BIT(__NR_clone3, word) | BIT(__NR_close_range, word) |		\
	BIT(__NR_epoll_pwait2, word))

const u64 dune_special[SYSCALL_MAX / 64] = {
	SPECIAL(0), SPECIAL(1), SPECIAL(2), SPECIAL(3),
	SPECIAL(4), SPECIAL(5), SPECIAL(6), SPECIAL(7)
};

dune_syscall_fn dune_syscall_handler __ro_after_start = dune_syscall_pass;

void dune_syscall_set(dune_syscall_fn fn)
{
	__atomic_store_n(&dune_syscall_handler, fn ? fn : dune_syscall_pass,
			 __ATOMIC_RELEASE);
}

int dune_syscall_special(uint32_t nr)
{
	return nr < SYSCALL_MAX && (dune_special[nr / 64] >> (nr % 64) & 1);
}

/*
 * The call itself, with the frame's arguments. Ring 0 with interrupts off
 * cannot run a handler now, so it must not wait for one either.
 */
static long forward(struct dune_tf *tf, u64 nr)
{
	if (tf->rflags & RFLAGS_IF)
		return dune_forward_tf(tf, nr);
	return dune_hypercall(nr, tf->rdi, tf->rsi, tf->rdx, tf->r10, tf->r8,
			      tf->r9);
}

static long special(struct dune_tf *tf, u32 nr)
{
	switch (nr) {
	case __NR_rt_sigaction:
		return dune_sys_sigaction(tf);
	case __NR_sigaltstack:
		return dune_sys_sigaltstack(tf);
	case __NR_arch_prctl:
		return dune_sys_arch_prctl(tf);
	case __NR_fork:
	case __NR_vfork:
	case __NR_clone:
	case __NR_clone3:
		return dune_sys_clone(tf);
	case __NR_close:
	case __NR_dup2:
	case __NR_dup3:
	case __NR_close_range:
		return dune_sys_fd(tf);
	default:
		/*
		 * A mask that holds while the call waits, or another CPU: the
		 * host half has to know.
		 */
		return forward(tf, HC_SYSCALL(nr));
	}
}

/* Calls that say where handlers are, and on which stack. */
static int is_ring0s(const struct dune_tf *tf, u32 nr)
{
	return (tf->cs & 3) &&
	       !(dune_process.flags & DUNE_ENTER_RING3_SIGNALS) &&
	       (nr == __NR_rt_sigaction || nr == __NR_rt_sigreturn ||
		nr == __NR_sigaltstack);
}

void dune_syscall_pass(struct dune_tf *tf)
{
	u32 nr = tf->rax;

	if (unlikely(dune_syscall_special(nr))) {
		if (is_ring0s(tf, nr))
			tf->rax = -EPERM;
		else if (nr == __NR_rt_sigreturn)
			dune_sys_sigreturn(tf);
		else
			dune_syscall_result(tf, special(tf, nr));
		return;
	}
	dune_syscall_result(tf, dune_forward_tf(tf, nr));
}

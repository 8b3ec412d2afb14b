// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * System calls in the guest. Most are passed on to the kernel by one hypercall.
 * Those in the table of special.h concern the caller's registers, signal frames
 * or the descriptors of vCPUs: the functions that it names carry them out (fd.c,
 * signal.c, altstack.c, process.c, arch_prctl.c), or a service (common/services.h).
 */
#include "guest.h"
#include "special.h"

#define BIT(word, name, guest, host)					\
	| (__NR_##name / 64 == (word) ? 1ULL << (__NR_##name % 64) : 0)
#define WORD(word) (0 SPECIAL_CALLS(BIT, word))

const u64 dune_special[SYSCALL_MAX / 64] = {
	WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6), WORD(7)
};

dune_syscall_fn dune_syscall_handler __ro_after_start = dune_syscall_pass;

void dune_syscall_set(dune_syscall_fn fn)
{
	__atomic_store_n(&dune_syscall_handler, fn ? fn : dune_syscall_pass, __ATOMIC_RELEASE);
}

int dune_syscall_special(uint32_t nr)
{
	return nr < SYSCALL_MAX && (dune_special[nr / 64] >> (nr % 64) & 1);
}

/* Carries out a call that needs more than one hypercall outside of guest/. */
static long dune_sys_service(struct dune_tf *tf)
{
	return dune_services->special(tf);
}

#define IF_CALLED(tf, name, guest, host) nr == __NR_##name ? guest(tf) :

static long special(struct dune_tf *tf, u32 nr)
{
	return SPECIAL_CALLS(IF_CALLED, tf) (-ENOSYS);
}

/*
 * Returns whether ring 3 makes a call about signal handlers or their stack, while these
 * belong to ring 0.
 */
static bool belongs_to_ring0(const struct dune_tf *tf, u32 nr)
{
	return from_ring3(tf) &&
	       !(dune_process.flags & DUNE_ENTER_RING3_SIGNALS) &&
	       (nr == __NR_rt_sigaction || nr == __NR_rt_sigreturn || nr == __NR_sigaltstack);
}

void dune_syscall_pass(struct dune_tf *tf)
{
	u32 nr = tf->rax;
	long result;

	if (unlikely(dune_syscall_special(nr))) {
		if (belongs_to_ring0(tf, nr)) {
			tf->rax = -EPERM;
			return;
		}
		result = special(tf, nr);
		/* rt_sigreturn has replaced the frame, with its RAX. */
		if (nr != __NR_rt_sigreturn)
			dune_syscall_result(tf, result);
		return;
	}
	dune_syscall_result(tf, dune_forward_tf(tf, nr));
}

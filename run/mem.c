// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls that change mappings. The program may do with its address space what
 * it likes, except in the granule: a request that names it is refused (munmap
 * leaves it out), and a mapping that the kernel by itself puts there (only when
 * all below the stack is full, or on a hint) is undone.
 */
#include "calls.h"

#include <linux/mman.h>
#include <asm/shmbuf.h>
#include <asm/unistd.h>
#include <linux/ipc.h>
#include <linux/shm.h>

void call_mmap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), len = ARG1(tf), flags = ARG3(tf);
	long ret;

	if (!(flags & MAP_ANONYMOUS) && unlikely(files_is_hidden(ARG4(tf)))) {
		refuse(tf, EBADF);
		return;
	}
	if (unlikely(meets_granule(addr, len))) {
		if (flags & MAP_FIXED_NOREPLACE) {
			refuse(tf, EEXIST);
			return;
		}
		if (flags & MAP_FIXED) {
			refuse(tf, ENOMEM);
			return;
		}
		addr = 0;
	}
	ret = dune_syscall_forward(tf->rax, addr, len, ARG2(tf), flags,
				   ARG4(tf), ARG5(tf));
	if (ret >= 0 && unlikely(meets_granule(ret, len))) {
		SYS2(__NR_munmap, ret, len);
		ret = -ENOMEM;
	}
	dune_syscall_result(tf, ret);
}

/*
 * For the program nothing is mapped in the granule, and unmapping nothing
 * succeeds: what lies below and above it goes. The part above comes first, as
 * the kernel refuses that for a range that ends too high.
 */
void call_munmap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), len = ARG1(tf), end;
	long ret = 0;

	if (likely(!meets_granule(addr, len))) {
		dune_syscall_result(tf, forward(tf));
		return;
	}
	if (!len || (addr & (PAGE_BYTES - 1)) || __builtin_add_overflow(addr, len, &end)) {
		refuse(tf, EINVAL);
		return;
	}
	if (end > GRANULE_BASE + GRANULE_SIZE)
		ret = SYS2(__NR_munmap, GRANULE_BASE + GRANULE_SIZE,
			   end - (GRANULE_BASE + GRANULE_SIZE));
	if (!ret && addr < GRANULE_BASE)
		ret = SYS2(__NR_munmap, addr, GRANULE_BASE - addr);
	dune_syscall_result(tf, ret);
}

/*
 * The old range is checked for both lengths: in place it grows to the new
 * one. A moved mapping that lands in the granule is undone by giving it up,
 * which loses it; the kernel does that only when there is no other room.
 */
void call_mremap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), old_len = ARG1(tf), new_len = ARG2(tf);
	long ret;

	if (unlikely(meets_granule(addr, old_len))) {
		refuse(tf, EFAULT);
		return;
	}
	if (unlikely(meets_granule(addr, new_len)) ||
	    ((ARG3(tf) & (MREMAP_FIXED | MREMAP_DONTUNMAP)) &&
	     unlikely(meets_granule(ARG4(tf), new_len)))) {
		refuse(tf, (ARG3(tf) & MREMAP_FIXED) ? EINVAL : ENOMEM);
		return;
	}
	ret = forward(tf);
	if (ret >= 0 && unlikely(meets_granule(ret, new_len))) {
		SYS2(__NR_munmap, ret, new_len);
		ret = -ENOMEM;
	}
	dune_syscall_result(tf, ret);
}

/* The heap begins below the granule; one that would reach it does not grow. */
void call_brk(struct dune_tf *tf)
{
	u64 wanted = ARG0(tf);

	if (unlikely(wanted >= GRANULE_BASE))
		wanted = 0;
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, wanted, 0, 0, 0, 0, 0));
}

/*
 * Only the segment itself knows its size. It cannot change: what is asked
 * here still holds when the kernel attaches it.
 */
void call_shmat(struct dune_tf *tf)
{
	struct shmid64_ds segment;
	u64 addr = ARG1(tf);
	long ret;

	if (in_granule(addr)) {
		refuse(tf, EINVAL);
		return;
	}
	ret = SYS3(__NR_shmctl, ARG0(tf), IPC_STAT, &segment);
	if (ret == -EACCES)
		segment.shm_segsz = addr ? USER_END : 0;
	else if (ret < 0)
		segment.shm_segsz = 0;
	if (addr && meets_granule(addr, segment.shm_segsz)) {
		refuse(tf, EINVAL);
		return;
	}
	ret = forward(tf);
	if (ret >= 0 && unlikely(meets_granule(ret, segment.shm_segsz))) {
		SYS1(__NR_shmdt, ret);
		ret = -ENOMEM;
	}
	dune_syscall_result(tf, ret);
}

void call_shmdt(struct dune_tf *tf)
{
	if (unlikely(in_granule(ARG0(tf)))) {
		refuse(tf, EINVAL);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/* No key can have been allocated, so only the default key is valid. */
void call_pkey_mprotect(struct dune_tf *tf)
{
	if ((int)ARG3(tf) != -1) {
		refuse(tf, EINVAL);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(__NR_mprotect, ARG0(tf), ARG1(tf),
						     ARG2(tf), 0, 0, 0));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls that change mappings. The program may change its address space freely, except for what the
 * runtime has mapped there, the supervisor range: a request that names it is refused (munmap leaves
 * it out). Without these checks the program could end itself, since the module kills a process that
 * takes the stub away, or change the results of its own calls in the scratch. Nothing else in the
 * range decides anything. All of the range is mapped, so the kernel itself places nothing there.
 */
#include "calls.h"
#include "copies.h"
#include "hidden.h"
#include "page.h"
#include "super_range.h"
#include "sys.h"

#include <asm/shmbuf.h>
#include <asm/unistd.h>
#include <linux/ipc.h>
#include <linux/mman.h>
#include <linux/shm.h>

void call_mmap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), len = ARG1(tf), flags = ARG3(tf);

	if (!(flags & MAP_ANONYMOUS) && unlikely(is_hidden(ARG4(tf)))) {
		refuse(tf, -EBADF);
		return;
	}
	if (unlikely(meets_super_range(addr, len))) {
		if (flags & MAP_FIXED_NOREPLACE) {
			refuse(tf, -EEXIST);
			return;
		}
		if (flags & MAP_FIXED) {
			refuse(tf, -ENOMEM);
			return;
		}
		addr = 0;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, addr, len, ARG2(tf), flags,
						     ARG4(tf), ARG5(tf)));
}

/*
 * For the program nothing is mapped in the supervisor range, and unmapping nothing
 * succeeds: the parts below and above it are unmapped. The part above comes first,
 * since the kernel refuses that one for a range that ends too high.
 */
void call_munmap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), len = ARG1(tf), end;
	long ret = 0;

	if (likely(!meets_super_range(addr, len))) {
		dune_syscall_result(tf, forward(tf));
		return;
	}
	if (!len || (addr & (PAGE_BYTES - 1)) || __builtin_add_overflow(addr, len, &end)) {
		refuse(tf, -EINVAL);
		return;
	}
	if (end > super_base + SUPER_SIZE)
		ret = SYS2(__NR_munmap, super_base + SUPER_SIZE,
			   end - (super_base + SUPER_SIZE));
	if (!ret && addr < super_base)
		ret = SYS2(__NR_munmap, addr, super_base - addr);
	dune_syscall_result(tf, ret);
}

void call_mremap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf);

	if (unlikely(meets_super_range(addr, ARG1(tf)))) {
		refuse(tf, -EFAULT);
		return;
	}
	if ((ARG3(tf) & MREMAP_FIXED) && unlikely(meets_super_range(ARG4(tf), ARG2(tf)))) {
		refuse(tf, -EINVAL);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/*
 * Only the kernel knows the size of the segment, and a size that was read before
 * attaching may be that of another segment, because numbers are reused. So the
 * kernel is never asked to replace a mapping. Without SHM_REMAP it attaches only
 * where nothing is mapped, so a segment that starts below the supervisor range cannot
 * reach into it.
 */
static long attach(struct dune_tf *tf, u64 addr)
{
	return dune_syscall_forward(tf->rax, ARG0(tf), addr,
				    ARG2(tf) & ~(u64)(SHM_REMAP | SHM_RND), 0, 0, 0);
}

/* The bytes of memory of the segment of @tf, which is attached, or an error. */
static long segment_size(const struct dune_tf *tf)
{
	struct shmid64_ds segment = {};
	u64 room = result_room(sizeof(segment));
	long ret = take_result(&segment, room, sizeof(segment),
			       SYS3(__NR_shmctl, ARG0(tf), IPC_STAT, room));

	return ret < 0 ? ret : (long)PAGE_UP(segment.shm_segsz);
}

static bool overlap(u64 a, u64 b, u64 size)
{
	return a < b + size && b < a + size;
}

/*
 * Attach the segment once more, and detach it from @at, a place that overlaps the target @addr: the
 * kernel moves no mapping to where a part of it is. Of separate places one that is not the target
 * overlaps its beginning, and one its end, so no more than two @tries are needed.
 */
static long attach_apart(struct dune_tf *tf, u64 at, u64 addr, u64 size, int tries)
{
	long next = attach(tf, 0);

	if (next >= 0 && tries > 1 && overlap(next, addr, size))
		next = attach_apart(tf, next, addr, size, tries - 1);
	SYS1(__NR_shmdt, at);
	return next;
}

/*
 * SHM_REMAP: the segment is attached where there is room, and moved. An attached
 * segment keeps its number and its size.
 */
static long attach_over(struct dune_tf *tf, u64 addr)
{
	long at = attach(tf, 0), size, ret;

	if (at < 0)
		return at;
	size = segment_size(tf);
	if (size > (long)USER_END || (size >= 0 && addr > USER_END - size))
		size = -ENOMEM;
	else if (size >= 0 && meets_super_range(addr, size))
		size = -EINVAL;
	if (size < 0) {
		SYS1(__NR_shmdt, at);
		return size;
	}
	if ((u64)at == addr)
		return at;
	if (overlap(at, addr, size)) {
		at = attach_apart(tf, at, addr, size, 2);
		if (at < 0)
			return at;
	}
	ret = SYS5(__NR_mremap, at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, addr);
	if (ret < 0)
		SYS1(__NR_shmdt, at);
	return ret;
}

void call_shmat(struct dune_tf *tf)
{
	u64 addr = ARG1(tf), flags = ARG2(tf);

	if (flags & SHM_RND)
		addr = PAGE_DOWN(addr);
	if ((addr & (PAGE_BYTES - 1)) || in_super_range(addr) || (!addr && (flags & SHM_REMAP)))
		refuse(tf, -EINVAL);
	else if (flags & SHM_REMAP)
		dune_syscall_result(tf, attach_over(tf, addr));
	else
		dune_syscall_result(tf, attach(tf, addr));
}

void call_shmdt(struct dune_tf *tf)
{
	if (unlikely(in_super_range(ARG0(tf)))) {
		refuse(tf, -EINVAL);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/* No key can have been allocated, so only the default key is valid. */
void call_pkey_mprotect(struct dune_tf *tf)
{
	if ((int)ARG3(tf) != -1) {
		refuse(tf, -EINVAL);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(__NR_mprotect, ARG0(tf), ARG1(tf),
						     ARG2(tf), 0, 0, 0));
}

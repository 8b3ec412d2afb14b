// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls that change mappings. The program may change its address space freely,
 * except in the supervisor range: a request that names the range is refused
 * (munmap leaves it out), and a mapping that the kernel chooses to put there (only
 * when the address space below the stack is full, or on a hint) is undone.
 */
#include "calls.h"
#include "copies.h"
#include "hidden.h"
#include "mapping.h"
#include "message.h"
#include "page.h"
#include "stats.h"
#include "super_range.h"
#include "sys.h"

#include <asm/shmbuf.h>
#include <asm/unistd.h>
#include <linux/ipc.h>
#include <linux/mman.h>
#include <linux/shm.h>

#define HUGE_BYTES	(1UL << 21)

/*
 * Set while the kernel may be putting a mapping into the supervisor range. If a vfork
 * child is killed before undo(), the flag stays set, and the parent has to remove the
 * mapping.
 */
static volatile bool placing;

static void __attribute__((noreturn)) cannot_unmap(long err)
{
	die(126, "cannot remove a mapping of the program from the supervisor range", NULL, err,
	    "end the program that shares its memory, and report this (docs/security.md)");
}

static void unmap_between(u64 from, u64 to)
{
	long err = SYS2(__NR_munmap, from, to - from);

	if (err)
		cannot_unmap(err);
}

/*
 * Unmap everything but the runtime's own mappings. Between the first and the last page
 * of the arena libdune leaves no room for a mapping (docs/sandbox.md has the exception).
 */
void mapping_after_vfork(void)
{
	if (likely(!placing))
		return;
	placing = false;
	unmap_between(PAGE_UP((u64)_end), ARENA_BASE);
	unmap_between(dune_arena_end(), STATS_BASE);
	unmap_between(STATS_BASE + (stats_mapped() ? PAGE_BYTES : 0), SUPER_BASE + SUPER_SIZE);
}

/*
 * Give up [at, at + len), which the kernel has put into the supervisor range. Where its
 * pages are huge, the kernel has rounded the length up to 2 MB (a page of 1 GB
 * does not fit into the supervisor range together with the guard region).
 */
static long undo(u64 at, u64 len)
{
	long err = SYS2(__NR_munmap, at, len);

	if (err)
		err = SYS2(__NR_munmap, at, (len + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	if (err)
		cannot_unmap(err);
	return -ENOMEM;
}

void call_mmap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), len = ARG1(tf), flags = ARG3(tf);
	long ret;

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
	placing = true;
	ret = dune_syscall_forward(tf->rax, addr, len, ARG2(tf), flags,
				   ARG4(tf), ARG5(tf));
	if (ret >= 0 && unlikely(meets_super_range(ret, len)))
		ret = undo(ret, len);
	placing = false;
	dune_syscall_result(tf, ret);
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
	if (end > SUPER_BASE + SUPER_SIZE)
		ret = SYS2(__NR_munmap, SUPER_BASE + SUPER_SIZE,
			   end - (SUPER_BASE + SUPER_SIZE));
	if (!ret && addr < SUPER_BASE)
		ret = SYS2(__NR_munmap, addr, SUPER_BASE - addr);
	dune_syscall_result(tf, ret);
}

/*
 * The old range is checked for both lengths, since it may grow in place to the
 * new one. A moved mapping that lands in the supervisor range is unmapped and lost; the
 * kernel puts one there only when there is no other room.
 */
void call_mremap(struct dune_tf *tf)
{
	u64 addr = ARG0(tf), old_len = ARG1(tf), new_len = ARG2(tf);
	long ret;

	if (unlikely(meets_super_range(addr, old_len))) {
		refuse(tf, -EFAULT);
		return;
	}
	if (unlikely(meets_super_range(addr, new_len)) ||
	    ((ARG3(tf) & (MREMAP_FIXED | MREMAP_DONTUNMAP)) &&
	     unlikely(meets_super_range(ARG4(tf), new_len)))) {
		refuse(tf, (ARG3(tf) & MREMAP_FIXED) ? -EINVAL : -ENOMEM);
		return;
	}
	placing = true;
	ret = forward(tf);
	if (ret >= 0 && unlikely(meets_super_range(ret, new_len)))
		ret = undo(ret, new_len);
	placing = false;
	dune_syscall_result(tf, ret);
}

/*
 * The heap begins below the supervisor range (heap_start() of load/areas.c); one that would
 * reach the range does not grow.
 */
void call_brk(struct dune_tf *tf)
{
	u64 wanted = ARG0(tf);

	if (unlikely(wanted >= SUPER_BASE))
		wanted = 0;
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, wanted, 0, 0, 0, 0, 0));
}

/*
 * Only the kernel knows the size of the segment, and a size that was read before
 * attaching may be that of another segment, because numbers are reused. So the
 * kernel is never asked to replace a mapping. Without SHM_REMAP it attaches only
 * where nothing is mapped, and a segment that starts below the supervisor range cannot
 * reach into it, because the guard region is mapped (map_guard_region()).
 */
static long attach(struct dune_tf *tf, u64 addr)
{
	long at;

	placing = true;
	at = dune_syscall_forward(tf->rax, ARG0(tf), addr,
				  ARG2(tf) & ~(u64)(SHM_REMAP | SHM_RND), 0, 0, 0);
	if (at >= 0 && unlikely(in_super_range(at))) {
		SYS1(__NR_shmdt, at);
		at = -ENOMEM;
	}
	placing = false;
	return at;
}

/*
 * SHM_REMAP: the segment is attached where there is room, and moved. An attached
 * segment keeps its number and its size.
 */
static long attach_over(struct dune_tf *tf, u64 addr)
{
	struct shmid64_ds segment;
	long at = attach(tf, 0), ret;
	u64 room, size;

	if (at < 0)
		return at;
	room = result_room(&segment, sizeof(segment));
	ret = SYS3(__NR_shmctl, ARG0(tf), IPC_STAT, room);
	if (ret >= 0)
		take_result(&segment, room, sizeof(segment));
	size = PAGE_UP(segment.shm_segsz);
	if (ret >= 0 && meets_super_range(addr, size))
		ret = -EINVAL;
	if (ret >= 0)
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

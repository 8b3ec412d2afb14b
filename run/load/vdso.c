// SPDX-License-Identifier: MIT OR Apache-2.0
/* The vDSO, which the kernel made for dune-run and which the program uses. */
#include "memcpy.h"
#include "page.h"
#include "sys.h"
#include "vdso.h"

#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/dune.h>
#include <linux/mman.h>

/*
 * The vDSO's getcpu reads the limit of a segment that Linux keeps in its own
 * descriptor table (arch/x86/include/asm/segment.h, vdso_read_cpunode). The guest has a
 * table of its own, with a copy that may be out of date (libdune's dune_gdt_set_limit()):
 * replace getcpu by a system call. The time functions read the TSC and need no change.
 *
 * Returns false if the program must not use the vDSO: it has tables that are not known, or
 * the mapping could not be made executable again (PR_SET_MDWE, MemoryDenyWriteExecute= of
 * systemd).
 */
static bool replace_getcpu(const struct dune_start *start, u64 vdso)
{
	static const u8 code[] = {
		0xb8, 0x35, 0x01, 0x00, 0x00,	/* mov $__NR_getcpu, %eax */
		0x0f, 0x05,			/* syscall */
		0xc3,				/* ret */
	};

	if (!start->vdso_bytes)
		return false;
	if (!start->vdso_getcpu)
		return true;
	/* The mapping cannot be split, so all of it is writable for a moment. */
	if (SYS3(__NR_mprotect, vdso, start->vdso_bytes, PROT_READ | PROT_WRITE) < 0)
		return false;
	memcpy((void *)(vdso + start->vdso_getcpu), code, sizeof(code));
	return !SYS3(__NR_mprotect, vdso, start->vdso_bytes, PROT_READ | PROT_EXEC);
}

void vdso_patch(const struct dune_start *start, const struct initial_stack *s)
{
	u64 vdso = SYS0(DUNE_FIND_VDSO);

	/* Without a vDSO, libc makes system calls. */
	if (vdso && !replace_getcpu(start, vdso))
		stack_drop_aux(s, AT_SYSINFO_EHDR);
}

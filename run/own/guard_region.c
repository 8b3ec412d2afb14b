// SPDX-License-Identifier: MIT OR Apache-2.0
/* The guard region, which protects the beginning of the supervisor range. */
#include "guard_region.h"
#include "message.h"
#include "super_range.h"
#include "sys.h"

#include <asm/unistd.h>
#include <linux/mman.h>

/*
 * The guard region is a mapping without rights, so a mapping whose place the kernel
 * chooses cannot reach from below into the range. The guard region replaces a vDSO
 * that the kernel has put there, which happens only with a limit on the stack of about
 * 18.5 TiB (vdso_patch() then hides the vDSO from the program).
 */
void map_guard_region(void)
{
	long at = SYS6(__NR_mmap, SUPER_BASE, GUARD_REGION_SIZE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (at < 0)
		die(126, "cannot get memory for the runtime", NULL, at,
		    "raise the limit on address space (ulimit -v)");
}

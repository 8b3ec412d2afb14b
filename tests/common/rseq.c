// SPDX-License-Identifier: MIT OR Apache-2.0
/* Restartable sequences: see rseq.h. */
#include "rseq.h"
#include "tap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RSEQ_SIZE	32	/* as libc registers it */

void rseq_drop(void)
{
	static bool dropped;
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	if (dropped || !__rseq_size)
		return;
	dropped = true;
	if (syscall(SYS_rseq, area, RSEQ_SIZE, RSEQ_FLAG_UNREGISTER, RSEQ_SIG))
		bail("rseq: %s", strerror(errno));
}

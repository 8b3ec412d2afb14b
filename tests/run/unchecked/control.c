// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune-run-unchecked-control has what no structure may permit: the program gets the runtime's own
 * privileged calls, and ring 0 reads, writes and jumps for it. unchecked.bash fails when the
 * oracles do not find what this file permits.
 */
#include "calls.h"
#include "unchecked.h"
#include "user_memory.h"

#include <dune_runtime.h>
#include <asm/unistd.h>

extern u64 unchecked_data[SECRET_WORDS], unchecked_sum;

bool control_call(struct dune_tf *tf, u32 nr);

bool control_call(struct dune_tf *tf, u32 nr)
{
	if (nr & PRIVILEGED_BIT) {
		dune_syscall_result(tf, dune_forward_tf(tf, DUNE_HOSTCALL |
							    (nr & ~PRIVILEGED_BIT)));
		return true;
	}
	if (!(nr & CONTROL_BIT))
		return false;
	tf->rax = 0;
	switch ((enum control)ARG0(tf)) {
	case CONTROL_READ:
		tf->rax = user_write(ARG1(tf), unchecked_data, sizeof(unchecked_data));
		break;
	case CONTROL_WRITE:
		unchecked_data[SECRET_WORDS / 2]++;
		break;
	case CONTROL_CODE:
		unchecked_sum++;
		break;
	case CONTROL_JUMP:
		((void (*)(void))ARG1(tf))();
		break;
	}
	return true;
}

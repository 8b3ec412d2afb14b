#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Page faults that a program expects or brings upon itself (faults.c), and a
# vDSO that cannot be written to (restrict.c). Fails when the sandbox shows a program
# something else than Linux does.

. "$(dirname "$0")/lib.bash"

same "the same fault 3000 times, with progress; faults with their signal pending" "$bin/faults"
same "children that unmap their code, their stack, everything" "$bin/faults" unmap
same "thousands of faults of the runtime's own while signals come" "$bin/faults" timer
same "faults while other processes send SIGSEGV and SIGBUS" "$bin/faults" sent

if "$bin/restrict" mdwe /bin/true; then
	same "time and CPU after PR_SET_MDWE and execve" "$bin/restrict" mdwe "$bin/faults" vdso
else
	skip "no PR_SET_MDWE in this kernel" "time and CPU after PR_SET_MDWE and execve"
fi
wanted=$("$bin/restrict" filter "$bin/faults" vdso)
is "$("$bin/restrict" filter "$DUNE_RUN" -- "$bin/faults" vdso 2>&1)" "$wanted" \
	"time and CPU under a filter against writable and executable memory"
is "$("$bin/restrict" filter "$DUNE_RUN" -- /bin/sh -c "$bin/faults vdso" 2>&1)" "$wanted" \
	"time and CPU under that filter, after execve"
finish

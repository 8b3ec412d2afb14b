#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Page faults that a program expects or brings upon itself (faults.c). Fails when the sandbox
# shows a program something else than Linux does.

. "$(dirname "$0")/lib/sandbox.bash"

same "the same fault 3000 times, with progress; faults with their signal pending" "$bin/faults"
same "children that unmap their code, their stack, everything" "$bin/faults" unmap
same "thousands of faults of the runtime's own while signals come" "$bin/faults" timer
same "faults while other processes send SIGSEGV and SIGBUS" "$bin/faults" sent
finish

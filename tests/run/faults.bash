#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Page faults that a program expects or brings upon itself. Fails when the sandbox shows a
# program something else than Linux does.

. "$(dirname "$0")/lib/sandbox.bash"

same "the same fault 3000 times, with progress; faults with their signal pending" "$bin/faults"
same "children that unmap their code, their stack, everything" "$bin/unmap"
same "thousands of faults of the runtime's own while signals come" \
	"$bin/faults_under_signals" timer
same "faults while other processes send SIGSEGV and SIGBUS" "$bin/faults_under_signals" sent
same "faults of the runtime's own while other processes send SIGSEGV and SIGBUS" \
	"$bin/faults_under_signals" own
same "children that share their parent's handlers" "$bin/shared_handlers"
same "instruction fetches that fault" "$bin/fetches"
same "fork where all memory that can be read can be executed" "$bin/read_implies_exec"
finish

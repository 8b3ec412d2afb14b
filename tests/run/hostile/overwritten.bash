#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Random bytes over all of a sandboxed process's writable memory, from another process that the
# kernel permits this (overwrite.c): the sandbox's own memory, too. Fails when the process then
# executes anything in user mode but the stub, or when the kernel reports an error.

. "$(dirname "$0")/../lib/sandbox.bash"
[ "$(id -u)" = 0 ] || bail "root has to run this: other users cannot write the memory of others"
dmesg --clear
"$bin/overwrite" 20 "$DUNE_RUN" >"$top/result" 2>&1
grep '^#' "$top/result"
is "$(grep -v '^#' "$top/result")" "in the stub" "in user mode the process executes the stub only"
is "$(dmesg | grep -E 'BUG|WARNING|Oops|general protection')" "" "the kernel reports no error"
finish

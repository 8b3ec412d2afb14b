#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Programs have the kernel attack the runtime: kernel.c, with --stats, and a copy of it that
# tries to truncate itself. Fails when one of the attempts succeeds.

. "$(dirname "$0")/../lib/sandbox.bash"
cp "$bin/hostile/kernel" "$top/program"
(cd "$top" && "$DUNE_RUN" --stats="$top/stats" -- ./program) >"$top/tap"
status=$?
grep -v '^1\.\.' "$top/tap"
tests=$(grep -c -E '^(not )?ok ' "$top/tap")
[ $status = 0 ] || failed=1
finish

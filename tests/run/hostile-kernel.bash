#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the kernel could be made to do to the runtime: hostile-kernel.c, with
# --stats, and a copy of it that tries to truncate itself. Then whether the
# runtime's tables are read-only.

. "$(dirname "$0")/lib.bash"
cp "$bin/hostile-kernel" "$top/program"
(cd "$top" && "$DUNE_RUN" --stats="$top/stats" -- ./program) >"$top/tap"
status=$?
grep -v '^1\.\.' "$top/tap"
tests=$(grep -c -E '^(not )?ok ' "$top/tap")
[ $status = 0 ] || failed=1

"$DUNE_RUN" -- /bin/cat /proc/self/maps >"$top/maps"
for name in dune_hypercall dune_syscall_handler dune_trap_table; do
	address=$((16#$(nm "$DUNE_RUN" | sed -n "s/ D $name\$//p")))
	rights=
	while read -r range flags rest; do
		if ((address >= 16#${range%-*} && address < 16#${range#*-})); then
			rights=$flags
		fi
	done <"$top/maps"
	is "$rights" r--p "$name is read-only"
done
finish

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The pages of the runtime's tables. Fails when one of the tables is writable while a program
# runs.

. "$(dirname "$0")/../lib/sandbox.bash"

limited "$DUNE_RUN" -- /bin/cat /proc/self/maps >"$top/maps"
for name in call_table dune_hypercall dune_syscall_handler dune_trap_table; do
	address=$(sed -n "s/ [Dd] $name\$//p" "$here/symbols")
	[ "$address" ] || bail "dune-run has no symbol $name"
	address=$((16#$address))
	rights=
	while read -r range flags rest; do
		if ((address >= 16#${range%-*} && address < 16#${range#*-})); then
			rights=$flags
		fi
	done <"$top/maps"
	is "$rights" r--p "$name is read-only"
done
finish

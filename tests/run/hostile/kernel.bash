#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Programs have the kernel attack the runtime: kernel.c, with
# --stats, and a copy of it that tries to truncate itself. Then whether the
# runtime's tables are read-only, what the runtime does where a filter from
# before it denies what it asks the kernel, and whether it takes another file for
# the program's (reuse.c). Fails when one of the attempts succeeds, a table is
# writable, an error of the kernel counts as permission, or the memory of a
# process is opened.

. "$(dirname "$0")/../lib.bash"
cp "$bin/hostile/kernel" "$top/program"
(cd "$top" && "$DUNE_RUN" --stats="$top/stats" -- ./program) >"$top/tap"
status=$?
grep -v '^1\.\.' "$top/tap"
tests=$(grep -c -E '^(not )?ok ' "$top/tap")
[ $status = 0 ] || failed=1

"$DUNE_RUN" -- /bin/cat /proc/self/maps >"$top/maps"
for name in dune_hypercall dune_syscall_handler dune_trap_table; do
	address=$(sed -n "s/ D $name\$//p" "$here/symbols")
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

# below CALL: a program in the sandbox, below a filter that denies CALL
below() {
	(cd "$top" && "$bin/restrict" "$1" "$DUNE_RUN" -- "${@:2}") 2>&1
}
cp /bin/sh "$top/sh"
files='exec 3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3'
is "$(below late-fstatfs /bin/sh -c "$files; : </proc/self/mem && echo opened")" \
	"/bin/sh: 1: cannot open /proc/self/mem: Operation not permitted" \
	"without fstatfs the memory of a process is not opened"
advice="a program must be a 64-bit x86 program or #! script, and not on hugetlbfs"
is "$(below fstatfs /bin/true)" \
	"dune-run: /bin/true: Exec format error: $advice" \
	"without fstatfs no program starts, which could be on hugetlbfs"
is "$(below getfl ./sh -c ': >>./sh && echo opened')" \
	"./sh: 1: cannot create ./sh: Operation not permitted" \
	"without F_GETFL the running program is not opened for writing"
is "$(below robust "$bin/limits" forks)" \
	"$(printf 'a filter: fork: 0xb00\na filter: vfork: 0xffffffff')" \
	"without get_robust_list there is no vfork"

# Other processes of the machine may take a number: 10 attempts.
for ((try = 0; try < 10; try++)); do
	mkdir "$top/reuse.$try"
	result=$("$DUNE_RUN" -- "$bin/reuse" "$top/reuse.$try" 2>&1)
	[[ $result == missed* ]] || break
done
if [[ $result == missed* ]]; then
	skip "$result, 10 times" "a file of procfs with the numbers of the program's file"
else
	is "$result" "Permission denied" \
		"the memory of a process is not the program's file, with the same numbers"
fi
finish

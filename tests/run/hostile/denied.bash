#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Seccomp filters that were installed before dune-run started deny calls that dune-run itself
# makes (restrict.c). Fails when an error of such a call counts as permission.

. "$(dirname "$0")/../lib/sandbox.bash"

# without CALL: a program in the sandbox, under a filter that denies CALL
without() {
	(cd "$top" && limited "$bin/restrict" "$1" "$DUNE_RUN" -- "${@:2}") 2>&1
}
cp /bin/sh "$top/sh"
# Files that the program opens after these have numbers to which the late- filters apply.
files='exec 3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3'
is "$(without late-fstat /bin/sh -c "$files; : </proc/self/mem && echo opened")" \
	"/bin/sh: 1: cannot open /proc/self/mem: Operation not permitted" \
	"without fstat the memory of a process is not opened"
is "$(without late-fstat ./sh -c "$files; : >>./sh && echo opened")" \
	"./sh: 1: cannot create ./sh: Operation not permitted" \
	"without fstat the running program is not opened for writing"
is "$(without late-fstat /bin/sh -c "$files; /bin/true && echo executed")" \
	"/bin/sh: 1: /bin/true: Operation not permitted" \
	"without fstat of its file no other program is executed"
is "$(without late-fstat /bin/sh -c "grep -c dune-stub /proc/self/maps; exit")" 1 \
	"without fstat of dune-run's file another program is executed in the sandbox, too"
is "$(without late-fstatfs /bin/sh -c "$files; : </proc/self/mem && echo opened")" \
	"/bin/sh: 1: cannot open /proc/self/mem: Operation not permitted" \
	"without fstatfs the memory of a process is not opened"
advice="a program must be a 64-bit x86 program or #! script, and not on hugetlbfs"
is "$(without fstatfs /bin/true)" \
	"dune-run: cannot run /bin/true: Exec format error: $advice" \
	"without fstatfs no program starts, which could be on hugetlbfs"
is "$(without random /bin/true)" \
	"dune-run: cannot get random bytes: Operation not permitted: permit getrandom()" \
	"without getrandom no program starts, whose random bytes would be known"
is "$(without getname "$bin/fexecve" /bin/cat /proc/self/comm)" 3 \
	"without PR_GET_NAME a program has a name that the kernel could give it"
is "$(without getfl ./sh -c ': >>./sh && echo opened')" \
	"./sh: 1: cannot create ./sh: Operation not permitted" \
	"without F_GETFL the running program is not opened for writing"
is "$(without robust "$bin/limits" forks)" \
	"$(printf 'a filter: fork: 0xb00\na filter: vfork: 0xffffffff')" \
	"without get_robust_list there is no vfork"
is "$(LIMIT=20 without odd "$bin/limits" odd)" "getppid: -1, 512" \
	"a result of -512 is not taken for a call to be made again"
is "$(without long /bin/echo written)" "written" \
	"a result beyond the buffer is not taken for the length of a name"
finish

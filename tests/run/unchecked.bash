#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The structure of the sandbox without its checks (unchecked/unchecked.h). Fails when a process runs
# natively what is not the stub, when a byte of the runtime changes or is found in the program's
# memory or files, when ring 0 executes anything else, or when the kernel reports an error or keeps
# a reference to the module. First it runs a runtime that permits what control.c lists, and fails
# when one of these is not found. (Executions, the kernel's log and the references have no such
# control.)

. "$(dirname "$0")/lib/sandbox.bash"

[ "$(id -u)" = 0 ] || bail "root has to run this: it installs a filter and watches executions"
dmesg --clear

# watch ARGUMENTS...: its findings and counts; adds to $calls
calls=0
watch() {
	"$here/decoy/watch" --unchecked "$@" >"$top/out" 2>&1
	local status=$? more
	grep -E '^(Linux|FOUND|Bail|#)' "$top/out" | cut -c 1-600 | head -90 |
		sed 's/^\([^#]\)/# \1/'
	more=$(sed -n 's/^# counts: calls=\([0-9]*\) .*/\1/p' "$top/out")
	calls=$((calls + ${more:-0}))
	return $status
}

# finds ROW TEXT NAME: what the control permits is found
finds() {
	watch --runner dune-run-unchecked-control -- "$here/decoy/pitfalls" 1 "control_$1" >/dev/null
	grep -q "^FOUND .*$2" "$top/out"
	ok $? "control: $3 is found"
}

finds native "runs natively: call .* of i386" "native code of the program"
finds write "memory has changed" "a change of the runtime's data"
finds code "code has changed" "a change of the runtime's code"
finds read "memory was read" "the runtime's secret in the program's memory"
finds file "memory is in /tmp" "the runtime's secret in a file"
finds jump "ring 0 was elsewhere" "ring 0 at an address of the program"

watch --runner dune-run-unchecked --seed "${DECOY_SEED:-1}" --cases 30 --calls 700
ok $? "30 cases of generated calls"
ok $((calls < 5000)) "they make 5,000 calls at least"
watch --runner dune-run-unchecked --unfiltered --seed "$((${DECOY_SEED:-1} + 30))" --cases 15 \
	--calls 700
ok $? "15 more without a seccomp filter"
VERBOSE=1 watch --runner dune-run-unchecked --limit 1000 -- "$here/decoy/pitfalls" \
	"${DECOY_SEED:-1}"
ok $? "known pitfalls of an isolation in one process"
rounds=$(sed -n 's/^# row \(overwritten_.*\|shared\|userfaultfd\): .* \([0-9]*\) rounds$/\2/p' \
	"$top/out" | awk '{ sum += $1 } END { print sum + 0 }')
ok $((rounds < 8)) "processes that others attack use the runtime meanwhile, 8 times at least"
watch --runner dune-run-unchecked --unfiltered --limit 100 -- "$here/decoy/pitfalls" 1 replaced
ok $? "the file to execute is replaced by the supervisor of a filter"
watch --runner dune-run-unchecked --limit 1000 -- "$BASH" -c "
	for program in '$bin'/hostile/*; do
		timeout 20 \$program
	done"
ok $? "the hostile programs"
limited "$here/decoy/dune-run-unchecked" -- "$here/decoy/executed" \
	"$(cat "$here/decoy/executed.address")" >"$top/result" 2>&1
status=$?
grep -E '^(#|FOUND|dune-run:)' "$top/result" | head | sed 's/^\([^#]\)/# \1/'
ok $((status || $(grep -cE '^(FOUND|dune-run:)' "$top/result"))) \
	"another process overwrites the memory of one that executes a program"
name="a request to the module is not made again as another call"
if grep -qw svm /proc/cpuinfo; then
	limited "$here/decoy/dune-run-unchecked" -- "$here/decoy/stale_again" >"$top/result" 2>&1
	is "$?" 0 "$name"
else
	skip "Intel's page 0 is private memory" "$name"
fi
"$bin/overwrite" 10 "$here/decoy/dune-run-unchecked" >"$top/result" 2>&1
grep '^#' "$top/result"
is "$(grep -v '^#' "$top/result")" "in the stub" \
	"random bytes over all writable memory, from outside"

is "$(dmesg | grep -E 'BUG|WARNING|Oops|general protection')" "" "the kernel reports no error"
for ((i = 0; i < 100; i++)); do
	references=$(cat /sys/module/dune/refcnt)
	[ "$references" = 0 ] && break
	sleep 0.1
done
is "$references" 0 "nothing keeps the module"
finish

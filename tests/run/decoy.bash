#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The decoy (decoy/decoy.h), for a minute: make decoy runs it for hours. Fails
# when the kernel touches the decoy or a hidden descriptor is found; and first, with
# a runtime that lacks two checks, when the oracle finds nothing.

. "$(dirname "$0")/lib/sandbox.bash"

watch() {
	"$here/decoy/watch" "$@" >"$top/out" 2>&1
	local status=$?
	grep -E '^(Linux|FOUND|Bail|#)' "$top/out" | cut -c 1-600 | head -30 |
		sed 's/^\([^#]\)/# \1/'
	return $status
}

watch --runner dune-run-control --kind message --cases 4 --calls 300
grep -q '^FOUND .*the decoy at' "$top/out"
ok $? "vectors are not checked: a touch of the decoy by the kernel is found"
grep -q '^FOUND .*fault in the decoy' "$top/out"
ok $? "vectors are not checked: a fault of the kernel in the decoy is found"
grep -q '^FOUND .*a descriptor in reach' "$top/out"
ok $? "descriptors are not hidden: they are found"
watch --runner dune-run-control --mix 2 -- /usr/bin/python3 -c '
import os
file = os.open("/tmp/attack-mix", os.O_RDWR | os.O_CREAT)
if os.fork() == 0:
    for _ in range(1000):
        try:
            os.writev(file, [b"x"] * 8)
        except OSError:
            pass
    os._exit(0)
os.wait()'
grep -q '^FOUND .*the decoy at .* writev(' "$top/out"
ok $? "an address in the decoy, put into a vector of any program, is found"

watch --seed "${DECOY_SEED:-1}" --cases 45 --calls 700
ok $? "45 cases: the runtime is not touched or reached by a descriptor, nothing runs natively"
calls=$(sed -n 's/^# counts: calls=\([0-9]*\) .*/\1/p' "$top/out")
ok $((${calls:-0} < 20000)) "45 cases make 20,000 calls at least"
finish

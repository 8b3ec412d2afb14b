#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A module's binding has chosen that the kernel panics on suspicious activity: for each kind of
# activity a machine is booted, in which guard/choice provokes it, and must not survive. Fails if
# the kernel does not panic by a double fault, with its own message; if the module is still there
# for the program afterwards; or if a secret of class S is in memory when the kernel panics.
#
# PANIC=all: each kind, on 6.1 and 6.12; otherwise two of them, on 6.1.
cd "${0%/*}" || exit 1
. ./tap.bash
build=$(cd ../../.. && pwd)
limit=$((75 * ${TEST_TIME_FACTOR:-4}))

# panic KERNEL NAME: the verdict of guard/choice with that name, in a machine of its own
panic() {
	local output status
	output=$(DUNE_BUILD=$build timeout $((limit + 60)) "$build/bin/dunectl" machine run \
		--kernel "$1" --device edu --device bridges --device e1000 --device ivshmem \
		--device ib700 --no-module --timeout "$limit" -- \
		"$build/tests/guard/choice.t" "$2" 2>&1 </dev/null)
	status=$?
	is $status 125 "$1, $2: the machine ends"
	[[ $output != *"not ok"* && $output != *"Bail out"* && $output == *"the machine panicked"* ]]
	ok $? "$1, $2: by a panic, and not before the activity"
	[[ $output == *"PANIC: double fault"* && $output == *"Kernel panic - not syncing"* ]]
	ok $? "$1, $2: the kernel has reported it"
	if [ "$2" = panic-secret ]; then
		[[ $output =~ [1-9][0-9]*" secrets in all memory before the panic" ]]
		ok $? "$1, $2: before that, a secret could be read that the guard had saved"
		[[ $output == *"dune-guard-secret: 0 secrets in all memory, 0 in private pages"* ]]
		ok $? "$1, $2: when the kernel panics, no secret is in memory"
	fi
	sed 's/^/# /' <<<"$output"
}

kernels=(6.1) names=(panic-enter panic-secret)
if [ "$PANIC" = all ]; then
	kernels+=(6.12)
	names+=(panic-write panic-content)
fi
for kernel in "${kernels[@]}"; do
	for name in "${names[@]}"; do
		panic "$kernel" "$name"
	done
done

finish

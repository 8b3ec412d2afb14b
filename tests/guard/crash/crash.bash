#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The kernel panics with a key in guard-keys, and Linux's crash kernel searches the dump of all
# memory, /proc/vmcore (dumps.c). Fails if the key is there although guard-keys is guarded and the
# guard sealed; if it is not there without the guard, since then the search means nothing; or if the
# crash kernel does not run beneath the guard.
#
# CRASH=all: also without the guard, and on 6.12; otherwise with the guard, on 6.1.
cd "${0%/*}" || exit 1
. ./tap.bash
build=$(cd ../../.. && pwd)
limit=$((225 * ${TEST_TIME_FACTOR:-4}))

# dump KERNEL [guard]: prints what the crash kernel reports.
dump() {
	local modules image=("$build/machine/$1/boot/vmlinuz-"*)
	modules=$build/kernel/${image##*/vmlinuz-}
	timeout $((limit + 60)) "$build/bin/dunectl" machine run --kernel "$1" --no-module \
		--memory 1024 --append crashkernel=256M --timeout "$limit" -- \
		sh -c 'insmod "$1/dune-guard.ko" && insmod "$1/guard-keys.ko" &&
			DUNE_BUILD=$2 "$2/tests/guard/crash/dumps" "$3" $4' \
		sh "$modules" "$build" "${image[0]}" "$2" 2>&1 </dev/null
}

# searches NAME TEXT KERNEL [guard]
searches() {
	local name=$1 text=$2 output
	output=$(dump "$3" "$4")
	grep -q "vmcore: .*$text" <<<"$output"
	ok $? "$3: $name"
	sed 's/^/# /' <<<"$output"
}

kernels=(6.1)
[ "$CRASH" != all ] || kernels+=(6.12)
for kernel in "${kernels[@]}"; do
	searches "with the guard the key is not in the dump" \
		'the key 0 times, the control found' "$kernel" guard
	[ "$CRASH" != all ] || searches "without the guard it is" \
		'the key [1-9][0-9]* times, the control found' "$kernel"
done

finish

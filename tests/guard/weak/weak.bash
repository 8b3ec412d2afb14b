#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Guards that are weakened on purpose (weakenings): under each of them a machine is booted, and each
# attack that its row names must succeed there, which the program reports as "not ok". Fails if an
# attack does not succeed: then the program would not notice that the guard has lost a check, or
# another check stops the attack, too.
#
# WEAK=all: all rows; otherwise those of $short. WEAK_ONLY: rows whose names contain one of these
# texts, which are separated by commas.
# WEAK_KERNEL: another kernel than 6.1, for which the makefile must have built the modules.
cd "${0%/*}" || exit 1
. ./tap.bash
build=$(cd ../../.. && pwd)
kernel=${WEAK_KERNEL:-6.1}
limit=$((75 * ${TEST_TIME_FACTOR:-4}))

# One for each part of the guard.
short=(does-not-hide-its-memory allows-mtrrs takes-any-place-for-an-entry
	believes-registers-after-a-call lets-others-claim-addresses leaves-registers)

# The machine of the mode "guard", with one CPU, and that of "guard-q35".
devices=(--kernel "$kernel" --no-module --device edu --device bridges --device e1000
	--device ivshmem --device ib700)
chipset=(--device q35 --device no-i8042 --device root-port --cpus 2)

is_chosen() {
	local text
	if [ -n "$WEAK_ONLY" ]; then
		for text in ${WEAK_ONLY//,/ }; do
			[[ $1 == *"$text"* ]] && return
		done
		return 1
	fi
	[ "$WEAK" = all ] && return
	for text in "${short[@]}"; do
		[ "$1" = "$text" ] && return
	done
	return 1
}

# weakening NAME PROGRAM FILE ATTACK...
weakening() {
	local name=$1 program=$2 file=$3 module=$PWD/$release/$1.ko output attack
	local machine=("${devices[@]}")
	shift 3
	[ "$program" != attacks_chipset ] || machine+=("${chipset[@]}")
	[ "$program" != attacks_content ] || machine+=(--cpus 2)
	output=$(DUNE_BUILD=$build env "DUNE-GUARD_KO=$module" timeout $((limit + 60)) \
		"$build/bin/dunectl" machine run "${machine[@]}" --timeout "$limit" -- \
		"$build/tests/guard/$program.t" "$@" 2>&1 </dev/null)
	for attack; do
		grep -q "^not ok [0-9]* - $attack: " <<<"$output"
		ok $? "$file that $name: $attack succeeds"
	done
	sed 's/^/# /' <<<"$output"
}

release=$(basename "$build/machine/$kernel/usr/src/linux-headers-"*-amd64)
release=${release#linux-headers-}
if [ ! -d "$release" ]; then
	skip "no weakened guard was built for $kernel" "weakened guards"
	finish
fi
while read -r line; do
	# shellcheck disable=SC2086 # The words of a line are the arguments.
	is_chosen ${line%% *} && weakening $line
done <weakenings.list

finish

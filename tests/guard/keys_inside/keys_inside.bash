#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The inside of guard-keys.ko, in programs: its answers, what it refuses, what it leaves behind,
# and that neither its time nor its addresses depend on a secret. Fails if one of the programs does,
# if a sanitizer or valgrind reports something, or if valgrind does not find what it has to find.
# ROUNDS is the number of random keys of each kind.
cd "${0%/*}" || exit 1
. ./tap.bash

# program NAME: its verdicts are in the output, and it is one verdict here
program() {
	local out status
	out=$("./$1" 2>&1)
	status=$?
	ok $status "$1"
	sed 's/^/# /' <<<"$out"
}

export ROUNDS=${ROUNDS:-5000}
program answers
program requests
program traces
ROUNDS=$((ROUNDS / 10)) program answers-checked
program requests-checked

if ! command -v valgrind >/dev/null || [ ! -x constant ]; then
	skip "valgrind was not installed when this was built" "no branch or address depends on a secret"
	finish
fi
check=(valgrind --quiet --error-exitcode=9 ./constant)
try "no branch or address depends on a secret" "${check[@]}"
out=$("${check[@]}" broken 2>&1)
is $? 9 "valgrind finds what does"
is "$(grep -c 'Use of uninitialised value\|depends on uninitialised' <<<"$out")" 2 \
	"a branch and an address"
finish

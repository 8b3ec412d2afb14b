#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guard's border control, explored: the automata violate no invariant, and each broken
# automaton (mutants) violates the one that is named. Fails if an automaton is wrong, or if the
# exploration would not find a mistake that it is made to find. The shortest way to each mistake
# is in the output. STATES is the number of states of each exploration of the automata, but for
# the small worlds, all of whose states are explored.
cd "${0%/*}" || exit 1
. ./tap.bash

states=${STATES:-300000}

# explore OPTIONS...: the automata as they are
explore() {
	local out status
	out=$(./explore "$@" --limit "$states" 2>&1)
	status=$?
	ok $status "no invariant is violated: $*"
	sed 's/^/# /' <<<"$out"
}

# explore_all OPTIONS...: the automata as they are, in all states of a smaller world
explore_all() {
	local out
	out=$(./explore "$@" --limit 3000000 2>&1 && echo passed)
	[[ $out == *"which are all"*passed ]]
	ok $? "no invariant is violated in any state: $*"
	sed 's/^/# /' <<<"$out"
}

# mutant NAME INVARIANT FILE OPTIONS...
mutant() {
	local name=$1 invariant=$2 file=$3 out got
	shift 3
	out=$("mutants/$name" "$@" --limit 1000000 2>&1)
	got=$(sed -n 's/^violated: \([a-z]*\):.*/\1/p' <<<"$out")
	is "$got" "$invariant" "$file that $name violates $invariant"
	sed 's/^/# /' <<<"$out"
}

for class in D S; do
	explore --class $class
	explore --class $class --from armed
	explore --class $class --from sealed
	explore --class $class --from sealed --modules 2
	# The choice for suspicious activity; in the others, to log it.
	for choice in lower stop panic; do
		explore --class $class --choice $choice
		explore --class $class --from sealed --choice $choice
	done
done
explore --class D --from sealed --modules 2 --choice panic
explore --class D --no-iommu
explore_all --class D --cpus 1 --stacks 1 --from sealed
for choice in lower log stop panic; do
	explore_all --class S --cpus 1 --from sealed --choice $choice
done
if [ "$states" -ge 3000000 ]; then
	explore_all --class S --stacks 1 --from sealed
fi

while read -r line; do
	# shellcheck disable=SC2086 # The words of a line are the arguments.
	mutant $line
done <mutants.list

finish

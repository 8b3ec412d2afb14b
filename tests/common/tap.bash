# SPDX-License-Identifier: MIT OR Apache-2.0
# Verdict lines for prove (the Test Anything Protocol), for all test programs in
# bash: to be sourced. tap.h is the same for the programs in C.

tests=0
failed=0

# ok STATUS NAME: one verdict, good where STATUS is 0
ok() {
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
	else
		echo "not ok $tests - $2"
		failed=$((failed + 1))
	fi
}

# is GOT WANTED NAME: one verdict on two texts, both of which are printed where
# they differ
is() {
	if [ "$1" = "$2" ]; then
		ok 0 "$3"
	else
		ok 1 "$3"
		printf '%s\n' "got:    $1" "wanted: $2" | head -c 2000 | sed 's/^/# /'
	fi
}

# try NAME COMMAND...: the command succeeds; where it fails, its output is printed
try() {
	local name=$1 out status
	shift
	out=$("$@" 2>&1 </dev/null)
	status=$?
	ok $status "$name"
	[ $status = 0 ] || tail -n 20 <<<"$out" | sed 's/^/# /'
}

# skip REASON NAME: one test that this machine cannot make, and what it lacks
skip() {
	tests=$((tests + 1))
	echo "ok $tests - $2 # SKIP $1"
}

# bail REASON: nothing further can be tested
bail() {
	echo "Bail out! $1"
	exit 255
}

# Print the plan, and exit.
finish() {
	echo "1..$tests"
	exit $((failed > 0))
}

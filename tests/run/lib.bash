# SPDX-License-Identifier: MIT OR Apache-2.0
# What the tests of the sandbox share: TAP, and running a command twice,
# natively and under dune-run, each time in a fresh directory of the same name.

here=$(cd "$(dirname "$0")" && pwd)
DUNE_RUN=${DUNE_RUN:-$here/../../libexec/dune-run}
bin=$here/bin
export LC_ALL=C TZ=UTC
tests=0
failed=0

if [ ! -x "$DUNE_RUN" ]; then
	echo "Bail out! no $DUNE_RUN: make -C run first"
	exit 1
fi
if [ -z "$DUNE_RUN_ANYWHERE" ] && [ ! -e /dev/dune ]; then
	echo "Bail out! no /dev/dune: load dune.ko first"
	exit 1
fi

# udev makes this link; a bare machine has no udev
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd

# programs that give up root fork and execute, too (docs/sandbox.md, execve)
[ ! -w /dev/dune ] || chmod 666 /dev/dune

top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
work=$top/work
data=$top/data
mkdir "$data"
export HOME=$work

# ok STATUS NAME: one line of TAP
ok() {
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
	else
		echo "not ok $tests - $2"
		failed=$((failed + 1))
	fi
}

# skip REASON NAME
skip() {
	tests=$((tests + 1))
	echo "ok $tests - $2 # SKIP $1"
}

# is GOT WANTED NAME
is() {
	if [ "$1" = "$2" ]; then
		ok 0 "$3"
	else
		ok 1 "$3"
		printf '%s\n' "got:    $1" "wanted: $2" | head -c 2000 | sed 's/^/# /'
	fi
}

# One run of a command in an empty directory; results in $top/KIND.*
one() {
	local kind=$1
	shift
	rm -rf "$work"
	mkdir "$work"
	(cd "$work" && exec timeout -k 5 $((${LIMIT:-240} * ${TEST_PATIENCE:-1})) "$@") \
		>"$top/$kind.out" 2>"$top/$kind.err" </dev/null
	echo $? >"$top/$kind.status"
}

# same NAME COMMAND...: output, messages and status must be the same, at least
# in one of $TRIES attempts (1)
same() {
	local name=$1 try
	shift
	for ((try = 0; try < ${TRIES:-1}; try++)); do
		equal "$@" && break
	done
	ok $((try == ${TRIES:-1})) "$name"
}

# One attempt
equal() {
	local program=$1 path part bad=0
	shift
	path=$(type -P "$program")
	one native "$program" "$@"
	one dune "$DUNE_RUN" --argv0="$program" -- "$path" "$@"
	if [ ! "$path" ] || [ "$(cat "$top/native.status")" -ge "${FAIL_FROM:-1}" ]; then
		bad=1
		echo "# natively: status $(cat "$top/native.status")"
		head -c 1000 "$top/native.err" | sed 's/^/# /'
	fi
	for part in status out err; do
		if ! cmp -s "$top/native.$part" "$top/dune.$part"; then
			bad=1
			echo "# $part differs (native <, Dune >):"
			diff -a "$top/native.$part" "$top/dune.$part" | head -20 | cut -c 1-300 | sed 's/^/# /'
		fi
	done
	return $bad
}

# same_status NAME COMMAND...: the command may fail, but equally
same_failure() {
	FAIL_FROM=256 same "$@"
}

# A command of the shell, under bash in the sandbox
same_sh() {
	same "$1" bash -c "$2"
}

finish() {
	echo "1..$tests"
	exit $((failed > 0))
}

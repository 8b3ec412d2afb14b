# SPDX-License-Identifier: MIT OR Apache-2.0
# For the tests of the sandbox, to be sourced: a command is run twice, natively
# and under dune-run, each time in a fresh directory of the same name, and the
# verdict is on what differs.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)	# build/tests/run
DUNE_RUN=${DUNE_RUN:-$here/../../libexec/dune-run}
bin=$here/bin
export LC_ALL=C TZ=UTC
: "${TEST_TIME_FACTOR:=4}"	# how many times slower than hardware the machine is (docs/testing.md)

. "$here/tap.bash"
[ -x "$DUNE_RUN" ] || bail "no $DUNE_RUN: make -C run first"
[ "$DUNE_RUN_ANYWHERE" ] || [ -e /dev/dune ] || bail "no /dev/dune: load dune.ko first"

# udev makes this link; a bare machine has no udev
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd

# Programs that give up root fork and execute, too (docs/sandbox.md, execve): until the end
# of this script, every user may open the device.
device_mode=$(stat -c %a /dev/dune 2>/dev/null)
[ ! -w /dev/dune ] || chmod 666 /dev/dune

# setting FILE VALUE: change a setting of the kernel, until put_back or the end of this script
saved=()
setting() {
	saved+=("$1" "$(cat "$1")")
	echo "$2" >"$1"
}

put_back() {
	local i
	for ((i = ${#saved[@]} - 2; i >= 0; i -= 2)); do
		echo "${saved[i + 1]}" >"${saved[i]}"
	done
	saved=()
}

top=$(mktemp -d) || exit 1
trap 'put_back; rm -rf "$top"; [ ! -w /dev/dune ] || chmod "$device_mode" /dev/dune' EXIT
work=$top/work
data=$top/data
mkdir "$data"
export HOME=$work

# limited COMMAND...: run a command for $LIMIT seconds (240) of an idle machine at most; then
# its status is 124
limited() {
	timeout -k 5 $((${LIMIT:-240} * TEST_TIME_FACTOR)) "$@"
}

# one KIND COMMAND...: one run of a command in an empty directory; its results
# are in $top/KIND.*
one() {
	local kind=$1
	shift
	rm -rf "$work"
	mkdir "$work"
	(cd "$work" && limited "$@") >"$top/$kind.out" 2>"$top/$kind.err" </dev/null
	echo $? >"$top/$kind.status"
}

# same NAME COMMAND...: output, messages and status must be the same, in at least
# one of $TRIES attempts (1)
same() {
	local name=$1 try
	shift
	for ((try = 0; try < ${TRIES:-1}; try++)); do
		equal "$@" && break
	done
	ok $((try == ${TRIES:-1})) "$name"
}

# equal COMMAND...: one attempt
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
			diff -a "$top/native.$part" "$top/dune.$part" | head -20 | cut -c 1-300 |
				sed 's/^/# /'
		fi
	done
	return $bad
}

# same_failure NAME COMMAND...: the command may fail, with the same status and
# output natively and in the sandbox
same_failure() {
	FAIL_FROM=256 same "$@"
}

# alone PROGRAM OPTION...: run a copy of a program of $bin, which prints its own verdicts, in
# the sandbox with these options of dune-run; its exit status
alone() {
	local program=$1 status
	shift
	mkdir -p "$top/$(dirname "$program")"
	cp "$bin/$program" "$top/$program"
	(cd "$top" && limited "$DUNE_RUN" "$@" -- "./$program")
	status=$?
	[ $status != 124 ] || bail "$program: out of time"
	return $status
}

# with_huge_pages COUNT PROGRAM: alone() while COUNT more huge pages are reserved
with_huge_pages() {
	local reserved=/proc/sys/vm/nr_hugepages status
	setting $reserved $(($(cat $reserved) + $1))
	(alone "$2")
	status=$?
	put_back
	return $status
}

# same_sh NAME COMMAND: same() for a command line of bash
same_sh() {
	same "$1" bash -c "$2"
}

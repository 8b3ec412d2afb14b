#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Signals in the sandbox, from inside and from outside, and deaths by them. Fails
# when a program or its parent sees something else than natively.

. "$(dirname "$0")/lib/sandbox.bash"
export B=$bin

same "signals, timers, waiting: a program's own view" "$bin/signals"

same "actions of signals" "$bin/actions"
trap '' INT SEGV USR2
same "actions of signals, some of which are ignored" "$bin/actions"
trap - INT SEGV USR2

same "segments, flags and FPU state of a frame that its handler has changed" "$bin/frames"

same "FPU registers while two signals come" "$bin/fpu_under_signals"

same "processes that a child that shares memory has made" "$bin/generations"

# deaths: the status that a parent sees
for how in fault overflow abort 9 15 11 6 31; do
	same_failure "death: $how" perl -e '
		system "$ENV{B}/signals", "'$how'"; print $? & 127, " ", $? >> 8, "\n"'
done

# start HOW: a program in the sandbox that already spins or sleeps; $pid is dune-run
start() {
	rm -f "$data/ready"
	"$DUNE_RUN" -- "$bin/signals" "$1" "$data/ready" &
	pid=$!
	for _ in $(seq $((600 * TEST_TIME_FACTOR))); do
		[ ! -e "$data/ready" ] || break
		sleep 0.1
	done
	sleep 0.1
}

# from outside, to the process that was dune-run
outside() {
	local signal=$1 want=$2 how=$3 pid
	start "$how"
	kill -"$signal" $pid
	wait $pid
	is $? "$want" "SIG$signal to a program that does: $how"
}
ulimit -c 0
for how in spin sleep; do
	outside TERM 143 $how 2>/dev/null
	outside KILL 137 $how 2>/dev/null
	outside SEGV 139 $how 2>/dev/null
	outside USR1 138 $how 2>/dev/null
done

# stop and continue
state() {
	local now
	for _ in $(seq 200); do
		now=$(awk '{ print $3 }' /proc/$pid/stat)
		[ "$now" != "$1" ] || break
		sleep 0.1
	done
	is "$now" "$1" "$2"
}
start spin
kill -STOP $pid
state T "SIGSTOP stops a program that spins"
kill -CONT $pid
state R "SIGCONT continues a program that was stopped"
kill -TERM $pid
wait $pid 2>/dev/null

finish

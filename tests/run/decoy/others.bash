#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# long.bash BUILD HOURS KERNEL...: runs the decoy test for HOURS hours, on the kernels
# in turn (make decoy). It resumes where it stopped: BUILD/decoy/KERNEL.state
# records what was tried, KERNEL.log the output of each run, found the findings.
# Fails when something was found, or when a machine or the decoy does not start.
#
# From the environment:
#   DECOY   the folder of the decoy's programs (BUILD/tests/run/decoy)
#   LAUNCH  a command that is put before each boot (nice, a queue)
#   MIX     in other people's programs one of MIX calls is changed (16)
#   OTHERS  only: runs only trinity, stress-ng and Python's tests
#   SLICE   the seconds of one run, which is what an interruption loses (600)

build=$1 hours=$2
shift 2
here=${DECOY:-$build/tests/run/decoy}
keep=$build/decoy
modules=$(cd "$(dirname "$0")" && pwd)/modules.py
slice=${SLICE:-600}
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + 3600 * hours }')
mkdir -p "$keep"

# in_machine KERNEL ARGUMENTS OF watch...
in_machine() {
	local kernel=$1 out
	shift
	out=$(timeout -k 10 $((3 * slice + 600)) $LAUNCH "$build/bin/dunectl" machine run \
		--kernel "$kernel" --memory 3072 --append numa=fake=2 --write "$keep" \
		--timeout $((2 * slice + 300)) -- \
		/usr/bin/env VERBOSE=1 "$here/watch" "$@" 2>&1)
	# the end of the program's own output is enough
	{
		date -u +"%F %T $*"
		grep '^# ' <<<"$out" | tail -15
		grep -v '^# ' <<<"$out"
	} >>"$keep/$kernel.log"
	grep '^FOUND' <<<"$out" | sed "s/^/$kernel: /" | tee -a "$keep/found"
	grep -E '^(Linux|in all)|dunectl: |Bail' <<<"$out" | head -5
	if grep -qE 'does not start|^Bail|^dunectl: ' <<<"$out"; then
		echo "it cannot be run: see $keep/$kernel.log"
		exit 1
	fi
}

# Other people's programs, some minutes each, with one call of 16 changed in
# their children: trinity knows the kinds of arguments, stress-ng's stressors try
# invalid and misplaced ones and everything else, Python's tests all its modules.
# Stressors that take processors and memory away only have the kernel complain.
others() {
	local kernel=$1 mixed=(--mix "${MIX:-16}" --limit 240 --)
	if [ -x /usr/bin/trinity ]; then
		in_machine "$kernel" "${mixed[@]}" /bin/sh -c '
			mkdir -p /tmp/t && chmod 777 /tmp/t && cd /tmp/t &&
			exec setpriv --reuid=65534 --regid=65534 --clear-groups \
			trinity -q -C 4 -N 1000000 -a 64 -l off -T DIE,WARN \
			--enable-fds=pipes,epoll,eventfd,timerfd,memfd'
	else
		echo "skipped: trinity is not installed (package trinity)"
	fi
	if [ -x /usr/bin/stress-ng ]; then
		in_machine "$kernel" "${mixed[@]}" /bin/sh -c '
			cd /tmp && exec stress-ng --temp-path /tmp --timeout 90s \
			--sysinval 1 --sysbadaddr 1'
		in_machine "$kernel" "${mixed[@]}" /bin/sh -c '
			cd /tmp && exec stress-ng --temp-path /tmp --sequential 1 --class os \
			--exclude reboot,watchdog,cpu-online,memhotplug --timeout 1'
	else
		echo "skipped: stress-ng is not installed (package stress-ng)"
	fi
	if /usr/bin/python3 -c 'import test.test_json' 2>/dev/null; then
		in_machine "$kernel" "${mixed[@]}" /bin/sh -c \
			'cd /tmp && exec /usr/bin/python3 "$0" 200 "$@"' "$modules" \
			test_posix test_os test_socket test_fcntl test_ioctl test_select test_poll \
			test_epoll test_mmap test_signal test_resource test_pty test_shutil \
			test_tempfile test_fileio test_io test_wait4 test_openpty test_kqueue \
			test_eintr test_selectors test_mailbox test_glob test_pathlib test_zipfile \
			test_subprocess
	else
		echo "skipped: Python's tests are not installed (package libpython3.11-testsuite)"
	fi
}

if [ "$OTHERS" = only ]; then
	for kernel in "$@"; do
		others "$kernel"
	done
	end=0
fi
turn=0
while [ "$(date +%s)" -lt "$end" ]; do
	for kernel in "$@"; do
		left=$((end - $(date +%s)))
		[ "$left" -gt 0 ] || break
		in_machine "$kernel" --state "$keep/$kernel.state" \
			--seconds $((left < slice ? left : slice))
		[ $((turn % 6)) != 0 ] || in_machine "$kernel" --kind wide-move --cases 1
		[ $((turn % 3)) != 1 ] || others "$kernel"
	done
	turn=$((turn + 1))
done
for kernel in "$@"; do
	echo "$kernel: $(cat "$keep/$kernel.state" 2>/dev/null)"
done
[ ! -s "$keep/found" ] || { echo "found: $(wc -l <"$keep/found") lines in $keep/found"; exit 1; }

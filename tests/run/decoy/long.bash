#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# long.bash BUILD HOURS KERNEL...: the decoy for so long, on these kernels in
# turn (make decoy). It goes on where it stopped: BUILD/decoy/KERNEL.state says
# what was tried, KERNEL.log what each run said, found what there was to find.
# LAUNCH is put before each boot (nice, a queue).

build=$1 hours=$2
shift 2
here=${DECOY:-$build/tests/run/decoy}
keep=$build/decoy
slice=${SLICE:-600}
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + 3600 * hours }')
mkdir -p "$keep"

# in_machine KERNEL ARGUMENTS OF watch...
in_machine() {
	local kernel=$1 out
	shift
	out=$(timeout -k 10 $((3 * slice + 600)) $LAUNCH "$build/bin/dunectl" machine run --kernel "$kernel" \
		--memory 3072 --append numa=fake=2 --write "$keep" --timeout $((2 * slice + 300)) -- \
		"$here/watch" "$@" 2>&1)
	{ date -u +"%F %T $*"; printf '%s\n' "$out"; } >>"$keep/$kernel.log"
	grep '^FOUND' <<<"$out" | sed "s/^/$kernel: /" | tee -a "$keep/found"
	grep -E '^(Linux|in all)|dunectl: |Bail' <<<"$out" | head -5
	if grep -qE 'does not start|^Bail|^dunectl: ' <<<"$out"; then
		echo "it cannot be run: see $keep/$kernel.log"
		exit 1
	fi
}

# Other people's programs, some minutes each: trinity knows the kinds of
# arguments, stress-ng's stressors try invalid and misplaced ones.
others() {
	local kernel=$1
	if [ -x /usr/bin/trinity ]; then
		in_machine "$kernel" --limit 240 -- /bin/sh -c 'mkdir -p /tmp/t && chmod 777 /tmp/t && cd /tmp/t &&
			exec trinity -q -C 4 -N 60000 --dropprivs -a 64 -l off --enable-fds=pipes,sockets,epoll,eventfd,timerfd,memfd'
	else
		echo "skipped: trinity is not installed"
	fi
	if [ -x /usr/bin/stress-ng ]; then
		in_machine "$kernel" --limit 240 -- /bin/sh -c 'cd /tmp && exec stress-ng --temp-path /tmp --timeout 60s \
			--sysinval 1 --sysbadaddr 1'
		in_machine "$kernel" --limit 240 -- /bin/sh -c 'cd /tmp && exec stress-ng --temp-path /tmp --timeout 100s \
			--sequential 1 --class os --exclude reboot,watchdog --timeout 1'
	else
		echo "skipped: stress-ng is not installed"
	fi
}

turn=0
while [ "$(date +%s)" -lt "$end" ]; do
	for kernel in "$@"; do
		left=$((end - $(date +%s)))
		[ "$left" -gt 0 ] || break
		in_machine "$kernel" --state "$keep/$kernel.state" --seconds $((left < slice ? left : slice))
		[ $((turn % 6)) != 0 ] || in_machine "$kernel" --kind wide-move --cases 1
		[ $((turn % 3)) != 1 ] || others "$kernel"
	done
	turn=$((turn + 1))
done
for kernel in "$@"; do
	echo "$kernel: $(cat "$keep/$kernel.state" 2>/dev/null)"
done
[ ! -s "$keep/found" ] || { echo "found: $(wc -l <"$keep/found") lines in $keep/found"; exit 1; }

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The counters of --stats. Fails when the output is not one JSON object with the known keys,
# in the file or on standard error, when a process is not counted, when one changes the counters
# without their lock, or when --stats changes the exit status.

. "$(dirname "$0")/lib/sandbox.bash"

one dune "$DUNE_RUN" --stats="$top/stats" -- /bin/bash -c '/bin/true; (exit 3); exit 5'
is "$(cat "$top/dune.status")" 5 "the exit status with --stats"
wanted="exceptions exits faults hostcalls interrupts migrations other processes"
wanted="$wanted syscalls_fast syscalls_slow tlb_flushes"
is "$(perl -MJSON::PP -0777 -ne '$j = decode_json($_); print join " ", sort keys %$j' \
	"$top/stats")" "$wanted" "--stats=FILE: one JSON object with the known keys"
is "$(perl -MJSON::PP -0777 -ne 'print decode_json($_)->{processes}' "$top/stats")" 3 \
	"--stats counts three processes"
# A child by fork() must not subtract what its parent reported at an earlier vfork().
one dune "$DUNE_RUN" --stats="$top/stats" -- /usr/bin/python3 -c '
import os, subprocess
for _ in range(20000): os.getppid()
subprocess.run(["/bin/true"])
if not os.fork(): os._exit(0)
os.wait()'
perl -MJSON::PP -0777 -ne '$j = decode_json($_);
	$calls = $j->{syscalls_fast} + $j->{syscalls_slow};
	exit !($calls >= 20000 && $calls < 1000000)' "$top/stats"
ok $? "--stats keeps the counts of a process that calls vfork() and then fork()"
one dune "$DUNE_RUN" --stats -- /bin/echo hello
is "$(cat "$top/dune.out")" hello "--stats keeps to standard error"
is "$(wc -l <"$top/dune.err")" 1 "--stats prints one line to standard error"
# The counters are locked while a process makes a child, and signals come that it handles.
cat >"$top/lock.pl" <<'X'
use Fcntl; use IO::Select; use IPC::Open2;
my ($seconds, @command) = @ARGV;
my $lock = pack "s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0;
my $pid = open2 my $from, my $to, @command;
sysread $from, my $ready, 100;
my ($counters) = grep { readlink =~ /dune-stats/ } glob "/proc/$pid/fd/*";
open my $file, "+<", $counters or die "no counters: $!";
fcntl $file, F_SETLK, $lock or die "no lock: $!";
close $to;
my $early = IO::Select->new($from)->can_read($seconds);
close $file;
sysread $from, my $made, 100;
waitpid $pid, 0;
print $early ? "does not wait" : "waits", ", $made, ", $? >> 8, "\n";
X
one dune perl "$top/lock.pl" "$TEST_TIME_FACTOR" "$DUNE_RUN" --stats="$top/stats" -- \
	/usr/bin/perl -MTime::HiRes=setitimer,ITIMER_REAL -MPOSIX=_exit -e '
	$SIG{ALRM} = sub { };
	setitimer(ITIMER_REAL, 0.05, 0.05);
	syswrite STDOUT, "ready";
	<STDIN>;
	my $fork = 57;	# libc would block all signals meanwhile
	_exit 0 if !syscall $fork;
	syswrite STDOUT, "a child was made";
	_exit 7'
is "$(cat "$top/dune.out")" "waits, a child was made, 7" \
	"a signal that is handled does not end the wait for the counters"

finish

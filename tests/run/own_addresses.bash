#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# No system call of a process in the sandbox has an argument that is an address of the runtime's
# own memory, which is private: what the runtime passes by a pointer is in the window or in the
# scratch (libdune/include/dune_copies.h). The tracepoint of all system calls shows them. Fails when
# a call has an address of private memory or of the native start, which is unmapped, and when no
# call has one in the window or in the scratch: then the trace shows nothing.

. "$(dirname "$0")/lib/sandbox.bash"

tracing=/sys/kernel/tracing
[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing 2>/dev/null
instance=$tracing/instances/own_addresses
event=$instance/events/raw_syscalls
if ! mkdir $instance 2>/dev/null || [ ! -e $event ]; then
	echo "1..0 # SKIP no trace of system calls"
	exit 0
fi
trap 'echo 0 >$event/enable; rmdir $instance; rm -rf "$top"
	[ ! -w /dev/dune ] || chmod "$device_mode" /dev/dune' EXIT

# judge.pl FIRST: judge the calls in the trace. The first process of the sandbox passes its own
# memory natively until it enters. A program that is executed later has no native start.
cat >"$top/judge.pl" <<'X'
my ($first) = @ARGV;
my ($native, $native_end) = (hex("6d7500100000"), hex("6d7500200000"));
my $size = 5 * 4096 + 48 * 4096;
my $set_stub = "c0b0de16";
my (%state, %stubs, %seen, %bad, %executed, $bound, $calls, $after);
$state{$first} = "native";
while (<STDIN>) {
	/-(\d+)\s+\[\d+\]/ or next;
	my $pid = $1;
	if (/sys_exit: NR (59|322) = 0/) {
		$executed{$pid} = $bound;
		$state{$pid} = "native" if !$bound;
	}
	/sys_enter: NR (\d+) \(([^)]*)\)/ or next;
	my ($nr, @args) = ($1, split(/, /, $2));
	if ($nr == 9 && $args[3] eq "11" && $args[5] eq "1000") {
		$stubs{hex($args[0])} = 1;
	}
	my $state = $state{$pid} // "entered";
	if ($nr == 16 && $args[1] eq $set_stub) {
		$state{$pid} = "bound";
		$bound = 1;
	}
	$state{$pid} = "entered" if $nr == 8 && $state eq "bound";
	next if $state ne "entered";
	$calls++;
	# lseek() is the stub's own. close() and exit() have no address: what is in the registers
	# is the program's (ld.so leaves a negative number). The others name places, of which
	# nothing is read.
	next if grep { $nr == $_ } 8, 3, 60, 231, 9, 10, 11, 25, 26, 28;
	$after++ if $executed{$pid};
	for (@args) {
		my $at = hex($_);
		# private memory, and the runtime's image in the next gigabyte
		if (($at >= hex("ffff800000000000") && $at < hex("ffff800080000000")) ||
		    ($at >= $native && $at < $native_end)) {
			$bad{"call $nr of address $_"}++;
			next;
		}
		for my $stub (keys %stubs) {
			next if $at < $stub + 4096 || $at >= $stub + $size;
			$seen{$at < $stub + 5 * 4096 ? "window" : "scratch"}++;
		}
	}
}
printf "%d calls, %d after an execve, %d addresses in the window, %d in the scratch\n", $calls,
	$after, $seen{window}, $seen{scratch};
print "$_: $bad{$_} times\n" for sort keys %bad;
X

# clean NAME COMMAND...: run a command in the sandbox, and judge its calls
clean() {
	local name=$1 first program
	program=$(type -P "$2")
	shift 2
	rm -rf "$work"
	mkdir "$work"
	echo >$instance/trace
	cat $instance/trace_pipe >"$top/trace" &
	reader=$!
	(
		cd "$work" || exit
		echo "$BASHPID" >"$top/first"
		echo "$BASHPID" >$instance/set_event_pid
		exec timeout -k 5 $((240 * TEST_TIME_FACTOR)) "$DUNE_RUN" -- "$program" "$@"
	) >"$top/out" 2>&1 </dev/null
	status=$?
	sleep 1
	kill $reader
	wait $reader 2>/dev/null
	first=$(cat "$top/first")
	perl "$top/judge.pl" "$first" <"$top/trace" >"$top/verdict"
	sed 's/^/# /' "$top/verdict"
	is "$(tail -n +2 "$top/verdict")" "" "$name: no address of the runtime's memory"
	grep -Eq ', [1-9][0-9]* addresses in the window, [1-9][0-9]* in the' "$top/verdict"
	ok $? "$name: the trace shows copies (status $status)"
}

echo 1 >$instance/options/event-fork
echo 16384 >$instance/buffer_size_kb
echo 1 >$event/enable

printf '#!/bin/sh\necho "$@"\n' >"$top/script"
chmod +x "$top/script"
clean "a shell" bash -c "
	ls -l / >list; cat list | sort | wc -l; (exit 3); $top/script a b; : >list; echo x >>list
	perl -e 'exec \"/bin/true\", map { \"x\" x 9 } 1 .. 5000'"
grep -q ' [1-9][0-9]* after an execve' "$top/verdict"
ok $? "a shell: calls after an execve are judged"
clean "signals" "$bin/signals"
clean "clone3" "$bin/clone3"
clean "a descriptor that is executed" "$bin/fexecve" "$bin/args" a
clean "arrays" "$bin/hostile/arrays"
clean "ioctls" "$bin/hostile/ioctl"
clean "files" "$bin/hostile/files"
clean "children" "$bin/hostile/processes"
clean "messages" perl -e '
	use Socket; use IO::Select;
	socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); syswrite(A, "x"); sysread(B, $x, 1);
	IO::Select->new(\*A)->can_write(1); select(undef, undef, undef, 0.01);
	exec "/nowhere"; '
finish

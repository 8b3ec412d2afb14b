#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A core dump of a sandboxed process has no byte of the runtime: neither of its code and constants
# nor of its data. Fails when a piece of dune-run's image is found there.

. "$(dirname "$0")/lib/sandbox.bash"
[ "$(id -u)" = 0 ] || bail "root has to run this: it sets the pattern for the names of cores"
image=$DUNE_RUN.bin
[ -r "$image" ] || bail "no $image"

setting /proc/sys/kernel/core_pattern "$top/core"
ulimit -c unlimited

# found: how many of the pieces of the image a core has; one for each 256 bytes with many values
found() {
	perl -e '
		sub content { local $/; open my $f, "<:raw", shift or die; <$f> }
		my ($image, $core) = (content($ARGV[0]), content($ARGV[1]));
		for (my $at = 0; $at + 256 <= length $image; $at += 256) {
			my $piece = substr $image, $at, 64;
			my %values = map { $_ => 1 } split //, $piece;
			next if keys %values < 16;
			$tried++;
			$found++ if index($core, $piece) >= 0;
		}
		printf "%d of %s\n", $found, $tried > 100 ? "many" : $tried' "$image" "$1"
}

"$DUNE_RUN" -- /bin/sh -c 'kill -SEGV $$'
is $? 139 "the process dies of SIGSEGV"
is "$(found "$top/core")" "0 of many" "its core has nothing of the runtime"
rm -f "$top/core"
/usr/bin/perl -e 'open my $f, "<:raw", $ARGV[0]; local $/; my $x = <$f>; kill SEGV => $$' "$image"
[ "$(found "$top/core")" != "0 of many" ]
ok $? "the same search finds the image in a process that has read it"
finish

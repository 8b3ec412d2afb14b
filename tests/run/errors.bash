#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The errors that dune-run itself reports when it cannot start a program. Fails when its exit
# status is not the one of docs/sandbox.md, or when the message is not one line that names the
# problem and what to do.

. "$(dirname "$0")/lib/sandbox.bash"

# error NAME STATUS MESSAGE ARGUMENT...: dune-run with these arguments ends so
error() {
	one dune "$DUNE_RUN" "${@:4}"
	is "$(cat "$top/dune.status")" "$2" "$1: status $2"
	is "$(cat "$top/dune.err")" "dune-run: $3" "$1: the message"
}

printf '\177ELFgarbage' >"$data/garbage"
chmod +x "$data/garbage"
printf '#!%s/loop\n' "$data" >"$data/loop"
chmod +x "$data/loop"

missing="check the path of the program and of its dynamic loader"
rights="a program must be an executable file that you may read"
format="a program must be a 64-bit x86 program or #! script, and not on hugetlbfs"
report="give --stats=FILE with a file that can be written"
chain="shorten the chain of symbolic links or #! scripts"
error "no such program" 127 \
	"cannot run /nonexistent/program: No such file or directory: $missing" \
	-- /nonexistent/program
error "no program" 126 "cannot run /etc/passwd: Permission denied: $rights" -- /etc/passwd
error "no format" 126 "cannot run $data/garbage: Exec format error: $format" -- "$data/garbage"
error "a script that interprets itself" 126 \
	"cannot run $data/loop: Too many levels of symbolic links: $chain" -- "$data/loop"
# image TYPE: a program of this ELF type, with a loader and segments of 4 KB that are 30 TB apart
image() {
	perl -e 'my $loader = "/lib64/ld-linux-x86-64.so.2\0";
		print pack("a16S2LQ3LS3x6", "\177ELF\2\1\1", $ARGV[0], 62, 1, 0, 64, 0, 0,
			64, 56, 3),
		pack("L2Q6", 3, 4, 64 + 3 * 56, 0, 0, length($loader), 0, 1),
		(map { pack("L2Q6", 1, 5, 0, $_, $_, 0, 4096, 4096) } 90 << 40, 120 << 40),
		$loader' "$1"
}
image 2 >"$data/both"
image 3 >"$data/large"
chmod +x "$data/both" "$data/large"
# Natively both end in the loader, which finds nothing to link.
ends='system { $ARGV[0] } "x"; print $?'
same "a program with segments 30 TB apart" perl -e "$ends" "$data/both"
same "a position-independent program of 30 TB" perl -e "$ends" "$data/large"
error "no argument" 126 "no program is named: give its path after --, see dune-run --help"
error "unknown option" 126 "there is no option --frobnicate: see dune-run --help" \
	--frobnicate -- /bin/true
error "a report that cannot be written" 126 \
	"cannot write the counters to /: Is a directory: $report" \
	--stats=/ -- /bin/true

finish

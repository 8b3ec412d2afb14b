#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Four tables name the system calls that are special: the module's
# (kernel: slow_calls), the library's two (libdune/common/special.h) and
# dune-run's (syscalls.def). Fails when they do not fit together: when the module
# makes a call in the ioctl that the library relies on seeing, or when dune-run
# forwards a call to the kernel that is the library's. Needs no sandbox.

. "$(dirname "$0")/lib/sandbox.bash"

# rows LIST: the names in a list of special.h, with their actions in its column @host
rows() {
	sed -n "/^#define $1(/,/[^\\\\]\$/ {
		s/^\tX(arg, \([a-z_0-9]*\), [a-zA-Z_0-9]*, \([A-Z_]*\).*/\1 \2/p
	}" "$here/special.h"
}
rows SPECIAL_CALLS >"$top/special"
{ rows HOST_CALLS; grep ' REFUSE$' "$top/special"; } | cut -d ' ' -f 1 | sort >"$top/must-be-slow"
cut -d ' ' -f 1 "$top/special" | sort >"$top/names"
sed -n '/slow_calls\[\] = {/,/^}/p' "$here/module-hypercall.c" | grep -o '__NR_[a-z_0-9]*' |
	cut -c 6- | sort >"$top/slow"
for kind in FORWARD LIBDUNE; do
	sed -n "s/^$kind([0-9]*, \([a-z_0-9]*\),.*/\1/p" "$here/syscalls.def" | sort >"$top/$kind"
done
sed -n 's/^[A-Z]*([0-9]*, \([a-z_0-9]*\),.*/\1/p' "$here/syscalls.def" | sort >"$top/known"

# With fewer rows than these, sed no longer finds the table: each number is at most the
# one of today.
for file in special:19 must-be-slow:7 slow:20 LIBDUNE:5 FORWARD:200 known:350; do
	ok $(($(wc -l <"$top/${file%:*}") < ${file#*:})) "${file%:*}: the table is found"
done
is "$(comm -23 "$top/must-be-slow" "$top/slow")" "" \
	"the module makes no call that must come to the host half"
is "$(comm -23 "$top/names" "$top/known")" "" "dune-run knows all calls that are the library's"
# the kind of close's argument hides the descriptor that the library hides
is "$(comm -12 "$top/names" "$top/FORWARD")" close \
	"dune-run forwards none of the library's calls to the kernel, but close"
is "$(comm -13 "$top/names" "$top/LIBDUNE")" "" \
	"dune-run passes only the library's calls to the library"
finish

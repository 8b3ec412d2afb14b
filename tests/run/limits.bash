#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# At the edge of what a process may have (limits.c). Fails when the sandbox gives
# up where Linux does not, or when a program that uses up the guest-physical space
# ends without a message.

. "$(dirname "$0")/lib/sandbox.bash"

same "fork and execve with no descriptor free, and below a lower limit" "$bin/limits" descriptors

# a program that gives up root could not open the device again
mode=$(stat -c %a /dev/dune)
chmod 600 /dev/dune
chmod 755 "$top"
# /proc/self/exe is opened by its name (docs/sandbox.md): one that cannot be reached
cp "$bin/limits" "$top/limits"
same "fork and execve without /dev/dune: other namespace, other user, empty root" \
	"$top/limits" no-device
chmod "$mode" /dev/dune

same "a program that may have 10 MB of data (RLIMIT_DATA) gets as much as natively" \
	"$bin/limits" data

# VT-x has guest-physical addresses of as many bits as the processor's physical
# ones: one for each gigabyte, and some for the program itself (libdune/include/dune.h)
gigabytes=5000
if grep -qw vmx /proc/cpuinfo; then
	bits=$(sed -n 's/^address sizes.*: \([0-9]*\) bits physical.*/\1/p' /proc/cpuinfo | head -1)
	most=$(((1 << (bits - 30)) - 32))
	((most > gigabytes)) || gigabytes=$most
fi
same "a page in each of $gigabytes gigabytes" "$bin/limits" gigabytes "$gigabytes"
if ((gigabytes < 5000)); then
	one dune "$DUNE_RUN" -- "$bin/limits" gigabytes 5000
	printed=$(grep -c "^dune: with $bits physical address bits .*memory in at most" \
		"$top/dune.err")
	is "$(cat "$top/dune.status") $printed" "135 1" \
		"one gigabyte more than $bits physical address bits allow: SIGBUS, after a message"
fi
same "a thousand children by vfork" "$bin/limits" vfork-children
same "children by vfork that lower their parent's RLIMIT_DATA" "$bin/limits" lowered
finish

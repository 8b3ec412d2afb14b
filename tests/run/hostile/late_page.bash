#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The runtime of a sandboxed process gets no page at the first attempt, and one at a later attempt
# (late_page.c). Fails when the process then neither goes on nor ends by SIGBUS: on Intel the
# runtime handles page faults on a stack on which a second fault would overwrite the first.

. "$(dirname "$0")/../lib/sandbox.bash"
[ "$(id -u)" = 0 ] || bail "root has to run this: it makes a cgroup"
cgroups=$top/cgroups
mkdir "$cgroups"
mount -t cgroup2 none "$cgroups" || bail "no file system of cgroups"
trap 'rmdir "$cgroups/dune-late-page"; umount "$cgroups"; put_back; rm -rf "$top"' EXIT
if echo +memory >"$cgroups/cgroup.subtree_control" && mkdir "$cgroups/dune-late-page"; then
	limited "$DUNE_RUN" -- "$bin/late_page" "$cgroups/dune-late-page" >"$top/result" 2>&1
	# A child that ends by SIGBUS may say why, which depends on when the limit is taken back.
	is "$(grep -v "^dune: private memory is full" "$top/result")" "memory was lacking" \
		"each child goes on, or ends by SIGBUS"
else
	skip "the kernel has no memory cgroups of version 2" "each child goes on, or ends by SIGBUS"
fi
finish

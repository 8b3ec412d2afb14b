#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A program of this folder in the sandbox, where it attacks the runtime and prints TAP. The
# makefile copies this script for each C file but kernel.c: table.t runs table.c. Fails when
# an attempt gives anything but the expected error.

. "$(dirname "$0")/../lib/sandbox.bash"
program=${0##*/}
cd "$top" || exit 1
"$DUNE_RUN" -- "$bin/hostile/${program%.t}"

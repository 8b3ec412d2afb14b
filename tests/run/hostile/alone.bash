#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A program of this directory in the sandbox, where it attacks the runtime and prints TAP. It is
# a copy, since some attacks are on its own file. The makefile copies this script for each C
# file that has no script of its own: table.t runs table.c. Fails when an attempt gives anything
# but the expected error.

. "$(dirname "$0")/../lib/sandbox.bash"
program=$(basename "$0" .t)
alone "hostile/$program"

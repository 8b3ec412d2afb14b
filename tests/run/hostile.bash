#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A program in the sandbox attacks the runtime: hostile.c. Fails when one of its
# attempts gives anything but the expected error.

. "$(dirname "$0")/lib.bash"
cd "$top" || exit 1
"$DUNE_RUN" -- "$bin/hostile"

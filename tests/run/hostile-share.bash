#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Two processes that share memory or descriptors attack the runtime:
# hostile-share.c. Fails when one of these ways out works.

. "$(dirname "$0")/lib.bash"
cd "$top" || exit 1
"$DUNE_RUN" -- "$bin/hostile-share"

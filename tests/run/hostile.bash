#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a program tries against the runtime: hostile.c, in the sandbox.

. "$(dirname "$0")/lib.bash"
cd "$top" && exec "$DUNE_RUN" -- "$bin/hostile"

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The memory of --stats, which stats.c tries to open and to truncate. Fails when one of the
# attempts succeeds.

. "$(dirname "$0")/../lib/sandbox.bash"
alone hostile/stats --stats="$top/stats"

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Single system calls at the edges of what they allow. Fails when one of them gives another result
# in the sandbox than natively, or has another effect.

. "$(dirname "$0")/lib/sandbox.bash"

same "segments of shared memory in place of what is mapped" "$bin/segments"
same "files that are truncated, or may not be" "$bin/truncation"
same "lengths that calls do not allow, shorten or cut off" "$bin/lengths"
finish

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# clone3 with structures of several sizes, also larger than the runtime knows. Fails when a
# result differs from that of Linux.

. "$(dirname "$0")/lib/sandbox.bash"

same "clone3 has the same results natively and in the sandbox" "$bin/clone3"
finish

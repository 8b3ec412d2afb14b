#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Huge pages in the supervisor range: huge.c, which wants some reserved. Fails
# when the program gets such a page, or one stays in the supervisor range.

. "$(dirname "$0")/lib/sandbox.bash"
with_huge_pages 4 huge

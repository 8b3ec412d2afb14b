#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A program's file and a loader's file on hugetlbfs: huge_image.c, which wants a huge
# page reserved. Fails when dune-run maps such a file over its own vectors, instead of
# refusing it while the old program can get the error.

. "$(dirname "$0")/lib/sandbox.bash"
with_huge_pages 8 huge_image

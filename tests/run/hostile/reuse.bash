#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Inode numbers that a file of procfs shares with the program's file (reuse.c). Fails when the
# runtime takes a file of procfs with the numbers of the program's file for the program's file.

. "$(dirname "$0")/../lib/sandbox.bash"

# Other processes of the machine may take a number: 10 attempts.
for ((try = 0; try < 10; try++)); do
	mkdir "$top/reuse.$try"
	result=$(limited "$DUNE_RUN" -- "$bin/hostile/reuse" "$top/reuse.$try" 2>&1)
	[[ $result == missed* ]] || break
done
if [[ $result == missed* ]]; then
	skip "$result, 10 times" "a file of procfs with the numbers of the program's file"
else
	is "$result" "Permission denied" \
		"the memory of a process is not the program's file, with the same numbers"
fi
finish

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The errors that dune-run itself reports when it cannot start a program. Fails when its exit status is
# not the one of docs/sandbox.md, or when the message is not one line.

. "$(dirname "$0")/lib/sandbox.bash"

one dune "$DUNE_RUN" -- /nonexistent/program
is "$(cat "$top/dune.status")" 127 "no such program: status 127"
is "$(wc -l <"$top/dune.err")" 1 "no such program: one line on standard error"
one dune "$DUNE_RUN" -- /etc/passwd
is "$(cat "$top/dune.status")" 126 "no program: status 126"
printf '\177ELFgarbage' >"$data/garbage"
chmod +x "$data/garbage"
one dune "$DUNE_RUN" -- "$data/garbage"
is "$(cat "$top/dune.status")" 126 "not a format: status 126"
one dune "$DUNE_RUN"
is "$(cat "$top/dune.status")" 126 "no argument: status 126"
one dune "$DUNE_RUN" --frobnicate -- /bin/true
is "$(cat "$top/dune.status")" 126 "unknown option: status 126"

finish

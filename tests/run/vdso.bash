#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Time and CPU number (vdso.c) where the vDSO cannot be written to (restrict.c), and where it has the
# supervisor range below it, among the mappings. Fails when the sandbox shows a program something
# else than Linux does, or a vDSO whose getcpu it could not replace.

. "$(dirname "$0")/lib/sandbox.bash"

if "$bin/restrict" mdwe /bin/true; then
	same "time and CPU after PR_SET_MDWE and execve" "$bin/restrict" mdwe "$bin/vdso"
else
	skip "no PR_SET_MDWE in this kernel" "time and CPU after PR_SET_MDWE and execve"
fi
wanted="clock_gettime: 0
getcpu: 0
time: 1"
is "$("$bin/restrict" filter "$bin/vdso" 2>&1)" "$wanted" \
	"time and CPU under a filter against writable and executable memory, natively"
is "$("$bin/restrict" filter "$DUNE_RUN" -- "$bin/vdso" 2>&1)" "$wanted" \
	"time and CPU under a filter against writable and executable memory"
is "$("$bin/restrict" filter "$DUNE_RUN" -- /bin/sh -c "$bin/vdso" 2>&1)" "$wanted" \
	"time and CPU under that filter, after execve"
is "$("$DUNE_RUN" -- "$bin/static" | grep -o '^vdso .')" "vdso 1" "a program has the vDSO"
is "$("$bin/restrict" writable "$DUNE_RUN" -- "$bin/static" | grep -o '^vdso .')" "vdso 0" \
	"a program has no vDSO if it cannot be made writable"
is "$("$bin/restrict" writable "$DUNE_RUN" -- "$bin/vdso" 2>&1)" "$wanted" \
	"time and CPU without the vDSO"

# Without random addresses the kernel puts the vDSO below the room that the stack may need, and
# below 1 MB more. In these cases the stack may need more of it than the supervisor range would
# leave, so the range takes no place there, and the kernel chooses one, below the vDSO (place() in
# run/start/start.c). In the last case the native start is linked right below the vDSO.
end=0x7ffffffff000
for at in $((end - (130 << 20))) $((end - (200 << 20))) $((end - (1 << 40))) 0x6d7500200000; do
	limit=$(((end - at) / 1024 - 1024))
	is "$(setarch -R bash -c "ulimit -s $limit && exec $DUNE_RUN -- $bin/vdso" 2>&1)" \
		"$wanted" "time and CPU where the vDSO ends at $(printf %#x $at)"
done
finish

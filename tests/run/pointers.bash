#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the kernel says of each system call's arguments (the formats of its
# trace events), against syscalls.def: an argument whose type is a pointer, or
# whose name is one of an address, may be a value (V) in the table only with a
# reason below. Needs no sandbox.

. "$(dirname "$0")/lib.bash"
events=/sys/kernel/tracing/events/syscalls
table=${TABLE:-$here/syscalls.def}

# CALL.ARGUMENT: who checks it, or why it is no address that the kernel uses
reasons() {
	cat <<-X
		mmap.addr call_mmap
		munmap.addr call_munmap
		mremap.addr call_mremap
		mremap.new_addr call_mremap
		brk.brk call_brk
		shmat.shmaddr call_shmat
		shmdt.shmaddr call_shmdt
		set_tid_address.tidptr call_set_tid_address
		prctl.arg2 call_prctl
		prctl.arg3 call_prctl
		prctl.arg4 call_prctl
		prctl.arg5 call_prctl
		arch_prctl.arg2 call_arch_prctl
		pselect6.sig call_pselect6
		get_mempolicy.addr a page's place is looked up, and a page of the runtime may have one
		kcmp.idx1 a number of a descriptor, or none
	X
}

# the kernel's name for a call of the table
event_of() {
	case $1 in
	stat | fstat | lstat | uname) echo "new$1" ;;
	sendfile) echo sendfile64 ;;
	umount2) echo umount ;;
	*) echo "$1" ;;
	esac
}

if [ ! -d "$events" ]; then
	echo "1..0 # SKIP no $events: a kernel without CONFIG_FTRACE_SYSCALLS"
	exit 0
fi
reasons >"$top/reasons"
seen=0
missing=
while IFS=', ' read -r kind name a b c d e f; do
	kinds=($a $b $c $d $e $f)
	format=$events/sys_enter_$(event_of "$name")/format
	[ -r "$format" ] || { missing+=" $name"; continue; }
	seen=$((seen + 1))
	i=0
	while IFS='|' read -r type argument; do
		kind=${kinds[i]}
		i=$((i + 1))
		[ "$kind" = V ] || continue
		case "$type|$argument" in
		*\**) ;;
		int* | "unsigned int"* | size_t*) continue ;;
		*\|*addr* | *\|*ptr | *\|arg | *\|arg[2-5] | *\|brk | *\|*buf) ;;
		*) continue ;;
		esac
		if ! grep -q "^$name\.$argument " "$top/reasons"; then
			echo "# $name, argument $((i - 1)): $type $argument"
			echo "$name.$argument" >>"$top/unknown"
		fi
	done < <(sed -nE 's/^\tfield:(.*[ *])([a-z_0-9A-Z]+);.*/\1|\2/p' "$format" | sed '1,/__syscall_nr/d')
done < <(sed -nE 's/^(PASS|OWN)\([0-9]+, ([a-z_0-9]+), (.*)\)$/\1 \2 \3/p
	s/^CALL\([0-9]+, ([a-z_0-9]+), [a-z_0-9]+, (.*)\)$/OWN \1 \2/p' "$table")

echo "# $seen calls compared; the kernel tells nothing of:$missing"
ok $((seen < 300)) "the kernel says what the arguments of most calls are"
is "$(cat "$top/unknown" 2>/dev/null)" "" "no pointer is a value in the table"
finish

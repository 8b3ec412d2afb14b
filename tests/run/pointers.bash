#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The kernel's description of each system call's arguments (the formats of its
# trace events), against syscalls.def. Fails when an argument whose type is a
# pointer, or whose name is that of an address, is a value (V) in the table
# without a reason below. Needs no sandbox.

. "$(dirname "$0")/lib/sandbox.bash"
events=/sys/kernel/tracing/events/syscalls
table=${TABLE:-$here/syscalls.def}

# CALL.ARGUMENT: the function that checks it, or why the kernel does not use it as an address
reasons() {
	cat <<-X
		mmap.addr call_mmap
		munmap.addr call_munmap
		mremap.addr call_mremap
		mremap.new_addr call_mremap
		brk.brk the heap grows only where nothing is mapped, so never into the supervisor range
		shmat.shmaddr call_shmat
		shmdt.shmaddr call_shmdt
		set_tid_address.tidptr call_set_tid_address
		prctl.arg2 call_prctl
		prctl.arg3 call_prctl
		prctl.arg4 call_prctl
		prctl.arg5 call_prctl
		arch_prctl.arg2 call_arch_prctl
		pselect6.sig call_pselect6
		get_mempolicy.addr only the node of its page is looked up, also of the runtime's
		kcmp.idx1 a number of a descriptor, or none
	X
}

if [ ! -d "$events" ]; then
	echo "1..0 # SKIP no $events: a kernel without CONFIG_FTRACE_SYSCALLS"
	exit 0
fi
reasons >"$top/reasons"

# One process for all: each call costs a few milliseconds in an emulated machine.
sed -nE 's/^(FORWARD|LIBDUNE)\([0-9]+, ([a-z_0-9]+), (.*)\)$/\2, \3/p
	s/^FUNCTION\([0-9]+, ([a-z_0-9]+), [a-z_0-9]+, (.*)\)$/\1, \2/p' "$table" |
	awk -F ', ' -v events="$events" -v reasons="$top/reasons" -v unknown="$top/unknown" '
	# Can an argument of this type and name be an address?
	function may_be_address(type, name)
	{
		if (type ~ /\*/)
			return 1
		if (type ~ /^(int|unsigned int|size_t)/)
			return 0
		return name ~ /addr|ptr$|^arg[2-5]?$|brk$|buf$/
	}
	BEGIN {
		while ((getline line < reasons) > 0)
			known[substr(line, 1, index(line, " ") - 1)] = 1
		# the names of the kernel
		split("stat newstat fstat newfstat lstat newlstat uname newuname " \
		      "sendfile sendfile64 umount2 umount", n, " ")
		for (i = 1; i in n; i += 2)
			event[n[i]] = n[i + 1]
	}
	{
		format = events "/sys_enter_" ($1 in event ? event[$1] : $1) "/format"
		argument = -1	# after __syscall_nr
		while ((status = (getline line < format)) > 0) {
			if (line ~ /__syscall_nr/)
				argument = 0
			else if (argument >= 0 && match(line, /^\tfield:[^;]*;/)) {
				line = substr(line, 8, RLENGTH - 8)
				match(line, /[a-zA-Z_0-9]+$/)
				name = substr(line, RSTART)
				# a copy of what a pointer leads to, in 7.x
				if (name ~ /^__.*_val$/)
					continue
				type = substr(line, 1, RSTART - 1)
				kind = $(2 + argument++)
				if (kind == "V" && may_be_address(type, name) &&
				    !(($1 "." name) in known)) {
					print "# " $1 ", argument " (argument - 1) ": " type name
					print $1 "." name >unknown
				}
			}
		}
		close(format)
		if (argument < 0)
			missing = missing " " $1
		else
			seen++
	}
	END {
		print "# " seen + 0 " calls compared; the kernel does not describe:" missing
	}' >"$top/compared"
cat "$top/compared"
seen=$(sed -n 's/^# \([0-9]*\) calls compared.*/\1/p' "$top/compared")
ok $((${seen:-0} < 300)) "the kernel describes the arguments of most calls"
is "$(cat "$top/unknown" 2>/dev/null)" "" "no pointer is a value in the table"
finish

# SPDX-License-Identifier: MIT OR Apache-2.0
# objdump -tr OBJECTS | awk -v upcalls="NAMES" -f circles.awk
# Fails if files call each other in a circle: one calls a function of another, which calls, itself
# or through others, a function of the first. A use of a function in code counts as a call. A table
# of functions does not: through it a lower file calls what a higher one has put there.
# @upcalls: functions of higher files that lower ones call by name; each user has the reasons.

function is_code(section)
{
	return section ~ /text/ && section !~ /static_call/
}

/^[^ \t].*: +file format / {
	file = $1
	sub(/:$/, "", file)
	in_code = 0
}

/^RELOCATION RECORDS FOR / {
	in_code = is_code($4)
}

# A symbol: the address, a space, seven flags, a space, the section, a tab, the size and the name.
/^[0-9a-f]+ ....... [^ \t]+\t/ {
	split($0, part, "\t")
	match(part[1], / [^ ]+$/)
	section = substr(part[1], RSTART + 1)
	flags = substr(part[1], index(part[1], " ") + 1, 7)
	if (flags ~ /^l/)
		is_local[file, $NF] = 1
	else if (is_code(section))
		definer[$NF] = file
}

in_code && $2 ~ /^R_/ {
	name = $3
	sub(/[-+]0x[0-9a-f]+$/, "", name)
	uses[file, name] = 1
}

END {
	n = split(upcalls, names, " ")
	for (i = 1; i <= n; i++)
		is_upcall[names[i]] = 1
	for (use in uses) {
		split(use, part, SUBSEP)
		to = definer[part[2]]
		if (to == "" || to == part[1] || use in is_local)
			continue
		seen++
		if (part[2] in is_upcall) {
			is_used[part[2]] = 1
			continue
		}
		calls[part[1], to] = calls[part[1], to] " " part[2]
	}
	# Takes away what cannot be in a circle, until nothing more goes.
	do {
		split("", calling)
		split("", called)
		for (call in calls) {
			split(call, part, SUBSEP)
			calling[part[1]] = called[part[2]] = 1
		}
		removed = 0
		for (call in calls) {
			split(call, part, SUBSEP)
			if (part[1] in called && part[2] in calling)
				continue
			delete calls[call]
			removed++
		}
	} while (removed)
	for (call in calls) {
		split(call, part, SUBSEP)
		printf "%s calls%s of %s: files call each other in a circle; move one of them\n", \
			part[1], calls[call], part[2] > "/dev/stderr"
		failed = 1
	}
	for (name in is_upcall) {
		if (name in is_used)
			continue
		print "nothing calls " name " upwards" > "/dev/stderr"
		failed = 1
	}
	if (!seen) {
		print "circles.awk: no call was found" > "/dev/stderr"
		failed = 1
	}
	exit failed
}

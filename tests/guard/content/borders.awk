# SPDX-License-Identifier: MIT OR Apache-2.0
# readelf -SW M; readelf -sW M; readelf -rW M; objdump -drw M | awk -f borders.awk
# prints a module's entry points ("entry SECTION+0xOFFSET") and exits ("exit SYMBOL COUNT") by the
# output of these tools, which is independent of dunectl.

function hex(text,	n, i)
{
	n = 0
	for (i = 1; i <= length(text); i++)
		n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
	return n
}

# "NAME + ADDEND" or "NAME-0xADDEND" and so on: sets name and addend.
function split_target(text)
{
	gsub(/ /, "", text)
	addend = 0
	name = text
	if (match(text, /[-+](0x)?[0-9a-f]+$/)) {
		name = substr(text, 1, RSTART - 1)
		addend = substr(text, RSTART + 1)
		sub(/^0x/, "", addend)
		addend = hex(addend) * (substr(text, RSTART, 1) == "-" ? -1 : 1)
	}
}

# A place to which something other than a branch points.
function points_to(text, add,	at)
{
	split_target(text)
	addend += add
	if (name in number)
		at = number[name] " " addend
	else if (name in home)
		at = home[name] " " (value[name] + addend)
	else
		return
	if (at in is_function) {
		split(at, part)
		printf "entry %s+0x%x\n", title[part[1]], part[2]
	}
}

# The relocations of an instruction, in the columns of its line from this one on.
function relocations(i,	type, target)
{
	for (; i <= count; i++)
		if (match(column[i], /R_X86_64_[A-Z0-9]+/)) {
			type = substr(column[i], RSTART, RLENGTH)
			target = i < count ? column[i + 1] : ""
			if (!is_branch) {
				points_to(target, type ~ /P[LC]/ ? 4 : 0)
			} else {
				split_target(target)
				if (name in is_outside)
					calls[name]++
			}
		}
}

# readelf -SW
/^ *\[ *[0-9]+\] [._]/ {
	line = $0
	sub(/^ *\[ */, "", line)
	split(line, field, /[] ]+/)
	title[field[1]] = field[2]
	number[field[2]] = field[1]
	if (line ~ / AX /)
		is_code[field[1]] = 1
	if (line ~ / W?AX?[A-Z]* /)
		is_loaded[field[2]] = 1
	next
}

# readelf -sW: Num: Value Size Type Bind Vis Ndx Name
/^ *[0-9]+: [0-9a-f]+ / {
	if ($7 == "UND")
		is_outside[$8] = 1
	else if ($4 != "SECTION") {
		home[$8] = $7
		value[$8] = hex($2)
		if ($4 == "FUNC" && $7 in is_code && $8 !~ /^__(pfx|cfi)_/)
			is_function[$7 " " hex($2)] = 1
	}
	next
}

# readelf -rW: of sections of data alone, and no table of places in the code
/^Relocation section/ {
	section = $3
	gsub(/^'\.rela|'$/, "", section)
	is_wanted = section in is_loaded && !(number[section] in is_code) && \
		section !~ /^(__bug_table|__ex_table|__jump_table|__mcount_loc|\.altinstructions|\.call_sites|\.ibt_endbr_seal|\.orc_.*|\.parainstructions|\.retpoline_sites|\.return_sites|\.smp_locks|\.static_call_sites|__patchable_function_entries)$/
	next
}
is_wanted && $3 ~ /^R_X86_64_/ {
	line = $0
	sub(/^.* R_X86_64_[A-Z0-9]+ +[0-9a-f]+ +/, "", line)
	points_to(line, 0)
	next
}

# objdump -drw: an instruction and its first relocation, which is in the same line
/^ *[0-9a-f]+:\t\t/ {
	is_wanted = 0
	count = split($0, column, "\t")
	instruction = column[3]
	sub(/^((bnd|notrack|cs|ds) )+/, "", instruction)
	is_branch = instruction ~ /^(call|j[a-z]+) +[^ *]/
	relocations(4)
	next
}

# Its second one, if it has two, has a line of its own.
/^\t[0-9a-f]+: R_X86_64_/ {
	is_wanted = 0
	count = split($0, column, "\t")
	relocations(2)
}

END {
	for (name in calls)
		print "exit " name " " calls[name]
}

# SPDX-License-Identifier: GPL-2.0-only
# objdump -dr dune.ko | awk -f returns.awk
# Fails if more than two returns may lead from a world switch to the run loop, or if
# the run loop returns before the return stack buffer is overwritten. dune/run.c
# relies on both, and both are the compiler's choice.

function plain(name)
{
	sub(/[-+]0x.*/, "", name)
	sub(/\..*/, "", name)
	return name
}

function edge(name)
{
	name = plain(name)
	if (name != function_name)
		kinds[function_name, name] = kinds[function_name, name] kind
	kind = ""
}

/^[0-9a-f]+ <.*>:$/ {
	function_name = $2
	gsub(/[<>:]/, "", function_name)
	function_name = plain(function_name)
	kind = ""
	next
}

# A relocation names the target of the branch before it.
$2 ~ /^R_X86_64_P/ {
	if (kind)
		edge($3)
	next
}

{
	if (kind)
		edge(target)
	kind = ""
}

/\t(call|j[a-z]+) +[0-9a-f]+ </ {
	kind = /\tcall/ ? "c" : "j"
	target = $NF
	gsub(/[<>]/, "", target)
}

END {
	# The functions to which the switches return, and those that jump there: one return each.
	for (pair in kinds) {
		split(pair, end, SUBSEP)
		if (end[2] ~ /^(svm|vmx)_switch$/ && kinds[pair] ~ /c/) {
			entries[end[1]] = 1
			switches[end[2]] = 1
		}
		if (end[2] == "__SCT__vcpu_enter")
			loops[end[1]] = 1
	}
	do {
		more = 0
		for (pair in kinds) {
			split(pair, end, SUBSEP)
			if (kinds[pair] ~ /j/ && (end[2] in entries) && !(end[1] in entries))
				more = entries[end[1]] = 1
		}
	} while (more)
	for (pair in kinds) {
		split(pair, end, SUBSEP)
		if (kinds[pair] ~ /c/ && (end[2] in entries))
			wrong = wrong " " end[1] "() calls " end[2] "();"
	}
	for (name in loops) {
		seen++
		if (!((name, "return_buffer_fill") in kinds))
			wrong = wrong " " name "() returns before the return stack buffer is overwritten;"
	}
	if (!seen || !("svm_switch" in switches) || !("vmx_switch" in switches) ||
	    !("svm_enter" in entries) || !("vmx_enter" in entries))
		wrong = wrong " a world switch was not found;"
	if (wrong) {
		print "dune: returns after an exit:" wrong > "/dev/stderr"
		exit 1
	}
}

# SPDX-License-Identifier: GPL-2.0-only
# objdump -dr dune.ko | awk -f returns.awk
# Fails if more than two returns may lead from a world switch to the run loop, or if the
# function of the run loop may return after an exit and before the return stack buffer is
# overwritten. dune/run.c relies on both, and both are the compiler's choice. Jumps are
# followed in that function, but not those to other sections, and not those that a static
# key makes.

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

# Returns the function that a relocation names, or "." if it is this function, a cold part of a
# function, or a section. A jump to "." comes back: the section has cold code, or the check of
# a feature.
function place(name)
{
	return name ~ /^\.|\.cold/ || plain(name) == function_name ? "." : plain(name)
}

# Returns whether instruction @i leaves the function for good.
function leaves(i)
{
	return op[i] ~ /^ret/ || (op[i] ~ /^j/ && symbol[i] && symbol[i] != ".")
}

# Adds instruction @i to those that the walk has to look at.
function visit(i)
{
	if (i && i <= count && !(i in visited)) {
		visited[i] = 1
		to_visit[++waiting] = i
	}
}

# Walks the function's instructions from each world switch on, up to return_buffer_fill().
function check_loop(    i)
{
	split("", visited)
	waiting = 0
	for (i = 1; i <= count; i++)
		if (symbol[i] == "__SCT__vcpu_enter") {
			loops++
			if (op[i] ~ /^j/)
				visit(i)
			else
				visit(i + 1)
		}
	while (waiting) {
		i = to_visit[waiting--]
		if (op[i] == "call" && symbol[i] == "return_buffer_fill") {
			fills++
			continue
		}
		if (leaves(i)) {
			wrong = wrong " " function_name "() may return before the return stack " \
				"buffer is overwritten;"
			break
		}
		if (op[i] ~ /^j/ && !symbol[i])
			visit(number[destination[i]])
		if (op[i] != "jmp" || symbol[i])
			visit(i + 1)
	}
}

/^[0-9a-f]+ <.*>:$/ {
	check_loop()
	count = 0
	split("", number)
	function_name = $2
	gsub(/[<>:]/, "", function_name)
	function_name = plain(function_name)
	kind = ""
	next
}

# A relocation names the target of the branch before it.
$2 ~ /^R_X86_64_P/ {
	if (kind) {
		symbol[count] = place($3)
		edge($3)
	}
	next
}

{
	if (kind)
		edge(target)
	kind = ""
}

/^ +[0-9a-f]+:\t/ {
	address = $1
	sub(/:/, "", address)
	number[address] = ++count
	op[count] = $2
	destination[count] = $3
	symbol[count] = ""
}

/\t(call|j[a-z]+) +[0-9a-f]+ </ {
	kind = /\tcall/ ? "c" : "j"
	target = $NF
	gsub(/[<>]/, "", target)
}

END {
	check_loop()
	# The functions to which the switches return, and those that jump there: one return each.
	for (pair in kinds) {
		split(pair, end, SUBSEP)
		if (end[2] ~ /^(svm|vmx)_switch$/ && kinds[pair] ~ /c/) {
			entries[end[1]] = 1
			switches[end[2]] = 1
		}
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
	if (loops && !fills)
		wrong = wrong " the run loop does not overwrite the return stack buffer;"
	if (!loops || !("svm_switch" in switches) || !("vmx_switch" in switches) ||
	    !("svm_enter" in entries) || !("vmx_enter" in entries))
		wrong = wrong " a world switch was not found;"
	if (wrong) {
		print "dune: returns after an exit:" wrong > "/dev/stderr"
		exit 1
	}
}

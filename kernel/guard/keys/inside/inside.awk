# SPDX-License-Identifier: GPL-2.0-only
# objdump -dtr --no-show-raw-insn OBJECT | awk -f inside.awk
# Fails if the inside of guard-keys.ko is not what it has to be (Makefile).

function wrong(why)
{
	print "guard/keys/inside: " why ": " $0 > "/dev/stderr"
	failed = 1
}

# A symbol: the address, a space, seven flags, a space, the section, a tab, the size and the name.
/^[0-9a-f]+ ....... [^ \t]+\t/ {
	split($0, part, "\t")
	match(part[1], / [^ ]+$/)
	section = substr(part[1], RSTART + 1)
	if (section == "*UND*" ? NF > 3 && $NF != "__x86_return_thunk" : \
	    $NF != section && section !~ /^(\*ABS\*|\.guard\.(text|rodata|private|exchange)|\.discard\..*)$/)
		wrong("a symbol of no section of the inside")
	if ($NF == "keys_work" && section == ".guard.text")
		works = 1
}

/^[0-9a-f]+ <.*>:$/ {
	name = $2
}

/^ +[0-9a-f]+:\t/ {
	instruction = $0
	sub(/^ +[0-9a-f]+:\t/, "", instruction)
	is_end = name ~ /^<keys_(enter|leave)>:$/
	if (instruction ~ /^(call|lcall|syscall|int|iret|leave|sys)/ || \
	    instruction ~ /jmp +\*/)
		wrong("leaves the inside")
	if (instruction ~ /^ret/ && !is_end)
		wrong("returns")
	if (instruction ~ /%([xyz]mm|mm|st|k)[0-9(]/)
		wrong("uses a register that is not a general one")
	if (instruction ~ /%[c-gs]s([^a-z]|$)/ && instruction !~ /%es:\(%rdi\)$/)
		wrong("uses a segment")
	count++
}

/^\t\t\t[0-9a-f]+: R_/ && /__x86_return_thunk/ {
	if (!is_end)
		wrong("returns")
}

END {
	if (!works || count < 1000) {
		print "guard/keys/inside: its code was not found" > "/dev/stderr"
		failed = 1
	}
	exit failed
}

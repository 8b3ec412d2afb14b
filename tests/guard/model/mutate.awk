# SPDX-License-Identifier: MIT OR Apache-2.0
# awk -v mutant=NAME -f mutate.awk mutants DIRECTORY/FILE... writes each file to OUT/FILE, the
# mutant's file with the old text replaced by the new one. Fails unless the text is there once.

BEGIN { out = ENVIRON["OUT"] }

FILENAME == ARGV[1] {
	if ($1 == "mutant") {
		is_wanted = $2 == mutant
		if (is_wanted) {
			wanted_file = $4
			sub(/.*\//, "", wanted_file)
		}
	} else if (is_wanted && /^< /) {
		old = substr($0, 3)
	} else if (is_wanted && /^>/) {
		new = substr($0, 3)
	}
	next
}

FNR == 1 {
	file = FILENAME
	sub(/.*\//, "", file)
}

{
	line = $0
	if (file == wanted_file && (at = index(line, old))) {
		line = substr(line, 1, at - 1) new substr(line, at + length(old))
		count++
	}
	print line >(out "/" file)
}

END {
	if (count != 1) {
		print "mutant " mutant ": its text is " count + 0 " times in " wanted_file >"/dev/stderr"
		exit 1
	}
}

#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# ioctls.bash DIRECTORY: the numbers of all ioctls that the uapi headers in DIRECTORY
# (a kernel's headers package unpacked, or /usr) define, as the elements of a C array:
# one number a line, with a comma.
# A header that does not compile alone, or a macro with arguments, is left out;
# attack/ tries numbers without a definition, too.

directory=$1
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
mkdir -p "$top/linux"
: >"$top/linux/compiler_types.h"
: >"$top/linux/compiler.h"
if [ -d "$directory/include/uapi" ]; then
	roots=("$directory/include/uapi" "$directory/arch/x86/include/uapi")
	for generated in "${directory%-common}"-*/; do
		roots+=("$generated/include/generated/uapi")
		roots+=("$generated/arch/x86/include/generated/uapi")
	done
else
	roots=("$directory/include" "$directory/include/x86_64-linux-gnu")
fi
flags=(-w -D__user= -D__force= "-I$top")
for root in "${roots[@]}"; do
	flags+=("-I$root")
done

one() {
	local header=$1 out=$2 names line
	names=$(gcc "${flags[@]}" -E -dM -include linux/types.h "$header" 2>/dev/null |
		sed -nE 's/^#define ([A-Za-z_0-9]+) .*\b[A-Z_]*_?IO[WR]*[ ]?\(.*/\1/p')
	[ "$names" ] || return
	{
		echo "#include <stddef.h>"
		echo "#include <linux/types.h>"
		echo "#include <linux/ioctl.h>"
		echo "#include \"$header\""
		echo "void f(void) {"
		for name in $names; do
			echo "__asm__ volatile(\"#@ %c0\" :: \"i\" ((int)($name)));"
		done
		echo "}"
	} >"$out.c"
	# gcc names the lines with a macro that means nothing here
	for _ in 1 2 3; do
		if gcc "${flags[@]}" -S -o "$out.s" "$out.c" 2>"$out.err"; then
			sed -nE 's/^.*#@ (-?[0-9]+).*$/\1/p' "$out.s"
			return
		fi
		line=$(sed -nE "s|^$out.c:([0-9]+):.*error.*|\1d|p" "$out.err" | sort -u)
		[ "$line" ] || return
		sed -i "$line" "$out.c"
	done
}

for root in "${roots[@]}"; do
	grep -rlE '\b[A-Z_]*IO[WR]*\(' "$root" --include=*.h 2>/dev/null
done | sort -u | {
	n=0
	while read -r header; do
		one "$header" "$top/$((n++))"
	done
} | awk '{ v = $1 < 0 ? $1 + 4294967296 : $1; if (!seen[v]++) printf "\t0x%x,\n", v }' | sort

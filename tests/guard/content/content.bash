#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# `dunectl guard describe` and the comparison of a loaded module with its description, on Debian's
# and on our own modules of all kernels that are prepared. Fails if the entry points and exits of a
# description are not those that binutils show; if a module that was loaded and patched correctly
# does not match; if a changed bit, or a field that was relocated wrongly, is not found; if a
# damaged description makes the comparison access other memory; or if one of these tests passes with
# a comparison that is broken on purpose (mutants).
cd "${0%/*}" || exit 1
. ./tap.bash

build=$(cd ../../.. && pwd)
dunectl=$build/bin/dunectl
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# The programs are short, and free nothing.
export ASAN_OPTIONS=detect_leaks=0
damaged=${DAMAGED:-3000}

# modules KERNEL: the paths of its modules that are tested
modules() {
	local release
	release=$(cd "$build/machine/$1/lib/modules" && echo *)
	for name in e1000 e1000e ne2k-pci 8139cp; do
		find "$build/machine/$1/lib/modules" -name "$name.ko*"
	done
	# Not those of a kernel for which nothing was built.
	for name in dune dune-guard dune-guard-attack; do
		find "$build/kernel/$release" -maxdepth 1 -name "$name.ko" 2>/dev/null
	done
}

# plain PATH: its object file, to $work/ko
plain() {
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -dcq "$1" ;;
	*) cat "$1" ;;
	esac >"$work/ko"
}

# borders_of_binutils, borders_of_description: entry points and exits, sorted
borders_of_binutils() {
	{
		readelf -SW "$work/ko"
		readelf -sW "$work/ko"
		readelf -rW "$work/ko"
		objdump -drw --no-show-raw-insn "$work/ko" |
			sed -E 's/^( *[0-9a-f]+:\t)/\1\t/'
	} | awk -f borders.awk | sort -u
}
borders_of_description() {
	sed -nE -e 's/^  \{ at = "([^"]+)", symbol.*/entry \1/p' \
		-e 's/^  \{ symbol = "([^"]+)", calls = ([0-9]+) \},/exit \1 \2/p' \
		"$work/toml" | sort -u
}

# same_digests: the program's SHA-256 of files of all lengths around its blocks
same_digests() {
	local length status=0
	for length in {0..130} 4096 100000; do
		head -c "$length" "$build/bin/dunectl" >"$work/file"
		[ "$("$1" sha256 "$work/file")" = "$(sha256sum "$work/file" | cut -d' ' -f1)" ] ||
			status=1
	done
	return $status
}

# changed_hash PROGRAM: each description with another last byte of a hash is found
changed_hash() {
	sed -E '0,/^sha256/s/^(sha256 = ".*)(.)"$/\1x\2"/' "$work/toml" |
		sed -E 's/x0"$/1"/; s/x[0-9a-f]"$/0"/' >"$work/changed.toml"
	! cmp -s "$work/toml" "$work/changed.toml" &&
		"$dunectl" guard encode -k "$work/kernel" "$work/changed.toml" -o "$work/changed" &&
		! "$1" match "$work/ko" "$work/changed" >/dev/null
}

# run PROGRAM COMMAND: one command of the mutants' table
run() {
	case $2 in
	sha256) same_digests "$1" ;;
	flip-hash) changed_hash "$1" ;;
	flip) "$1" flip "$work/ko" "$work/description" 300 ;;
	fuzz) "$1" fuzz "$work/small.ko" "$work/small" 20000 1 ;;
	*) "$1" "$2" "$work/ko" "$work/description" ;;
	esac
}

[ "$(./compare sha256 /dev/null)" = \
	e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 ]
ok $? "SHA-256 of nothing is the one of the standard"
try "SHA-256 is that of sha256sum" same_digests ./compare

kernels=$(cd "$build/machine" && printf '%s\n' [0-9]* | sort -V | paste -sd ' ')
for kernel in $kernels; do
	for path in $(modules "$kernel"); do
		name="$(basename "${path%.ko*}") of $kernel"
		plain "$path" || bail "$path"
		out=$("$dunectl" guard describe "$path" -o "$work/toml" 2>&1)
		is "$out$?" 0 "$name is described"
		is "$(borders_of_description)" "$(borders_of_binutils)" \
			"its entry points and exits are those of binutils"
		./compare kernel "$work/ko" >"$work/kernel"
		try "it is encoded" \
			"$dunectl" guard encode -k "$work/kernel" "$work/toml" -o "$work/description"
		try "it matches, however Linux patches it" \
			./compare match "$work/ko" "$work/description"
		try "a changed hash is found" changed_hash ./compare
		count=60
		[ "${path##*/ne2k}" = "$path" ] || count=0
		try "a flipped bit is found" \
			./compare flip "$work/ko" "$work/description" "$count"
		try "a wrong relocation is found" ./compare move "$work/ko" "$work/description"
		try "an external field that leads elsewhere is found" \
			./compare elsewhere "$work/ko" "$work/description"
		try "and a patch that leads elsewhere" \
			./compare patched "$work/ko" "$work/description"
		try "and an external symbol in the module" \
			./compare inside "$work/ko" "$work/description"
		try "damaged descriptions are harmless" \
			./compare fuzz "$work/ko" "$work/description" "$damaged" "$RANDOM"
	done
done

# refused TEXT NAME: $work/bad is no module: one line, and status 2
refused() {
	local out status
	out=$("$dunectl" guard describe "$work/bad" 2>&1)
	status=$?
	[ $status = 2 ] && [ "$(wc -l <<<"$out")" = 1 ] && [[ $out == "dunectl: $work/bad: $1"* ]]
	ok $? "$2 is refused: $out"
}

# same NAME: $work/other.ko has the description of $work/ko
same() {
	cmp -s <("$dunectl" guard describe "$work/other.ko" 2>&1) \
		<("$dunectl" guard describe "$work/ko" 2>&1)
	ok $? "$1 has the same description"
}

# A small module for the rest.
plain "$(find "$build/machine" -name 'ne2k-pci.ko*' | sort | tail -1)"
ko=$work/ko
xz -c "$ko" >"$work/other.ko"
same "a module compressed by xz"
gzip -c "$ko" >"$work/other.ko"
same "a module compressed by gzip"
if command -v zstd >/dev/null; then
	zstd -qc "$ko" >"$work/other.ko"
	same "a module compressed by zstd"
else
	skip "zstd is not installed" "a module compressed by zstd has the same description"
fi
{
	cat "$ko"
	head -c 300 "$dunectl"
	printf '~Module signature appended~\n'
} >"$work/other.ko"
same "a signed module"

echo "no module" >"$work/bad"
refused "not a kernel module (it is no ELF file)" "a text"
cp "$dunectl" "$work/bad"
refused "not a kernel module (an ELF file, but a linked program)" "a program"
cp "$ko" "$work/bad"
printf '\x28\0' | dd of="$work/bad" bs=1 seek=18 conv=notrunc status=none
refused "an object file for another processor than x86-64" "a module for another processor"
cp "$ko" "$work/bad"
printf '\1' | dd of="$work/bad" bs=1 seek=4 conv=notrunc status=none
refused "an object file of 32 bits, not of 64" "a module of 32 bits"
objcopy --rename-section .modinfo=.modest "$ko" "$work/bad"
refused "not a kernel module (it has no .modinfo)" "an object file that is no module"
objcopy --rename-section .gnu.linkonce.this_module=.none "$ko" "$work/bad"
refused "not a linked module: it has no .gnu.linkonce.this_module" "a part of a module"
# Symbols of a section that does not exist: 24 bytes each, with its number at 6.
cp "$ko" "$work/bad"
symbols=0x$(readelf -SW "$ko" | sed -nE 's/.* \.symtab +SYMTAB +[0-9a-f]+ ([0-9a-f]+) .*/\1/p')
for ((i = 1; i < 20; i++)); do
	printf '\377\177' | dd of="$work/bad" bs=1 seek=$((symbols + 24 * i + 6)) conv=notrunc status=none
done
refused "a relocation to a section that does not exist" "a module with wrong symbols"
head -c 20000 "$ko" >"$work/bad"
refused "a damaged ELF file: " "a part of a file"
xz -c "$ko" | head -c 2000 >"$work/bad"
refused "xz cannot unpack it" "a part of a compressed file"
rm "$work/bad"
refused "No such file or directory" "a file that does not exist"

# Whatever is in the file: a description or one line, and no panic.
panicked=0
for ((i = 0; i < 200; i++)); do
	cp "$work/ko" "$work/bad"
	for ((k = 0; k < 3; k++)); do
		at=$((RANDOM * 32768 + RANDOM))
		size=$(stat -c %s "$ko")
		# Half of the changes are in the section headers, at the end.
		((at %= size, RANDOM % 2)) && at=$((size - 1 - at % 5000))
		printf "\\x$(printf %02x $((RANDOM % 256)))" |
			dd of="$work/bad" bs=1 seek=$at conv=notrunc status=none
	done
	"$dunectl" guard describe "$work/bad" >"$work/out" 2>&1
	case $? in
	0 | 2) ;;
	*)
		panicked=1
		grep -A1 panicked "$work/out" | sed 's/^/# /'
		;;
	esac
done
is $panicked 0 "damaged modules are described or refused"

# dune.ko has everything; the fuzzer is faster with a small module.
describe_again() {
	plain "$1"
	"$dunectl" guard describe "$1" >"$work/toml"
	./compare kernel "$work/ko" >"$work/kernel"
	"$dunectl" guard encode -k "$work/kernel" "$work/toml" -o "$work/description"
}
newest=${kernels##* }
describe_again "$(modules "$newest" | grep '/ne2k-pci\.ko')"
mv "$work/ko" "$work/small.ko"
mv "$work/description" "$work/small"
describe_again "$(modules "$newest" | grep '/dune\.ko')"
while read -r name command _; do
	run "mutants/$name" "$command" >"$work/out" 2>&1
	[ $? != 0 ]
	ok $? "$command fails with a comparison that $name"
done <mutants.list

finish

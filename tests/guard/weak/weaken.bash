#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# weaken.bash NAME SOURCES MODULE HEADERS OBJECTS RESULT: the module with a resident part that is
# weakened as the row NAME of `weakenings` has it. SOURCES is Kbuild's directory of the module.
set -e -o pipefail
name=$1 sources=$2 module=$3 headers=$4 objects=$5/$1 result=$6
here=$PWD
hv=$sources/guard/hv

die() {
	echo "weaken.bash: $name: $*" >&2
	exit 1
}

# The command that made a file, from Kbuild's record of it.
command_of() {
	sed -n '1s/^[a-z]*cmd_[^ ]* := *//p' "$(dirname "$1")/.$(basename "$1").cmd"
}

file=$(awk -v name="$name" '$1 == "mutant" && $2 == name { print $4 }' weakenings)
[ -n "$file" ] || die "no such row"
rm -rf "$objects"
mkdir -p "$objects"
OUT=$objects awk -v mutant="$name" -f ../model/mutate.awk weakenings "$here/../../../kernel/guard/hv/$file"

# A check that is gone may leave something unused. The headers of border/ are a part of cross.c,
# whose command then finds the changed one first.
compiled=$file first=
if [[ $file == *.h ]]; then
	compiled=cross.c first=" -iquote $objects/first"
	mkdir -p "$objects/first/guard/hv/$(dirname "$file")"
	mv "$objects/$(basename "$file")" "$objects/first/guard/hv/$file"
fi
object=${compiled%.c}.o
compile=$(command_of "$hv/$object")
compile=${compile//"$hv/$object"/"$objects/changed.o"}
[[ -n $first ]] || compile=${compile//"$hv/$file"/"$objects/$(basename "$file")"}
(cd "$headers" && eval "${compile/ -Wall /$first -w }")

link=$(command_of "$hv/hv.elf")
link=${link//"$hv/hv.elf"/"$objects/hv.elf"}
eval "${link/"$hv/$object"/"$objects/changed.o"}"
objcopy -O binary --set-section-flags .data=alloc,load,contents "$objects/hv.elf" "$objects/hv.bin"

# The image is data of the module, at a symbol in a section.
size=$(stat -c %s "$objects/hv.bin")
[ "$size" -le "$(stat -c %s "$hv/hv.bin")" ] || die "the resident part has more pages than the shipped one"
read -r section offset < <(readelf -sW "$module" | awk '$8 == "guard_image" { print $7, $2 }')
start=$(readelf -SW "$module" | sed 's/^ *\[ *//; s/\]//' |
	awk -v section="$section" '$1 == section { print $5 }')
[ -n "$start" ] || die "$module has no image"
cp "$module" "$objects/module.ko"
dd if="$objects/hv.bin" of="$objects/module.ko" bs=4096 conv=notrunc oflag=seek_bytes status=none \
	seek=$((0x$start + 0x$offset))
! cmp -s "$module" "$objects/module.ko" || die "the text changes nothing"
mv "$objects/module.ko" "$result"
rm -r "$objects"

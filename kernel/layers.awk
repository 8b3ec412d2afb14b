# SPDX-License-Identifier: GPL-2.0-only
# cd kernel && awk -f layers.awk FILES
# Fails if a file includes one of a higher layer. A folder is a layer: x86/ is below
# virt/, virt/ below dune/memory/ (with dune/trace/ and dune/compat.h), and this below
# dune/. The two vendors' folders are above dune/, which knows them by vcpu_ops.h alone,
# and do not know each other. Only second_level.h is for files outside of dune/memory/,
# and virt/internal.h is for virt/ alone. The headers of Linux that x86/ may include have
# no tasks, no memory to allocate and no messages.
# x86/linux/ uses the kernel's thunks: it is for code that runs in Linux, and the rest of
# x86/ does without it.
# The second module is guard/linux/, above guard/hv/. The latter is its resident part, which
# includes x86/ (without x86/linux/) and itself, and of Linux only constants and types. The two
# modules include nothing of each other.
# The third module, guard-keys.ko, is guard/keys/, and includes nothing of the others but
# guard/secret.h, by which it tells dune-guard.ko its parts. Its inside,
# guard/keys/inside/, also runs in programs: it includes itself, and of Linux what such a program
# has, too, or is given.
# guard/hv/border/ also runs in a program of the tests: it includes itself alone.

function layer(file)
{
	if (file ~ /^x86\//)
		return 1
	if (file ~ /^virt\//)
		return 2
	if (file ~ /^guard\/((hv|keys\/inside)\/|secret\.h$)/)
		return 2
	if (file ~ /^guard\/(linux|keys)\//)
		return 4
	# memory/ uses compat.h and trace/, which has only tracepoints, too.
	if (file ~ /^dune\/((trace|memory)\/|compat\.h$)/)
		return 3
	if (file ~ /^dune\/(svm|vmx)\//)
		return 5
	if (file ~ /^dune\//)
		return 4
	wrong("has no layer: " file)
}

function vendor(file)
{
	return match(file, /(svm|vmx)[\/.]/) ? substr(file, RSTART, 3) : ""
}

function wrong(why)
{
	print "kernel/" FILENAME ":" FNR ": " why > "/dev/stderr"
	failed = 1
}

/^#include "/ {
	included = $2
	gsub(/"/, "", included)
	seen++
	if (layer(included) > layer(FILENAME))
		wrong("includes upwards: " included)
	if (vendor(FILENAME) && vendor(included) && vendor(FILENAME) != vendor(included))
		wrong("includes the other vendor's " included)
	if (included ~ /^dune\/memory\// && included != "dune/memory/second_level.h" && \
	    FILENAME !~ /^dune\/memory\//)
		wrong("includes past second_level.h: " included)
	if (FILENAME ~ /^guard\/hv\// && included !~ /^(x86|guard\/hv)\//)
		wrong("the resident part includes only x86/ and itself, not " included)
	if (FILENAME ~ /^guard\/hv\/border\// && included !~ /^guard\/hv\/border\//)
		wrong("guard/hv/border/ cannot have " included)
	if (FILENAME ~ /^guard\/keys\// && included !~ /^guard\/(keys\/|secret\.h$)/ || \
	    FILENAME ~ /^guard\/(hv|linux)\// && included ~ /^guard\/keys\// || \
	    FILENAME ~ /^guard\// && included ~ /^(dune|virt)\// || \
	    FILENAME ~ /^(dune|virt)\// && included ~ /^guard\//)
		wrong("includes the other module\047s " included)
	if (FILENAME ~ /^guard\/hv\// && included ~ /^x86\/linux\//)
		wrong("the resident part cannot have the kernel\047s thunks")
	if (included == "virt/internal.h" && FILENAME !~ /^virt\//)
		wrong("includes the private header of virt/")
	if (FILENAME ~ /^x86\// && FILENAME !~ /^x86\/linux\// && included ~ /^x86\/linux\//)
		wrong("x86/ cannot have the kernel's thunks")
}

/^#include </ && FILENAME ~ /^guard\/hv\// && \
		$2 !~ /^<linux\/(bits|build_bug|linkage|types)\.h>$/ && \
		$2 !~ /^<asm\/(msr-index|trapnr)\.h>$/ && \
		$2 !~ /^<uapi\/asm(-generic\/errno|\/(debugreg|processor-flags))\.h>$/ {
	wrong("the resident part cannot have " $2)
}

/^#include <(asm|linux)\// && layer(FILENAME) == 1 && \
		$2 !~ /^<linux\/(bitops|bits|linkage|objtool|types)\.h>$/ && \
		$2 !~ /^<asm\/(alternative|cpufeatures|msr-index|nospec-branch|page_types|segment|svm|vmx)\.h>$/ {
	wrong("x86/ cannot have " $2)
}

/^#include </ && FILENAME ~ /^guard\/keys\/inside\// && \
		$2 !~ /^<(linux\/(linkage|objtool)|asm-generic\/errno(-base)?)\.h>$/ {
	wrong("guard/keys/inside/ cannot have " $2)
}

/^#include </ && FILENAME ~ /^guard\/hv\/border\// {
	wrong("guard/hv/border/ cannot have " $2)
}

END {
	if (!seen)
		wrong("no include was found")
	exit failed
}

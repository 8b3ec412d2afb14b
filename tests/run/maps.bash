#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A program looks at its own address space in the sandbox: /proc/self/maps has the mappings
# that it has natively, in the same order, and the stub's (run/base/super_range.h). Fails when
# anything else of the runtime is mapped.

. "$(dirname "$0")/lib/sandbox.bash"

# mappings FILE: size, rights, offset and name of each, without the supervisor range
mappings() {
	perl -ne '
		my ($start, $end, $rights, $offset, $name) =
			/^(\w+)-(\w+) (\S+) (\S+) \S+ \S+\s*(.*)/ or die;
		if ($name =~ /dune-stub/) { $stub = $end; next }
		if (defined $stub && $start eq $stub) { $stub = ""; next }
		my $size = $name eq "[stack]" ? "any" : hex($end) - hex($start);
		my $line = "$size $rights $offset $name\n";
		# its place among the others is a known difference (docs/sandbox.md)
		if ($name =~ /^\[(vdso|vvar)/) { $vdso .= $line; next }
		print $line;
		END { print $vdso }' "$1"
}

for program in maps maps-static maps-static-pie; do
	one native "$bin/$program"
	one dune "$DUNE_RUN" -- "$bin/$program"
	is "$(mappings "$top/dune.out")" "$(mappings "$top/native.out")" \
		"$program: the mappings are those that it has natively"
	is "$(grep -vF "$bin/" "$top/dune.out" | grep -c dune)" 1 \
		"$program: of the sandbox the stub alone has a name"
done
one native setarch -R "$bin/maps-static"
one dune /usr/bin/setarch -R "$DUNE_RUN" -- "$bin/maps-static"
is "$(grep -m 2 maps-static "$top/dune.out")" "$(grep -m 2 maps-static "$top/native.out")" \
	"without random addresses a static program is where it is natively"
finish

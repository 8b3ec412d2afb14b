#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# How programs start: arguments, auxiliary vector, kinds of images, scripts,
# what cannot be started, and what /proc shows of it. Fails when a program is
# started, or refused, in another way than natively.

. "$(dirname "$0")/lib/sandbox.bash"
export B=$bin D=$data

same_failure "a static program's start" "$bin/static" one "two words" ""
same_failure "a position-independent program's start" "$bin/dynamic" one two
same_failure "a static position-independent program's start" "$bin/static-pie"
same_failure "no arguments but a name" bash -c 'exec -a "" "$B/static"'
same_failure "a name of its own" bash -c 'exec -a "some name" "$B/static" x'
same_failure "an empty environment" env -i "$bin/static"
# Newer kernels move the heap of such a program away from its image.
same_failure "a static position-independent program's heap without random addresses" bash -c '
	setarch -R "$B/static-pie" | grep -v "^heap after"'
same_failure "the loader by hand" /lib64/ld-linux-x86-64.so.2 "$bin/dynamic" x
is "$(limited "$bin/first_stack" "$DUNE_RUN" -- "$bin/args" one)" \
	"$(printf '[%s]\n' "$bin/args" one)" \
	"the number of arguments on the first stack, overwritten when it was counted"
same_failure "an executable stack" "$bin/execstack"
same "unusual images, and loaders that are no ELF files" "$bin/images"
(cd "$data" && limited "$DUNE_RUN" -- "$bin/images" aligned >/dev/null)
ok $? "an image that is aligned to 2 MB is at a multiple of that"
same "many arguments" bash -c 'printf "%s\n" {1..3000} | xargs "$B/args"'
same "a long argument" bash -c '"$B/args" "$(head -c 100000 /dev/zero | tr "\0" x)" | cksum'
same "a large environment" bash -c '
	for i in {1..2500}; do export "V$i=value $i"; done; env | sort | cksum; "$B/args" x'
same_failure "more arguments than there is room for" bash -c '
	ulimit -s 512; x=$(head -c 100000 /dev/zero | tr "\0" x)
	"$B/args" "$x" "$x" "$x" 2>&1 | sed "s/.*: //"; echo ${PIPESTATUS[0]}'

# scripts
cat >"$data/script" <<-X
	#!/bin/sh -e
	echo "\$0 \$*"; tr '\\0' ' ' </proc/\$\$/cmdline; cat /proc/\$\$/comm
X
printf '#!%s   an argument  with blanks  \nx\n' "$bin/args" >"$data/arguments"
printf '#!%s/script\nx\n' "$data" >"$data/twice"
printf '#!%s deep1\n' "$bin/args" >"$data/deep1"
for depth in 2 3 4 5 6; do
	printf '#!%s/deep%s of%s\n' "$data" $((depth - 1)) $depth >"$data/deep$depth"
done
printf '#!%s/loop\n' "$data" >"$data/loop"
printf '#!/nonexistent/interpreter\n' >"$data/missing"
printf '#! \n' >"$data/empty"
printf '#!/bin/sh' >"$data/noline"
printf '#!' >"$data/noname"
printf '#!%s a  ' "$bin/args" >"$data/blanks"
printf '#!%s ' "$bin/args" >"$data/blank"
printf '#!%253s' '' >"$data/blanks255"
printf '\177ELFgarbage' >"$data/garbage"
printf 'no format at all\n' >"$data/plain"
head -c 600 "$bin/dynamic" >"$data/cut"
printf '#!/proc/self/exe\necho "$0 $*"\n' >"$data/own"
chmod +x "$data"/*
chmod -x "$data/plain"
same "a script" "$data/script" a b
same "a script's one argument" "$data/arguments" a b
same "blanks at the end of a file without a newline" bash -c '"$D/blanks" b; "$D/blank" b'
same "a script for a script" "$data/twice" a
same "a script for the program that executes it" bash -c 'exec "$D/own" a b'
name=$bin/args
while ((${#name} < 250)); do name=/$name; done
printf '#!%s a ' "$name" >"$data/blank255"
chmod +x "$data/blank255"
same "a blank that is the last of 255 bytes without a newline" "$data/blank255" b
# The kernel reads 256 bytes of a script: "#!", a name, and the newline or the end of the file.
for length in 252 253 254; do
	name=$bin/args
	while ((${#name} < length)); do name=/$name; done
	printf '#!%s\n' "$name" >"$data/name$length"
	printf '#!%s' "$name" >"$data/end$length"
	printf '#!%s  cut off\n' "$name" >"$data/argument$length"
	chmod +x "$data"/*$length
	for f in name end argument; do
		same_failure "an interpreter whose name has $length characters: $f" perl -e '
			exec {"$ENV{D}/'$f$length'"} "x", "y"; print $!+0, "\n"'
	done
done
same "a chain of as many scripts as the kernel follows" bash -c '"$D/deep5" a b'
for f in loop deep6 missing empty noline noname blanks255 garbage plain cut; do
	same_failure "what cannot start: $f" bash -c '
		"$D/'$f'" 2>&1 | sed "s/line [0-9]*: //"; echo ${PIPESTATUS[0]}'
	same_failure "errno of execve: $f" perl -e 'exec {"$ENV{D}/'$f'"} "x"; print $!+0, " $!\n"'
done
same_failure "errno of execve: a directory, nothing, an empty name, a long one" perl -e '
	for my $f ($ENV{D}, "$ENV{D}/nothing", "", "x" x 5000, "$ENV{D}/plain/x") {
		exec {$f} "x"; print $!+0, "\n" }'

# the file that execveat means
same_failure "fexecve" "$bin/fexecve" "$bin/args" a b
same_failure "fexecve of a script" "$bin/fexecve" "$data/script" a b
for f in empty noname; do
	same_failure "fexecve of a script without an interpreter: $f" "$bin/fexecve" "$data/$f"
done
mkfifo "$data/fifo" && chmod +x "$data/fifo"
LIMIT=20 same_failure "fexecve of a FIFO" "$bin/fexecve" "$data/fifo"
same_failure "a writer that waits for a reader of a FIFO still waits after execve" perl -e '
	my $fifo = "$ENV{D}/fifo";
	my $writer = fork;
	if (!$writer) { open my $f, ">", $fifo; syswrite STDOUT, "woken\n"; exit }
	sleep 1;
	exec {$fifo} "x"; syswrite STDOUT, $!+0 . "\n";
	sleep 1;
	kill 9, $writer; waitpid $writer, 0'
same_failure "execveat of the working directory" perl -e '
	my ($execveat, $at_fdcwd, $empty, $at_empty_path) = (322, -100, "", 0x1000);
	syscall $execveat, $at_fdcwd, $empty, 0, 0, $at_empty_path; print $!+0, "\n"'

# what /proc shows
same "/proc/self: cmdline, comm, exe, environ" bash -c '
	tr "\0" "\n" </proc/$$/cmdline; cat /proc/$$/comm; readlink /proc/self/exe
	A=1 cat /proc/self/environ | tr "\0" "\n" | grep ^A='
same "/proc/self/stat's heap and arguments lie where they should" "$bin/areas"
same "a program that was moved" bash -c 'cp "$B/args" a; ./a 1; mv a b; ./b 2'

# Random addresses for everything but the heap.
setting /proc/sys/kernel/randomize_va_space 1
first=$(limited "$DUNE_RUN" -- /bin/cat /proc/self/maps | head -1)
second=$(limited "$DUNE_RUN" -- /bin/cat /proc/self/maps | head -1)
equal "$bin/areas" heap
follows=$?
put_back
ok $follows "the heap follows the program with randomize_va_space=1"
[ "$first" != "$second" ]
ok $? "a program lies at a random address with randomize_va_space=1"

# the first program
one dune "$DUNE_RUN" -- "$data/script" a
is "$(head -1 "$top/dune.out")" "$data/script a" "a script as the first program"

finish

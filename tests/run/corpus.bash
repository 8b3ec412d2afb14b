#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Real programs, natively and in the sandbox. Fails when one of them has another
# output, other messages or another exit status in the sandbox. All but a few
# are found on any Debian.

. "$(dirname "$0")/lib/sandbox.bash"
export D=$data

# something to work on
mkdir -p "$D/tree/a/b/c" "$D/tree/d"
for i in 1 2 3 4 5 6 7 8; do
	seq 1 $((i * 200)) >"$D/tree/a/n$i"
	printf 'line %s of the file\n' {1..40} >"$D/tree/a/b/t$i.txt"
done
head -c 300000 /dev/urandom >"$D/random"
seq 1 20000 >"$D/numbers"
printf '%s\n' pear apple fig Apple zebra fig 10 9 >"$D/words"
ln -s a/n1 "$D/tree/link"
ln -s nowhere "$D/tree/broken"
touch -d '2001-02-03 04:05:06' "$D/tree/d/old"
chmod 640 "$D/tree/a/n2"

# coreutils, one call each
same "echo" echo one two
same "ls -lR" ls -lR "$D/tree"
same "ls --full-time" ls -la --full-time "$D/tree/d"
same "cat" cat "$D/numbers" "$D/words"
same "sha256sum" sha256sum "$D/random"
same "md5sum" md5sum "$D/random" "$D/words"
same "sort" sort "$D/words"
same "sort -n, a pipe to itself" sort -n -r "$D/numbers"
same "wc" wc "$D/numbers" "$D/words"
same "stat" stat -c '%n %s %a %F %y' "$D/tree/d/old" "$D/tree/link"
same "readlink -f" readlink -f "$D/tree/link"
same "du" du -s --apparent-size "$D/tree"
same "date" date -d '2020-02-29 12:00' +%s
same "od" od -A x -t x1z -N 512 "$D/random"
same "base64" base64 "$D/random"
same "factor" factor 600851475143 1000000007
same "expr" expr 6 '*' 7
same "env" env -i A=1 B=2 env
same "id" id
same "uname" uname -srm
same "pwd" pwd
same "nproc" nproc
same "timeout kills" bash -c 'timeout 0.3 sleep 20; echo $?'
same "sleep" sleep 0.1
same "seq to head (SIGPIPE)" bash -c 'seq 1 1000000 | head -3; echo ${PIPESTATUS[*]}'
same "shuf with a source" shuf --random-source="$D/random" "$D/words"
same "dd" bash -c 'dd if="$D/random" of=copy bs=4096 skip=3 count=20 status=none; cksum copy'
same "cp, mv, rm, mkdir, ln, chmod" bash -c '
	cp -a "$D/tree" t; mv t/a/n1 t/moved; rm -r t/a/b; ln t/moved t/hard; chmod 600 t/hard
	mkdir -p x/y/z; rmdir x/y/z; find t x | sort; stat -c "%h %a" t/moved'
same "split, paste, join, comm, cut, tr" bash -c '
	split -l 5000 "$D/numbers" part.; ls; paste part.aa part.ab | tail -2
	sort "$D/words" >s; comm -12 s s; join s s | wc -l; cut -c 1-2 s; tr a-z A-Z <s'
same "tee, xargs, nl, fold, expand" bash -c '
	seq 1 300 | tee copy | xargs -n 50 echo | nl | fold -w 40 | tail -3; cmp copy <(seq 1 300)'
same "mktemp, truncate, fallocate" bash -c '
	f=$(mktemp -p .); truncate -s 1M "$f"; stat -c %s "$f"; fallocate -l 8192 g; stat -c %s g'
same "mkfifo between two processes" bash -c 'mkfifo p; (seq 1 5 >p) & cat p; wait; echo $?'

# errors come out as errors
same_failure "cat of what is not there" cat /nonexistent "$D/words"
same_failure "false" false
same_failure "a directory is no file" cat "$D/tree"
same_failure "rm of what is not there" rm nothing
same_failure "exit status of a shell" bash -c 'exit 42'
same_failure "command not found" bash -c 'nonexistent-command; echo $?'

# findutils, diffutils, grep, sed, awk
same "find -exec" find "$D/tree" -name '*.txt' -exec grep -c line {} +
same "find -newer, -size, -perm" \
	find "$D/tree" '(' -newer "$D/tree/d/old" -size -2k -o -perm 640 ')' -print
same "grep -r" grep -rn 'line 3[0-9] of' "$D/tree"
same "grep -P -o" grep -aoP '9{3}\d' "$D/numbers"
same_failure "diff" diff -u "$D/words" "$D/tree/a/n1"
same_failure "cmp" cmp "$D/random" "$D/numbers"
same "sed" sed -n -e '10,20s/1/one/gp' -e '$=' "$D/numbers"
same "sed -i" bash -c 'cp "$D/words" w; sed -i s/fig/FIG/ w; cat w'
same "awk" awk '
	{ s += $1; n[$1 % 7]++ }
	END { print s; for (i = 0; i < 7; i++) print i, n[i] }' "$D/numbers"
same "awk with a pipe" awk '
	BEGIN {
		while (("echo a b c; date -d @0 +%Y" | getline x) > 0) print x
		system("echo sub")
	}'

# archives and compression
same "tar and gzip" bash -c '
	tar -C "$D" -cf - tree numbers | gzip -n | tee a.tgz | wc -c; tar -tzf a.tgz
	mkdir x; tar -C x -xzf a.tgz; diff -r "$D/tree/a" x/tree/a'
same "xz" bash -c 'xz -k -T1 -c "$D/numbers" >n.xz; xz -dc n.xz | cmp - "$D/numbers"; wc -c <n.xz'
same "bzip2" bash -c 'bzip2 -c "$D/numbers" | bzip2 -dc | cksum'
same "cpio" bash -c '
	cd "$D" && find tree -type f | sort | cpio -o --quiet -H newc --reproducible | wc -c'

# languages
same "perl" perl -e '
	my %h; $h{$_ % 13} += $_ for 1..20000; print "$_ $h{$_}\n" for sort { $a <=> $b } keys %h;
	printf "%.6f %s\n", atan2(1, 1) * 4, `echo sub`;'
same "perl sorts a file" perl -ne 'push @l, $_; END { print sort { $b <=> $a } @l }' "$D/numbers"
same "perl forks" perl -e '
	$| = 1;
	for my $i (1..4) {
		if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\n" } else { exit $i } }
	pipe R, W; if (!fork) { close R; print W "through\n"; exit } close W; print <R>; wait'
same "bc" bash -c 'echo "scale=60; 4*a(1); 2^200" | bc -l'
same "python3: JSON and a subprocess" /usr/bin/python3 -c '
import json, subprocess, hashlib, os, sys
d = json.loads(json.dumps({"a": [1, 2.5, None], "b": {"c": "\u00e9"}}))
numbers = open(os.environ["D"] + "/numbers", "rb").read()
print(json.dumps(d, indent=1, sort_keys=True), hashlib.sha256(numbers).hexdigest())
print(subprocess.run(["sort", "-r"], input=b"a\nb\nc\n", capture_output=True))
print(subprocess.check_output("echo $((6*7))", shell=True), sys.argv)
print(os.path.basename(os.readlink("/proc/self/exe")))'
same "python3: fork, pipe, wait, signals" /usr/bin/python3 -c '
import os, signal, time, select
r, w = os.pipe()
p = os.fork()
if not p:
    os.write(w, b"child"); os._exit(7)
print(os.waitpid(p, 0)[1] >> 8, os.read(r, 10))
hits = []
signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
while len(hits) < 5: signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(hits) >= 5, select.select([r], [], [], 0.01))'
same "python3: sockets, mmap, files" /usr/bin/python3 -c '
import socket, mmap, os, tempfile, array
a, b = socket.socketpair()
a.sendmsg([b"one", b"two"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1]))])
m, anc, fl, ad = b.recvmsg(100, 1000); print(m, len(anc), fl)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1)
c = socket.create_connection(s.getsockname())
d, _ = s.accept(); c.sendall(b"x" * 100000); c.close()
n = 0
while True:
    x = d.recv(65536)
    if not x: break
    n += len(x)
print(n)
m = mmap.mmap(-1, 1 << 20); m[4096:4100] = b"abcd"; print(m[4095:4101])
m.resize(1 << 21); print(len(m)); m.close()
with tempfile.TemporaryFile() as f:
    os.writev(f.fileno(), [b"ab", b"", b"cd"])
    print(os.preadv(f.fileno(), [bytearray(3), bytearray(3)], 0))'
same "sqlite3" sqlite3 db.sqlite "
	PRAGMA journal_mode=WAL; CREATE TABLE t(i INTEGER PRIMARY KEY, s TEXT);
	WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 10000)
		INSERT INTO t SELECT x, 'text ' || x FROM c;
	CREATE INDEX j ON t(s); SELECT count(*), sum(i), max(s) FROM t;
	SELECT * FROM t WHERE s LIKE 'text 99%' LIMIT 5; PRAGMA integrity_check;"
same "busybox, static" busybox sh -c '
	busybox echo hi; busybox seq 1 5 | busybox sort -r; busybox ls -l "$D/tree" | busybox wc -l'
same "make and gcc" bash -c '
	printf "#include <stdio.h>\n" >p.c
	printf "int main(void) { printf(\"built %%d\\\\n\", 6 * 7); return 5; }\n" >>p.c
	printf "p: p.c\n\tgcc -O1 -o p p.c\n" >Makefile; make -s && ./p; echo $?'

# git on a repository of its own
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
same "git: init, commit, branch, merge, log, diff" bash -c '
	git -c init.defaultBranch=main init -q r && cd r && git config core.preloadindex false
	cp -r "$D/tree/a" . && git add . && git commit -qm first && git checkout -q -b other
	echo more >>a/n1 && git commit -qam second && git checkout -q main &&
	echo x >y && git add y && git commit -qm third
	git merge -q --no-edit other && git log --oneline --stat && git diff HEAD~1 &&
	git status --short && git rev-parse HEAD'
same "git: gc, fsck, clone, grep, blame" bash -c '
	git -c init.defaultBranch=main init -q r && cd r && git config pack.threads 1 &&
	git config core.preloadindex false && git config grep.threads 1 &&
	git config checkout.workers 1 && git config gc.auto 0 && git config index.threads 1
	for i in 1 2 3 4; do cp "$D/tree/a/n$i" f; git add f; git commit -qm "c $i"; done
	git gc -q; git fsck --no-progress; git grep -c 19 ; git blame -s f | tail -2; cd ..
	git -c index.threads=1 clone -q r s; git -C s log --format=%H'

# the shell itself
same_sh "pipeline" 'tar -C "$D" -cf - tree | gzip -n | gzip -d | tar -tf - | wc -l'
same_sh "here-documents, subshells, arithmetic, arrays" '
	cat <<-X
		here $((1 + 2))
	X
	a=(x y z); echo "${a[@]:1}" "${#a[@]}"; (cd / && pwd); pwd; b=$(echo sub); echo "$b"
	[[ abc =~ b(.) ]] && echo "${BASH_REMATCH[1]}"
	while read -r l; do echo "<$l>"; done < <(head -2 "$D/words")
	printf "%s\n" {a..c}{1..2} | sort -r; ulimit -n; umask'
same_sh "background jobs, wait, trap" '
	trap "echo exit trap" EXIT; trap "echo usr1" USR1
	(exit 3) & p=$!; wait $p; echo "status $?"; kill -USR1 $$; echo after
	bash -c "kill -TERM \$\$"; echo "killed $?"'
same_sh "redirections" '
	exec 5>out; echo five >&5; exec 5>&-; cat out; ls nothing 2>&1 >/dev/null | wc -l
	{ echo a; echo b >&2; } 2>&1 | sort'
same_sh "dash" 'dash -c "for i in 1 2 3; do echo \$i; done; set -e; false; echo not here"; echo $?'
same_sh "a deep tree of processes" '
	f() { if [ $1 -gt 0 ]; then (f $(($1 - 1))); else echo bottom; fi; }; f 12'

finish

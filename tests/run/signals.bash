#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Signals in the sandbox, from inside and from outside; deaths; terminals. Fails
# when a program or its parent sees something else than natively.

. "$(dirname "$0")/lib.bash"
export B=$bin

same "signals, timers, waiting: a program's own view" "$bin/signals"

# deaths: the status that a parent sees
for how in fault overflow abort 9 15 11 6 31; do
	same_failure "death: $how" perl -e '
		system "$ENV{B}/signals", "'$how'"; print $? & 127, " ", $? >> 8, "\n"'
done

# start HOW: a program in the sandbox that already spins or sleeps; $pid is dune-run
start() {
	rm -f "$data/ready"
	"$DUNE_RUN" -- "$bin/signals" "$1" "$data/ready" &
	pid=$!
	for _ in $(seq $((600 * TEST_TIME_FACTOR))); do
		[ ! -e "$data/ready" ] || break
		sleep 0.1
	done
	sleep 0.1
}

# from outside, to the process that was dune-run
outside() {
	local signal=$1 want=$2 how=$3 pid
	start "$how"
	kill -"$signal" $pid
	wait $pid
	is $? "$want" "SIG$signal to a program that does: $how"
}
ulimit -c 0
for how in spin sleep; do
	outside TERM 143 $how 2>/dev/null
	outside KILL 137 $how 2>/dev/null
	outside SEGV 139 $how 2>/dev/null
	outside USR1 138 $how 2>/dev/null
done

# stop and continue
state() {
	local now
	for _ in $(seq 200); do
		now=$(awk '{ print $3 }' /proc/$pid/stat)
		[ "$now" != "$1" ] || break
		sleep 0.1
	done
	is "$now" "$1" "$2"
}
start spin
kill -STOP $pid
state T "SIGSTOP stops a program that spins"
kill -CONT $pid
state R "SIGCONT continues a program that was stopped"
kill -TERM $pid
wait $pid 2>/dev/null

# a terminal: Ctrl-C, the size, job control of an interactive shell
cat >"$data/terminal.py" <<'X'
import os, pty, sys, time, select, signal, fcntl, termios, struct
def foreground(fd):
    """The name of the program that the terminal's keys are for."""
    try:
        with open("/proc/%d/comm" % os.tcgetpgrp(fd)) as f:
            return f.read().strip()
    except OSError:
        return ""
def talk(argv, steps):
    """Run argv on a terminal; for each step wait for a text, then type."""
    pid, fd = pty.fork()
    if not pid:
        os.execv(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 37, 111, 0, 0))
    out = b""
    for wait, send in steps + [(None, b"")]:
        end = time.time() + 200
        while (wait is None or wait not in out) and time.time() < end:
            if select.select([fd], [], [], 0.2)[0]:
                try:
                    more = os.read(fd, 65536)
                except OSError:
                    more = b""
                if not more:
                    break
                out += more
        if wait is None:
            break
        if wait not in out:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "no %r in %r" % (wait, out)
        out = b""
        if send < b" ":         # a control character: for the program that runs now
            end = time.time() + 60
            while "-i" in argv and foreground(fd) != "sleep" and time.time() < end:
                time.sleep(0.1)
            time.sleep(0.5)
        os.write(fd, send)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
run = sys.argv[1:]
os.environ["PS1"] = "PROMPT "
bash = run + ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]
print("shell", talk(bash, [(b"PROMPT ", b"stty size\n"), (b"37 111", b"sleep 100\n"),
    (b"sleep 100", b"\x03"), (b"PROMPT ", b"sleep 50\n"), (b"sleep 50", b"\x1a"),
    (b"Stopped", b"fg\n"), (b"sleep 50", b"\x03"), (b"PROMPT ", b"tty && exit 7\n")]))
sh = run + ["/bin/sh", "-c"]
print("Ctrl-C", talk(sh + ["echo ready; sleep 100"], [(b"ready", b"\x03")]))
print("Ctrl-backslash", talk(sh + ["ulimit -c 0; echo ready; exec sleep 100"],
    [(b"ready", b"\x1c")]))
print("end of file", talk(run + ["/bin/cat"], [(b"", b"line\n"), (b"line", b"\x04")]))
X
is "$(/usr/bin/python3 "$data/terminal.py" "$DUNE_RUN" --)" \
	"$(/usr/bin/python3 "$data/terminal.py")" \
	"a terminal: shell with job control, Ctrl-C, Ctrl-\\, end of file"

finish

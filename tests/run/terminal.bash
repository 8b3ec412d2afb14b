#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Programs on a terminal, natively and in the sandbox: Ctrl-C and Ctrl-\, end of file, the
# terminal's size, job control of an interactive shell. Fails when a program ends in another way
# than natively, or waits for a text that does not come.

. "$(dirname "$0")/lib/sandbox.bash"

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
wanted="shell 7
Ctrl-C -2
Ctrl-backslash -3
end of file 0"
is "$(/usr/bin/python3 "$data/terminal.py")" "$wanted" \
	"natively: shell with job control, Ctrl-C, Ctrl-\\, end of file"
is "$(/usr/bin/python3 "$data/terminal.py" "$DUNE_RUN" --)" "$wanted" \
	"in the sandbox: shell with job control, Ctrl-C, Ctrl-\\, end of file"

finish

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status, arguments, streams, files and terminal of a program.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use anyhow::Result;
use dune_machine::{Config, InputFrom, Kernel, Machine, Outcome, Run, Series, Status, SVM};

use super::{expect, expect_in, machine_run, output_of, Check};
use crate::context::Context;
use crate::test::tally::Tally;

/// Checks what a program in a machine finds.
pub fn run(context: &Context, tally: &mut Tally) -> Result<()> {
    let kernel = Kernel::find(&context.layout, Series::V6_1)?;
    let mut machine = Machine::boot(&context.layout, &Config::new(&SVM, kernel))?;
    let mut check = |name: &str, check: fn(&mut Machine) -> Check| {
        let result = check(&mut machine);
        tally.check(&format!("harness: {name}"), result);
    };
    check("exit status", exit_status);
    check("death by a signal", death_by_signal);
    check("a program that is not there, or not one", not_started);
    check("arguments and environment of any bytes", bytes_in_arguments);
    check("standard output and error apart", separate_streams);
    check("20 MB through a pipe, exactly", big_pipe);
    check("a background process does not hold up the end", background);
    check("a process that ignores signals does not survive", ignores_signals);
    check("the host's files are visible", host_files);
    if let Err(e) = machine.power_off() {
        tally.failed(format!("harness: switching off: {e}"));
    }
    tally.check("harness: the terminal", terminal(context));
    tally.check("harness: --write, and nothing else", writes_reach_host(context));
    tally.check("harness: 6.12, two CPUs", other_kernel(context));
    tally.check("harness: counting mode repeats", counting(context));
    Ok(())
}

fn shell(machine: &mut Machine, script: &str) -> Result<Outcome, String> {
    machine.run(&mut Run::new(["sh", "-c", script])).map_err(|e| e.to_string())
}

fn exit_status(machine: &mut Machine) -> Check {
    expect("true", shell(machine, "exit 0")?.status, Status::Exited(0))?;
    expect("exit 77", shell(machine, "exit 77")?.status, Status::Exited(77))
}

fn death_by_signal(machine: &mut Machine) -> Check {
    let killed = |signal| Status::Signaled { signal, core: false };
    expect("SIGTERM", shell(machine, "kill -TERM $$")?.status, killed(15))?;
    expect("a real-time signal", shell(machine, "kill -40 $$")?.status, killed(40))
}

fn not_started(machine: &mut Machine) -> Check {
    for (program, code) in [("no-such-program", 127), ("/etc/passwd", 126), ("/", 126)] {
        let outcome = machine.run(&mut Run::new([program])).map_err(|e| e.to_string())?;
        expect(program, outcome.status.code(), code)?;
    }
    Ok(())
}

fn bytes_in_arguments(machine: &mut Machine) -> Check {
    let odd = OsString::from_vec(vec![b'a', 0xff, b'\n', b' ', b'\'', 0x01]);
    let script = r#"printf '%s|' "$0" "$VARIABLE" "$#""#;
    let mut run =
        Run::new([OsString::from("sh"), "-c".into(), script.into(), odd.clone(), "".into()]);
    run.program.env.push(("VARIABLE".into(), odd.clone()));
    let outcome = machine.run(&mut run).map_err(|e| e.to_string())?;
    let odd = odd.into_vec();
    expect("output", outcome.stdout, [&odd[..], b"|", &odd[..], b"|1|"].concat())
}

fn separate_streams(machine: &mut Machine) -> Check {
    let outcome = shell(machine, "echo out; echo err >&2; pwd")?;
    expect("standard output", outcome.stdout, b"out\n/\n".to_vec())?;
    expect("standard error", outcome.stderr, b"err\n".to_vec())
}

fn big_pipe(machine: &mut Machine) -> Check {
    // A linear congruential sequence: no two blocks alike.
    let mut state = 1u32;
    let bytes: Vec<u8> = (0..20 << 20)
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 24) as u8
        })
        .collect();
    let mut run = Run::new(["cat"]);
    run.stdin = InputFrom::Bytes(bytes.clone());
    let outcome = machine.run(&mut run).map_err(|e| e.to_string())?;
    expect("length", outcome.stdout.len(), bytes.len())?;
    expect("same bytes", outcome.stdout == bytes, true)
}

fn background(machine: &mut Machine) -> Check {
    let outcome = shell(machine, "sleep 1000 & echo done")?;
    expect("output", outcome.stdout, b"done\n".to_vec())?;
    expect("quick", outcome.duration.as_secs() < 30, true)
}

fn ignores_signals(machine: &mut Machine) -> Check {
    let script = "(trap '' TERM INT HUP; while :; do sleep 1; done) & exit 3";
    expect("status", shell(machine, script)?.status, Status::Exited(3))?;
    let left = shell(machine, "ps -e -o comm= | grep -c '^sleep$'")?;
    expect("sleeps left", left.stdout, b"0\n".to_vec())
}

fn host_files(machine: &mut Machine) -> Check {
    let seen = shell(machine, "cat /etc/os-release; stat -c '%Y %u %a' /etc/os-release")?;
    let here = Command::new("sh")
        .args(["-c", "cat /etc/os-release; stat -c '%Y %u %a' /etc/os-release"])
        .output()
        .map_err(|e| e.to_string())?;
    expect("/etc/os-release", seen.stdout, here.stdout)?;
    expect("writing", shell(machine, "echo x >/etc/dune-harness-test")?.status, Status::Exited(0))?;
    expect("on the host", fs::exists("/etc/dune-harness-test").unwrap_or(true), false)?;
    expect(
        "process substitution",
        shell(machine, "bash -c 'cat <(echo x)'")?.stdout,
        b"x\n".to_vec(),
    )
}

/// script(1) makes a terminal, and Ctrl-C is typed once the program waits.
fn terminal(context: &Context) -> Check {
    let inner = "stty size; tty; trap 'echo INTERRUPTED; exit 9' INT; echo WAITING; \
                 while :; do sleep 0.2; done";
    let dunectl = context.dunectl();
    let line = format!(
        "stty rows 33 cols 77; {} machine run --no-module --timeout 60 -- bash -c {}",
        quote(&dunectl.to_string_lossy()),
        quote(inner)
    );
    let feed = format!(
        "(for i in $(seq 3000); do grep -q WAITING \"$T\" && break; sleep 0.1; done; sleep 0.5; \
         printf '\\003'; for i in $(seq 600); do grep -q INTERRUPTED \"$T\" && break; \
         sleep 0.1; done) | script -qefc {} \"$T\" >/dev/null; echo status $?",
        quote(&line)
    );
    let transcript = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let output = Command::new("bash")
        .args(["-c", &feed])
        .env("T", transcript.path())
        .output()
        .map_err(|e| e.to_string())?;
    let text = fs::read(transcript.path()).map_err(|e| e.to_string())?;
    expect_in("the terminal", &text, "33 77")?;
    expect_in("the terminal", &text, "/dev/pts/0")?;
    expect_in("the terminal", &text, "INTERRUPTED")?;
    expect_in("script", &output.stdout, "status 9")
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn writes_reach_host(context: &Context) -> Check {
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let shared = directory.path().join("with, comma");
    fs::create_dir(&shared).map_err(|e| e.to_string())?;
    let path = shared.to_str().ok_or("a name that is not UTF-8")?;
    let script = format!(
        "cd '{path}' && dd if=/dev/zero of=zeros bs=1M count=8 2>/dev/null && \
         ln -s zeros link && echo x >../outside && cat ../outside"
    );
    let output = output_of(machine_run(context, &["--write", path], &script), b"")?;
    expect("output", String::from_utf8_lossy(&output.stdout).as_ref(), "x\n")?;
    let length = fs::metadata(shared.join("zeros")).map(|data| data.len()).unwrap_or(0);
    expect("bytes written", length, 8 << 20)?;
    let link = fs::read_link(shared.join("link")).map_err(|e| e.to_string())?;
    expect("the link", link.to_str(), Some("zeros"))?;
    expect("outside", directory.path().join("outside").exists(), false)
}

fn other_kernel(context: &Context) -> Check {
    let command = machine_run(context, &["--kernel", "6.12", "--cpus", "2"], "uname -r; nproc");
    let output = output_of(command, b"")?;
    let text = String::from_utf8_lossy(&output.stdout);
    expect("release", text.starts_with("6.12."), true)?;
    expect("CPUs", text.lines().nth(1), Some("2"))
}

/// The same program takes the same number of instructions in two boots. perl
/// reads a clock that is based on the time stamp counter, which counts them.
fn counting(context: &Context) -> Check {
    let script = "perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e '
        for (1..20) { my $t = clock_gettime(CLOCK_MONOTONIC); getppid() for 1..1000;
        push @d, int(1e9 * (clock_gettime(CLOCK_MONOTONIC) - $t)) } @d = sort { $a <=> $b } @d;
        print $d[0]'";
    let count = || -> Result<f64, String> {
        let output = output_of(machine_run(context, &["--counting"], script), b"")?;
        expect("status", output.status.code(), Some(0))?;
        String::from_utf8_lossy(&output.stdout).parse().map_err(|_| "no number".to_owned())
    };
    let (first, second) = (count()?, count()?);
    if (first - second).abs() <= 0.001 * first {
        Ok(())
    } else {
        Err(format!("{first} and {second} ns"))
    }
}

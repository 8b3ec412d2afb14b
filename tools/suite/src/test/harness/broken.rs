// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that hang and panic, and a harness that is killed: each case is
//! reported correctly, and no emulator survives. A module that refuses the
//! machine counts as a failure of the machine, too.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::{expect, expect_in, machine_run, output_of, start, Check};
use crate::context::Context;
use crate::test::tally::Tally;

/// The exit status of dunectl when a machine fails.
const FAILED: i32 = 125;

/// Checks each way in which a machine can fail.
pub fn run(context: &Context, tally: &mut Tally) {
    tally.check("harness: a hung program", hung(context));
    tally.check("harness: a program that never stops printing", endless(context));
    tally.check("harness: a hung machine shows what it was doing", busy(context));
    tally.check("harness: a panic", panic(context));
    tally.check("harness: SIGINT reaches the program", interrupt(context));
    tally.check("harness: nothing survives kill -9", killed(context));
    tally.check("harness: the reader goes away", reader_gone(context));
    tally.check("harness: the module refuses a processor", refused(context));
    tally.check("harness: a machine that dies in a mode's proof", proof_panics(context));
}

/// The module refuses a K10, whose erratum 383 lets a guest stop the machine.
fn refused(context: &Context) -> Check {
    let mut command = Command::new(context.dunectl());
    command.args(["machine", "run", "--model", "phenom", "--", "true"]).current_dir("/");
    let output = command.output().map_err(|e| e.to_string())?;
    expect("status", output.status.code(), Some(FAILED))?;
    expect_in("the report", &output.stderr, "this CPU has erratum 383")
}

/// The result of a mode is unknown if its machine dies in the proof; the mode has not failed.
/// The suite runs with a table of its own, which has such a mode.
fn proof_panics(context: &Context) -> Check {
    const TABLE: &str = "minutes = 1\n[sets]\n[[mode]]\nname = \"default\"\n\
        machines = [\"svm\", \"vmx\"]\ncpus = 1\ntests = [\"usual\"]\n\
        proof = \"echo c >/proc/sysrq-trigger\"\n";
    let source = tempfile::tempdir().map_err(|e| e.to_string())?;
    let build = source.path().join("build");
    let tests = build.join("tests");
    let write = || {
        fs::create_dir_all(source.path().join("tests"))?;
        fs::write(source.path().join("tests/suite.toml"), TABLE)?;
        fs::create_dir_all(&tests)?;
        fs::write(tests.join("never_runs.t"), "")?;
        ["libexec", "kernel", "machine"]
            .iter()
            .try_for_each(|part| symlink(context.build.join(part), build.join(part)))
    };
    write().map_err(|e: io::Error| e.to_string())?;
    let mut command = Command::new(context.build.join("bin/dune-suite"));
    command.arg("--source").arg(source.path()).args(["test", "6.1", "--only", "never_runs"]);
    let output = command.env("DUNE_BUILD", &build).output().map_err(|e| e.to_string())?;
    expect("status", output.status.code(), Some(2))?;
    expect_in("the report", &output.stdout, "the machine panicked")?;
    expect_in("the report", &output.stdout, "sysrq triggered crash")
}

fn hung(context: &Context) -> Check {
    let output = output_of(machine_run(context, &["--timeout", "3"], "sleep 1000"), b"")?;
    expect("status", output.status.code(), Some(FAILED))?;
    expect_in("the report", &output.stderr, "did not finish within 3 seconds")
}

/// A program that prints faster than its output is read: more of it is always ready, and the
/// limit holds nevertheless.
fn endless(context: &Context) -> Check {
    let mut child = start(machine_run(context, &["--timeout", "2"], "yes"))?;
    let mut stdout = child.stdout.take().ok_or("no pipe")?;
    let mut buffer = [0; 4096];
    let mut begin = None;
    while stdout.read(&mut buffer).map_err(|e| e.to_string())? > 0 {
        if begin.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(60) {
            let _ = child.kill().and_then(|()| child.wait());
            return Err("it still prints after 60 seconds".to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    expect("status", output.status.code(), Some(FAILED))?;
    expect_in("the report", &output.stderr, "did not finish within 2 seconds")
}

/// A program that is busy: the NMI that is sent to a hung machine must show it.
fn busy(context: &Context) -> Check {
    let script = "exec dd if=/dev/zero of=/dev/null bs=1M";
    let output = output_of(machine_run(context, &["--timeout", "3"], script), b"")?;
    expect("status", output.status.code(), Some(FAILED))?;
    expect_in("the report", &output.stderr, "NMI: Not continuing")?;
    expect_in("the report", &output.stderr, "Call Trace")
}

fn panic(context: &Context) -> Check {
    let script = "echo c >/proc/sysrq-trigger";
    let output = output_of(machine_run(context, &["--timeout", "60"], script), b"")?;
    expect("status", output.status.code(), Some(FAILED))?;
    expect_in("the report", &output.stderr, "the machine panicked")?;
    expect_in("the report", &output.stderr, "sysrq triggered crash")
}

/// Starts a program that prints a line once it runs, and returns its emulator's
/// pid.
fn running(context: &Context) -> Result<(Child, i32), String> {
    let mut child = start(machine_run(context, &[], "echo RUNS; exec sleep 1000"))?;
    let stdout = child.stdout.take().ok_or("no pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|e| e.to_string())?;
    expect("its first line", line.as_str(), "RUNS\n")?;
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let children = fs::read_to_string(path).map_err(|e| e.to_string())?;
    let pid = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
    Ok((child, pid.ok_or("there is no emulator")?))
}

fn interrupt(context: &Context) -> Check {
    let (mut child, emulator) = running(context)?;
    signal(child.id() as i32, libc::SIGINT);
    let status = child.wait().map_err(|e| e.to_string())?;
    expect("the signal it died of", status.signal(), Some(libc::SIGINT))?;
    gone(emulator)
}

fn killed(context: &Context) -> Check {
    let (mut child, emulator) = running(context)?;
    signal(child.id() as i32, libc::SIGKILL);
    child.wait().map_err(|e| e.to_string())?;
    gone(emulator)
}

fn reader_gone(context: &Context) -> Check {
    let mut child = start(machine_run(context, &["--timeout", "60"], "yes"))?;
    let stdout = child.stdout.take().ok_or("no pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|e| e.to_string())?;
    let status = child.wait().map_err(|e| e.to_string())?;
    // The shell may have replaced itself by its last command.
    let died_of_it = status.signal() == Some(libc::SIGPIPE) || status.code() == Some(141);
    expect("death by SIGPIPE", died_of_it, true)
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: the process is a child that was not waited for yet.
    unsafe { libc::kill(pid, signal) };
}

fn gone(pid: i32) -> Check {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        let state = fs::read_to_string(format!("/proc/{pid}/stat"));
        // A zombie only waits to be reaped by process 1.
        if state.is_ok_and(|state| !state.contains(") Z ")) {
            std::thread::sleep(Duration::from_millis(20));
        } else {
            return Ok(());
        }
    }
    Err(format!("the emulator (pid {pid}) is still there"))
}

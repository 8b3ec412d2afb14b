// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs TAP programs in a machine, which is booted once, and again only after it
//! broke.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dune_machine::{Error, Machine, Outcome};

use crate::context::Context;
use crate::test::plan::Boot;
use crate::test::tally::Tally;
use crate::test::tap;

/// How many times a program is run at most, if the emulator is at fault.
const ATTEMPTS: u32 = 3;
const STALE_CODE: &str = "QEMU executed a breakpoint that was gone";

/// How much of a failed program's log is printed, and of the kernel's.
const LAST_LINES: usize = 15;

/// The log of all boots, one after the other.
const KERNEL_LOG: &str = "kernel.log";

/// The tests that are built.
pub struct Tests {
    /// The names of all.
    pub all: Vec<String>,
    /// Those that are to run, in this order.
    pub chosen: Vec<Test>,
}

pub struct Test {
    pub name: String,
    /// Whether the machine is booted for it alone.
    pub own_boot: bool,
    program: PathBuf,
}

/// The tests of a boot. What needs a boot of its own comes last.
pub fn tests(boot: &Boot) -> Result<Tests> {
    let folder = boot.context.build.join("tests");
    let mut programs = Vec::new();
    find_programs(&folder, &mut programs)?;
    programs.sort();
    let all: Vec<String> = programs.iter().map(|path| name_of(path, &folder)).collect();
    let chosen = programs.into_iter().zip(&all).filter(|(_, name)| boot.has(name));
    let mut chosen: Vec<Test> = chosen
        .map(|(program, name)| {
            let own_boot = boot.context.table.has_own_boot(name);
            Test { name: name.clone(), own_boot, program }
        })
        .collect();
    chosen.sort_by_key(|test| test.own_boot);
    Ok(Tests { all, chosen })
}

pub fn run(boot: &Boot, tally: &mut Tally) -> Result<()> {
    let Boot { name: boot_name, context, mode, .. } = boot;
    let tests = tests(boot)?;
    for wrong in boot.mistakes(&tests.all) {
        tally.failed(format!("{boot_name}: {wrong}"));
    }
    if tests.chosen.is_empty() {
        tally.failed(format!("{boot_name}: there are no TAP programs"));
        return Ok(());
    }
    let config = context.machine_in(mode, boot.kernel()?)?;
    let logs = context.log_folder(&format!("test/{boot_name}"))?;
    let _ = fs::remove_file(logs.join(KERNEL_LOG));
    tally.say(&format!("{boot_name}: booting {}", config.kernel.release));
    let mut machine: Option<Machine> = None;
    let mut proof = mode.proof.as_deref();
    for test in &tests.chosen {
        let full_name = format!("{boot_name} {}", test.name);
        if test.own_boot {
            power_off(machine.take(), boot_name, &logs, tally)?;
        }
        let log = log_of(&logs, &test.name);
        for more in (0..ATTEMPTS).rev() {
            let mut booted = match machine.take() {
                Some(machine) => machine,
                None => match Machine::boot(&context.layout, &config) {
                    Ok(machine) => machine,
                    Err(e) if e.is_environment() => return Err(e.into()),
                    Err(e) if more > 0 && is_stale_code(context, &e) => {
                        tally.say(&format!("AGAIN   {full_name}: {STALE_CODE}, while it booted"));
                        continue;
                    }
                    Err(e) => {
                        tally.machine_error(format!("{full_name}: {e}"));
                        tally.say(&format!("MACHINE {full_name}: does not boot"));
                        return Ok(());
                    }
                },
            };
            if let Some(proof) = proof.take() {
                let outcome = booted.run(&mut context.command(["sh", "-c", proof]));
                if !outcome.as_ref().is_ok_and(|outcome| outcome.status.success()) {
                    tally.say(&format!(
                        "FAILED  {boot_name}: the machine is not booted as it should be"
                    ));
                    tally.failed(format!("{boot_name}: the mode's proof fails: {proof}"));
                    return power_off(Some(booted), boot_name, &logs, tally);
                }
            }
            match run_program(context, booted, test, &full_name, &log, more > 0, tally)? {
                End::Whole(booted) => machine = Some(booted),
                End::Broken => {}
                End::Stale => continue,
            }
            break;
        }
    }
    power_off(machine, boot_name, &logs, tally)
}

fn power_off(
    machine: Option<Machine>,
    boot_name: &str,
    logs: &Path,
    tally: &mut Tally,
) -> Result<()> {
    let Some(machine) = machine else { return Ok(()) };
    let mut log = fs::read_to_string(logs.join(KERNEL_LOG)).unwrap_or_default();
    log += &machine.log().tail(usize::MAX);
    fs::write(logs.join(KERNEL_LOG), log).context("writing the kernel's log")?;
    if let Err(e) = machine.power_off() {
        tally.machine_error(format!("{boot_name}: {e}"));
    }
    Ok(())
}

/// The state of the machine after a program.
enum End {
    Whole(Machine),
    Broken,
    /// It executed code that had been replaced, so nothing is known of the program,
    /// which has to be run again.
    Stale,
}

/// Whether the machine died by the emulator's fault. While the kernel patches
/// itself, its code has breakpoints. With a thread for each CPU, TCG may execute
/// one after it was removed, and the kernel then does not recognize it. (In modes
/// with tests that patch all the time, QEMU has a single thread.)
pub fn is_stale_code(context: &Context, error: &Error) -> bool {
    let Error::Panicked { log, .. } = error else { return false };
    context.machine_type().may_run_stale_code && log.contains("int3: 0000 [#")
}

/// Runs one program. `again` tells whether it may be run once more.
fn run_program(
    context: &Context,
    mut machine: Machine,
    test: &Test,
    name: &str,
    log: &Path,
    again: bool,
    tally: &mut Tally,
) -> Result<End> {
    let mut run = context.command(["prove", "--verbose", "--norc", "--nocolor", "--merge"]);
    run.program.argv.push(test.program.clone().into());
    run.timeout = Some(context.table.limit(&test.name, context.machine_type()));
    match machine.run(&mut run) {
        Ok(outcome) => {
            let kernel = outcome.trouble.as_deref().unwrap_or_default();
            let mut text = outcome.stdout.clone();
            text.extend_from_slice(&outcome.stderr);
            text.extend_from_slice(kernel.as_bytes());
            fs::write(log, text).with_context(|| format!("writing {}", log.display()))?;
            judge(&outcome, name, log, tally);
            Ok(End::Whole(machine))
        }
        Err(e) if again && is_stale_code(context, &e) => {
            let log = log.with_extension("stale-code.log");
            fs::write(&log, e.to_string()).with_context(|| format!("writing {}", log.display()))?;
            tally.say(&format!("AGAIN   {name}: {STALE_CODE} (see {})", log.display()));
            Ok(End::Stale)
        }
        Err(e) => {
            fs::write(log, e.to_string()).with_context(|| format!("writing {}", log.display()))?;
            let text = e.to_string();
            let first = text.lines().next().unwrap_or_default().to_owned();
            tally.say(&format!("MACHINE {name}: {first} (see {})", log.display()));
            let end = tap::last_lines(&text, LAST_LINES).join("\n    ");
            tally.machine_error(format!("{name}: {first} (see {})\n    {end}", log.display()));
            Ok(End::Broken)
        }
    }
}

fn judge(outcome: &Outcome, name: &str, log: &Path, tally: &mut Tally) {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let results = tap::parse(&text);
    let passed = results.passed;
    let all = passed + results.failed.len();
    let mut failed = results.failed;
    if !outcome.status.success() && failed.is_empty() {
        let what = format!("prove: {}", outcome.status);
        failed.push(tap::Failure { what, why: Vec::new() });
    }
    // How the program ended: it may not have got to the tests that matter.
    if let Some(failure) = failed.last_mut() {
        failure.why.push("the log ends:".to_owned());
        failure.why.extend(tap::last_lines(&text, LAST_LINES));
    }
    if let Some(trouble) = &outcome.trouble {
        let mut lines = trouble.lines();
        let what = format!("the kernel's log: {}", lines.next().unwrap_or_default());
        let why = lines.take(LAST_LINES).map(str::to_owned).collect();
        failed.push(tap::Failure { what, why });
    }
    let seconds = outcome.duration.as_secs_f32();
    let skipped = match results.skipped.len() {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    let verdict = if failed.is_empty() { "ok     " } else { "FAILED " };
    tally.say(&format!("{verdict} {name}: {passed} of {all}{skipped} ({seconds:.1} s)"));
    tally.passed(passed);
    for reason in results.skipped {
        tally.skipped(reason);
    }
    for failure in failed {
        tally.say(&format!("        {}", failure.what));
        let what = format!("{name}: {} (see {})", failure.what, log.display());
        tally.failed_because(what, failure.why);
    }
}

fn find_programs(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            find_programs(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "t") {
            found.push(path);
        }
    }
    Ok(())
}

/// "kernel/syscall"
fn name_of(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).with_extension("").to_string_lossy().into_owned()
}

fn log_of(logs: &Path, name: &str) -> PathBuf {
    logs.join(name.replace('/', "-")).with_extension("log")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TAP programs in a machine: booted once, and again only after it broke.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dune_machine::{Config, Error, Machine, Outcome};

use crate::context::Context;
use crate::test::tally::Tally;
use crate::test::tap;

/// The longest that one TAP program may take: several times what the longest
/// takes here, and longer than its own limit, so that it can say what it is.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Programs that leave the machine another one: once audit was on, the kernel
/// watches every system call of all later processes. They get one to
/// themselves.
const ALONE: [&str; 1] = ["kernel/audit"];

/// Only where a phase asks for them. The first changes the machine, and takes
/// long. The others load and unload kvm.ko over and over under Dune's entries,
/// which wants another machine (Config.takes_turns).
const APART: [&str; 4] = ["package/", "kvm/beside", "kvm/order", "kvm/states"];

/// How often a program is run at most, if it is not its fault.
const ATTEMPTS: u32 = 3;
const STALE_CODE: &str = "QEMU executed a breakpoint that was gone";

/// Of a failed program's log, and of the kernel's.
const LAST_LINES: usize = 15;

/// One boot after the other.
const KERNEL_LOG: &str = "kernel.log";

/// A kernel and how it is booted, and what runs on it.
pub struct Phase {
    pub name: String,
    pub config: Config,
    /// Beginnings of names; none: everything.
    pub folders: Option<Vec<&'static str>>,
    /// A shell command that succeeds in a machine that is what it should be.
    pub proof: Option<&'static str>,
}

impl Phase {
    pub fn new(name: &str, config: Config) -> Self {
        Phase { name: name.to_owned(), config, folders: None, proof: None }
    }
}

pub fn run(context: &Context, phase: &Phase, only: Option<&str>, tally: &mut Tally) -> Result<()> {
    let folder = context.build.join("tests");
    let mut programs = Vec::new();
    find_programs(&folder, &mut programs)?;
    programs.sort_by_key(|path| (ALONE.contains(&&*name_of(path, &folder)), path.clone()));
    programs.retain(|path| {
        let name = name_of(path, &folder);
        only.is_none_or(|texts| texts.split(',').any(|text| name.contains(text)))
            && match &phase.folders {
                Some(all) => all.iter().any(|one| name.starts_with(one)),
                None => !APART.iter().any(|one| name.starts_with(one)),
            }
    });
    if programs.is_empty() {
        tally.failed(format!("{}: there are no TAP programs", phase.name));
        return Ok(());
    }
    let logs = context.log_folder(&format!("test/{}", phase.name))?;
    let _ = fs::remove_file(logs.join(KERNEL_LOG));
    tally.say(&format!("{}: booting {}", phase.name, phase.config.kernel.release));
    let mut machine: Option<Machine> = None;
    let mut proof = phase.proof;
    for program in &programs {
        let name = name_of(program, &folder);
        let full_name = format!("{} {name}", phase.name);
        if ALONE.contains(&&*name) {
            power_off(machine.take(), phase, &logs, tally)?;
        }
        let log = log_of(&logs, &name);
        for more in (0..ATTEMPTS).rev() {
            let mut booted = match machine.take() {
                Some(machine) => machine,
                None => match Machine::boot(&context.layout, &phase.config) {
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
                    tally.say(&format!("FAILED  {}: is not what it should be", phase.name));
                    tally.failed(format!("{}: this fails in it: {proof}", phase.name));
                    return power_off(Some(booted), phase, &logs, tally);
                }
            }
            match run_program(context, booted, program, &full_name, &log, more > 0, tally)? {
                End::Whole(booted) => machine = Some(booted),
                End::Broken => {}
                End::Stale => continue,
            }
            break;
        }
    }
    power_off(machine, phase, &logs, tally)
}

fn power_off(
    machine: Option<Machine>,
    phase: &Phase,
    logs: &Path,
    tally: &mut Tally,
) -> Result<()> {
    let Some(machine) = machine else { return Ok(()) };
    let mut log = fs::read_to_string(logs.join(KERNEL_LOG)).unwrap_or_default();
    log += &machine.log().tail(usize::MAX);
    fs::write(logs.join(KERNEL_LOG), log).context("writing the kernel's log")?;
    if let Err(e) = machine.power_off() {
        tally.machine_error(format!("{}: {e}", phase.name));
    }
    Ok(())
}

/// What became of the machine.
enum End {
    Whole(Machine),
    Broken,
    /// It executed code that was no longer there: nothing is known of the
    /// program, which is to be run again.
    Stale,
}

/// While the kernel patches itself there are breakpoints in its code, and with
/// a thread for each processor TCG may execute one after it was taken away; the
/// kernel then does not know it. (Where a test patches all the time, processors
/// take turns.)
pub fn is_stale_code(context: &Context, error: &Error) -> bool {
    let Error::Panicked { log, .. } = error else { return false };
    !context.is_vmx() && log.contains("int3: 0000 [#")
}

/// `again`: it may be run once more.
fn run_program(
    context: &Context,
    mut machine: Machine,
    program: &Path,
    name: &str,
    log: &Path,
    again: bool,
    tally: &mut Tally,
) -> Result<End> {
    let mut run = context.command(["prove", "--verbose", "--norc", "--nocolor", "--merge"]);
    run.program.argv.push(program.into());
    run.timeout = Some(LIMIT * context.patience());
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs TAP programs in a machine, which is booted once, again for a program that needs
//! a boot of its own, and again after it broke.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context as _, Result};
use dune_machine::{Config, Error, Machine, Outcome};

use crate::context::Context;
use crate::files;
use crate::test::plan::Boot;
use crate::test::prove;
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

/// The tests of a boot. Those that need a boot of their own come last.
pub fn tests(boot: &Boot) -> Result<Tests> {
    let directory = boot.context.build.join("tests");
    let mut programs = Vec::new();
    find_programs(&directory, &mut programs)?;
    programs.sort();
    let all: Vec<String> = programs.iter().map(|path| name_of(path, &directory)).collect();
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

/// Boots a machine and runs the tests of this boot.
pub fn run(boot: &Boot, tally: &mut Tally) -> Result<()> {
    let boot_name = &boot.name;
    let tests = tests(boot)?;
    for wrong in boot.mistakes(&tests.all) {
        tally.failed(format!("{boot_name}: {wrong}"));
    }
    if tests.chosen.is_empty() {
        tally.failed(format!("{boot_name}: there are no TAP programs"));
        return Ok(());
    }
    let config = boot.context.machine_in(&boot.mode, boot.kernel()?)?;
    let logs = boot.context.log_directory(&format!("test/{boot_name}"))?;
    let _ = fs::remove_file(logs.join(KERNEL_LOG));
    tally.line(&format!("{boot_name}: booting {}", config.kernel.release));
    let mut runner = Runner { boot, config, logs, machine: None, is_proved: false, tally };
    for test in &tests.chosen {
        if !runner.test(test)? {
            break;
        }
    }
    runner.power_off()
}

/// The tests of one boot, one after the other in the same machine. It is booted for the
/// first one, for each that needs a boot of its own, and after one that broke it.
struct Runner<'a> {
    boot: &'a Boot,
    config: Config,
    logs: PathBuf,
    machine: Option<Machine>,
    /// Whether the mode's proof has succeeded.
    is_proved: bool,
    tally: &'a mut Tally,
}

/// The end of an attempt.
enum Attempt<T> {
    Done(T),
    /// The emulator executed code that had been replaced, so nothing is known of the
    /// test, which has to be run again.
    Stale,
    /// The machine does not boot, or not as it should, so no test can run.
    Broken,
}

impl Runner<'_> {
    /// Runs a test, and again where the emulator was at fault. Returns whether others can
    /// run after it.
    fn test(&mut self, test: &Test) -> Result<bool> {
        if test.own_boot {
            self.power_off()?;
        }
        for _ in 1..ATTEMPTS {
            match self.attempt(test, false)? {
                Attempt::Done(()) => return Ok(true),
                Attempt::Broken => return Ok(false),
                Attempt::Stale => {}
            }
        }
        Ok(matches!(self.attempt(test, true)?, Attempt::Done(())))
    }

    /// Runs a test once. The last attempt counts even if the emulator was at fault.
    fn attempt(&mut self, test: &Test, is_last: bool) -> Result<Attempt<()>> {
        let name = format!("{} {}", self.boot.name, test.name);
        let machine = match self.machine.take() {
            Some(machine) => machine,
            None => match self.boot(&name, is_last)? {
                Attempt::Done(machine) => machine,
                Attempt::Stale => return Ok(Attempt::Stale),
                Attempt::Broken => return Ok(Attempt::Broken),
            },
        };
        self.run(machine, test, &name, is_last)
    }

    /// Boots the machine for a test. The first time, the mode's proof has to succeed.
    fn boot(&mut self, test_name: &str, is_last: bool) -> Result<Attempt<Machine>> {
        let Boot { name, context, mode, .. } = self.boot;
        let proof = mode.proof.as_deref().filter(|_| !self.is_proved);
        let (machine, is_proved) = match boot_and_prove(context, &self.config, proof) {
            Ok(booted) => booted,
            Err(e) if e.is_environment() => return Err(e.into()),
            Err(e) if !is_last && is_stale_code(context, &e) => {
                self.tally.line(&format!("AGAIN   {test_name}: {STALE_CODE}, before it ran"));
                return Ok(Attempt::Stale);
            }
            Err(e) => {
                self.tally.machine_error(format!("{test_name}: {e}"));
                self.tally.line(&format!(
                    "MACHINE {test_name}: does not boot, or dies in the mode's proof"
                ));
                return Ok(Attempt::Broken);
            }
        };
        if !is_proved {
            let message = "the machine is not booted as it should be";
            self.tally.line(&format!("FAILED  {name}: {message}"));
            let proof = proof.unwrap_or_default();
            self.tally.failed(format!("{name}: the mode's proof fails: {proof}"));
            self.machine = Some(machine);
            return Ok(Attempt::Broken);
        }
        self.is_proved = true;
        Ok(Attempt::Done(machine))
    }

    /// Runs a test in a machine, which is kept unless it broke.
    fn run(
        &mut self,
        mut machine: Machine,
        test: &Test,
        name: &str,
        is_last: bool,
    ) -> Result<Attempt<()>> {
        let context = &self.boot.context;
        let log = log_of(&self.logs, &test.name);
        let mut run = context.command(["sh", "-c", "exec \"$0\" 2>&1"]);
        run.program.argv.push(test.program.clone().into());
        let env = self.boot.env(&test.name).into_iter();
        run.program.env.extend(env.map(|(name, value)| (name.into(), value.into())));
        run.timeout = Some(context.table.limit(&test.name, context.machine_type()));
        match machine.run(&mut run) {
            Ok(outcome) => {
                write_log(&log, &outcome.stdout)?;
                let judged = prove::judge(&log)?;
                let kernel = outcome.kernel_errors.as_deref().unwrap_or_default();
                let text = [&judged.stdout[..], &judged.stderr[..], kernel.as_bytes()].concat();
                write_log(&log, &text)?;
                add_results(&outcome, &judged, name, &log, self.tally);
                self.machine = Some(machine);
            }
            Err(e) if !is_last && is_stale_code(context, &e) => {
                let log = log.with_extension("stale-code.log");
                write_log(&log, e.to_string().as_bytes())?;
                let message = format!("AGAIN   {name}: {STALE_CODE} (see {})", log.display());
                self.tally.line(&message);
                return Ok(Attempt::Stale);
            }
            Err(e) => {
                let text = e.to_string();
                write_log(&log, text.as_bytes())?;
                let first = text.lines().next().unwrap_or_default();
                let message = format!("{name}: {first} (see {})", log.display());
                self.tally.line(&format!("MACHINE {message}"));
                let end = tap::last_lines(&text, LAST_LINES).join("\n    ");
                self.tally.machine_error(format!("{message}\n    {end}"));
            }
        }
        Ok(Attempt::Done(()))
    }

    /// Switches the machine off, if it is on, and keeps its kernel's log.
    fn power_off(&mut self) -> Result<()> {
        let Some(machine) = self.machine.take() else { return Ok(()) };
        let Boot { name, context, .. } = self.boot;
        let records = machine.log().records().len();
        let so_far = machine.log().tail(usize::MAX);
        let log = match machine.power_off() {
            Ok(log) => {
                if let Some(errors) = log.kernel_errors_since(records) {
                    self.tally.failed(format!("{name}: while switching off: {errors}"));
                }
                log.tail(usize::MAX)
            }
            Err(e) if is_stale_code(context, &e) => {
                self.tally.line(&format!("{name}: {STALE_CODE}, while it switched off"));
                so_far
            }
            Err(e) => {
                self.tally.machine_error(format!("{name}: while switching off: {e}"));
                so_far
            }
        };
        let file = self.logs.join(KERNEL_LOG);
        let earlier = files::read(&file)?.unwrap_or_default();
        fs::write(file, earlier + &log).context("writing the kernel's log")
    }
}

/// Boots a machine, and runs the mode's proof in it as a part of booting. The result has
/// false if the proof failed. A machine that dies in the proof is an error.
fn boot_and_prove(
    context: &Context,
    config: &Config,
    proof: Option<&str>,
) -> dune_machine::Result<(Machine, bool)> {
    let mut machine = Machine::boot(&context.layout, config)?;
    let Some(proof) = proof else { return Ok((machine, true)) };
    let mut run = context.command(["sh", "-c", proof]);
    run.timeout = Some(config.boot_timeout);
    let outcome = machine.run(&mut run)?;
    Ok((machine, outcome.status.success()))
}

fn write_log(log: &Path, text: &[u8]) -> Result<()> {
    fs::write(log, text).with_context(|| format!("writing {}", log.display()))
}

/// Whether the machine died by the emulator's fault. While the kernel patches
/// itself, its code has breakpoints. With a thread for each CPU, TCG may execute
/// one after it was removed, and the kernel then does not recognize it. (In modes
/// with tests that patch all the time, QEMU has a single thread.)
pub fn is_stale_code(context: &Context, error: &Error) -> bool {
    let Error::Panicked { log, .. } = error else { return false };
    context.machine_type().may_run_stale_code && log.contains("int3: 0000 [#")
}

/// Adds the results of a program that ended to the tally, and prints its line.
fn add_results(outcome: &Outcome, judged: &Output, name: &str, log: &Path, tally: &mut Tally) {
    let text = String::from_utf8_lossy(&judged.stdout);
    let results = tap::parse(&String::from_utf8_lossy(&outcome.stdout));
    let passed = results.passed;
    let all = passed + results.failed.len();
    let mut failed = results.failed;
    if !outcome.status.success() && failed.is_empty() {
        let verdict = format!("the program's end: {}", outcome.status);
        failed.push(tap::Failure { verdict, why: Vec::new() });
    }
    if !judged.status.success() && failed.is_empty() {
        let verdict = format!("prove: {}", judged.status);
        failed.push(tap::Failure { verdict, why: Vec::new() });
    }
    // How the program ended: it may not have got to the tests that matter.
    if let Some(failure) = failed.last_mut() {
        failure.why.push("the log ends:".to_owned());
        failure.why.extend(tap::last_lines(&text, LAST_LINES));
    }
    if let Some(errors) = &outcome.kernel_errors {
        let mut lines = errors.lines();
        let verdict = format!("the kernel's log: {}", lines.next().unwrap_or_default());
        let why = lines.take(LAST_LINES).map(str::to_owned).collect();
        failed.push(tap::Failure { verdict, why });
    }
    let seconds = outcome.duration.as_secs_f32();
    let skipped = match results.skipped.len() {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    let verdict = if failed.is_empty() { "ok     " } else { "FAILED " };
    tally.line(&format!("{verdict} {name}: {passed} of {all}{skipped} ({seconds:.1} s)"));
    tally.passed(passed);
    for reason in results.skipped {
        tally.skipped(reason);
    }
    for failure in failed {
        tally.line(&format!("        {name}: {}", failure.verdict));
        let message = format!("{name}: {} (see {})", failure.verdict, log.display());
        tally.failed_because(message, failure.why);
    }
}

fn find_programs(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?;
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
fn name_of(path: &Path, directory: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).with_extension("").to_string_lossy().into_owned()
}

fn log_of(logs: &Path, name: &str) -> PathBuf {
    logs.join(name.replace('/', "-")).with_extension("log")
}

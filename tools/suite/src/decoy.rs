// SPDX-License-Identifier: MIT OR Apache-2.0
//! make decoy: attacks the sandbox's checks for hours, and continues where the last run
//! ended or was interrupted. tests/run/decoy/ has the programs: `watch` runs attacks, or
//! programs of other projects (others.bash), and prints what it found.
//!
//! build/decoy/ has, for each kernel, KERNEL.state about all attacks so far, which `watch`
//! writes, and KERNEL.log, the output of each run. Its file `found` has a line for each
//! finding.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context as _, Result};
use dune_machine::{Cpus, Machine, Series};

use crate::campaign::{self, End};
use crate::context::Context;
use crate::files;
use crate::test::tap;
use crate::Verdict;

/// The directory of the programs, and the script that runs those of other projects.
const PROGRAMS: &str = "tests/run/decoy";
const OTHERS: &str = "tests/run/decoy/others.bash";

/// The memory of the machine in megabytes, in two nodes for calls about NUMA.
const MEMORY: u32 = 3072;
const TWO_NODES: &str = "numa=fake=2";

/// How many seconds a program of another project may take.
const OTHERS_LIMIT: u32 = 240;

/// Of so many turns, in each of which every kernel is attacked, one also moves a wide
/// mapping, and one also runs the programs of other projects.
const WIDE_MOVE_TURNS: u32 = 6;
const OTHERS_TURNS: u32 = 3;

/// How many cases `watch` runs before it writes its state (BATCH in watch.c).
const BATCH: u64 = 48;

/// The lines of the programs' output that are kept.
const LAST_LINES: usize = 15;

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct DecoyOptions {
    /// Stop after this many hours
    #[arg(long, default_value_t = 1.0)]
    hours: f64,
    /// The length of one run, which is what an interruption loses
    #[arg(long, value_name = "SECONDS", default_value_t = 600,
          value_parser = clap::value_parser!(u64).range(1..))]
    slice: u64,
    /// In trinity, stress-ng and CPython's tests, change one call of N
    #[arg(long, value_name = "N", default_value_t = 16)]
    mix: u32,
    /// Run only trinity, stress-ng and the tests of CPython, once on each kernel
    #[arg(long)]
    only_others: bool,
}

struct Decoy<'a> {
    context: &'a Context,
    options: &'a DecoyOptions,
    directory: PathBuf,
}

/// Attacks on these kernels in turn. Fails if something was found, now or before.
pub fn run(context: &Context, kernels: &[Series], options: &DecoyOptions) -> Result<Verdict> {
    let deadline = campaign::deadline(options.hours)?;
    let decoy = Decoy { context, options, directory: campaign::directory(context, "decoy")? };
    if options.only_others {
        for &series in kernels {
            decoy.others(series)?;
        }
    } else {
        decoy.attack_until(deadline, kernels)?;
    }
    for series in kernels {
        let state = files::read(&decoy.state_file(*series))?;
        println!("{series}: {}", state.unwrap_or_default().trim_end());
    }
    let found = decoy.directory.join("found");
    match files::read(&found)?.unwrap_or_default().lines().count() {
        0 => Ok(Verdict::Passed),
        lines => {
            println!("found: {lines} lines in {}", found.display());
            Ok(Verdict::Failed)
        }
    }
}

impl Decoy<'_> {
    fn attack_until(&self, deadline: Instant, kernels: &[Series]) -> Result<()> {
        for turn in 0u32.. {
            for &series in kernels {
                let left = deadline.saturating_duration_since(Instant::now()).as_secs();
                if left == 0 {
                    return Ok(());
                }
                let state = self.state_file(series).display().to_string();
                let seconds = left.min(self.options.slice).to_string();
                self.watch(series, &["--state", &state, "--seconds", &seconds])?;
                if turn % WIDE_MOVE_TURNS == 0 {
                    self.watch(series, &["--kind", "wide-move", "--cases", "1"])?;
                }
                if turn % OTHERS_TURNS == 1 {
                    self.others(series)?;
                }
            }
        }
        Ok(())
    }

    /// Runs the programs of other projects, as far as they are installed.
    fn others(&self, series: Series) -> Result<()> {
        let script = self.context.source.join(OTHERS);
        let output = Command::new("bash").arg(&script).stderr(Stdio::inherit()).output();
        let output = output.context("running bash")?;
        ensure!(output.status.success(), "{}: {}", script.display(), output.status);
        let (mix, limit) = (self.options.mix.to_string(), OTHERS_LIMIT.to_string());
        let script = script.display().to_string();
        for name in String::from_utf8_lossy(&output.stdout).lines() {
            let command = ["--", "/bin/bash", &script, name];
            self.watch(series, &[&["--mix", &mix, "--limit", &limit], &command[..]].concat())?;
        }
        Ok(())
    }

    /// Boots a machine for one run of `watch`: nothing of the machine is needed afterwards.
    fn watch(&self, series: Series, arguments: &[&str]) -> Result<()> {
        let mut config = self.context.machine(series)?;
        config.cpus = Cpus::Free(1);
        config.memory = MEMORY;
        config.kernel_arguments.push(TWO_NODES.to_owned());
        config.shares = vec![self.directory.canonicalize().context("finding a directory")?];
        let mut machine = Machine::boot(&self.context.layout, &config)?;

        let program = self.context.build.join(PROGRAMS).join("watch");
        let mut run = self.context.command([&program]);
        run.program.argv.extend(arguments.iter().map(Into::into));
        run.program.env.push(("VERBOSE".into(), "1".into()));
        run.timeout = Some(Duration::from_secs(2 * self.options.slice + 300));
        let file = self.directory.join("output");
        let attempt = campaign::attempt(self.context, &mut machine, run, &file)?;
        let output = &attempt.output;
        self.log(series, arguments, output)?;
        for line in summary(output) {
            println!("{line}");
        }
        for line in output.lines().filter(|line| line.starts_with("FOUND")) {
            self.found(series, line)?;
        }
        match attempt.end {
            End::Ended(outcome) => {
                if let Some(errors) = &outcome.kernel_errors {
                    self.log(series, &["the kernel's log"], errors)?;
                    let first = errors.lines().next().unwrap_or_default();
                    self.found(series, &format!("FOUND an error in the kernel's log: {first}"))?;
                }
                if outcome.status.code() > 1 || !has_ended(output) {
                    bail!("the attack cannot be run: see {}", self.log_file(series).display());
                }
                machine.power_off()?;
                Ok(())
            }
            End::StaleCode => {
                println!("{series}: the machine died by a known fault of the emulator");
                Ok(())
            }
            End::Died(e) => {
                let text = e.to_string();
                self.log(series, &["the machine died"], &text)?;
                let first = text.lines().next().unwrap_or_default();
                let attack = arguments.join(" ");
                self.found(series, &format!("FOUND the end of the machine: {first} ({attack})"))?;
                if arguments.contains(&"--state") {
                    self.skip_batch(series)?;
                }
                Ok(())
            }
        }
    }

    /// `watch` did not come to the end of its batch, which the next run would repeat.
    fn skip_batch(&self, series: Series) -> Result<()> {
        let file = self.state_file(series);
        let broken = || format!("{} is broken: remove it to start anew", file.display());
        let state = files::read(&file)?.unwrap_or_else(|| NEW_STATE.to_owned());
        files::write(&file, &after_batch(&state).with_context(broken)?)
    }

    fn found(&self, series: Series, line: &str) -> Result<()> {
        println!("{series}: {line}");
        self.append("found", &format!("{series}: {line}\n"))
    }

    fn state_file(&self, series: Series) -> PathBuf {
        self.directory.join(format!("{series}.state"))
    }

    fn log_file(&self, series: Series) -> PathBuf {
        self.directory.join(format!("{series}.log"))
    }

    /// Keeps the output of a run: all lines of `watch` itself, and the last ones of the
    /// programs that it ran.
    fn log(&self, series: Series, title: &[&str], output: &str) -> Result<()> {
        let date = Command::new("date").args(["-u", "+%F %T"]).output().context("running date")?;
        let date = String::from_utf8_lossy(&date.stdout);
        let (programs, own): (Vec<&str>, Vec<&str>) =
            output.lines().partition(|line| line.starts_with("# "));
        let programs = tap::last_lines(&programs.join("\n"), LAST_LINES).join("\n");
        let own = own.join("\n");
        let text = format!("{} {}\n{programs}\n{own}\n", date.trim_end(), title.join(" "));
        self.append(&format!("{series}.log"), &text)
    }

    fn append(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// The state of `watch` before its first batch.
const NEW_STATE: &str =
    "next seed 1, cases 0, calls 0, succeeded 0, seconds 0, found 0, at exit 0\n";

/// The state of `watch` after one more batch, whose counts are lost. None, if the state has
/// another form.
fn after_batch(state: &str) -> Option<String> {
    let (seed, counts) = state.strip_prefix("next seed ")?.split_once(',')?;
    Some(format!("next seed {},{counts}", seed.parse::<u64>().ok()? + BATCH))
}

/// The lines of `watch` about the whole run.
fn summary(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter(|line| line.starts_with("Linux ") || line.starts_with("in all: "))
}

/// Whether `watch` came to its end, and not because the attack ended at once, time after
/// time.
fn has_ended(output: &str) -> bool {
    let has = |start: &str, words: &str| {
        output.lines().any(|line| line.starts_with(start) && line.contains(words))
    };
    has("# counts: ", "calls=") && !has("FOUND", "does not start")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "# seed 3 ended the batch: status 0x9\n\
        # counts: calls=7 numbers=2 succeeded=1 found=0\n\
        Linux 6.1.0: 7 calls of 2 numbers, 1 succeeded; 0 found, 0 faults\n\
        in all: 48 cases, next seed 49, 7 calls, 1 succeeded, 5 s, 0 found\n";

    #[test]
    fn a_batch_is_as_long_as_in_watch_c() {
        let watch = include_str!("../../../tests/run/decoy/watch/watch.c");
        assert!(watch.contains(&format!("#define BATCH\t{BATCH}\n")));
    }

    #[test]
    fn the_summary_is_two_lines() {
        let lines: Vec<&str> = summary(OUTPUT).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("in all: 48 cases"));
    }

    #[test]
    fn the_batch_that_ended_the_machine_is_skipped() {
        let after = after_batch(NEW_STATE).expect("a state");
        assert!(after.starts_with("next seed 49, cases 0, "));
        assert!(after.ends_with(", at exit 0\n"));
        assert_eq!(after_batch("something else"), None);
    }

    #[test]
    fn a_run_without_counts_has_not_ended() {
        assert!(has_ended(OUTPUT));
        assert!(!has_ended("Bail out! fanotify_init: Operation not permitted\n"));
        assert!(!has_ended(&format!("FOUND the attack does not start\n{OUTPUT}")));
    }
}

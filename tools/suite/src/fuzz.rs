// SPDX-License-Identifier: MIT OR Apache-2.0
//! make fuzz: runs the fuzzers of dune.ko (tests/kernel/fuzz.c) and of the guard
//! (tests/guard/fuzz.c) for hours, and continues where the last run ended or was interrupted.
//!
//! build/fuzz/KERNEL/ and build/fuzz/KERNEL-guard/ have, for each FUZZ_SEED, a file
//! `progress-SEED` about all runs so far, and for each finding a directory with everything that
//! is needed to reproduce it: the output of fuzz.t (seed and batch), the kernel's log, fuzz.t
//! and the modules themselves, and the command.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context as _, Result};
use dune_machine::{Config, Kernel, Machine, Run, Series};

use crate::campaign::{self, End};
use crate::context::Context;
use crate::files;
use crate::table::{Mode, DEFAULT};
use crate::test::tap;
use crate::Verdict;

/// What is fuzzed.
#[derive(Debug)]
pub struct Subject {
    /// For --only.
    pub name: &'static str,
    program: &'static str,
    /// The mode of the machine.
    mode: &'static str,
    /// Modules that the program loads itself.
    modules: &'static [&'static str],
    /// The time of one run of the program, which is what an interruption loses.
    piece: Duration,
    /// How long one machine is used. A leak would show in the next test of memory.
    boot: Duration,
}

/// All of them.
pub static SUBJECTS: [Subject; 2] = [
    Subject {
        name: "dune",
        program: "tests/kernel/fuzz.t",
        mode: DEFAULT,
        modules: &[],
        piece: Duration::from_secs(120),
        boot: Duration::from_secs(1800),
    },
    // It seals the guard, so that each machine runs it once.
    Subject {
        name: "guard",
        program: "tests/guard/fuzz.t",
        mode: "guard",
        modules: &["dune-guard-inside.ko", "dune-guard-outside.ko", "dune-guard-secret.ko"],
        piece: Duration::from_secs(600),
        boot: Duration::from_secs(600),
    },
];

/// How much of the output is kept with a finding.
const LAST_LINES: usize = 400;

/// The progress on one kernel with one seed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Progress {
    /// The batch that comes next.
    next: u64,
    states: u64,
    runs: u64,
    ioctls: u64,
    seconds: u64,
    found: u64,
}

impl Progress {
    /// None, if a line is missing or has another form.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse().ok()
        };
        Some(Progress {
            next: field("next")?,
            states: field("states")?,
            runs: field("runs")?,
            ioctls: field("ioctls")?,
            seconds: field("seconds")?,
            found: field("found")?,
        })
    }

    fn text(&self) -> String {
        let Progress { next, states, runs, ioctls, seconds, found } = self;
        format!(
            "next {next}\nstates {states}\nruns {runs}\nioctls {ioctls}\n\
             seconds {seconds}\nfound {found}\n"
        )
    }

    /// Adds the counts of a run that came to its end.
    fn add(&mut self, counts: &Counts, time: Duration) {
        self.seconds += time.as_secs();
        self.next = counts.next.max(self.next);
        self.states += counts.states;
        self.runs += counts.runs;
        self.ioctls += counts.ioctls;
    }

    /// Skips the batches that a run named, which did not come to its end.
    fn skip_named(&mut self, output: &str, time: Duration) {
        self.seconds += time.as_secs();
        let named = output.lines().filter_map(|line| line.strip_prefix("# batch "));
        let named = named.filter_map(|number| number.parse::<u64>().ok()).max();
        self.next = named.unwrap_or(self.next).max(self.next) + 1;
    }
}

/// The line "# counts: next=7 states=600 ..." of fuzz.t.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    next: u64,
    states: u64,
    runs: u64,
    ioctls: u64,
}

impl Counts {
    /// None, if the line is missing or has another form.
    fn find(output: &str) -> Option<Self> {
        let line = output.lines().find_map(|line| line.strip_prefix("# counts: "))?;
        let count = |name: &str| {
            let mut pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name)?.1.parse().ok()
        };
        Some(Counts {
            next: count("next")?,
            states: count("states")?,
            runs: count("runs")?,
            ioctls: count("ioctls")?,
        })
    }
}

/// The work on one subject and one kernel.
struct Work<'a> {
    context: &'a Context,
    subject: &'static Subject,
    mode: &'a Mode,
    name: String,
    series: Series,
    seed: u64,
    directory: PathBuf,
    progress: Progress,
}

/// Fuzzes these kernels in turn: all subjects, or the one that `only` names. Fails if something
/// was found.
pub fn run(
    context: &Context,
    kernels: &[Series],
    only: Option<&str>,
    hours: f64,
) -> Result<Verdict> {
    let deadline = campaign::deadline(hours)?;
    let seed = std::env::var("FUZZ_SEED").ok().filter(|text| !text.is_empty());
    let seed = seed.map_or(Ok(1), |text| text.parse()).context("FUZZ_SEED is not a number")?;
    let is_chosen = |subject: &&Subject| only.is_none_or(|name| name == subject.name);
    let mut works = Vec::new();
    for subject in SUBJECTS.iter().filter(is_chosen) {
        // The guard is AMD's alone.
        let Ok(mode) = context.table.mode(subject.mode, context.machine_type()) else { continue };
        for &series in kernels {
            works.push(Work::new(context, subject, mode, series, seed)?);
        }
    }
    ensure!(!works.is_empty(), "this machine has nothing of that to fuzz");
    let mut found = 0;
    while Instant::now() < deadline {
        // The one that has had the least time.
        let Some(work) = works.iter_mut().min_by_key(|work| work.progress.seconds) else {
            break;
        };
        found += work.boot_and_fuzz(deadline)?;
    }
    for work in &works {
        work.report();
    }
    Ok(Verdict::passed_if(found == 0))
}

impl<'a> Work<'a> {
    fn new(
        context: &'a Context,
        subject: &'static Subject,
        mode: &'a Mode,
        series: Series,
        seed: u64,
    ) -> Result<Self> {
        let name = match subject.mode {
            DEFAULT => context.name_of(series),
            mode => format!("{}-{mode}", context.name_of(series)),
        };
        let directory = campaign::directory(context, Path::new("fuzz").join(&name))?;
        let progress = Progress::default();
        let mut work = Work { context, subject, mode, name, series, seed, directory, progress };
        let file = work.progress_file();
        if let Some(text) = files::read(&file)? {
            let broken = || format!("{} is broken: remove it to start anew", file.display());
            work.progress = Progress::parse(&text).with_context(broken)?;
        }
        Ok(work)
    }

    fn progress_file(&self) -> PathBuf {
        self.directory.join(format!("progress-{}", self.seed))
    }

    /// The fuzzer, which begins with the batch `first`.
    fn fuzzer(&self, first: u64, seconds: u64) -> Run {
        let mut run = self.context.command([self.context.build.join(self.subject.program)]);
        for (name, value) in [
            ("FUZZ_SEED", self.seed),
            ("FUZZ_FIRST", first),
            ("FUZZ_SECONDS", seconds),
            ("FUZZ_SAY", 1),
        ] {
            run.program.env.push((name.into(), value.to_string().into()));
        }
        let limit = self.subject.piece + Duration::from_secs(600);
        run.timeout = Some(limit * self.context.machine_type().time_factor);
        run
    }

    /// Fuzzes in one machine until its time is over, it breaks, or the deadline
    /// comes. Returns the number of findings.
    fn boot_and_fuzz(&mut self, deadline: Instant) -> Result<u64> {
        let kernel = Kernel::find(&self.context.layout, self.series)?;
        let config = self.context.machine_in(self.mode, kernel)?;
        let mut machine = Machine::boot(&self.context.layout, &config)?;
        let end = deadline.min(Instant::now() + self.subject.boot);
        while Instant::now() < end {
            let first = self.progress.next;
            let seconds = self.subject.piece.min(end - Instant::now()).as_secs().max(1);
            let run = self.fuzzer(first, seconds);
            let begin = Instant::now();
            let file = self.directory.join("output");
            let attempt = campaign::attempt(self.context, &mut machine, run, &file)?;
            let output = &attempt.output;
            let counts = Counts::find(output);
            match &counts {
                Some(counts) => self.progress.add(counts, begin.elapsed()),
                None => self.progress.skip_named(output, begin.elapsed()),
            }
            let (finding, is_over) = match attempt.end {
                End::Ended(outcome)
                    if outcome.status.success() && outcome.kernel_errors.is_none() =>
                {
                    ensure!(counts.is_some(), "{} printed no counts", self.subject.program);
                    (None, false)
                }
                End::Ended(outcome) => {
                    let log = outcome.kernel_errors.unwrap_or_else(|| machine.log().tail(200));
                    (Some(log), true)
                }
                End::StaleCode => (None, true),
                End::Died(e) => (Some(e.to_string()), true),
            };
            if let Some(log) = &finding {
                self.keep(output, log, first, &config)?;
            }
            files::write(&self.progress_file(), &self.progress.text())?;
            self.report();
            if is_over || self.subject.boot <= self.subject.piece {
                return Ok(u64::from(finding.is_some()));
            }
        }
        machine.power_off()?;
        Ok(0)
    }

    fn keep(&mut self, output: &str, log: &str, first: u64, config: &Config) -> Result<()> {
        self.progress.found += 1;
        let directory = self.directory.join(format!("found-{}-{first}", self.seed));
        fs::create_dir_all(&directory)
            .with_context(|| format!("making {}", directory.display()))?;
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text).with_context(|| format!("writing {name}"))
        };
        // Thousands of batches passed, and the last of them may be the cause.
        write("output", &tap::last_lines(output, LAST_LINES).join("\n"))?;
        write("kernel.log", log)?;
        fs::copy(self.context.build.join(self.subject.program), directory.join("fuzz.t"))
            .context("fuzz.t")?;
        for module in &config.insmod {
            let name = module.file_name().unwrap_or_default();
            fs::copy(module, directory.join(name)).context("keeping the module")?;
        }
        let release = &config.kernel.release;
        for name in self.subject.modules {
            let module = self.context.build.join("kernel").join(release).join(name);
            fs::copy(module, directory.join(name)).context("keeping a module")?;
        }
        let batches = first..self.progress.next;
        write("README", &how_to_repeat(config, self.subject, self.seed, batches))?;
        println!("{}: FOUND something: {}", self.name, directory.display());
        Ok(())
    }

    fn report(&self) {
        let Progress { next, states, runs, ioctls, seconds, found } = self.progress;
        println!(
            "{}: {states} states ({runs} runs, {ioctls} ioctls) of {next} batches of seed {} \
             in {}:{:02} h; found: {found}",
            self.name,
            self.seed,
            seconds / 3600,
            seconds / 60 % 60,
        );
    }
}

/// The command that runs these batches again, in a machine of this configuration, with the
/// fuzzer and the modules that are kept with the finding.
fn how_to_repeat(config: &Config, subject: &Subject, seed: u64, batches: Range<u64>) -> String {
    let Config { machine_type, kernel, memory, .. } = config;
    let Range { start, end } = batches;
    let last = end.saturating_sub(1);
    let cpus = config.cpus.count();
    let series = kernel.series.map(|series| format!(" --kernel {series}"));
    let model = config.cpu_model.as_ref().map(|model| format!(" --model {model}"));
    let names = config.insmod.iter().filter_map(|module| module.file_name());
    // The guard's fuzzer loads each module itself, by a variable that has the file's name.
    let insmod: String = if subject.modules.is_empty() {
        names.map(|name| format!("insmod {} && ", name.display())).collect()
    } else {
        let ours = subject.modules.iter().map(Path::new);
        let all = names.map(Path::new).chain(ours);
        let variable = |file: &Path| {
            let name = file.with_extension("").display().to_string();
            format!("{}_KO=$PWD/{} ", name.to_uppercase(), file.display())
        };
        format!("env {}", all.map(variable).collect::<String>())
    };
    let devices: String =
        config.devices.iter().map(|device| format!(" --device {}", device.name)).collect();
    let factor = machine_type.test_time_factor.map(|factor| format!("TEST_TIME_FACTOR={factor} "));
    format!(
        "Linux {}. In this directory, all batches from {start} to {last}:\n  \
         dunectl machine run --machine {machine_type}{}{}{devices} --cpus {cpus} \
         --memory {memory} --no-module -- \
         sh -c '{insmod}{}FUZZ_SEED={seed} FUZZ_FIRST={start} FUZZ_CHILDREN={} ./fuzz.t'\n\
         The last batches that `output` names, each alone: FUZZ_SEED={seed} ./fuzz.t NUMBER\n",
        kernel.release,
        series.unwrap_or_default(),
        model.unwrap_or_default(),
        factor.unwrap_or_default(),
        end - start,
    )
}

#[cfg(test)]
mod tests {
    use dune_machine::{Cpus, Kernel, SVM};

    use super::*;

    const END: &str = "# FUZZ_SEED=0x1 FUZZ_FIRST=4\n# batch 4\n# batch 5\n# batch 6\n\
        ok 1 - the states harmed nothing else\n# 120 ms\n\
        # counts: next=7 states=600 runs=740 ioctls=111 batches=3\n\
        ok 2 - the random states were really run\n1..4\n";

    #[test]
    fn counts_of_runs_are_added() {
        let mut progress = Progress { next: 4, states: 800, ..Progress::default() };
        progress.add(&Counts::find(END).expect("END has them"), Duration::from_secs(2));
        assert_eq!((progress.next, progress.states, progress.runs), (7, 1400, 740));
        assert_eq!((progress.ioctls, progress.seconds), (111, 2));
        assert_eq!(Progress::parse(&progress.text()), Some(progress));
        assert_eq!(Progress::parse("next 7\nfound none\n"), None);
    }

    #[test]
    fn counts_need_their_line() {
        assert_eq!(Counts::find("ok 1 - 600 states with 740 runs\n"), None);
        assert_eq!(Counts::find("# counts: next=7 states=600 runs=740\n"), None);
    }

    #[test]
    fn batches_that_were_named_are_skipped() {
        let mut progress = Progress { next: 4, ..Progress::default() };
        progress.skip_named("# batch 4\n# batch 6\n# batch 5\n", Duration::ZERO);
        assert_eq!((progress.next, progress.states), (7, 0));
        progress.skip_named("", Duration::ZERO);
        assert_eq!(progress.next, 8);
    }

    #[test]
    fn a_finding_is_repeated_with_its_own_module_and_machine() {
        let kernel = Kernel {
            series: Some(Series::V6_12),
            release: "6.12.9".to_owned(),
            root: PathBuf::from("/k"),
        };
        let mut config = Config::new(&SVM, kernel);
        config.cpus = Cpus::Free(2);
        config.memory = 3072;
        config.cpu_model = Some("EPYC-Milan".to_owned());
        config.insmod = vec![PathBuf::from("/build/kernel/6.12.9/dune.ko")];
        let text = how_to_repeat(&config, &SUBJECTS[0], 5, 10..14);
        let command = "  dunectl machine run --machine svm --kernel 6.12 --model EPYC-Milan \
                       --cpus 2 --memory 3072 --no-module -- sh -c 'insmod dune.ko && \
                       FUZZ_SEED=5 FUZZ_FIRST=10 FUZZ_CHILDREN=4 ./fuzz.t'";
        let head = "Linux 6.12.9. In this directory, all batches from 10 to 13:";
        assert_eq!(text.lines().take(2).collect::<Vec<_>>(), [head, command]);
    }
}

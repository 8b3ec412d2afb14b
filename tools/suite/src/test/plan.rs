// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests that make test, make test-all, make test-vmx, make test-debug and --mode
//! choose from tests/suite.toml (../table.rs): a list of jobs, which can be
//! run or printed (--dry-run).

use std::collections::BTreeMap;

use anyhow::{bail, ensure, Result};
use dune_machine::{Kernel, MachineType, Series, SVM, VMX};

use crate::context::Context;
use crate::table::{Mode, Selection, DEFAULT};
use crate::test::records::MachineKey;
use crate::test::tally::Tally;
use crate::test::{debug, harness, host, programs, tools};

/// The name of the harness's own tests, for --only.
pub const HARNESS: &str = "harness";

/// A part of the tests, with results of its own.
pub enum Job {
    /// The tools' own tests.
    Tools,
    Harness,
    /// A program on this computer, to the depth of make test-all or to that of make test.
    Host {
        program: &'static host::Program,
        is_deep: bool,
    },
    Boot(Box<Boot>),
}

/// A machine booted in one way, and what runs in it.
pub struct Boot {
    pub name: String,
    /// The context, with this mode's machine chosen.
    pub context: Context,
    pub mode: Mode,
    kernel: BootKernel,
    pub tests: Selection,
    /// Whether it is of make test: without the tests that make test does not run on this kernel,
    /// and with its variables for the others.
    is_short: bool,
    /// If there are any, only tests whose names contain one of these texts run.
    only: Option<Vec<String>>,
}

enum BootKernel {
    Series(Series),
    Debug,
}

/// make test on these kernels, or only those of its tests that `only` names.
pub fn make_test(context: &Context, kernels: &[Series], only: Option<&str>) -> Vec<Job> {
    if only == Some(HARNESS) {
        return vec![Job::Harness];
    }
    if let Some(program) = host::PROGRAMS.iter().find(|program| only == Some(program.name)) {
        return vec![Job::Host { program, is_deep: false }];
    }
    let machine_type = context.machine_type();
    if only.is_none() && machine_type.is_default() {
        let mut jobs = vec![Job::Tools];
        if harness::KERNELS.iter().all(|series| kernels.contains(series)) {
            jobs.push(Job::Harness);
        }
        jobs.extend(host::PROGRAMS.iter().map(|program| Job::Host { program, is_deep: false }));
        for (mode, kernels) in context.table.short(kernels) {
            let boot = |&series| Boot {
                is_short: true,
                ..Boot::new(context, mode, series, mode.short_tests())
            };
            jobs.extend(kernels.iter().map(boot).map(Job::from));
        }
        return jobs;
    }
    let mode = context.table.default_mode(machine_type);
    let boot = |&series| {
        let tests = if only.is_some() { &mode.tests } else { mode.full_tests(series) };
        Boot::new(context, mode, series, tests).only(only).into()
    };
    kernels.iter().map(boot).collect()
}

/// One mode on these kernels.
pub fn mode(
    context: &Context,
    kernels: &[Series],
    only: Option<&str>,
    name: &str,
) -> Result<Vec<Job>> {
    let mode = context.table.mode(name, context.machine_type())?;
    ensure!(!mode.by_hand, "mode {name} has a command of its own: make test-{name}");
    let boot = |&series| {
        ensure!(
            mode.is_for(series),
            "the mode {name} is for Linux {} to {}, not for {series}",
            mode.since,
            mode.until
        );
        Ok(Boot::new(context, mode, series, &mode.tests).only(only).into())
    };
    kernels.iter().map(boot).collect()
}

/// make test-all: the jobs with their names.
pub fn make_test_all(context: &Context, kernels: &[Series]) -> Vec<(String, Job)> {
    let mut jobs = Vec::new();
    for machine_type in context.machine_types() {
        if machine_type.is_default() {
            jobs.push(("tools".to_owned(), Job::Tools));
            jobs.push((HARNESS.to_owned(), Job::Harness));
            let host = |program: &'static host::Program| {
                (program.part.to_owned(), Job::Host { program, is_deep: true })
            };
            jobs.extend(host::PROGRAMS.iter().map(host));
        }
        let modes = |series| {
            let modes = context.table.modes(machine_type, series);
            modes.into_iter().filter(|mode| !mode.by_hand).map(move |mode| (series, mode))
        };
        let all = kernels.iter().flat_map(|&series| modes(series));
        let (default, others): (Vec<_>, Vec<_>) = all.partition(|(_, mode)| mode.is_default());
        for (series, mode) in default.into_iter().chain(others) {
            let boot = Boot::new(context, mode, series, mode.full_tests(series));
            jobs.push((boot.name.clone(), boot.into()));
        }
    }
    jobs
}

/// make test-vmx: the modes that the table has for it; with `only`, those of its tests
/// in the machine's default mode.
pub fn make_test_vmx(context: &Context, only: Option<&str>) -> Result<Vec<Job>> {
    ensure!(context.machine_types().contains(&&VMX), "test-vmx has the vmx machine only");
    let mut jobs = Vec::new();
    for (mode, kernels) in context.table.vmx() {
        if only.is_none() || mode.is_default() {
            let boot = |&series| Boot::new(context, mode, series, &mode.tests).only(only);
            jobs.extend(kernels.iter().map(boot).map(Job::from));
        }
    }
    Ok(jobs)
}

/// make test-debug: the modules' tests, or those of all tests that `only` names. The guard's run
/// in a mode of their own, which only AMD's machine has.
pub fn make_test_debug(context: &Context, only: Option<&str>) -> Result<Vec<Job>> {
    let names_guard =
        only.is_some_and(|texts| texts.split(',').any(|text| text.contains("guard/")));
    let boot = |name: &str, tests: Option<&Selection>| -> Result<Job> {
        let mode = context.table.mode(name, context.machine_type())?;
        let tests = tests.unwrap_or(&mode.tests);
        let boot = Boot::new(context, mode, debug::SERIES, tests).only(only);
        Ok(Boot { kernel: BootKernel::Debug, ..boot }.into())
    };
    let mut jobs = Vec::new();
    if !names_guard {
        jobs.push(boot("debug", only.map(|_| &Selection::All))?);
    }
    if names_guard || (only.is_none() && *context.machine_type() == SVM) {
        jobs.push(boot("guard-debug", None)?);
    }
    Ok(jobs)
}

impl From<Boot> for Job {
    fn from(boot: Boot) -> Self {
        Job::Boot(Box::new(boot))
    }
}

impl Job {
    /// Runs its tests, and adds their results to the tally.
    pub fn run(&self, context: &Context, tally: &mut Tally) -> Result<()> {
        match self {
            Job::Tools => tools::run(context, tally),
            Job::Harness => harness::run(context, tally),
            Job::Host { program, is_deep } => host::run(context, program, *is_deep, tally),
            Job::Boot(boot) => programs::run(boot, tally),
        }
    }

    /// Whether it is a machine with its tests.
    pub fn boots(&self) -> bool {
        matches!(self, Job::Boot(_))
    }

    /// Whether it boots the vmx machine.
    pub fn is_slow(&self) -> bool {
        matches!(self, Job::Boot(boot) if *boot.mode.machine_type == VMX)
    }

    /// Whether it boots a machine that has a thread for each CPU. Bochs has one for all of them.
    pub fn has_threads(&self) -> bool {
        match self {
            Job::Boot(boot) => *boot.mode.machine_type == SVM && !boot.mode.single_thread,
            Job::Tools | Job::Harness | Job::Host { .. } => false,
        }
    }

    /// The machine of a mode with one of Debian's kernels, for the key of its record.
    pub fn machine(&self) -> Result<Option<MachineKey>> {
        match self {
            Job::Boot(boot) => boot.machine(),
            Job::Tools | Job::Harness | Job::Host { .. } => Ok(None),
        }
    }

    /// Describes the machine and the tests that run() would run.
    pub fn describe(&self) -> Result<String> {
        match self {
            Job::Tools => Ok("tools: cargo test\n".to_owned()),
            Job::Harness => Ok("harness: the tests of the harness\n".to_owned()),
            Job::Host { program, .. } => Ok(format!("{}: on this computer\n", program.name)),
            Job::Boot(boot) => boot.describe(),
        }
    }
}

impl Boot {
    fn new(context: &Context, mode: &Mode, series: Series, tests: &Selection) -> Self {
        let context = context.in_machine(mode.machine_type);
        let name = match mode.name.as_str() {
            DEFAULT => context.name_of(series),
            name => format!("{}-{name}", context.name_of(series)),
        };
        let (mode, tests) = (mode.clone(), tests.clone());
        let kernel = BootKernel::Series(series);
        Boot { name, context, mode, kernel, tests, is_short: false, only: None }
    }

    fn only(mut self, only: Option<&str>) -> Self {
        self.only = only.map(|texts| texts.split(',').map(str::to_owned).collect());
        self
    }

    /// The kernel. The debug kernel is built first.
    pub fn kernel(&self) -> Result<Kernel> {
        match self.kernel {
            BootKernel::Series(series) => Ok(Kernel::find(&self.context.layout, series)?),
            BootKernel::Debug => debug::prepare(&self.context),
        }
    }

    fn machine(&self) -> Result<Option<MachineKey>> {
        let Boot { context, mode, .. } = self;
        let BootKernel::Series(series) = self.kernel else { return Ok(None) };
        Ok(Some(MachineKey {
            release: Kernel::find(&context.layout, series)?.release,
            cpus: context.cpus(mode),
            cpu_model: context.cpu_model(mode).map(str::to_owned),
        }))
    }

    /// Whether a test is to run.
    pub fn has(&self, test: &str) -> bool {
        let only = self.only.as_ref();
        let table = &self.context.table;
        let is_left_out = match self.kernel {
            BootKernel::Series(series) if self.is_short => !table.is_short_on(series, test),
            _ => false,
        };
        only.is_none_or(|texts| texts.iter().any(|text| test.contains(text)))
            && table.selects(&self.tests, test, self.mode.machine_type)
            && !is_left_out
    }

    /// The variables that a test has of its own here.
    pub fn env<'a>(&'a self, test: &'a str) -> BTreeMap<&'a str, &'a str> {
        self.context.table.env(test, self.is_short)
    }

    /// Texts of `only` that select no test here, or else mistakes in the table. With
    /// `only`, the table is not checked, since perhaps no other tests were built.
    pub fn mistakes(&self, tests: &[String]) -> Vec<String> {
        let Some(texts) = &self.only else {
            return self.context.table.without_tests(&self.tests, tests);
        };
        let machine_type = self.mode.machine_type;
        let runs = |test: &str| self.context.table.selects(&self.tests, test, machine_type);
        let selects = |text: &str| tests.iter().any(|test| test.contains(text) && runs(test));
        let wrong = texts.iter().filter(|text| !selects(text));
        wrong.map(|text| format!("--only {text}: no test that runs here has such a name")).collect()
    }

    fn describe(&self) -> Result<String> {
        let mode = &self.mode;
        let MachineType { name, boot_timeout, .. } = mode.machine_type;
        let cpus = self.context.cpus(mode);
        let mut text = format!("{}: {name}, {cpus} CPUs, {} MB\n", self.name, mode.memory);
        let mut add = |line: &str| text += &format!("    {line}\n");
        if let Some(model) = self.context.cpu_model(mode) {
            add(&format!("CPU model: {model}"));
        }
        if !mode.cpu_features.is_empty() {
            add(&format!("CPU features: {}", mode.cpu_features.join(" ")));
        }
        if !mode.devices.is_empty() {
            add(&format!("devices: {:?}", mode.devices));
        }
        if !mode.network_cards.is_empty() {
            add(&format!("network cards: {}", mode.network_cards.join(" ")));
        }
        if !mode.kernel_arguments.is_empty() {
            add(&format!("kernel arguments: {}", mode.kernel_arguments.join(" ")));
        }
        if mode.single_thread {
            add("QEMU with one thread for all CPUs");
        }
        if mode.newest_qemu {
            add("the newest QEMU");
        }
        if mode.second_factor != 1 {
            add(&format!("a second lasts {} times longer", mode.second_factor));
        }
        add(&format!("boots within {} s", (*boot_timeout * mode.boot_time_factor).as_secs()));
        if let Some(proof) = &mode.proof {
            add(&format!("proof: {proof}"));
        }
        let found = programs::tests(self)?;
        if let Some(mistake) = self.mistakes(&found.all).first() {
            bail!("{mistake}");
        }
        for test in &found.chosen {
            let minutes = self.context.table.limit(&test.name, mode.machine_type).as_secs() / 60;
            let env = self.env(&test.name).into_iter();
            let env: String = env.map(|(name, value)| format!(", {name}={value}")).collect();
            let alone = if test.own_boot { ", in a boot of its own" } else { "" };
            add(&format!("{}: {minutes} min{env}{alone}", test.name));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_machine_of_a_part_has_the_options_of_the_command_line() {
        let build = tempfile::tempdir().unwrap();
        let boot = build.path().join("machine/6.1/boot");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("vmlinuz-6.1.0-1"), "").unwrap();
        let machine = |options: &[&str]| {
            let context = Context::for_test(build.path(), options);
            let jobs = make_test_all(&context, &[Series::V6_1]);
            let found = jobs.iter().find(|(name, _)| name == "6.1");
            let (_, job) = found.expect("6.1 is the default mode of svm");
            job.machine().unwrap().expect("it boots a kernel")
        };
        let usual = machine(&[]);
        assert_eq!((usual.release.as_str(), usual.cpus), ("6.1.0-1", 2));
        assert_eq!(usual, machine(&["--cpus", "2"]));
        assert_eq!(machine(&["--cpus", "1"]), MachineKey { cpus: 1, ..usual.clone() });
        let model = Some("phenom".to_owned());
        assert_eq!(machine(&["--model", "phenom"]), MachineKey { cpu_model: model, ..usual });
    }

    /// `make test KERNELS=newest` prepares no other kernel.
    #[test]
    fn the_harness_is_tested_where_its_kernels_are() {
        let build = tempfile::tempdir().unwrap();
        let context = Context::for_test(build.path(), &[]);
        let has_harness = |kernels: &[Series]| {
            let jobs = make_test(&context, kernels, None);
            jobs.iter().any(|job| matches!(job, Job::Harness))
        };
        assert!(has_harness(&[Series::V6_1, Series::V6_12]));
        assert!(has_harness(&Series::ALL));
        assert!(!has_harness(&[Series::Newest]));
        assert!(!has_harness(&[Series::V6_1]));
    }
}

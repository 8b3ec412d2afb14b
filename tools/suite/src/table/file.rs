// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and checks the text of tests/suite.toml. A mistake in it is one line with
//! the file and the line's number.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use anyhow::{anyhow, bail, Result};
use dune_machine::{options, Device, MachineType, Series, VMX};
use serde::de::{self, Deserializer};
use serde::Deserialize;
use toml::Spanned;

use super::{means, Entry, Mode, Selection, Short, Table, Test, DEFAULT, FILE};

/// The variables that only the suite sets (context.rs).
const SUITE_VARIABLES: [&str; 2] = ["DUNE_BUILD", "TEST_TIME_FACTOR"];

/// The name of the set of all tests, except those that run only where they are named.
const USUAL: &str = "usual";

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    minutes: NonZeroU64,
    sets: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    #[serde(rename = "test", default)]
    tests: Vec<Spanned<Test>>,
    #[serde(rename = "mode")]
    modes: Vec<Spanned<Row>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    machines: Vec<ByName<&'static MachineType>>,
    since: Option<ByName<Series>>,
    until: Option<ByName<Series>>,
    cpus: Option<Spanned<u32>>,
    memory: Option<NonZeroU32>,
    cpu_model: Option<String>,
    #[serde(default)]
    cpu_features: Vec<String>,
    #[serde(default)]
    devices: Vec<ByName<&'static Device>>,
    #[serde(default)]
    network_cards: Vec<String>,
    #[serde(default)]
    kernel_arguments: Vec<String>,
    #[serde(default)]
    single_thread: bool,
    #[serde(default)]
    newest_qemu: bool,
    second_factor: Option<NonZeroU32>,
    boot_time_factor: Option<NonZeroU32>,
    proof: Option<String>,
    #[serde(default)]
    unproved: bool,
    tests: Vec<Spanned<String>>,
    short_tests: Option<Vec<Spanned<String>>>,
    short_kernels: Option<Vec<ByName<Series>>>,
    full_kernels: Option<Vec<ByName<Series>>>,
    vmx_kernels: Option<Vec<ByName<Series>>>,
    #[serde(default)]
    by_hand: bool,
}

/// A kernel series or a machine type, which are written by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByName<T>(pub T);

impl<'de, T: std::str::FromStr<Err: Display>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(ByName).map_err(de::Error::custom)
    }
}

fn series(names: &Option<Vec<ByName<Series>>>) -> Option<Vec<Series>> {
    names.as_ref().map(|names| names.iter().map(|name| name.0).collect())
}

/// The text, to name a place in it.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        let before = &self.0.as_bytes()[..span.start.min(self.0.len())];
        format!("{FILE}:{}", 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    fn wrong(&self, span: Range<usize>, message: impl Display) -> anyhow::Error {
        anyhow!("{}: {message}", self.place(&span))
    }
}

/// The checked table of a text.
pub fn parse(text: &str) -> Result<Table> {
    let source = Source(text);
    let file: File = toml::from_str(text)
        .map_err(|e| source.wrong(e.span().unwrap_or_default(), e.message()))?;
    let sets = Sets::new(&source, &file.sets)?;
    for row in &file.modes {
        sets.check(&source, row)?;
    }
    for one in MachineType::ALL {
        if default_of(&file.modes, one).is_none() {
            bail!("{FILE}: the machine {one} has no mode \"{DEFAULT}\"");
        }
    }
    let mut modes: Vec<Mode> = Vec::new();
    for row in &file.modes {
        for &ByName(machine_type) in &row.as_ref().machines {
            let mode = new_mode(&source, &sets, &file.modes, row, machine_type)?;
            if modes.iter().any(|other| other.is(&mode.name, machine_type)) {
                let message = format!("there is a mode \"{}\" of {machine_type}", mode.name);
                return Err(source.wrong(row.span(), format!("{message} already")));
            }
            modes.push(mode);
        }
    }
    let mut tests: Vec<Test> = Vec::new();
    for test in file.tests {
        let place = source.place(&test.span());
        let test = test.into_inner();
        if test.machines.as_ref().is_some_and(Vec::is_empty) {
            bail!("{place}: {} runs in no machine", test.name);
        }
        let has =
            |name: &&&str| [&test.env, &test.short_env].iter().any(|env| env.contains_key(**name));
        if let Some(name) = SUITE_VARIABLES.iter().find(has) {
            bail!("{place}: only the suite sets {name}");
        }
        if tests.iter().any(|other| other.name == test.name) {
            bail!("{place}: a second entry for {}", test.name);
        }
        tests.push(Test { place, ..test });
    }
    for row in &file.modes {
        check_machines(&sets, &source, row.as_ref(), &tests)?;
    }
    Ok(Table { modes, tests, minutes: file.minutes })
}

/// A mode that names a test has a machine in which the test runs.
fn check_machines(sets: &Sets, source: &Source, row: &Row, tests: &[Test]) -> Result<()> {
    for entries in [Some(&row.tests), row.short_tests.as_ref()].into_iter().flatten() {
        let Selection::Named(entries) = sets.select(source, entries)? else { continue };
        for Entry { name, place } in entries {
            let runs_in = |one: &ByName<&'static MachineType>| {
                let mut of_it = tests.iter().filter(|test| means(&test.name, &name));
                of_it.all(|test| test.runs_in(one.0))
            };
            if !row.machines.iter().any(runs_in) {
                bail!("{place}: {name} runs in no machine of the mode \"{}\"", row.name);
            }
        }
    }
    Ok(())
}

fn default_of<'a>(rows: &'a [Spanned<Row>], machine_type: &MachineType) -> Option<&'a Row> {
    let mut rows = rows.iter().map(|row| row.as_ref());
    rows.find(|row| row.name == DEFAULT && row.machines.iter().any(|one| one.0 == machine_type))
}

/// The mode of a row, for one of its machines.
fn new_mode(
    source: &Source,
    sets: &Sets,
    rows: &[Spanned<Row>],
    spanned: &Spanned<Row>,
    machine_type: &'static MachineType,
) -> Result<Mode> {
    let row = spanned.as_ref();
    let default = default_of(rows, machine_type).unwrap_or(row);
    if row.short_tests.is_none() && (row.short_kernels.is_some() || row.full_kernels.is_some()) {
        let message = "short_kernels and full_kernels mean nothing without short_tests";
        return Err(source.wrong(spanned.span(), message));
    }
    if row.vmx_kernels.is_some() && !row.machines.contains(&ByName(&VMX)) {
        let message = "vmx_kernels means nothing in a mode that the vmx machine does not have";
        return Err(source.wrong(spanned.span(), message));
    }
    let cpus = row.cpus.as_ref().or(default.cpus.as_ref());
    if let Some(wrong) = cpus.filter(|cpus| !(1..=options::MOST_CPUS).contains(cpus.as_ref())) {
        let message = format!("a machine has 1 to {} CPUs", options::MOST_CPUS);
        return Err(source.wrong(wrong.span(), message));
    }
    let short = row.short_tests.as_ref().map(|tests| sets.select(source, tests)).transpose()?;
    if row.unproved && row.proof.is_some() {
        let message = "a mode that is unproved has no proof";
        return Err(source.wrong(spanned.span(), message));
    }
    let proof = row.proof.as_ref().or(default.proof.as_ref()).filter(|_| !row.unproved);
    let memory = row.memory.or(default.memory);
    Ok(Mode {
        name: row.name.clone(),
        machine_type,
        since: row.since.map_or(Series::ALL[0], |since| since.0),
        until: row.until.map_or(Series::Newest, |until| until.0),
        own_cpus: row.cpus.as_ref().map(|cpus| *cpus.as_ref()),
        default_cpus: default.cpus.as_ref().map_or(1, |cpus| *cpus.as_ref()),
        memory: memory.map_or(machine_type.memory, NonZeroU32::get),
        cpu_model: row.cpu_model.clone(),
        cpu_features: row.cpu_features.clone(),
        devices: row.devices.iter().map(|device| device.0).collect(),
        network_cards: row.network_cards.clone(),
        kernel_arguments: row.kernel_arguments.clone(),
        single_thread: row.single_thread,
        newest_qemu: row.newest_qemu,
        second_factor: row.second_factor.map_or(1, NonZeroU32::get),
        boot_time_factor: row.boot_time_factor.map_or(1, NonZeroU32::get),
        proof: proof.cloned(),
        tests: sets.select(source, &row.tests)?,
        by_hand: row.by_hand,
        short: short.map(|tests| Short {
            tests,
            kernels: series(&row.short_kernels),
            full_kernels: series(&row.full_kernels),
        }),
        vmx_kernels: series(&row.vmx_kernels).unwrap_or_default(),
    })
}

/// The sets, by name.
struct Sets<'a>(BTreeMap<&'a str, &'a [Spanned<String>]>);

impl<'a> Sets<'a> {
    fn new(
        source: &Source,
        written: &'a BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    ) -> Result<Self> {
        for (name, tests) in written {
            if name.as_ref() == USUAL || name.as_ref().contains('/') {
                let message = format!("a set cannot be named \"{}\"", name.as_ref());
                return Err(source.wrong(name.span(), message));
            }
            if let Some(test) = tests.iter().find(|test| !test.as_ref().contains('/')) {
                let message = format!("\"{}\" is no test: those have a slash", test.as_ref());
                return Err(source.wrong(test.span(), message));
            }
        }
        Ok(Sets(written.iter().map(|(name, tests)| (name.as_ref().as_str(), &tests[..])).collect()))
    }

    fn check(&self, source: &Source, row: &Spanned<Row>) -> Result<()> {
        let wrong = |message: &str| Err(source.wrong(row.span(), message));
        match row.as_ref() {
            row if row.machines.is_empty() => wrong("the mode is of no machine"),
            row if row.tests.is_empty() => wrong("the mode runs no test"),
            _ => Ok(()),
        }
    }

    fn select(&self, source: &Source, entries: &[Spanned<String>]) -> Result<Selection> {
        let mut named = Vec::new();
        let mut add = |entry: &Spanned<String>| {
            let place = source.place(&entry.span());
            named.push(Entry { name: entry.as_ref().clone(), place });
        };
        for entry in entries {
            match entry.as_ref().as_str() {
                USUAL => return Ok(Selection::Usual),
                name if name.contains('/') => add(entry),
                name => match self.0.get(name) {
                    Some(tests) => tests.iter().for_each(&mut add),
                    None => {
                        let known: Vec<_> = self.0.keys().copied().chain([USUAL]).collect();
                        let message = format!("there is no set \"{name}\"; there are: ");
                        return Err(source.wrong(entry.span(), message + &known.join(", ")));
                    }
                },
            }
        }
        Ok(Selection::Named(named))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const SMALL: &str = r#"minutes = 30
[sets]
few = ["a/x", "b/"]
[[test]]
name = "a/slow"
minutes = 60
own_boot = true
machines = ["svm"]
short_kernels = ["6.12"]
env = { CYCLES = "9", SEED = "1" }
short_env = { CYCLES = "2" }
[[test]]
name = "odd/"
only_named = true
[[mode]]
name = "default"
machines = ["svm", "vmx"]
cpus = 2
proof = "true"
tests = ["usual"]
short_tests = ["few"]
full_kernels = ["6.1"]
vmx_kernels = ["6.1"]
[[mode]]
name = "pti"
machines = ["svm"]
since = "6.12"
cpus = 4
tests = ["few", "odd/"]
short_tests = ["b/"]
short_kernels = ["6.12"]
"#;

    /// The report of a mistake, made by replacing `from`.
    fn mistake(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        parse(&SMALL.replacen(from, to, 1)).expect_err("this is a mistake").to_string()
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let line = |from, to| mistake(from, to).split(' ').next().map(str::to_owned).unwrap();
        assert_eq!(
            mistake("[\"few\"]", "[\"fwe\"]"),
            "tests/suite.toml:21: there is no set \"fwe\"; there are: few, usual"
        );
        assert_eq!(line("only_named", "only_nmaed"), "tests/suite.toml:14:");
        assert_eq!(line("since = \"6.12\"", "since = \"6.2\""), "tests/suite.toml:27:");
        assert_eq!(line("[\"svm\"]\nsince", "[\"tdx\"]\nsince"), "tests/suite.toml:26:");
        assert_eq!(line("cpus = 4", "cpus = 17"), "tests/suite.toml:28:");
        assert_eq!(line("cpus = 4", "cpus ="), "tests/suite.toml:28:");
        assert_eq!(line("minutes = 30", "minutes = 0"), "tests/suite.toml:1:");
        assert_eq!(
            line("machines = [\"svm\"]\nshort", "machines = []\nshort"),
            "tests/suite.toml:4:"
        );
        assert_eq!(line("env = { CYCLES", "env = { DUNE_BUILD"), "tests/suite.toml:4:");
        assert_eq!(line("short_env = { CYCLES", "short_env = { DUNE_BUILD"), "tests/suite.toml:4:");
        let slow = "a/slow\"\nminutes = 60\nown_boot = true\nmachines = [\"svm\"]";
        assert_eq!(
            mistake(slow, "a/x\"\nmachines = [\"vmx\"]"),
            "tests/suite.toml:3: a/x runs in no machine of the mode \"pti\""
        );
        assert_eq!(
            mistake("name = \"odd/\"", "name = \"odd/\"\nmachines = [\"vmx\"]"),
            "tests/suite.toml:30: odd/ runs in no machine of the mode \"pti\""
        );
        let short = "short_tests = [\"b/\"]\nshort_kernels = [\"6.12\"]";
        assert_eq!(
            mistake(
                short,
                "short_tests = [\"c/y\"]\n[[test]]\nname = \"c/\"\nmachines = [\"vmx\"]"
            ),
            "tests/suite.toml:30: c/y runs in no machine of the mode \"pti\""
        );
        assert_eq!(line("\"a/x\"", "\"a\""), "tests/suite.toml:3:");
        assert_eq!(line("name = \"odd/\"", "name = \"a/slow\""), "tests/suite.toml:12:");
        assert_eq!(line("name = \"pti\"", "name = \"default\""), "tests/suite.toml:24:");
        assert_eq!(line("short_tests = [\"b/\"]", ""), "tests/suite.toml:24:");
        assert_eq!(line("cpus = 4", "vmx_kernels = [\"6.1\"]"), "tests/suite.toml:24:");
        assert_eq!(line("cpus = 4", "proof = \"true\"\nunproved = true"), "tests/suite.toml:24:");
        assert_eq!(line("name = \"default\"", "name = \"other\""), "tests/suite.toml:");
    }
}

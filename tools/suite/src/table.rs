// SPDX-License-Identifier: MIT OR Apache-2.0
//! tests/suite.toml: which tests run in which machine, how it is booted, and
//! how long a test may take. The file says what each field means.
//!
//! A mistake in it is one line with the file and the line's number.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, bail, Context as _, Result};
use dune_machine::{MachineType, Series};
use serde::de::{self, Deserializer};
use serde::Deserialize;
use toml::Spanned;

/// In the sources.
const FILE: &str = "tests/suite.toml";

/// How a machine is booted without `--mode`.
pub const DEFAULT: &str = "default";

const MOST_CPUS: u32 = 16;

/// The set of all tests, except those that run only where they are named.
const ALL: &str = "all";

/// The checked table.
#[derive(Debug, Clone)]
pub struct Table {
    modes: Vec<Mode>,
    tests: Vec<Test>,
    minutes: NonZeroU64,
}

/// One way to boot one machine type, and what runs there.
#[derive(Debug, Clone)]
pub struct Mode {
    pub name: String,
    pub machine_type: &'static MachineType,
    pub since: Series,
    /// Of this row itself.
    pub own_cpus: Option<u32>,
    /// Of this row, or else of the machine's default mode.
    pub cpus: u32,
    pub memory: u32,
    pub cpu_model: Option<String>,
    pub cpu_features: Vec<String>,
    pub kernel_arguments: Vec<String>,
    pub single_thread: bool,
    pub newest_qemu: bool,
    pub slow_motion: u32,
    pub boot_slowness: u32,
    pub proof: Option<String>,
    pub tests: Selection,
    pub by_hand: bool,
    /// What make test runs, and on which kernels.
    short: Option<(Selection, Option<Vec<Series>>)>,
    full_kernels: Option<Vec<Series>>,
}

/// Some of all tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them, except those that run only where they are named.
    All,
    Named(Vec<Prefix>),
    /// All of them, whatever their own entries say.
    Everything,
}

/// The beginning of some tests' names, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    pub text: String,
    /// "tests/suite.toml:12"
    pub place: String,
}

/// What the file says of a test, or of some.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    name: String,
    #[serde(default)]
    own_boot: bool,
    #[serde(default)]
    only_named: bool,
    minutes: Option<NonZeroU64>,
    /// Where it is written.
    #[serde(skip)]
    place: String,
}

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
    #[serde(deserialize_with = "each_by_name")]
    machines: Vec<&'static MachineType>,
    #[serde(default, deserialize_with = "some_by_name")]
    since: Option<Series>,
    cpus: Option<Spanned<u32>>,
    memory: Option<NonZeroU32>,
    cpu_model: Option<String>,
    #[serde(default)]
    cpu_features: Vec<String>,
    #[serde(default)]
    kernel_arguments: Vec<String>,
    #[serde(default)]
    single_thread: bool,
    #[serde(default)]
    newest_qemu: bool,
    slow_motion: Option<NonZeroU32>,
    boot_slowness: Option<NonZeroU32>,
    proof: Option<String>,
    tests: Vec<Spanned<String>>,
    short_tests: Option<Vec<Spanned<String>>>,
    #[serde(default, deserialize_with = "some_each_by_name")]
    short_kernels: Option<Vec<Series>>,
    #[serde(default, deserialize_with = "some_each_by_name")]
    full_kernels: Option<Vec<Series>>,
    #[serde(default)]
    by_hand: bool,
}

/// A kernel series or a machine type, which are written by name.
struct ByName<T>(T);

impl<'de, T: std::str::FromStr<Err: Display>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(ByName).map_err(de::Error::custom)
    }
}

fn some_by_name<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: Display>,
{
    ByName::deserialize(deserializer).map(|name| Some(name.0))
}

fn each_by_name<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: Display>,
{
    let names = Vec::<ByName<T>>::deserialize(deserializer)?;
    Ok(names.into_iter().map(|name| name.0).collect())
}

fn some_each_by_name<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: std::str::FromStr<Err: Display>,
{
    each_by_name(deserializer).map(Some)
}

/// The text, to name a place in it.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        let before = &self.0.as_bytes()[..span.start.min(self.0.len())];
        format!("{FILE}:{}", 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    fn wrong(&self, span: Range<usize>, what: impl Display) -> anyhow::Error {
        anyhow!("{}: {what}", self.place(&span))
    }
}

impl Table {
    pub fn read(source: &Path) -> Result<Self> {
        let path = source.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {FILE}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
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
            for &machine_type in &row.as_ref().machines {
                let mode = Mode::new(&source, &sets, &file.modes, row, machine_type)?;
                if modes.iter().any(|other| other.is(&mode.name, machine_type)) {
                    let what = format!("there is a mode \"{}\" of {machine_type}", mode.name);
                    return Err(source.wrong(row.span(), format!("{what} already")));
                }
                modes.push(mode);
            }
        }
        let mut tests: Vec<Test> = Vec::new();
        for test in file.tests {
            let place = source.place(&test.span());
            let test = test.into_inner();
            if tests.iter().any(|other| other.name == test.name) {
                bail!("{place}: a second entry for {}", test.name);
            }
            tests.push(Test { place, ..test });
        }
        Ok(Table { modes, tests, minutes: file.minutes })
    }

    /// The modes of a machine that a kernel can be booted in, in the table's
    /// order. The default mode is one of them.
    pub fn modes(&self, machine_type: &MachineType, series: Series) -> Vec<&Mode> {
        let fits = |mode: &&Mode| mode.machine_type == machine_type && mode.since <= series;
        self.modes.iter().filter(fits).collect()
    }

    pub fn default_mode(&self, machine_type: &MachineType) -> &Mode {
        let found = self.modes.iter().find(|mode| mode.is(DEFAULT, machine_type));
        found.expect("each machine was found to have a default mode")
    }

    /// The mode of this name.
    pub fn mode(&self, name: &str, machine_type: &MachineType) -> Result<&Mode> {
        if let Some(mode) = self.modes.iter().find(|mode| mode.is(name, machine_type)) {
            return Ok(mode);
        }
        let mut names: Vec<&str> = Vec::new();
        for mode in self.modes.iter().filter(|mode| !mode.by_hand && mode.name != DEFAULT) {
            if mode.name == name {
                bail!("the machine {machine_type} has no mode {name}");
            }
            if !names.contains(&mode.name.as_str()) {
                names.push(&mode.name);
            }
        }
        bail!("there is no mode {name}; there are: {}", names.join(", "))
    }

    /// What make test runs: each mode with its kernels.
    pub fn short<'a>(
        &'a self,
        kernels: &'a [Series],
    ) -> impl Iterator<Item = (&'a Mode, Vec<Series>)> {
        let of_machine = |one| self.modes.iter().filter(move |mode| mode.machine_type == one);
        MachineType::ALL.into_iter().flat_map(of_machine).filter_map(|mode| {
            let (_, only) = mode.short.as_ref()?;
            let on = |series: &&Series| only.as_ref().is_none_or(|only| only.contains(series));
            Some((mode, kernels.iter().filter(on).copied().collect()))
        })
    }

    /// Whether the machine is booted anew for a test.
    pub fn has_own_boot(&self, name: &str) -> bool {
        self.of(name).any(|test| test.own_boot)
    }

    /// The entries that a selection refers to and for which none of all tests
    /// is named so: mistakes, since a test would silently not run, or not as
    /// it should.
    pub fn without_tests(&self, selection: &Selection, all: &[String]) -> Vec<String> {
        let entries: Vec<(&str, &str)> = match selection {
            Selection::All => self.tests.iter().map(|one| (&*one.place, &*one.name)).collect(),
            Selection::Named(named) => named.iter().map(|one| (&*one.place, &*one.text)).collect(),
            Selection::Everything => Vec::new(),
        };
        let lacks = |(_, begin): &(&str, &str)| !all.iter().any(|name| name.starts_with(begin));
        let wrong = entries.into_iter().filter(lacks);
        wrong.map(|(place, begin)| format!("{place}: there is no test {begin}")).collect()
    }

    /// Whether a test is among the selected ones.
    pub fn selects(&self, selection: &Selection, name: &str) -> bool {
        match selection {
            Selection::All => !self.of(name).any(|test| test.only_named),
            Selection::Named(all) => all.iter().any(|one| name.starts_with(&one.text)),
            Selection::Everything => true,
        }
    }

    /// The longest that a test may take.
    pub fn limit(&self, name: &str, machine_type: &MachineType) -> Duration {
        let own = self.of(name).find_map(|test| test.minutes);
        Duration::from_secs(60 * own.unwrap_or(self.minutes).get()) * machine_type.slowness
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Test> {
        self.tests.iter().filter(move |test| name.starts_with(&test.name))
    }
}

fn default_of<'a>(rows: &'a [Spanned<Row>], machine_type: &MachineType) -> Option<&'a Row> {
    let mut rows = rows.iter().map(|row| row.as_ref());
    rows.find(|row| row.name == DEFAULT && row.machines.contains(&machine_type))
}

impl Mode {
    fn new(
        source: &Source,
        sets: &Sets,
        rows: &[Spanned<Row>],
        spanned: &Spanned<Row>,
        machine_type: &'static MachineType,
    ) -> Result<Self> {
        let row = spanned.as_ref();
        let default = default_of(rows, machine_type).unwrap_or(row);
        if row.short_tests.is_none() && (row.short_kernels.is_some() || row.full_kernels.is_some())
        {
            let what = "short_kernels and full_kernels mean nothing without short_tests";
            return Err(source.wrong(spanned.span(), what));
        }
        let cpus = row.cpus.as_ref().or(default.cpus.as_ref());
        if let Some(wrong) = cpus.filter(|cpus| !(1..=MOST_CPUS).contains(cpus.as_ref())) {
            let what = format!("a machine has 1 to {MOST_CPUS} CPUs");
            return Err(source.wrong(wrong.span(), what));
        }
        let short = row.short_tests.as_ref().map(|tests| sets.select(source, tests)).transpose()?;
        let proof = row.proof.as_ref().or(default.proof.as_ref());
        let memory = row.memory.or(default.memory);
        Ok(Mode {
            name: row.name.clone(),
            machine_type,
            since: row.since.unwrap_or(Series::ALL[0]),
            own_cpus: row.cpus.as_ref().map(|cpus| *cpus.as_ref()),
            cpus: cpus.map_or(1, |cpus| *cpus.as_ref()),
            memory: memory.map_or(machine_type.memory, NonZeroU32::get),
            cpu_model: row.cpu_model.clone(),
            cpu_features: row.cpu_features.clone(),
            kernel_arguments: row.kernel_arguments.clone(),
            single_thread: row.single_thread,
            newest_qemu: row.newest_qemu,
            slow_motion: row.slow_motion.map_or(1, NonZeroU32::get),
            boot_slowness: row.boot_slowness.map_or(1, NonZeroU32::get),
            proof: proof.filter(|proof| !proof.is_empty()).cloned(),
            tests: sets.select(source, &row.tests)?,
            by_hand: row.by_hand,
            short: short.map(|tests| (tests, row.short_kernels.clone())),
            full_kernels: row.full_kernels.clone(),
        })
    }

    fn is(&self, name: &str, machine_type: &MachineType) -> bool {
        self.name == name && self.machine_type == machine_type
    }

    pub fn is_default(&self) -> bool {
        self.name == DEFAULT
    }

    /// What make test-all runs on this kernel.
    pub fn full_tests(&self, series: Series) -> &Selection {
        match &self.full_kernels {
            Some(full) if !full.contains(&series) => self.short_tests(),
            _ => &self.tests,
        }
    }

    /// What make test runs.
    pub fn short_tests(&self) -> &Selection {
        self.short.as_ref().map_or(&self.tests, |(tests, _)| tests)
    }
}

/// The sets, by name.
struct Sets<'a>(BTreeMap<&'a str, &'a [Spanned<String>]>);

impl<'a> Sets<'a> {
    fn new(
        source: &Source,
        written: &'a BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    ) -> Result<Self> {
        for (name, tests) in written {
            if name.as_ref() == ALL || name.as_ref().contains('/') {
                let what = format!("a set cannot be named \"{}\"", name.as_ref());
                return Err(source.wrong(name.span(), what));
            }
            if let Some(test) = tests.iter().find(|test| !test.as_ref().contains('/')) {
                let what = format!("\"{}\" is no test: those have a slash", test.as_ref());
                return Err(source.wrong(test.span(), what));
            }
        }
        Ok(Sets(written.iter().map(|(name, tests)| (name.as_ref().as_str(), &tests[..])).collect()))
    }

    fn check(&self, source: &Source, row: &Spanned<Row>) -> Result<()> {
        let wrong = |what: &str| Err(source.wrong(row.span(), what));
        match row.as_ref() {
            row if row.machines.is_empty() => wrong("the mode is of no machine"),
            row if row.tests.is_empty() => wrong("the mode runs no test"),
            _ => Ok(()),
        }
    }

    fn select(&self, source: &Source, entries: &[Spanned<String>]) -> Result<Selection> {
        let mut prefixes = Vec::new();
        let mut add = |entry: &Spanned<String>| {
            let place = source.place(&entry.span());
            prefixes.push(Prefix { text: entry.as_ref().clone(), place });
        };
        for entry in entries {
            match entry.as_ref().as_str() {
                ALL => return Ok(Selection::All),
                name if name.contains('/') => add(entry),
                name => match self.0.get(name) {
                    Some(tests) => tests.iter().for_each(&mut add),
                    None => {
                        let known: Vec<_> = self.0.keys().copied().chain([ALL]).collect();
                        let what = format!("there is no set \"{name}\"; there are: ");
                        return Err(source.wrong(entry.span(), what + &known.join(", ")));
                    }
                },
            }
        }
        Ok(Selection::Named(prefixes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dune_machine::{SVM, VMX};

    const REAL: &str = include_str!("../../../tests/suite.toml");

    const SMALL: &str = r#"minutes = 30
[sets]
few = ["a/x", "b/"]
[[test]]
name = "a/slow"
minutes = 60
own_boot = true
[[test]]
name = "odd/"
only_named = true
[[mode]]
name = "default"
machines = ["svm", "vmx"]
cpus = 2
proof = "true"
tests = ["all"]
short_tests = ["few"]
full_kernels = ["6.1"]
[[mode]]
name = "pti"
machines = ["svm"]
since = "6.12"
cpus = 4
tests = ["few", "odd/"]
short_tests = ["b/"]
short_kernels = ["6.12"]
"#;

    fn small() -> Table {
        Table::parse(SMALL).expect("the table is right")
    }

    /// The report of a mistake, made by replacing `from`.
    fn mistake(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        Table::parse(&SMALL.replacen(from, to, 1)).expect_err("this is a mistake").to_string()
    }

    #[test]
    fn the_real_table_is_right() {
        let table = Table::parse(REAL).expect("tests/suite.toml is right");
        for machine_type in MachineType::ALL {
            assert!(table.default_mode(machine_type).is_default());
        }
        let error = table.mode("no-such-mode", &SVM).unwrap_err().to_string();
        assert!(error.starts_with("there is no mode no-such-mode; there are: kvm, "), "{error}");
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let line = |from, to| mistake(from, to).split(' ').next().map(str::to_owned).unwrap();
        assert_eq!(
            mistake("[\"few\"]", "[\"fwe\"]"),
            "tests/suite.toml:17: there is no set \"fwe\"; there are: few, all"
        );
        assert_eq!(line("only_named", "only_nmaed"), "tests/suite.toml:10:");
        assert_eq!(line("since = \"6.12\"", "since = \"6.2\""), "tests/suite.toml:22:");
        assert_eq!(line("[\"svm\"]", "[\"tdx\"]"), "tests/suite.toml:21:");
        assert_eq!(line("cpus = 4", "cpus = 17"), "tests/suite.toml:23:");
        assert_eq!(line("cpus = 4", "cpus ="), "tests/suite.toml:23:");
        assert_eq!(line("minutes = 30", "minutes = 0"), "tests/suite.toml:1:");
        assert_eq!(line("\"a/x\"", "\"a\""), "tests/suite.toml:3:");
        assert_eq!(line("name = \"odd/\"", "name = \"a/slow\""), "tests/suite.toml:8:");
        assert_eq!(line("name = \"pti\"", "name = \"default\""), "tests/suite.toml:19:");
        assert_eq!(line("short_tests = [\"b/\"]", ""), "tests/suite.toml:19:");
        assert_eq!(line("name = \"default\"", "name = \"other\""), "tests/suite.toml:");
    }

    #[test]
    fn a_row_has_what_it_says_and_the_rest_of_the_default_mode() {
        let table = small();
        let pti = table.mode("pti", &SVM).unwrap();
        assert_eq!((pti.cpus, pti.own_cpus, pti.proof.as_deref()), (4, Some(4), Some("true")));
        assert_eq!(pti.memory, SVM.memory);
        assert!(table.mode("pti", &VMX).is_err());
        assert_eq!(table.modes(&SVM, Series::V6_1).len(), 1);
        assert_eq!(table.modes(&SVM, Series::V6_12).len(), 2);
    }

    #[test]
    fn tests_are_selected_by_sets_and_beginnings() {
        let table = small();
        let runs = |tests: &Selection, name| table.selects(tests, name);
        let default = table.default_mode(&SVM);
        let full = default.full_tests(Series::V6_1);
        assert!(runs(full, "a/y") && !runs(full, "odd/one"));
        let short = default.full_tests(Series::V6_12);
        assert!(runs(short, "a/xy") && runs(short, "b/z") && !runs(short, "a/y"));
        let pti = &table.mode("pti", &SVM).unwrap().tests;
        assert!(runs(pti, "odd/one") && !runs(pti, "c/z"));
        assert!(runs(&Selection::Everything, "odd/one"));
        let some = ["a/x".to_owned(), "odd/one".to_owned()];
        assert_eq!(table.without_tests(pti, &some), ["tests/suite.toml:3: there is no test b/"]);
        let wrong = table.without_tests(full, &some);
        assert_eq!(wrong, ["tests/suite.toml:4: there is no test a/slow"]);
    }

    #[test]
    fn a_test_has_its_own_time_and_boot() {
        let table = small();
        let minutes = |name, machine| table.limit(name, machine).as_secs() / 60;
        assert_eq!(
            (minutes("a/slow", &SVM), minutes("a/x", &SVM), minutes("a/x", &VMX)),
            (60, 30, 120)
        );
        assert!(table.has_own_boot("a/slow") && !table.has_own_boot("a/x"));
    }

    #[test]
    fn make_test_has_each_machine_in_turn() {
        let table = small();
        let short = table.short(&[Series::V6_1, Series::V6_12]);
        let names: Vec<_> =
            short.map(|(mode, on)| (mode.name.clone(), mode.machine_type.name, on.len())).collect();
        let name = str::to_owned;
        let wanted =
            [(name("default"), "svm", 2), (name("pti"), "svm", 1), (name("default"), "vmx", 2)];
        assert_eq!(names, wanted);
    }
}

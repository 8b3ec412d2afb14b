// SPDX-License-Identifier: MIT OR Apache-2.0
//! tests/suite.toml: which tests run in which machine, how it is booted, and
//! how long a test may take. The file explains its fields; table/file.rs reads
//! it.

mod file;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use anyhow::{bail, Context as _, Result};
use dune_machine::{Device, MachineType, Series, VMX};
use file::ByName;
use serde::Deserialize;

/// The table's path, relative to the sources.
const FILE: &str = "tests/suite.toml";

/// How a machine is booted without `--mode`.
pub const DEFAULT: &str = "default";

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
    /// The oldest and the newest kernel that have it.
    pub since: Series,
    pub until: Series,
    /// The number of CPUs that this row gives.
    pub own_cpus: Option<u32>,
    /// That of the machine's default mode.
    default_cpus: u32,
    pub memory: u32,
    pub cpu_model: Option<String>,
    pub cpu_features: Vec<String>,
    pub devices: Vec<&'static Device>,
    pub network_cards: Vec<String>,
    pub kernel_arguments: Vec<String>,
    pub single_thread: bool,
    pub newest_qemu: bool,
    pub second_factor: u32,
    pub boot_time_factor: u32,
    /// None: nothing shows that a machine was really booted so.
    pub proof: Option<String>,
    pub tests: Selection,
    pub by_hand: bool,
    short: Option<Short>,
    /// The kernels on which make test-vmx runs `tests`.
    vmx_kernels: Vec<Series>,
}

/// The tests of a mode that make test runs.
#[derive(Debug, Clone)]
struct Short {
    tests: Selection,
    /// The kernels on which make test has the mode; None: all.
    kernels: Option<Vec<Series>>,
    /// The kernels on which make test-all runs all of the mode's tests, and on others those
    /// of make test; None: all.
    full_kernels: Option<Vec<Series>>,
}

/// Some of all tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Every test, except those with only_named.
    Usual,
    Named(Vec<Entry>),
    /// Every test, also those with only_named.
    All,
}

/// The name of a test or of a directory of tests, and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// "tests/suite.toml:12"
    pub place: String,
}

/// An entry of the file for a test, or for a directory of tests.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    name: String,
    #[serde(default)]
    own_boot: bool,
    #[serde(default)]
    only_named: bool,
    minutes: Option<NonZeroU64>,
    /// The machine types in which it runs; None: all.
    machines: Option<Vec<ByName<&'static MachineType>>>,
    /// The kernels on which make test runs it; None: all.
    short_kernels: Option<Vec<ByName<Series>>>,
    /// Variables for the program, over the suite's own.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables for the program in make test, over `env`.
    #[serde(default)]
    short_env: BTreeMap<String, String>,
    /// The line where it is written, as that of an Entry.
    #[serde(skip)]
    place: String,
}

impl Table {
    /// Reads and checks the table of these sources.
    pub fn read(source: &Path) -> Result<Self> {
        let text = fs::read_to_string(source.join(FILE));
        file::parse(&text.with_context(|| format!("reading {FILE}"))?)
    }

    /// The modes of a machine that a kernel can be booted in, in the table's
    /// order. The default mode is one of them.
    pub fn modes(&self, machine_type: &MachineType, series: Series) -> Vec<&Mode> {
        let fits = |mode: &&Mode| mode.machine_type == machine_type && mode.is_for(series);
        self.modes.iter().filter(fits).collect()
    }

    /// How this machine is booted without `--mode`.
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

    /// The modes of make test, each with its kernels.
    pub fn short<'a>(
        &'a self,
        kernels: &'a [Series],
    ) -> impl Iterator<Item = (&'a Mode, Vec<Series>)> {
        let of_machine = |one| self.modes.iter().filter(move |mode| mode.machine_type == one);
        MachineType::ALL.into_iter().flat_map(of_machine).filter_map(|mode| {
            let only = mode.short.as_ref()?.kernels.as_ref();
            let on = |series: &&Series| {
                mode.is_for(**series) && only.is_none_or(|only| only.contains(series))
            };
            Some((mode, kernels.iter().filter(on).copied().collect()))
        })
    }

    /// The modes of make test-vmx, each with its kernels.
    pub fn vmx(&self) -> impl Iterator<Item = (&Mode, &[Series])> {
        let modes = self.modes.iter().filter(|mode| *mode.machine_type == VMX);
        modes.map(|mode| (mode, &mode.vmx_kernels[..])).filter(|(_, kernels)| !kernels.is_empty())
    }

    /// Whether the machine is booted anew for a test.
    pub fn has_own_boot(&self, name: &str) -> bool {
        self.of(name).any(|test| test.own_boot)
    }

    /// A report of each entry of a selection that matches no test. With such an entry, a
    /// misspelled test would silently not run, or not as it should.
    pub fn without_tests(&self, selection: &Selection, all: &[String]) -> Vec<String> {
        let entries: Vec<(&str, &str)> = match selection {
            Selection::Usual => self.tests.iter().map(|one| (&*one.place, &*one.name)).collect(),
            Selection::Named(named) => named.iter().map(|one| (&*one.place, &*one.name)).collect(),
            Selection::All => Vec::new(),
        };
        let lacks = |(_, entry): &(&str, &str)| !all.iter().any(|test| means(entry, test));
        let wrong = entries.into_iter().filter(lacks);
        wrong
            .map(|(place, entry)| {
                format!("{place}: no built test matches {entry}: run make, or correct the name")
            })
            .collect()
    }

    /// Whether a test is among the selected ones, and runs in this machine.
    pub fn selects(
        &self,
        selection: &Selection,
        name: &str,
        machine_type: &'static MachineType,
    ) -> bool {
        let runs = self.of(name).all(|test| test.runs_in(machine_type));
        runs && match selection {
            Selection::Usual => !self.of(name).any(|test| test.only_named),
            Selection::Named(entries) => entries.iter().any(|entry| means(&entry.name, name)),
            Selection::All => true,
        }
    }

    /// Whether make test runs a test on this kernel, if its mode has the test.
    pub fn is_short_on(&self, series: Series, name: &str) -> bool {
        let mut only = self.of(name).filter_map(|test| test.short_kernels.as_ref());
        only.all(|kernels| kernels.contains(&ByName(series)))
    }

    /// The longest that a test may take.
    pub fn limit(&self, name: &str, machine_type: &MachineType) -> Duration {
        let own = self.of(name).find_map(|test| test.minutes);
        Duration::from_secs(60 * own.unwrap_or(self.minutes).get()) * machine_type.time_factor
    }

    /// The variables that a test has of its own; `is_short`: in make test.
    pub fn env<'a>(&'a self, name: &'a str, is_short: bool) -> BTreeMap<&'a str, &'a str> {
        let usual = self.of(name).flat_map(|test| &test.env);
        let short = self.of(name).filter(|_| is_short).flat_map(|test| &test.short_env);
        usual.chain(short).map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Test> {
        self.tests.iter().filter(move |test| means(&test.name, name))
    }
}

/// Whether an entry of the table means this test: by the test's own name, or by that
/// of its directory, which ends with a slash ("libdune/").
fn means(entry: &str, test: &str) -> bool {
    if entry.ends_with('/') {
        test.starts_with(entry)
    } else {
        test == entry
    }
}

impl Test {
    fn runs_in(&self, machine_type: &'static MachineType) -> bool {
        self.machines.as_ref().is_none_or(|machines| machines.contains(&ByName(machine_type)))
    }
}

impl Mode {
    /// The row's number of CPUs, or else that of the machine's default mode.
    pub fn cpus(&self) -> u32 {
        self.own_cpus.unwrap_or(self.default_cpus)
    }

    fn is(&self, name: &str, machine_type: &MachineType) -> bool {
        self.name == name && self.machine_type == machine_type
    }

    /// Whether a kernel can be booted so.
    pub fn is_for(&self, series: Series) -> bool {
        self.since <= series && series <= self.until
    }

    /// Whether this is a machine's default mode.
    pub fn is_default(&self) -> bool {
        self.name == DEFAULT
    }

    /// The kernels on which make test-all runs all of the mode's tests.
    pub fn full_kernels(&self) -> &[Series] {
        let short = self.short.as_ref();
        short.and_then(|short| short.full_kernels.as_deref()).unwrap_or(&Series::ALL)
    }

    /// The tests of make test-all on this kernel.
    pub fn full_tests(&self, series: Series) -> &Selection {
        if self.full_kernels().contains(&series) {
            &self.tests
        } else {
            self.short_tests()
        }
    }

    /// The tests of make test.
    pub fn short_tests(&self) -> &Selection {
        self.short.as_ref().map_or(&self.tests, |short| &short.tests)
    }
}

#[cfg(test)]
mod tests {
    use super::file::tests::SMALL;
    use super::*;
    use dune_machine::SVM;

    const REAL: &str = include_str!("../../../tests/suite.toml");

    fn small() -> Table {
        file::parse(SMALL).expect("the table is right")
    }

    #[test]
    fn suite_toml_parses() {
        let table = file::parse(REAL).expect("tests/suite.toml is right");
        for machine_type in MachineType::ALL {
            assert!(table.default_mode(machine_type).is_default());
        }
        let error = table.mode("no-such-mode", &SVM).unwrap_err().to_string();
        assert!(error.starts_with("there is no mode no-such-mode; there are: kvm, "), "{error}");
    }

    #[test]
    fn missing_fields_come_from_the_default_mode() {
        let table = small();
        let pti = table.mode("pti", &SVM).unwrap();
        assert_eq!((pti.cpus(), pti.own_cpus, pti.proof.as_deref()), (4, Some(4), Some("true")));
        assert_eq!(pti.memory, SVM.memory);
        assert!(table.mode("pti", &VMX).is_err());
        assert_eq!(table.modes(&SVM, Series::V6_1).len(), 1);
        assert_eq!(table.modes(&SVM, Series::V6_12).len(), 2);
    }

    #[test]
    fn tests_are_selected_by_sets_directories_and_names() {
        let table = small();
        let runs = |tests: &Selection, name| table.selects(tests, name, &SVM);
        let default = table.default_mode(&SVM);
        let full = default.full_tests(Series::V6_1);
        assert!(runs(full, "a/y") && !runs(full, "odd/one"));
        let short = default.full_tests(Series::V6_12);
        assert!(runs(short, "a/x") && runs(short, "b/z") && !runs(short, "a/y"));
        assert!(!runs(short, "a/xy") && !runs(short, "a/x-z"), "a name means one test");
        let pti = &table.mode("pti", &SVM).unwrap().tests;
        assert!(runs(pti, "odd/one") && !runs(pti, "c/z"));
        assert!(runs(&Selection::All, "odd/one"));
        let some = ["a/x".to_owned(), "odd/one".to_owned()];
        let message = "no built test matches b/: run make, or correct the name";
        assert_eq!(table.without_tests(pti, &some), [format!("tests/suite.toml:3: {message}")]);
        let wrong = table.without_tests(full, &some);
        let message = "no built test matches a/slow: run make, or correct the name";
        assert_eq!(wrong, [format!("tests/suite.toml:4: {message}")]);
    }

    #[test]
    fn a_test_runs_in_its_machines_with_its_variables() {
        let table = small();
        let runs = |name, machine_type| table.selects(&Selection::Usual, name, machine_type);
        assert!(runs("a/slow", &SVM) && !runs("a/slow", &VMX) && runs("a/x", &VMX));
        assert!(!table.selects(&Selection::All, "a/slow", &VMX));
        assert_eq!(table.env("a/slow", false), BTreeMap::from([("CYCLES", "9"), ("SEED", "1")]));
        assert_eq!(table.env("a/slow", true), BTreeMap::from([("CYCLES", "2"), ("SEED", "1")]));
        assert!(table.env("a/x", true).is_empty());
    }

    #[test]
    fn make_test_runs_some_tests_on_some_kernels() {
        let table = small();
        let on = |series| table.is_short_on(series, "a/slow");
        assert!(on(Series::V6_12) && !on(Series::V6_1));
        assert!(table.is_short_on(Series::V6_1, "a/x"));
    }

    #[test]
    fn make_test_vmx_has_the_modes_that_name_a_kernel() {
        let table = small();
        let vmx: Vec<_> = table.vmx().collect();
        let [(mode, kernels)] = vmx[..] else { panic!("{vmx:?}") };
        assert!(mode.is_default() && *mode.machine_type == VMX);
        assert_eq!(kernels, [Series::V6_1]);
        assert_eq!(mode.full_kernels(), [Series::V6_1]);
        assert_eq!(table.mode("pti", &SVM).unwrap().full_kernels(), Series::ALL);
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
        assert!(!table.has_own_boot("a/slower"));
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

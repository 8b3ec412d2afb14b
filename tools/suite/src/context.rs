// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directories that dune-suite uses, and its machines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use dune_machine::{options, Config, Cpus, Kernel, Layout, MachineType, Run, Series};

use crate::table::{Mode, Table};

/// Variables of the environment that tests obey.
pub const OPTIONS: [&str; 4] = ["DUNE_LONG_TESTS", "FUZZ_CHILDREN", "FUZZ_SECONDS", "FUZZ_SEED"];

#[derive(Clone)]
pub struct Context {
    pub source: PathBuf,
    pub build: PathBuf,
    pub layout: Layout,
    pub table: Arc<Table>,
    pub options: MachineOptions,
}

/// The options of the command line for the machine.
#[derive(Debug, Clone, clap::Args)]
pub struct MachineOptions {
    /// The machine type (default: svm; for bench and test-all: both)
    #[arg(long, global = true, value_name = "MACHINE", value_parser = options::machine_type())]
    machine: Option<&'static MachineType>,
    /// Another CPU model, by the emulator's name for it
    #[arg(long, global = true, value_name = "NAME", value_parser = options::cpu_model)]
    model: Option<String>,
    /// The number of its CPUs (default: that of tests/suite.toml)
    #[arg(long, global = true, value_name = "N", value_parser = options::cpus())]
    cpus: Option<u32>,
}

impl Context {
    /// Finds the directories, and reads the table of tests.
    pub fn new(source: &Path, options: MachineOptions) -> Result<Self> {
        let source = source.canonicalize().context("finding the sources")?;
        let layout = Layout::find()?;
        let build = layout.libexec.parent().context("finding the build directory")?.to_owned();
        let table = Arc::new(Table::read(&source)?);
        Ok(Context { source, build, layout, table, options })
    }

    /// The command dunectl.
    pub fn dunectl(&self) -> PathBuf {
        self.build.join("bin/dunectl")
    }

    /// The directory for logs of this kind.
    pub fn log_directory(&self, kind: &str) -> Result<PathBuf> {
        let directory = self.build.join("log").join(kind);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("making {}", directory.display()))?;
        Ok(directory)
    }

    /// The machine type that was chosen, or else the default one.
    pub fn machine_type(&self) -> &'static MachineType {
        self.options.machine.unwrap_or(MachineType::DEFAULT)
    }

    /// The machine types that were chosen: all, if none was.
    pub fn machine_types(&self) -> Vec<&'static MachineType> {
        self.options.machine.map_or(MachineType::ALL.to_vec(), |one| vec![one])
    }

    /// The same context, with this machine.
    pub fn in_machine(&self, machine_type: &'static MachineType) -> Self {
        let options = if machine_type == self.machine_type() {
            MachineOptions { machine: Some(machine_type), ..self.options.clone() }
        } else {
            MachineOptions { machine: Some(machine_type), model: None, cpus: None }
        };
        Context { options, ..self.clone() }
    }

    /// The name of a kernel in the machine that was chosen.
    pub fn name_of(&self, series: Series) -> String {
        match self.machine_type() {
            one if one.is_default() => series.to_string(),
            one => format!("{series}-{one}"),
        }
    }

    /// The number of CPUs in a mode: its own, or else that of the command line, or
    /// else that of the default mode.
    pub fn cpus(&self, mode: &Mode) -> u32 {
        mode.own_cpus.filter(|_| !mode.is_default()).or(self.options.cpus).unwrap_or(mode.cpus())
    }

    /// Another CPU model than the machine type's: the mode's own, or else that of the
    /// command line.
    pub fn cpu_model<'a>(&'a self, mode: &'a Mode) -> Option<&'a str> {
        mode.cpu_model.as_deref().or(self.options.model.as_deref())
    }

    /// The machine in its default mode, with this kernel.
    pub fn machine(&self, series: Series) -> Result<Config> {
        let mode = self.table.default_mode(self.machine_type());
        self.machine_in(mode, Kernel::find(&self.layout, series)?)
    }

    /// The machine booted in this mode, with the modules loaded.
    pub fn machine_in(&self, mode: &Mode, kernel: Kernel) -> Result<Config> {
        let mut config = Config::new(mode.machine_type, kernel);
        config.cpu_model = self.cpu_model(mode).map(str::to_owned);
        config.cpus = Cpus::Free(self.cpus(mode));
        config.memory = mode.memory;
        config.cpu_features = mode.cpu_features.clone();
        config.devices = mode.devices.clone();
        config.network_cards = mode.network_cards.clone();
        config.kernel_arguments = mode.kernel_arguments.clone();
        config.single_thread = mode.single_thread;
        config.newest_qemu = mode.newest_qemu;
        config.second_factor = mode.second_factor;
        config.boot_timeout *= mode.boot_time_factor;
        config.copies = vec![self.source.clone()];
        config.say = |message| println!("{message}");
        config.insmod = config.kernel.project_modules(&self.layout)?;
        Ok(config)
    }

    /// A command in the machine, as root in the sources' directory.
    pub fn command<S: Into<OsString>>(&self, argv: impl IntoIterator<Item = S>) -> Run {
        let mut run = Run::new(argv);
        run.program.directory = self.source.clone();
        run.program.env.push(("DUNE_BUILD".into(), self.build.clone().into()));
        if let Some(factor) = self.machine_type().test_time_factor {
            run.program.env.push(("TEST_TIME_FACTOR".into(), factor.to_string().into()));
        }
        for name in OPTIONS {
            if let Some(value) = std::env::var_os(name) {
                run.program.env.push((name.into(), value));
            }
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use clap::Parser;
    use dune_machine::Layout;

    use super::{Context, MachineOptions};
    use crate::table::Table;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: MachineOptions,
    }

    impl Context {
        /// The sources' own table, with this build directory.
        pub fn for_test(build: &Path, options: &[&str]) -> Self {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let arguments = ["dune-suite"].iter().chain(options);
            Context {
                table: Arc::new(Table::read(&source).expect("tests/suite.toml is right")),
                layout: Layout::of_build(build),
                build: build.to_owned(),
                options: Cli::parse_from(arguments).options,
                source,
            }
        }
    }

    #[test]
    fn options_of_an_impossible_machine_are_refused() {
        for wrong in [["--cpus", "0"], ["--cpus", "17"], ["--model", "a,b"], ["--machine", "tdx"]] {
            assert!(Cli::try_parse_from(["dune-suite"].iter().chain(&wrong)).is_err(), "{wrong:?}");
        }
    }
}

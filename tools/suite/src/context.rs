// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things are, and the machines that the drivers use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dune_machine::{Config, Hardware, Kernel, Layout, Run, Series};

/// What the user may want otherwise than usual: variables that tests obey.
pub const OPTIONS: [&str; 4] = ["DUNE_LONG_TESTS", "FUZZ_CHILDREN", "FUZZ_SECONDS", "FUZZ_SEED"];

#[derive(Clone)]
pub struct Context {
    pub source: PathBuf,
    pub build: PathBuf,
    pub layout: Layout,
    pub choice: Choice,
}

/// What the command line says about the machine.
#[derive(Debug, Clone, clap::Args)]
pub struct Choice {
    /// The machine: svm or vmx (default: svm; for bench: both)
    #[arg(long, global = true, value_parser = parse_hardware)]
    machine: Option<Hardware>,
    /// Its processor, by the emulator's name for it
    #[arg(long, global = true, value_name = "NAME")]
    model: Option<String>,
    /// Its processors (default: 2 in svm, 1 in vmx)
    #[arg(long, global = true, value_name = "N")]
    cpus: Option<u32>,
}

fn parse_hardware(text: &str) -> Result<Hardware, String> {
    match text {
        "svm" => Ok(Hardware::Svm),
        "vmx" => Ok(Hardware::Vmx),
        _ => Err("there are svm and vmx".to_owned()),
    }
}

impl Context {
    pub fn new(source: &Path, choice: Choice) -> Result<Self> {
        let source = source.canonicalize().context("finding the sources")?;
        let layout = Layout::find()?;
        let build = layout.libexec.parent().context("finding the build folder")?.to_owned();
        Ok(Context { source, build, layout, choice })
    }

    pub fn dunectl(&self) -> PathBuf {
        self.build.join("bin/dunectl")
    }

    /// Where the output of what runs under `what` is kept.
    pub fn log_folder(&self, what: &str) -> Result<PathBuf> {
        let folder = self.build.join("log").join(what);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(folder)
    }

    /// How many times longer than usual to wait for the machine: Bochs emulates
    /// a processor of some 60 million instructions a second.
    pub fn patience(&self) -> u32 {
        match self.hardware() {
            Hardware::Svm => 1,
            Hardware::Vmx => 4,
        }
    }

    /// What names a kernel in the machine that was chosen.
    pub fn name_of(&self, series: Series) -> String {
        match self.hardware() {
            Hardware::Svm => series.to_string(),
            Hardware::Vmx => format!("{series}-vmx"),
        }
    }

    /// The same, with the Intel machine, its own processor and number of them.
    pub fn with_vmx(&self) -> Self {
        Context {
            choice: Choice { machine: Some(Hardware::Vmx), model: None, cpus: None },
            ..self.clone()
        }
    }

    /// The same, in each machine that was chosen: in both if none was.
    pub fn in_all_machines(&self) -> Vec<Self> {
        let all = match self.choice.machine {
            Some(one) => vec![one],
            None => vec![Hardware::Svm, Hardware::Vmx],
        };
        let with = |machine| Context {
            choice: Choice { machine: Some(machine), ..self.choice.clone() },
            ..self.clone()
        };
        all.into_iter().map(with).collect()
    }

    pub fn hardware(&self) -> Hardware {
        self.choice.machine.unwrap_or(Hardware::Svm)
    }

    pub fn is_vmx(&self) -> bool {
        self.hardware() == Hardware::Vmx
    }

    /// The machine for everything but counting, with the module loaded.
    pub fn machine(&self, series: Series) -> Result<Config> {
        self.machine_of(Kernel::find(&self.layout, series)?)
    }

    pub fn machine_of(&self, kernel: Kernel) -> Result<Config> {
        let mut config = Config::new(self.hardware(), kernel);
        config.model = self.choice.model.clone();
        match self.hardware() {
            Hardware::Svm => {
                config.cpus = 2;
                config.memory = 3072;
            }
            Hardware::Vmx => config.copies = vec![self.source.clone()],
        }
        config.cpus = self.choice.cpus.unwrap_or(config.cpus);
        config.say = |what| println!("{what}");
        let release = &config.kernel.release;
        let module = self.layout.module(release);
        config
            .insmod
            .push(module.with_context(|| format!("dune.ko is not built for {release}: run make"))?);
        Ok(config)
    }

    /// A command in the machine, as root in the sources' folder.
    pub fn command<S: Into<OsString>>(&self, argv: impl IntoIterator<Item = S>) -> Run {
        let mut run = Run::new(argv);
        run.program.directory = self.source.clone();
        let variables = [("BUILD", &self.build), ("O", &self.build), ("SOURCE", &self.source)];
        run.program
            .env
            .extend(variables.map(|(name, path)| (name.into(), path.clone().into_os_string())));
        // The tests' own limits; they have a margin for a busy svm machine.
        if self.is_vmx() {
            run.program.env.push(("TEST_PATIENCE".into(), "10".into()));
        }
        for name in OPTIONS {
            if let Some(value) = std::env::var_os(name) {
                run.program.env.push((name.into(), value));
            }
        }
        run
    }
}

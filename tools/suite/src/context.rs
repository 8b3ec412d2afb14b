// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things are, and the machines that the drivers use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dune_machine::{Config, Hardware, Kernel, Layout, Run, Series};

pub struct Context {
    pub source: PathBuf,
    pub build: PathBuf,
    pub layout: Layout,
}

impl Context {
    pub fn new(source: &Path) -> Result<Self> {
        let source = source.canonicalize().context("finding the sources")?;
        let layout = Layout::find()?;
        let build = layout.libexec.parent().context("finding the build folder")?.to_owned();
        Ok(Context { source, build, layout })
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

    /// The machine for everything but counting: two CPUs, the module loaded.
    pub fn machine(&self, series: Series) -> Result<Config> {
        self.machine_of(Kernel::find(&self.layout, series)?)
    }

    pub fn machine_of(&self, kernel: Kernel) -> Result<Config> {
        let mut config = Config::new(Hardware::Svm, kernel);
        config.cpus = 2;
        config.memory = 3072;
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
        run
    }
}

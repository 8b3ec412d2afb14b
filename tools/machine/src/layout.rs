// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places of the project's parts, in a build directory or installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};

/// The build directory, for programs outside of it, such as tests.
const BUILD_VARIABLE: &str = "DUNE_BUILD";

/// Directories of a build directory that programs in a machine use.
const PARTS: [&str; 6] = ["bin", "libexec", "lib", "tests", "examples", "bench"];

/// The project's kernel modules, in the order of loading. Each makes a device of its own
/// name.
pub const MODULES: &[&str] = &["dune", "dune-guard", "guard-keys"];

/// The modules' files, for messages, with this word before the last: "dune.ko or dune-guard.ko".
pub fn modules_text(between: &str) -> String {
    let files: Vec<_> = MODULES.iter().map(|name| format!("{name}.ko")).collect();
    match files.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} {between} {last}", others.join(", "))
        }
        _ => files.concat(),
    }
}

/// The directories of the project's parts.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Programs that are not for users: dune-agent, dune-run.
    pub libexec: PathBuf,
    /// `RELEASE/MODULE.ko` for each kernel that the modules were built for.
    pub modules: PathBuf,
    /// Prepared kernels. This directory is written to.
    pub machines: PathBuf,
}

impl Layout {
    /// Finds them from the place of the running program.
    ///
    /// # Errors
    ///
    /// The running program has no path.
    pub fn find() -> Result<Self> {
        if let Some(build) = env::var_os(BUILD_VARIABLE) {
            return Ok(Self::of_build(Path::new(&build)));
        }
        let program = env::current_exe().context("finding the running program")?;
        let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        if prefix.join("libexec/dune/dune-agent").exists() {
            return Ok(Self::of_installation(prefix));
        }
        Ok(Self::of_build(prefix))
    }

    /// The directories of a build directory.
    pub fn of_build(build: &Path) -> Self {
        Layout {
            libexec: build.join("libexec"),
            modules: build.join("kernel"),
            machines: build.join("machine"),
        }
    }

    fn of_installation(prefix: &Path) -> Self {
        Layout {
            libexec: prefix.join("libexec/dune"),
            modules: prefix.join("lib/dune/kernel"),
            machines: cache_home().join("dune/machine"),
        }
    }

    /// A module for this kernel, if it was built.
    pub fn module(&self, name: &str, release: &str) -> Option<PathBuf> {
        let path = self.modules.join(release).join(format!("{name}.ko"));
        path.exists().then_some(path)
    }

    /// All of [`MODULES`] for this kernel, in the order of loading; None, if one is missing.
    pub(crate) fn modules_for(&self, release: &str) -> Option<Vec<PathBuf>> {
        MODULES.iter().map(|name| self.module(name, release)).collect()
    }

    /// The releases of the kernels for which all of [`MODULES`] are installed; none in a build
    /// directory, where make builds modules for the newest kernels.
    pub(crate) fn installed_for(&self) -> Vec<String> {
        if self.is_build() {
            return Vec::new();
        }
        let entries = fs::read_dir(&self.modules).into_iter().flatten().flatten();
        let releases = entries.filter_map(|entry| entry.file_name().into_string().ok());
        releases.filter(|release| self.modules_for(release).is_some()).collect()
    }

    /// Whether the parts are in a build directory, and not installed.
    pub fn is_build(&self) -> bool {
        self.build().is_some()
    }

    /// dune-agent.
    ///
    /// # Errors
    ///
    /// It was not built or installed.
    pub fn agent(&self) -> Result<PathBuf> {
        self.program("dune-agent")
    }

    /// dune-run, the sandbox's runtime.
    ///
    /// # Errors
    ///
    /// It was not built or installed.
    pub fn runtime(&self) -> Result<PathBuf> {
        self.program("dune-run")
    }

    /// The project's directories that are copied into a machine with copies of the
    /// host's files.
    pub(crate) fn programs(&self) -> Vec<PathBuf> {
        let mut programs = vec![self.libexec.clone()];
        if let Some(build) = self.build() {
            programs.extend(PARTS.map(|part| build.join(part)));
        }
        programs
    }

    /// Directories that are not copied, though they are in a directory that is.
    pub(crate) fn not_for_machines(&self) -> Vec<PathBuf> {
        let Some(build) = self.build() else { return vec![self.machines.clone()] };
        let entries = fs::read_dir(&build).into_iter().flatten().flatten();
        let others = entries.filter(|entry| !PARTS.iter().any(|part| entry.file_name() == *part));
        others.map(|entry| entry.path()).collect()
    }

    /// The build directory, unless the project is installed.
    fn build(&self) -> Option<PathBuf> {
        let build = self.machines.parent()?;
        (self.libexec.parent() == Some(build)).then(|| build.to_owned())
    }

    fn program(&self, name: &str) -> Result<PathBuf> {
        let path = self.libexec.join(name);
        if path.exists() {
            return Ok(path);
        }
        let remedy = if self.is_build() {
            "run make"
        } else {
            "install the package dune again, or run make install in the sources"
        };
        Err(Error::Environment(format!("{} is missing: {remedy}", path.display())))
    }
}

fn cache_home() -> PathBuf {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .unwrap_or_else(|| "/var/cache".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_of_modules_are_the_same() {
        let kbuild = include_str!("../../../kernel/Kbuild");
        let built = kbuild.lines().find_map(|line| line.strip_prefix("obj-m := "));
        let built = built.expect("kernel/Kbuild has a line obj-m").split_whitespace();
        let makefile = include_str!("../../../Makefile");
        let made = makefile.lines().find_map(|line| line.strip_prefix("MODULES := "));
        let made = made.expect("Makefile has a line MODULES").split_whitespace();
        let dkms = include_str!("../../../packaging/dkms.conf");
        let packaged = dkms
            .lines()
            .filter_map(|line| line.strip_prefix("BUILT_MODULE_NAME[")?.split('"').nth(1));

        let listed = sorted(MODULES.iter().copied());
        assert_eq!(sorted(built.map(|name| name.trim_end_matches(".o"))), listed, "kernel/Kbuild");
        assert_eq!(sorted(made), listed, "Makefile");
        assert_eq!(sorted(packaged), listed, "packaging/dkms.conf");
    }

    #[test]
    fn an_installation_has_the_kernels_of_its_modules() {
        let prefix = tempfile::tempdir().expect("a directory can be made");
        let layout = Layout::of_installation(prefix.path());
        for release in ["6.1.0-5-amd64", "6.1.0-6-amd64"] {
            fs::create_dir_all(layout.modules.join(release)).expect("a directory can be made");
        }
        assert!(layout.installed_for().is_empty());
        for name in MODULES {
            let path = layout.modules.join("6.1.0-5-amd64").join(format!("{name}.ko"));
            fs::write(path, "").expect("the file can be written");
        }
        assert_eq!(layout.installed_for(), ["6.1.0-5-amd64"]);
        assert!(Layout::of_build(prefix.path()).installed_for().is_empty());
    }

    fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The initramfs: the agent as /init, and the modules that it needs to reach
//! the host's files. It is kept in the kernel's directory and made again when one of
//! these changes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cpio::Archive;
use crate::error::{Context, Result};
use crate::host_command;
use crate::kept::made_once;
use crate::kernel::Kernel;
use crate::machine_type::MachineType;

/// The version of the archive. It changes when archives are made differently of the same
/// files.
const FORMAT: u32 = 1;

/// A file of the kernel's directory with a module, perhaps compressed.
struct Module {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Opens the initramfs with this agent, which is made first if there is none.
pub(crate) fn make(kernel: &Kernel, machine_type: &MachineType, agent: &Path) -> Result<File> {
    let agent = read(agent)?;
    let modules = modules_in_order(kernel, machine_type.initramfs_modules)?;
    let source = source(&agent, &modules);
    let prefix = format!("initramfs-{machine_type}-");
    made_once(&kernel.root, &prefix, &source, || build(&agent, &modules))
}

/// Everything that decides the archive's contents.
fn source(agent: &[u8], modules: &[Module]) -> Vec<u8> {
    let mut source = format!("{FORMAT} {}\n", agent.len()).into_bytes();
    source.extend_from_slice(agent);
    for Module { path, bytes } in modules {
        let name = path.file_name().unwrap_or_default().display();
        source.extend(format!("{name} {}\n", bytes.len()).into_bytes());
        source.extend_from_slice(bytes);
    }
    source
}

fn build(agent: &[u8], modules: &[Module]) -> Result<Vec<u8>> {
    let describe = || "writing the initramfs";
    let mut archive = Archive::new(Vec::new());
    for name in ["dev", "proc", "sys", "host", "copies", "overlay", "root", "modules"] {
        archive.directory(name).context(describe())?;
    }
    archive.file("init", 0o755, agent).context(describe())?;
    for (number, module) in modules.iter().enumerate() {
        let stem = module.path.file_name().unwrap_or_default().to_string_lossy();
        let stem = stem.split('.').next().unwrap_or_default();
        let name = format!("modules/{number:02}-{stem}.ko");
        archive.file(&name, 0o644, &module.image()?).context(describe())?;
    }
    archive.finish().context(describe())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).context(format!("reading {}", path.display()))
}

/// These modules and all they depend on, dependencies first.
fn modules_in_order(kernel: &Kernel, modules: &[&str]) -> Result<Vec<Module>> {
    let directory = kernel.modules();
    let file = directory.join("modules.dep");
    let text = fs::read_to_string(&file).context(format!("reading {}", file.display()))?;
    let dependencies = parse_dependencies(&text);
    let mut order: Vec<PathBuf> = Vec::new();
    for &name in modules {
        // A module without a file is built in.
        for path in dependencies.get(name).into_iter().flatten() {
            let path = directory.join(path);
            if !order.contains(&path) {
                order.push(path);
            }
        }
    }
    order.into_iter().map(|path| Ok(Module { bytes: read(&path)?, path })).collect()
}

/// The order of loading, by the module's name, from lines "path: dependency ..." with
/// the nearest dependency first.
fn parse_dependencies(text: &str) -> HashMap<String, Vec<&str>> {
    text.lines()
        .filter_map(|line| {
            let (path, dependencies) = line.split_once(':')?;
            let name = path.rsplit('/').next()?.split('.').next()?.replace('-', "_");
            let order = dependencies.split_whitespace().rev().chain([path]).collect();
            Some((name, order))
        })
        .collect()
}

impl Module {
    /// The module as the kernel loads it.
    fn image(&self) -> Result<Vec<u8>> {
        let Module { path, bytes } = self;
        let unpack = |program: &str| {
            let output = host_command::filter(Command::new(program).arg("-dc"), bytes)?;
            host_command::stdout_of(output, format!("{program} cannot unpack {}", path.display()))
        };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("xz") => unpack("xz"),
            Some("zst") => unpack("zstd"),
            _ => Ok(bytes.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_type::SVM;

    #[test]
    fn modules_come_after_their_dependencies() {
        let text =
            "kernel/a/x-y.ko.xz: kernel/b/near.ko.xz kernel/b/far.ko.xz\nkernel/b/far.ko.xz:\n";
        let dependencies = parse_dependencies(text);
        let expected = ["kernel/b/far.ko.xz", "kernel/b/near.ko.xz", "kernel/a/x-y.ko.xz"];
        assert_eq!(dependencies["x_y"], expected);
        assert_eq!(dependencies["far"], ["kernel/b/far.ko.xz"]);
    }

    #[test]
    fn an_initramfs_is_made_again_when_a_part_of_it_changes() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let modules = "lib/modules/6.1.0";
        let dependencies = format!("{modules}/modules.dep");
        write("agent", "agent");
        write(&dependencies, "kernel/9p.ko:\n");
        write(&format!("{modules}/kernel/9p.ko"), "old");
        let root = root.path().to_owned();
        let kernel = Kernel { series: None, release: "6.1.0".to_owned(), root };
        let make = || {
            let mut bytes = Vec::new();
            let made = make(&kernel, &SVM, &kernel.root.join("agent")).unwrap();
            std::io::copy(&mut &made, &mut bytes).unwrap();
            bytes
        };
        let mut before = make();
        assert_eq!(make(), before);
        let mut check = |part: &str| {
            let now = make();
            assert_ne!(now, before, "{part}");
            before = now;
        };
        write("agent", "another agent");
        check("the agent");
        write(&format!("{modules}/kernel/9p.ko"), "new");
        check("a module");
        write(&format!("{modules}/kernel/overlay.ko"), "overlay");
        write(&dependencies, "kernel/9p.ko:\nkernel/overlay.ko:\n");
        check("the list of modules");
    }
}

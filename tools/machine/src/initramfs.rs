// SPDX-License-Identifier: MIT OR Apache-2.0
//! The initramfs: the agent as /init, and the modules that it needs to reach
//! the host's files. It is kept in the kernel's directory and made again when the
//! agent, the list of modules or the form of the archive changes.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cpio::Archive;
use crate::error::{Context, Result};
use crate::host_command;
use crate::kept::made_once;
use crate::kernel::Kernel;
use crate::machine_type::MachineType;

/// The form of the archive: to be advanced when build() changes.
const FORMAT: &str = "1";

/// Makes it once for each agent and list of modules.
pub(crate) fn make(kernel: &Kernel, machine_type: &MachineType, agent: &Path) -> Result<PathBuf> {
    let agent = fs::read(agent).context(format!("reading {}", agent.display()))?;
    let modules = machine_type.initramfs_modules;
    let source = source(modules, &agent);
    made_once(&kernel.root, &format!("initramfs-{machine_type}-"), &source, || {
        build(kernel, modules, &agent)
    })
}

/// All that the archive is made of, except the kernel, whose directory has the archive.
fn source(modules: &[&str], agent: &[u8]) -> Vec<u8> {
    [FORMAT.as_bytes(), b"\n", modules.join(" ").as_bytes(), b"\n", agent].concat()
}

fn build(kernel: &Kernel, modules: &[&str], agent: &[u8]) -> Result<Vec<u8>> {
    let describe = || "writing the initramfs";
    let mut archive = Archive::new(Vec::new());
    for name in ["dev", "proc", "sys", "host", "copies", "overlay", "root", "modules"] {
        archive.directory(name).context(describe())?;
    }
    archive.file("init", 0o755, agent).context(describe())?;
    for (number, path) in modules_in_order(kernel, modules)?.iter().enumerate() {
        let stem = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = stem.split('.').next().unwrap_or_default();
        let name = format!("modules/{number:02}-{stem}.ko");
        archive.file(&name, 0o644, &module_image(path)?).context(describe())?;
    }
    archive.finish().context(describe())
}

/// The files of these modules and of all they depend on, dependencies first.
fn modules_in_order(kernel: &Kernel, modules: &[&str]) -> Result<Vec<PathBuf>> {
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
    Ok(order)
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

fn module_image(path: &Path) -> Result<Vec<u8>> {
    let unpack = |program: &str| {
        let output = host_command::output(Command::new(program).arg("-dc").arg(path))?;
        host_command::stdout_of(output, format!("{program} cannot unpack {}", path.display()))
    };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => unpack("xz"),
        Some("zst") => unpack("zstd"),
        _ => fs::read(path).context(format!("reading {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_list_of_modules_makes_another_initramfs() {
        let one = source(&["9p", "overlay"], b"agent");
        assert_ne!(one, source(&["overlay", "9p"], b"agent"));
        assert_ne!(one, source(&["9p", "overlay"], b"new agent"));
    }

    #[test]
    fn modules_come_after_their_dependencies() {
        let text =
            "kernel/a/x-y.ko.xz: kernel/b/near.ko.xz kernel/b/far.ko.xz\nkernel/b/far.ko.xz:\n";
        let dependencies = parse_dependencies(text);
        let expected = ["kernel/b/far.ko.xz", "kernel/b/near.ko.xz", "kernel/a/x-y.ko.xz"];
        assert_eq!(dependencies["x_y"], expected);
        assert_eq!(dependencies["far"], ["kernel/b/far.ko.xz"]);
    }
}

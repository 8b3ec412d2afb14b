// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loading kernel modules.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::kmod::init_module;

/// The initramfs's directory of modules. Sorted by name, each module comes after
/// those that it depends on.
const INITIAL: &str = "/modules";

/// Loads the modules of the initramfs, and removes their files.
pub fn load_initial() -> Result<()> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(INITIAL)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in &paths {
        load_file(path)?;
        // The initramfs stays in memory forever; its files need not.
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Loads a module. It may be loaded already.
pub fn load_file(path: &Path) -> Result<()> {
    let image = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    match init_module(&image, c"") {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(e) => Err(e).with_context(|| format!("loading {}", path.display())),
    }
}

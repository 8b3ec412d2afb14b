// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories and files in MACHINES that are made once and kept: one that exists is complete.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};

/// Makes `target`, a directory or a file below `machines`, unless `is_there`; another process may
/// make it at the same time. `make` gets an empty directory for its work, needs `space` bytes
/// there, and returns what becomes `target`.
pub(crate) fn once(
    machines: &Path,
    target: &Path,
    space: u64,
    is_there: impl Fn() -> bool,
    make: impl FnOnce(&Path) -> Result<PathBuf>,
) -> Result<()> {
    fs::create_dir_all(machines).context(format!("making {}", machines.display()))?;
    let lock = File::create(machines.join("lock")).context("making the lock file")?;
    lock.lock().context("waiting for another preparation")?;
    if is_there() {
        return Ok(());
    }
    check_space(machines, space)?;
    let work = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(machines)
        .context(format!("making a directory in {}", machines.display()))?;
    let made = make(work.path())?;
    fs::rename(made, target).context(format!("moving it to {}", target.display()))
}

/// Fails if fewer than `needed` bytes are free in a directory.
pub(crate) fn check_space(directory: &Path, needed: u64) -> Result<()> {
    let stat = nix::sys::statvfs::statvfs(directory).context("asking for free disk space")?;
    let free = stat.blocks_available() * stat.fragment_size();
    if free < needed {
        return Err(Error::Environment(format!(
            "{} MB are free in {}, and {} MB are needed",
            free >> 20,
            directory.display(),
            needed >> 20
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once_and_completely() {
        let machines = tempfile::tempdir().unwrap();
        let target = machines.path().join("it");
        let fails = |_: &Path| Err(Error::Environment("no network".to_owned()));
        let works = |work: &Path| {
            let made = work.join("made");
            fs::create_dir(&made).context("making a directory").map(|()| made)
        };
        let once = |make: &dyn Fn(&Path) -> Result<PathBuf>| {
            super::once(machines.path(), &target, 1, || target.exists(), make)
        };
        assert!(once(&fails).is_err() && !target.exists());
        assert!(once(&works).is_ok() && target.exists());
        assert!(once(&fails).is_ok());
        assert!(once(&|_| panic!("it exists")).is_ok());
        let left = fs::read_dir(machines.path()).unwrap().count();
        assert_eq!(left, 2, "the directory and the lock");
    }
}

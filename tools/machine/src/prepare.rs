// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories and files in MACHINES that are fetched or built once and kept, such as kernels: one
//! that exists is complete. A lock lets one process at a time prepare. (kept.rs is for files that
//! are made anew when their sources change.)

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};

/// Makes `target`, a directory or a file below `machines`, unless `is_there`; another process may
/// make it at the same time. `make` gets an empty directory for its work, needs `space` bytes
/// there, and returns what becomes `target`. An older `target` is removed after that.
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
    // rename() replaces no directory that has files. The old one is removed with `work`.
    let old = work.path().join("old");
    if target.is_dir() {
        fs::rename(target, &old).context(format!("moving {} away", target.display()))?;
    }
    let moved = fs::rename(made, target).context(format!("moving it to {}", target.display()));
    moved.inspect_err(|_| {
        let _ = fs::rename(&old, target);
    })
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

    #[test]
    fn a_directory_is_replaced_only_by_a_complete_one() {
        let machines = tempfile::tempdir().unwrap();
        let target = machines.path().join("it");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("version"), "old").unwrap();
        let version = || fs::read_to_string(target.join("version")).unwrap();
        let once = |make: &dyn Fn(&Path) -> Result<PathBuf>| {
            super::once(machines.path(), &target, 1, || false, make)
        };
        assert!(once(&|_| Err(Error::Environment("no network".to_owned()))).is_err());
        assert_eq!(version(), "old");
        let made = once(&|work| {
            let made = work.join("made");
            fs::create_dir(&made).context("making a directory")?;
            fs::write(made.join("version"), "new").context("writing a file")?;
            Ok(made)
        });
        assert!(made.is_ok(), "{made:?}");
        assert_eq!(version(), "new");
        let left = fs::read_dir(machines.path()).unwrap().count();
        assert_eq!(left, 2, "the directory and the lock");
    }
}

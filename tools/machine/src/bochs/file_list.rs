// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of files that are copied into an image (images.rs), by their paths without
//! links. The links that lead to them are copied, too.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bochs::packages::Package;
use crate::error::{Context, Error, Result};
use crate::host_command;

/// Documentation is not copied: the user can read the host's.
const NOT_COPIED: [&str; 5] = [
    "/usr/share/doc/",
    "/usr/share/info/",
    "/usr/share/locale/",
    "/usr/share/man/",
    "/usr/share/lintian/",
];

/// A larger directory is not a working directory but a home.
const LIMIT: u64 = 1 << 30;

/// Links that are in no package, such as awk's.
const ALTERNATIVES: &str = "/etc/alternatives";

/// The contents of an image: existing files by their paths, of which only the
/// last part may be a link, and the links that lead to them.
#[derive(Default)]
pub(super) struct FileList {
    pub(super) paths: BTreeSet<PathBuf>,
    /// Real names of directories.
    directories: HashMap<PathBuf, PathBuf>,
    size: u64,
}

impl FileList {
    /// Adds the commands that update-alternatives has made.
    pub(super) fn add_alternatives(&mut self) -> Result<()> {
        for directory in ["/usr/bin", "/usr/sbin"] {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(ALTERNATIVES)) {
                    self.add(&entry.path())?;
                }
            }
        }
        Ok(())
    }

    /// The files of these packages that exist here.
    pub(super) fn of_packages(packages: &BTreeSet<Package>) -> Result<Self> {
        let names = packages.iter().map(|package| package.name.as_str());
        let output = host_command::output(Command::new("dpkg-query").arg("-L").args(names))?;
        let mut list = FileList::default();
        for line in output.stdout.split(|&byte| byte == b'\n') {
            let path = Path::new(OsStr::from_bytes(line));
            let wanted = line.starts_with(b"/")
                && line != b"/."
                && !NOT_COPIED.iter().any(|prefix| line.starts_with(prefix.as_bytes()));
            if wanted && path.symlink_metadata().is_ok() {
                list.add(path)?;
            }
        }
        for link in ["/bin", "/lib", "/lib32", "/lib64", "/sbin"].map(Path::new) {
            if link.is_symlink() {
                list.add(link)?;
            }
        }
        Ok(list)
    }

    /// Adds a file or an empty directory.
    pub(super) fn add(&mut self, path: &Path) -> Result<()> {
        let path = std::path::absolute(path).context("finding a file")?;
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let real = self.real(directory);
        let path = real.join(name);
        if let Ok(data) = path.symlink_metadata() {
            if self.paths.insert(path) {
                self.size += data.len();
            }
        }
        Ok(())
    }

    /// A directory's real name. The links on the way to it are copied, too.
    fn real(&mut self, directory: &Path) -> PathBuf {
        if let Some(real) = self.directories.get(directory) {
            return real.clone();
        }
        let real = match (directory.parent(), directory.file_name()) {
            (Some(parent), Some(name)) => {
                let parent = self.real(parent);
                let path = parent.join(name);
                match (path.read_link(), path.exists()) {
                    (Ok(target), true) => {
                        self.paths.insert(path);
                        self.real(&parent.join(target))
                    }
                    _ => path,
                }
            }
            // "..", from a link.
            (Some(parent), None) => {
                let real = self.real(parent);
                real.parent().unwrap_or(&real).to_owned()
            }
            (None, _) => PathBuf::from("/"),
        };
        self.directories.insert(directory.to_owned(), real.clone());
        real
    }

    /// Adds a directory with everything below it on its file system, or a file.
    pub(super) fn add_tree(&mut self, top: &Path, left_out: &[PathBuf]) -> Result<()> {
        let Ok(data) = top.metadata() else { return Ok(()) };
        self.add(top)?;
        let mut left = vec![top.to_owned()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(own) = entry.metadata() else { continue };
                if left_out.contains(&path) || own.dev() != data.dev() {
                    continue;
                }
                if own.is_dir() {
                    left.push(path.clone());
                } else if !own.is_file() && !own.is_symlink() {
                    continue;
                }
                self.add(&path)?;
                if self.size > LIMIT {
                    return Err(Error::Usage(format!(
                        "with {} more than 1 GB would be copied into the vmx machine: run this \
                         in a smaller directory",
                        top.display()
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_lose_their_links_and_files_keep_theirs() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        fs::create_dir(real.join("usr")).unwrap();
        fs::write(real.join("usr/file"), "content").unwrap();
        std::os::unix::fs::symlink("usr", real.join("link")).unwrap();
        let mut list = FileList::default();
        std::os::unix::fs::symlink("../usr/file", real.join("usr/same")).unwrap();
        list.add(&real.join("link/../usr/file")).unwrap();
        list.add(&real.join("link/same")).unwrap();
        let paths: Vec<PathBuf> = list.paths.into_iter().collect();
        let expected = [real.join("link"), real.join("usr/file"), real.join("usr/same")];
        assert_eq!(paths, expected);
    }

    #[test]
    fn an_excluded_directory_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("a/deep")).unwrap();
        fs::create_dir(top.join("b")).unwrap();
        fs::write(top.join("b/file"), "").unwrap();
        let mut list = FileList::default();
        list.add_tree(&top, &[top.join("a")]).unwrap();
        let paths: Vec<PathBuf> = list.paths.into_iter().collect();
        assert_eq!(paths, [top.clone(), top.join("b"), top.join("b/file")]);
    }
}

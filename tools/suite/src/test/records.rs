// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of the parts of make test-all that passed: one file for each in
//! `build/parts/`. make clean removes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::context::{Context, OPTIONS};

pub struct Records {
    directory: PathBuf,
    source: PathBuf,
    build: PathBuf,
    /// None, if git fails: then nothing is recorded or found.
    tree: Option<String>,
}

/// Everything that the result of a part depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The hash of the sources, committed or not. None, if git fails.
    tree: Option<String>,
    /// The machine of a mode with one of Debian's kernels. None for the other parts.
    machine: Option<MachineKey>,
    /// The options of the environment that tests obey.
    options: Vec<Option<String>>,
}

/// What the sources do not decide about the machine of a part, except the emulator's version,
/// which is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineKey {
    /// The kernel's release, which identifies the build of "newest".
    pub release: String,
    /// The number of CPUs, which `--cpus` may have set.
    pub cpus: u32,
    /// The CPU model of the mode or of `--model`.
    pub cpu_model: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub passed: usize,
    /// Reasons, with the number of tests.
    pub skipped: BTreeMap<String, usize>,
}

impl Records {
    /// Opens the records, and identifies the sources as they are now.
    pub fn open(context: &Context) -> Result<Self> {
        Self::open_in(&context.source, &context.build)
    }

    fn open_in(source: &Path, build: &Path) -> Result<Self> {
        let directory = build.join("parts");
        fs::create_dir_all(&directory)
            .with_context(|| format!("making {}", directory.display()))?;
        let tree = tree(source, build, &directory);
        if tree.is_none() {
            println!("git cannot identify the sources: no part will be resumed");
        }
        Ok(Records { directory, source: source.to_owned(), build: build.to_owned(), tree })
    }

    /// The key of a result in this machine.
    pub fn key(&self, machine: Option<MachineKey>) -> Key {
        let options = OPTIONS.iter().map(|name| std::env::var(name).ok()).collect();
        Key { tree: self.tree.clone(), machine, options }
    }

    /// The record of a part that passed with this key.
    pub fn find(&self, name: &str, key: &Key) -> Option<Record> {
        self.tree.as_ref()?;
        let text = fs::read(self.directory.join(name)).ok()?;
        let (kept, record): (Key, Record) = serde_json::from_slice(&text).ok()?;
        (kept == *key).then_some(record)
    }

    /// Keeps the record of a part that passed. If the sources changed meanwhile, it is
    /// not kept, and false is returned: tests read some sources while they run.
    pub fn keep(&self, name: &str, key: &Key, record: &Record) -> Result<bool> {
        if self.tree.is_none() || tree(&self.source, &self.build, &self.directory) != self.tree {
            return Ok(false);
        }
        // The file is written completely or not at all, also if this process is
        // interrupted.
        let file = tempfile::NamedTempFile::new_in(&self.directory).context("making a record")?;
        serde_json::to_writer(&file, &(key, record)).context("writing a record")?;
        file.persist(self.directory.join(name)).context("keeping a record")?;
        Ok(true)
    }
}

/// git's hash of all files that it does not ignore, as they are now. It uses a
/// temporary index, so that the clone's index stays as it is.
fn tree(source: &Path, build: &Path, directory: &Path) -> Option<String> {
    let temporary = tempfile::tempdir_in(directory).ok()?;
    // If O=DIR puts the build into the sources, git may not ignore it.
    let ignored = temporary.path().join("ignored");
    let build = build.strip_prefix(source).map(|build| format!("/{}\n", build.display()));
    fs::write(&ignored, build.unwrap_or_default()).ok()?;
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-c").arg(format!("core.excludesFile={}", ignored.display()));
        command.args(arguments).current_dir(source);
        command.env("GIT_INDEX_FILE", temporary.path().join("index"));
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    git(&["add", "--all"])?;
    git(&["write-tree"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Option<MachineKey> {
        Some(MachineKey { release: text.to_owned(), cpus: 2, cpu_model: None })
    }

    /// A clone with one committed file, and its build directory.
    fn clone() -> tempfile::TempDir {
        let clone = tempfile::tempdir().expect("a directory can be made");
        let status = Command::new("git").args(["init", "-q"]).current_dir(clone.path()).status();
        assert!(status.expect("git runs").success());
        fs::write(clone.path().join("file"), "one").expect("a file can be written");
        clone
    }

    fn open(clone: &tempfile::TempDir) -> Records {
        let build = clone.path().join("build");
        Records::open_in(clone.path(), &build).expect("records can be opened")
    }

    #[test]
    fn a_part_is_resumed_with_the_same_sources_and_kernel_only() {
        let clone = clone();
        let record =
            Record { passed: 3, skipped: BTreeMap::from([("no such thing".to_owned(), 2)]) };
        let records = open(&clone);
        let key = records.key(release("6.1.0-1"));
        assert_eq!(records.find("part", &key), None);
        assert!(records.keep("part", &key, &record).expect("it can be kept"));

        let records = open(&clone);
        assert_eq!(records.find("part", &records.key(release("6.1.0-1"))), Some(record));
        assert_eq!(records.find("other", &records.key(release("6.1.0-1"))), None);
        assert_eq!(records.find("part", &records.key(release("6.1.0-2"))), None);

        fs::write(clone.path().join("file"), "two").expect("a file can be written");
        let records = open(&clone);
        assert_eq!(records.find("part", &records.key(release("6.1.0-1"))), None);
    }

    #[test]
    fn a_build_directory_is_no_source_whether_git_ignores_it_or_not() {
        let clone = clone();
        let tree = open(&clone).tree;
        fs::write(clone.path().join("build/output"), "").expect("a file can be written");
        assert_eq!(open(&clone).tree, tree);
        fs::write(clone.path().join(".git/info/exclude"), "/build/")
            .expect("git has that directory");
        assert_eq!(open(&clone).tree, tree);
    }

    #[test]
    fn a_part_during_which_the_sources_changed_is_not_kept() {
        let clone = clone();
        let records = open(&clone);
        let key = records.key(None);
        fs::write(clone.path().join("new"), "").expect("a file can be written");
        assert!(!records.keep("part", &key, &Record::default()).expect("that is no error"));
        assert_eq!(records.find("part", &key), None);
    }

    #[test]
    fn without_git_nothing_is_resumed() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        fs::write(directory.path().join(".git"), "not a clone").expect("a file can be written");
        let records = open(&directory);
        let key = records.key(None);
        assert!(!records.keep("part", &key, &Record::default()).expect("that is no error"));
        assert_eq!(records.find("part", &key), None);
    }
}

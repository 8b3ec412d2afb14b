// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exit statuses that the help promises, as far as no machine is needed: 2 for a wrong
//! option, 69 if this computer lacks something, and 0 for `machine prepare` where all is prepared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A new, empty directory of this name.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// What counts as a prepared kernel, and cannot be booted.
fn add_kernel(root: &Path) {
    fs::create_dir_all(root.join("boot")).unwrap();
    fs::write(root.join("boot/vmlinuz-6.1.0-1-amd64"), "").unwrap();
}

/// `dunectl machine run` with a build directory in which nothing was built.
fn machine_run(build: &Path, options: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dunectl"));
    command.args(["machine", "run"]).args(options).args(["--", "true"]);
    let output = command.env("DUNE_BUILD", build).output().unwrap();
    (output.status.code(), stderr(&output))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_wrong_option_is_two() {
    let build = directory("wrong-option");
    add_kernel(&build);
    let kernel = format!("--kernel-from={}", build.display());
    let without_kernel = directory("without-kernel");
    let no_kernel = format!("--kernel-from={}", without_kernel.display());
    let no_kernel_text = format!("{} has no boot/vmlinuz-*", without_kernel.display());
    for (options, reason) in [
        (&[&kernel, "--counting", "--cpus", "2"][..], "counting mode has one CPU"),
        (&[&kernel, "--write", "/nonexistent"], "cannot share /nonexistent"),
        (&[&no_kernel], &no_kernel_text),
    ] {
        let (status, text) = machine_run(&build, options);
        assert!(text.contains(reason), "{options:?}: {text}");
        assert_eq!(status, Some(2), "{options:?}: {text}");
    }
}

#[test]
fn a_missing_agent_is_69() {
    let build = directory("missing-agent");
    add_kernel(&build.join("machine/6.1"));
    let (status, text) = machine_run(&build, &[]);
    assert!(text.contains("dune-agent is missing: run make"), "{text}");
    assert_eq!(status, Some(69), "{text}");
}

/// An installation need not have the programs that make the vmx machine's disk. Here the PATH
/// has none of them.
#[test]
fn an_installation_prepares_kernels_only() {
    let prefix = directory("installation");
    let program = prefix.join("bin/dunectl");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_dunectl"), &program).unwrap();
    fs::create_dir_all(prefix.join("libexec/dune")).unwrap();
    fs::write(prefix.join("libexec/dune/dune-agent"), "").unwrap();
    let cache = prefix.join("cache");
    add_kernel(&cache.join("dune/machine/6.1"));
    let mut command = Command::new(program);
    command.args(["machine", "prepare", "6.1"]).env_remove("DUNE_BUILD");
    command.env("XDG_CACHE_HOME", &cache).env("PATH", &prefix);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, b"6.1     6.1.0-1-amd64\n");
}

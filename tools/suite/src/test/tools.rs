// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the tools themselves, which cargo runs.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::test::tally::Tally;

/// Runs cargo test, and counts its tests.
pub fn run(context: &Context, tally: &mut Tally) -> Result<()> {
    tally.line("cargo test");
    let output = Command::new("cargo")
        .args(["test", "--locked", "--release", "--workspace", "--no-fail-fast"])
        .current_dir(&context.source)
        .env("CARGO_TARGET_DIR", context.build.join("cargo"))
        .output()
        .context("running cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let log = context.log_directory("test")?.join("cargo.log");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    std::fs::write(&log, both).context("writing cargo's log")?;
    let (passed, failed) = count(&text);
    tally.passed(passed);
    for name in &failed {
        tally.failed(format!("cargo test: {name} (see {})", log.display()));
    }
    if !output.status.success() && failed.is_empty() {
        tally.failed(format!("cargo test: {} (see {})", output.status, log.display()));
    }
    tally.line(&format!("cargo test: {passed} passed, {} failed", failed.len()));
    Ok(())
}

/// Lines "test NAME ... ok" and "test NAME ... FAILED".
fn count(text: &str) -> (usize, Vec<String>) {
    let results =
        || text.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    let passed = results().filter(|(_, result)| *result == "ok").count();
    let failed = results().filter(|(_, result)| *result == "FAILED");
    (passed, failed.map(|(name, _)| name.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let (passed, failed) = count("running 2 tests\ntest a ... ok\ntest b::c ... FAILED\n");
        assert_eq!(passed, 1);
        assert_eq!(failed, ["b::c"]);
    }
}

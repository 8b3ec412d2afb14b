// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges the output of a TAP program by prove, on this computer: in an emulated machine Perl
//! takes longer to start than most tests take to run.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, Result};

/// What prove says of the output in a file, whose name ends with ".log". It checks the plan and
/// the numbers, and passes the output on, unless all was skipped. It does not know how the program
/// ended.
pub fn judge(output: &Path) -> Result<Output> {
    Command::new("prove")
        .args(["--verbose", "--norc", "--nocolor"])
        .args(["--source", "File", "--file-option", "extensions=.log"])
        .arg(output)
        .output()
        .context("running prove, which is in Debian's package perl")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(output: &str) -> bool {
        let name = format!("dune-prove-{}-{}.log", std::process::id(), output.len());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, output).unwrap();
        let said = judge(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        said.status.success()
    }

    #[test]
    fn the_plan_has_to_be_kept() {
        assert!(passes("text\nok 1 - a\nok 2 # SKIP why\n1..2\n"));
        assert!(passes("1..0 # SKIP nothing to test\n"));
        assert!(!passes("ok 1 - a\nnot ok 2 - b\n1..2\n"));
        assert!(!passes("ok 1 - a\n1..2\n"));
        assert!(!passes("ok 1 - a\nok 2 - without a plan\n"));
        assert!(!passes("1..3\nok 1\nok 3\nok 2\n"));
    }

    #[test]
    fn no_output_is_no_success() {
        assert!(!passes(""));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exploration of the guard's border control (tests/guard/model), a TAP program that runs on
//! this computer, and not in a machine: it needs no kernel, and would take too long in an emulator.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::test::tally::Tally;
use crate::test::tap;

/// Its name, for --only.
pub const NAME: &str = "guard/model";

/// Its name as a part of make test-all: a part has a file.
pub const PART: &str = "guard-model";

/// The states of each exploration in make test-all: 800 MB. make test has the program's own number.
const DEEP_STATES: &str = "8000000";

/// Runs the program, and adds its results to the tally.
pub fn run(context: &Context, is_deep: bool, tally: &mut Tally) -> Result<()> {
    tally.line(NAME);
    let mut command = Command::new(context.build.join("tests").join(NAME).join("model"));
    if is_deep {
        command.env("STATES", DEEP_STATES);
    }
    let output =
        command.output().with_context(|| format!("running {NAME}, which `make` builds"))?;
    let log = context.log_directory("test")?.join("guard-model.log");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    std::fs::write(&log, both).context("writing its log")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let results = tap::parse(&text);
    let (passed, failed) = (results.passed, results.failed.len());
    tally.passed(passed);
    let is_complete = has_plan(&text, passed + failed);
    if failed == 0 && !(output.status.success() && is_complete) {
        tally.failed(format!("{NAME}: {}, or no plan (see {})", output.status, log.display()));
    }
    for failure in results.failed {
        let message = format!("{NAME}: {} (see {})", failure.verdict, log.display());
        tally.failed_because(message, failure.why);
    }
    tally.line(&format!("{NAME}: {passed} passed, {failed} failed"));
    Ok(())
}

/// Whether the program came to its end, where it prints the number of its tests.
fn has_plan(output: &str, count: usize) -> bool {
    count > 0 && output.lines().any(|line| line == format!("1..{count}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_early_has_no_plan() {
        assert!(has_plan("ok 1 - a\nok 2 - b\n1..2\n", 2));
        assert!(!has_plan("ok 1 - a\nok 2 - b\n", 2));
        assert!(!has_plan("1..0\n", 0));
    }
}

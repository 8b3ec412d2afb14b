// SPDX-License-Identifier: MIT OR Apache-2.0
//! TAP programs that run on this computer, and not in a machine: they need no kernel, and would
//! take too long in an emulator, or they boot machines of their own.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::test::prove;
use crate::test::tally::Tally;
use crate::test::tap;

/// A program that runs on this computer.
#[derive(Debug)]
pub struct Program {
    /// Its name, for --only.
    pub name: &'static str,
    /// Its name as a part of make test-all: a part has a file.
    pub part: &'static str,
    /// How much make test-all does, by a variable; make test does what is the program's own default.
    deep: (&'static str, &'static str),
}

/// All of them.
pub static PROGRAMS: [Program; 6] = [
    // The guard's border control (tests/guard/model): the states of each exploration, 800 MB.
    Program { name: "guard/model", part: "guard-model", deep: ("STATES", "8000000") },
    // The content of modules (tests/guard/content): the damaged descriptions of each module.
    Program { name: "guard/content", part: "guard-content", deep: ("DAMAGED", "30000") },
    // The inside of guard-keys.ko (tests/guard/keys_inside): random keys of each kind.
    Program { name: "guard/keys_inside", part: "guard-keys-inside", deep: ("ROUNDS", "50000") },
    // Guards that are weakened on purpose (tests/guard/weak): a machine for each of them.
    Program { name: "guard/weak", part: "guard-weak", deep: ("WEAK", "all") },
    // Crash dumps of machines with a key (tests/guard/crash): also without the guard.
    Program { name: "guard/crash", part: "guard-crash", deep: ("CRASH", "all") },
    // The kernel's panic by the guard (tests/guard/panic): a machine for each reason.
    Program { name: "guard/panic", part: "guard-panic", deep: ("PANIC", "all") },
];

/// Runs the program, and adds its results to the tally.
pub fn run(context: &Context, program: &Program, is_deep: bool, tally: &mut Tally) -> Result<()> {
    let name = program.name;
    tally.line(name);
    let file = name.rsplit('/').next().unwrap_or(name);
    let mut command = Command::new(context.build.join("tests").join(name).join(file));
    if is_deep {
        command.env(program.deep.0, program.deep.1);
    }
    let output =
        command.output().with_context(|| format!("running {name}, which `make` builds"))?;
    let log = context.log_directory("test")?.join(program.part).with_extension("log");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    std::fs::write(&log, both).context("writing its log")?;
    let results = tap::parse(&String::from_utf8_lossy(&output.stdout));
    let (passed, failed) = (results.passed, results.failed.len());
    tally.passed(passed);
    for reason in results.skipped {
        tally.skipped(reason);
    }
    let judged = prove::judge(&log)?;
    if failed == 0 && !(output.status.success() && judged.status.success()) {
        let (end, log) = (output.status, log.display());
        tally.failed(format!("{name}: {end}; prove: {} (see {log})", judged.status));
    }
    for failure in results.failed {
        let message = format!("{name}: {} (see {})", failure.verdict, log.display());
        tally.failed_because(message, failure.why);
    }
    tally.line(&format!("{name}: {passed} passed, {failed} failed"));
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts that make fuzz and make decoy have in common: each attacks for hours, on
//! several kernels, and continues where it ended. A machine may die of an attack, so the
//! output is read from a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context as _, Result};
use dune_machine::{Error, Machine, Outcome, OutputTo, Run};

use crate::context::Context;
use crate::test::programs::is_stale_code;

/// The time at which a command with `--hours` ends.
pub fn deadline(hours: f64) -> Result<Instant> {
    ensure!(hours > 0.0, "HOURS must be greater than 0");
    Ok(Instant::now() + Duration::from_secs_f64(hours * 3600.0))
}

/// A directory of the build directory, which keeps what was tried and what was found.
pub fn directory(context: &Context, name: impl AsRef<Path>) -> Result<PathBuf> {
    let directory = context.build.join(name);
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    Ok(directory)
}

/// One run of an attack.
pub struct Attempt {
    /// Its output, on both streams, until it or the machine ended.
    pub output: String,
    pub end: End,
}

/// How a run of an attack ended.
pub enum End {
    /// The attack ended, and the machine can be used further.
    Ended(Outcome),
    /// The machine died by a known fault of the emulator.
    StaleCode,
    /// The machine died, which is a finding.
    Died(Error),
}

/// Runs an attack, whose output is in `file` afterwards.
pub fn attempt(
    context: &Context,
    machine: &mut Machine,
    mut run: Run,
    file: &Path,
) -> Result<Attempt> {
    let stdout = File::create(file).context("making the file for the output")?;
    let stderr = stdout.try_clone().context("copying a file descriptor")?;
    run.stdout = OutputTo::Write(Box::new(stdout));
    run.stderr = OutputTo::Write(Box::new(stderr));
    let result = machine.run(&mut run);
    drop(run);
    let bytes = fs::read(file).context("reading the output")?;
    let output = String::from_utf8_lossy(&bytes).into_owned();
    let end = match result {
        Ok(outcome) => End::Ended(outcome),
        Err(e) if is_stale_code(context, &e) => End::StaleCode,
        Err(e) if is_death(&e) => End::Died(e),
        Err(e) => return Err(e.into()),
    };
    Ok(Attempt { output, end })
}

/// Whether the attack may have caused the error. Others come from this computer or the suite.
fn is_death(error: &Error) -> bool {
    matches!(
        error,
        Error::Panicked { .. }
            | Error::Hung { .. }
            | Error::Ended(_)
            | Error::Connection(_)
            | Error::Agent(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_death_and_a_full_disk_is_not() {
        assert!(is_death(&Error::Panicked { log: String::new(), early: false }));
        let full = Error::Environment("no room on the disk".to_owned());
        assert!(!is_death(&full));
    }
}

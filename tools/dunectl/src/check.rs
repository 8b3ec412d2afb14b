// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl check: what this computer has and lacks for Dune.
//!
//! cpu.rs looks at the processor, kernel.rs at the kernel and the module, and
//! machine.rs at what the emulated machine needs. Each returns findings of one
//! line each; this file prints them and draws the conclusion.

mod cpu;
mod kernel;
mod machine;

use std::path::Path;

use dune_machine::{Layout, Result};

use crate::exit::{restore_sigpipe, End};
use crate::run::open_device;

/// Exit statuses: Dune runs here, in the emulated machine, or not at all.
const HERE: u8 = 0;
const IN_MACHINE: u8 = 1;
const NOWHERE: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Good,
    /// Worth knowing, but nothing is lacking.
    Note,
    Lacking,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    subject: String,
    /// The fact, and what to do about it.
    text: String,
}

impl Finding {
    fn good(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { level: Level::Good, subject: subject.into(), text: text.into() }
    }

    fn note(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { level: Level::Note, subject: subject.into(), text: text.into() }
    }

    fn lacking(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { level: Level::Lacking, subject: subject.into(), text: text.into() }
    }
}

/// Prints all findings. The exit status is the conclusion.
pub fn run() -> Result<End> {
    restore_sigpipe();
    let layout = Layout::find()?;
    println!("To run programs in Dune mode on this computer itself:");
    let cpuinfo = read("/proc/cpuinfo");
    let mut here = cpu::findings(&cpuinfo, cpu::guest_address_bits());
    here.extend(kernel::findings(&layout, cpu::is_amd(&cpuinfo)));
    print(&here);
    println!("To run them in the emulated machine instead:");
    let emulated = machine::findings(&layout);
    print(&emulated);

    let complete = |all: &[Finding]| all.iter().all(|one| one.level != Level::Lacking);
    let runtime = layout.runtime().is_ok();
    let (code, conclusion) = if open_device().is_ok() && runtime {
        (HERE, "dunectl run works here.")
    } else if complete(&emulated) {
        (IN_MACHINE, "dunectl run works in the emulated machine.")
    } else {
        (NOWHERE, "dunectl run does not work yet: see the lines with \"lacks\".")
    };
    println!("{conclusion}");
    Ok(End::Code(code))
}

fn print(findings: &[Finding]) {
    for finding in findings {
        let mark = match finding.level {
            Level::Good => "ok   ",
            Level::Note => "note ",
            Level::Lacking => "lacks",
        };
        println!("  {mark}  {:13} {}", finding.subject, finding.text);
    }
}

/// A file that cannot be read counts as empty. Each finding decides what that
/// means.
fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

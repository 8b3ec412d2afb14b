// SPDX-License-Identifier: MIT OR Apache-2.0
//! The needs of the emulated machine.

use std::env;
use std::ffi::OsStr;

use dune_machine::{modules_text, Kernel, Layout, Series};

use super::{read, Finding, Level};
use crate::lookup;

/// The machine's default, and some more for the emulator, in MB.
const NEEDED_MEMORY: u64 = 2300;

/// The findings on the emulated machine.
pub fn findings(layout: &Layout) -> Vec<Finding> {
    let mut findings = vec![emulator(), agent(layout), memory()];
    findings.extend(kernels(layout));
    findings
}

fn emulator() -> Finding {
    match lookup::find(OsStr::new("qemu-system-x86_64"), env::var_os("PATH")) {
        Ok(path) => Finding::good("emulator", path.display().to_string()),
        Err(_) => Finding::lacking("emulator", "no QEMU: apt-get install qemu-system-x86"),
    }
}

fn agent(layout: &Layout) -> Finding {
    match layout.agent().and_then(|_| layout.runtime()) {
        Ok(_) => Finding::good("programs", "dune-agent and dune-run"),
        Err(e) => Finding::lacking("programs", e.to_string()),
    }
}

fn memory() -> Finding {
    let available = read("/proc/meminfo").lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    match available.map(|kilobytes| kilobytes >> 10) {
        Some(megabytes) if megabytes >= NEEDED_MEMORY => {
            Finding::good("memory", format!("{megabytes} MB available"))
        }
        Some(megabytes) => Finding::note(
            "memory",
            format!("{megabytes} MB available: reduce --memory, or free memory on this computer"),
        ),
        None => Finding::note("memory", "unknown: /proc/meminfo has no line MemAvailable"),
    }
}

/// One kernel is enough.
fn kernels(layout: &Layout) -> Vec<Finding> {
    let mut findings = Series::ALL.map(|series| kernel(layout, series));
    if findings.iter().all(|finding| finding.level != Level::Good) {
        findings[0].level = Level::Lacking;
    }
    findings.into()
}

fn kernel(layout: &Layout, series: Series) -> Finding {
    let subject = format!("kernel {series}");
    let Ok(kernel) = Kernel::find(layout, series) else {
        let command = if layout.is_build() { "make KERNELS=" } else { "dunectl machine prepare " };
        return Finding::note(subject, format!("not fetched (250 MB): {command}{series}"));
    };
    match kernel.project_modules(layout) {
        Ok(_) => {
            Finding::good(subject, format!("{}, with {}", kernel.release, modules_text("and")))
        }
        Err(e) => Finding::note(subject, e.to_string()),
    }
}

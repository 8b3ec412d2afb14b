// SPDX-License-Identifier: MIT OR Apache-2.0
//! make demo-guard: the guard with a key and a network card, and a hostile module, in one
//! emulated machine. The program is tests/guard/demo.c; here its verdicts are printed as they
//! come, in plain text. It is also a test, `guard/demo`.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Instant;

use anyhow::Result;
use dune_machine::{Kernel, Machine, OutputTo, Series};

use crate::context::Context;
use crate::Verdict;

/// Its name in tests/suite.toml.
const TEST: &str = "guard/demo";

/// The mode of tests/suite.toml in which the guard's tests run.
const MODE: &str = "guard";

/// The card that the program has guarded, by QEMU's name.
const CARD: &str = "e1000";

/// Megabytes: the hostile module searches all of it.
const MEMORY: u32 = 1024;

/// Boots the machine and runs the program. Passes if all is as it must be.
pub fn run(context: &Context, series: Series) -> Result<Verdict> {
    let begin = Instant::now();
    let mode = context.table.mode(MODE, context.machine_type())?;
    let mut config = context.machine_in(mode, Kernel::find(&context.layout, series)?)?;
    config.devices.clear();
    config.network_cards = vec![CARD.to_owned()];
    config.memory = MEMORY;
    let vendor = context.machine_type().vendor;
    let release = &config.kernel.release;
    println!("Booting an emulated {vendor} machine with Debian's kernel {release} ...");
    let mut machine = Machine::boot(&context.layout, &config)?;
    let counts = Rc::new(Cell::new(Counts::default()));
    let mut run = context.command([context.build.join("tests").join(TEST).with_extension("t")]);
    run.stdout = OutputTo::Write(Box::new(Printer { rest: Vec::new(), counts: counts.clone() }));
    run.stderr = OutputTo::Inherit;
    run.timeout = Some(context.table.limit(TEST, context.machine_type()));
    let outcome = machine.run(&mut run)?;
    let report = machine.power_off()?.error_report();
    let Counts { good, bad } = counts.get();
    println!("\n{good} of {} as they must be, in {} s.", good + bad, begin.elapsed().as_secs());
    if let Some(report) = &report {
        println!("dune-suite: {report}");
    }
    let is_well = outcome.status.success() && bad == 0 && good > 0 && report.is_none();
    Ok(Verdict::passed_if(is_well))
}

/// The verdicts so far.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Counts {
    good: u32,
    bad: u32,
}

/// Prints the program's lines.
struct Printer {
    /// A line that has not ended yet.
    rest: Vec<u8>,
    counts: Rc<Cell<Counts>>,
}

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let mut counts = self.counts.get();
            if let Some(text) = plain(String::from_utf8_lossy(&line).trim_end(), &mut counts) {
                writeln!(io::stdout(), "{}", text.trim_end())?;
            }
            self.counts.set(counts);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// A line of TAP in plain text, if it has something for the reader.
fn plain(line: &str, counts: &mut Counts) -> Option<String> {
    if let Some(text) = line.strip_prefix('#') {
        return Some(text.strip_prefix(' ').unwrap_or(text).to_owned());
    }
    if line.starts_with("1..") {
        return None;
    }
    let verdict = |rest: &str| {
        let text = rest.split_once(" - ").map_or(rest, |(_, text)| text);
        text.to_owned()
    };
    if let Some(rest) = line.strip_prefix("ok ") {
        counts.good += 1;
        return Some(format!("  ok      {}", verdict(rest)));
    }
    counts.bad += 1;
    Some(match line.strip_prefix("not ok ") {
        Some(rest) => format!("  FAILED  {}", verdict(rest)),
        None => format!("  FAILED  {line}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_become_plain_text() {
        let mut counts = Counts::default();
        let mut plain = |line| plain(line, &mut counts);
        assert_eq!(plain("# 1. A heading").as_deref(), Some("1. A heading"));
        assert_eq!(plain("ok 3 - reads - zeros").as_deref(), Some("  ok      reads - zeros"));
        assert_eq!(plain("not ok 4 - writes").as_deref(), Some("  FAILED  writes"));
        assert_eq!(plain("Bail out! no card").as_deref(), Some("  FAILED  Bail out! no card"));
        assert_eq!(plain("1..4"), None);
        assert_eq!(counts, Counts { good: 1, bad: 2 });
    }
}

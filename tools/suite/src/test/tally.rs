// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds up what passed, failed and was skipped, and prints it at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::test::records::Record;
use crate::Verdict;

/// The results so far.
#[derive(Debug)]
pub struct Tally {
    begin: Instant,
    passed: usize,
    /// Each failure, with lines that explain it.
    failures: Vec<(String, Vec<String>)>,
    /// Reasons, with the number of tests.
    skipped: BTreeMap<String, usize>,
    /// Failures of machines: the tests that they did not get to run are unknown.
    machine_errors: Vec<String>,
    /// Other lines for the end.
    notes: Vec<String>,
}

impl Tally {
    /// An empty tally, whose time begins now.
    pub fn new() -> Self {
        Tally {
            begin: Instant::now(),
            passed: 0,
            failures: Vec::new(),
            skipped: BTreeMap::new(),
            machine_errors: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A tally for a part of the whole, to be added by add().
    pub fn of_part(&self) -> Self {
        Tally { begin: self.begin, ..Tally::new() }
    }

    /// Adds the results of a part.
    pub fn add(&mut self, part: Tally) {
        self.passed += part.passed;
        self.failures.extend(part.failures);
        for (reason, count) in part.skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
        self.machine_errors.extend(part.machine_errors);
        self.notes.extend(part.notes);
    }

    /// Takes over the record of a part that passed before.
    pub fn resume(&mut self, record: Record) {
        self.passed = record.passed;
        self.skipped = record.skipped;
    }

    /// The record of a part, if all of it passed.
    pub fn record_if_passed(&self) -> Option<Record> {
        let has_passed =
            self.passed > 0 && self.failures.is_empty() && self.machine_errors.is_empty();
        has_passed.then(|| Record { passed: self.passed, skipped: self.skipped.clone() })
    }

    /// Counts tests that passed.
    pub fn passed(&mut self, count: usize) {
        self.passed += count;
    }

    /// Counts a failure.
    pub fn failed(&mut self, message: impl Into<String>) {
        self.failed_because(message, Vec::new());
    }

    /// Counts a failure that lines of a log explain.
    pub fn failed_because(&mut self, message: impl Into<String>, why: Vec<String>) {
        self.failures.push((message.into(), why));
    }

    /// Counts a test that was skipped.
    pub fn skipped(&mut self, reason: impl Into<String>) {
        *self.skipped.entry(reason.into()).or_default() += 1;
    }

    /// Adds a line for the end.
    pub fn note(&mut self, message: impl Into<String>) {
        self.notes.push(message.into());
    }

    /// Counts a failure of a machine.
    pub fn machine_error(&mut self, message: impl Into<String>) {
        self.machine_errors.push(message.into());
    }

    /// Prints a line, with the time since the beginning.
    pub fn line(&self, message: &str) {
        println!("{} {message}", clock(self.begin.elapsed()));
    }

    /// Counts and prints the result of one named check.
    pub fn check(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => {
                self.passed(1);
                self.line(&format!("ok      {name}"));
            }
            Err(reason) => {
                self.line(&format!("FAILED  {name}: {reason}"));
                self.failed(format!("{name}: {reason}"));
            }
        }
    }

    /// Prints the last lines, and returns the verdict.
    pub fn close(self) -> Verdict {
        println!();
        for note in &self.notes {
            println!("{note}");
        }
        for (reason, count) in &self.skipped {
            println!("skipped {count}: {reason}");
        }
        // Some users keep only the end of the output, so it has all failures.
        for (failure, why) in &self.failures {
            println!("FAILED  {failure}");
            for line in why {
                println!("    {line}");
            }
        }
        for error in &self.machine_errors {
            println!("MACHINE {error}");
        }
        let skipped: usize = self.skipped.values().sum();
        let minutes = clock(self.begin.elapsed());
        println!("{minutes} machine errors: {}", self.machine_errors.len());
        println!("{} passed, {} failed, {skipped} skipped", self.passed, self.failures.len());
        match (self.failures.len(), self.machine_errors.len()) {
            (0, 0) if self.passed > 0 => Verdict::Passed,
            (0, errors) if errors > 0 => Verdict::MachineFailed,
            _ => Verdict::Failed,
        }
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("[{:2}:{:02}]", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_recorded_if_all_of_it_passed() {
        let mut part = Tally::new();
        assert_eq!(part.record_if_passed(), None);
        part.passed(2);
        part.skipped("no such thing");
        let record = part.record_if_passed().expect("it passed");
        let mut again = Tally::new();
        again.resume(record);
        assert_eq!(again.record_if_passed(), part.record_if_passed());
        part.machine_error("it hangs");
        assert_eq!(part.record_if_passed(), None);
    }

    #[test]
    fn parts_add_up() {
        let mut tally = Tally::new();
        for name in ["a", "b"] {
            let mut part = tally.of_part();
            part.passed(2);
            part.failed(name);
            part.skipped("no such thing");
            tally.add(part);
        }
        assert_eq!((tally.passed, tally.failures.len()), (4, 2));
        assert_eq!(tally.skipped["no such thing"], 2);
        assert_eq!(tally.close(), Verdict::Failed);
    }
}

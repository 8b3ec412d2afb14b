// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds up what passed, failed and was skipped, and says so at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Tally {
    begin: Instant,
    passed: usize,
    /// Each with what is known about it.
    failures: Vec<(String, Vec<String>)>,
    /// Reason, and how many.
    skipped: BTreeMap<String, usize>,
    /// Nothing is known of what a broken machine did not get to run.
    machine_errors: Vec<String>,
}

impl Tally {
    pub fn new() -> Self {
        Tally {
            begin: Instant::now(),
            passed: 0,
            failures: Vec::new(),
            skipped: BTreeMap::new(),
            machine_errors: Vec::new(),
        }
    }

    pub fn passed(&mut self, count: usize) {
        self.passed += count;
    }

    pub fn failed(&mut self, what: impl Into<String>) {
        self.failed_because(what, Vec::new());
    }

    pub fn failed_because(&mut self, what: impl Into<String>, why: Vec<String>) {
        self.failures.push((what.into(), why));
    }

    pub fn skipped(&mut self, reason: impl Into<String>) {
        *self.skipped.entry(reason.into()).or_default() += 1;
    }

    pub fn machine_error(&mut self, what: impl Into<String>) {
        self.machine_errors.push(what.into());
    }

    /// A line for something that takes a while, with where we are in time.
    pub fn say(&self, what: &str) {
        println!("{} {what}", clock(self.begin.elapsed()));
    }

    /// One named check.
    pub fn check(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => {
                self.passed(1);
                self.say(&format!("ok      {name}"));
            }
            Err(reason) => {
                self.say(&format!("FAILED  {name}: {reason}"));
                self.failed(format!("{name}: {reason}"));
            }
        }
    }

    /// The last lines, and the exit status.
    pub fn close(self) -> u8 {
        println!();
        for (reason, count) in &self.skipped {
            println!("skipped {count}: {reason}");
        }
        // Where only the end of the output is kept, this is all there is.
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
            (0, 0) if self.passed > 0 => 0,
            (0, errors) if errors > 0 => 2,
            _ => 1,
        }
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("[{:2}:{:02}]", seconds / 60, seconds % 60)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's log, and what it must not contain.

use dune_protocol::LogRecord;

/// The texts of such messages; the file describes its format.
const KERNEL_ERRORS: &str = include_str!("kernel_errors.txt");

const FIRST_PROCESS: &str = "Run /init as init process";

/// All messages of a machine's kernel.
#[derive(Debug, Default)]
pub struct KernelLog {
    records: Vec<LogRecord>,
}

impl KernelLog {
    /// Adds new records.
    pub(crate) fn extend(&mut self, records: Vec<LogRecord>) {
        self.records.extend(records);
    }

    /// All of them, the oldest first.
    pub fn records(&self) -> &[LogRecord] {
        &self.records
    }

    /// Bugs, warnings, stalls and the like since a record, each with the lines that
    /// follow it (a backtrace). Messages from before the first process are not
    /// counted: they are about the emulator (6.12 warns of the CPUs that Bochs
    /// describes).
    pub fn kernel_errors_since(&self, first: usize) -> Option<String> {
        const FOLLOWING: usize = 40;
        let first = first.max(self.first_process());
        let mut found = String::new();
        let mut until = 0;
        for (number, record) in self.records.iter().enumerate().skip(first) {
            if is_kernel_error(record) {
                until = number + FOLLOWING;
            }
            if number < until {
                found += &format!("{record}\n");
            }
        }
        (!found.is_empty()).then_some(found)
    }

    /// The same since the first process.
    pub fn kernel_errors(&self) -> Option<String> {
        self.kernel_errors_since(0)
    }

    /// The message for a user whose machine's kernel reported an error.
    pub fn error_report(&self) -> Option<String> {
        let advice = "the lines are below, and \"dunectl machine run --log\" prints the whole log";
        let errors = self.kernel_errors()?;
        Some(format!("the machine's kernel reported an error: {advice}\n{}", errors.trim_end()))
    }

    /// The last lines.
    pub fn tail(&self, lines: usize) -> String {
        text_of(&self.records[self.records.len().saturating_sub(lines)..])
    }

    /// The last lines, and before them as many from the first error on: a processor that
    /// does not continue is reported again and again, and the first report tells most.
    pub fn excerpt(&self, lines: usize) -> String {
        let records = &self.records;
        let end = records.len().saturating_sub(lines);
        let begun = self.first_process();
        let error = records.iter().skip(begun).position(is_kernel_error).map(|n| begun + n);
        let (first, until) = error.map_or((end, end), |n| (n.min(end), end.min(n + lines)));
        let mut text = text_of(&records[first..until]);
        if until < end {
            text += "[...]\n";
        }
        text + &text_of(&records[end..])
    }

    fn first_process(&self) -> usize {
        let begun = self.records.iter().position(|record| record.text.starts_with(FIRST_PROCESS));
        begun.unwrap_or(0)
    }
}

fn text_of(records: &[LogRecord]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn is_kernel_error(record: &LogRecord) -> bool {
    record.is_kernel()
        && error_texts().any(|text| match text.strip_prefix('^') {
            Some(start) => record.text.starts_with(start),
            None => record.text.contains(text),
        })
}

fn error_texts() -> impl Iterator<Item = &'static str> {
    KERNEL_ERRORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(texts: &[&str]) -> KernelLog {
        let record = |text: &&str| LogRecord { priority: 4, time: 0, text: text.to_string() };
        KernelLog { records: texts.iter().map(record).collect() }
    }

    #[test]
    fn kernel_errors_are_recognized() {
        for text in [
            "WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x0/0x1",
            "BUG: unable to handle page fault for address: 0",
            "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
            "general protection fault, probably for non-canonical address 0x1: 0000 [#1] SMP",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "BUG kmalloc-64 (Not tainted): Redzone overwritten",
            "mm/pgtable-generic.c:50: bad pmd 0000000000000000(00000000000000ff)",
            "BUG: KASAN: slab-out-of-bounds in f+0x0/0x1",
        ] {
            assert!(log(&["fine", text]).kernel_errors().is_some(), "{text}");
        }
    }

    #[test]
    fn a_report_has_advice_and_the_lines() {
        let report = log(&["fine", "BUG: x"]).error_report().expect("that is an error");
        assert!(report.contains("dunectl machine run --log"), "{report}");
        assert!(report.ends_with("] BUG: x"), "{report}");
        assert_eq!(log(&["fine"]).error_report(), None);
    }

    #[test]
    fn errors_count_from_the_first_process_on() {
        let all = ["WARNING: CPU: 0 PID: 0 at x.c:1 f", FIRST_PROCESS, "fine"];
        assert_eq!(log(&all).kernel_errors(), None);
        assert!(log(&[FIRST_PROCESS, "fine", all[0]]).kernel_errors().is_some());
    }

    #[test]
    fn an_excerpt_has_the_first_error_and_the_end() {
        let texts_of = |texts: &[&str]| -> Vec<String> {
            let excerpt = log(texts).excerpt(2);
            excerpt.lines().map(|line| line.rsplit("] ").next().unwrap().to_owned()).collect()
        };
        assert_eq!(
            texts_of(&["1", "BUG: 2", "3", "4", "5", "6"]),
            ["BUG: 2", "3", "[...]", "5", "6"]
        );
        assert_eq!(texts_of(&["1", "BUG: 2", "3", "4"]), ["BUG: 2", "3", "4"]);
        assert_eq!(texts_of(&["1", "2", "BUG: 3"]), ["2", "BUG: 3"]);
        assert_eq!(texts_of(&["1", "2", "3"]), ["2", "3"]);
        assert_eq!(texts_of(&["1"]), ["1"]);
    }

    #[test]
    fn harmless_lines_are_left_alone() {
        for text in [
            "Speculative Return Stack Overflow: WARNING: See https://docs for mitigation options.",
            "traps: prog[12] general protection fault ip:0 sp:0 error:0 in prog[0+1]",
            "Linux version 6.1.0",
        ] {
            assert_eq!(log(&[text]).kernel_errors(), None, "{text}");
        }
    }

    #[test]
    fn records_from_user_space_are_ignored() {
        let record = LogRecord { priority: 12, time: 0, text: "BUG: mine".to_owned() };
        assert_eq!(KernelLog { records: vec![record] }.kernel_errors(), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads TAP. prove checks whether a program kept its plan (prove.rs). This file
//! counts the single tests, and keeps the program's comments on those that fail.

/// How many comments of one test are kept; all are in the log.
const DIAGNOSTICS: usize = 12;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Results {
    pub passed: usize,
    pub failed: Vec<Failure>,
    /// The reasons of the tests that were skipped.
    pub skipped: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The line with "not ok" or "Bail out!", or prove's verdict.
    pub verdict: String,
    /// The lines "# ..." around it: some programs print them before, some after.
    pub why: Vec<String>,
}

/// The results in the output of one program.
pub fn parse(output: &str) -> Results {
    let mut results = Results::default();
    // Comments that belong to no test yet.
    let mut before: Vec<String> = Vec::new();
    let mut after_failure = false;
    for line in output.lines() {
        if line.starts_with('#') {
            match results.failed.last_mut() {
                Some(failure) if after_failure => keep(&mut failure.why, line),
                _ => keep(&mut before, line),
            }
            continue;
        }
        if let Some(reason) = directive(line, "SKIP").filter(|_| line.starts_with("1..0")) {
            results.skipped.push(reason.to_owned());
            continue;
        }
        if line.starts_with("Bail out!") {
            let why = std::mem::take(&mut before);
            results.failed.push(Failure { verdict: line.to_owned(), why });
            after_failure = true;
            continue;
        }
        let (ok, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
        // Of a program that runs others by prove: its verdict on one is a lone "ok" or "ok 12 ms".
        if !rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) || is_duration(rest) {
            continue;
        }
        let why = std::mem::take(&mut before);
        after_failure = false;
        if let Some(reason) = directive(line, "SKIP") {
            results.skipped.push(reason.to_owned());
        } else if ok || directive(line, "TODO").is_some() {
            results.passed += 1;
        } else {
            results.failed.push(Failure { verdict: line.to_owned(), why });
            after_failure = true;
        }
    }
    results
}

fn keep(lines: &mut Vec<String>, line: &str) {
    if lines.len() == DIAGNOSTICS {
        lines.remove(0);
    }
    lines.push(line.to_owned());
}

/// The last lines of a log that are not empty.
pub fn last_lines(output: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| (*line).to_owned()).collect()
}

/// The text after "# SKIP" or "# TODO".
fn directive<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (_, comment) = line.rsplit_once('#')?;
    let comment = comment.trim_start();
    let head = comment.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| comment[word.len()..].trim())
}

fn is_duration(rest: &str) -> bool {
    rest.trim().strip_suffix(" ms").is_some_and(|number| number.trim().parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted() {
        let results = parse(
            "x.t ..\n1..6\nok 1 - a # b\nnot ok 2 - c\nok 3 # SKIP no such thing\nok 4\n\
             # a comment\nnot ok 5 # TODO later\nok 6 - twelve ms\nok\nAll tests successful.\n",
        );
        assert_eq!(results.passed, 4);
        assert_eq!(results.failed, [Failure { verdict: "not ok 2 - c".to_owned(), why: vec![] }]);
        assert_eq!(results.skipped, ["no such thing"]);
    }

    #[test]
    fn comments_go_with_the_failure_next_to_them() {
        let results = parse(
            "# of 1\nok 1\n# before 2\nnot ok 2 - c\n# got 1, want 2\nprove says\n# errno\nok 3\n\
             # of 4\nnot ok 4\n",
        );
        let why = |index: usize| results.failed[index].why.join("|");
        assert_eq!(why(0), "# before 2|# got 1, want 2|# errno");
        assert_eq!(why(1), "# of 4");
    }

    #[test]
    fn bailing_out_is_a_failure() {
        let results = parse("ok 1\nnot ok 2\n# one\nBail out! no device\n# two\n");
        let verdict: Vec<&str> =
            results.failed.iter().map(|failure| failure.verdict.as_str()).collect();
        assert_eq!(verdict, ["not ok 2", "Bail out! no device"]);
        assert_eq!(results.failed[1].why, ["# two"]);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        assert_eq!(last_lines("a\nb\n\nc\n\n", 2), ["b", "c"]);
        assert!(last_lines("", 2).is_empty());
    }

    #[test]
    fn a_file_skipped_as_a_whole_is_skipped_once() {
        let results = parse("1..0 # SKIP no kvm\nskipped: no kvm\n");
        assert_eq!(results.skipped, ["no kvm"]);
        assert_eq!(results.passed, 0);
    }
}

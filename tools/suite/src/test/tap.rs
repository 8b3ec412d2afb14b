// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads TAP as `prove --verbose` passes it on. Whether a program kept its
//! plan and ended well is prove's verdict; here the single tests are counted.

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Results {
    pub passed: usize,
    /// The lines that say "not ok".
    pub failed: Vec<String>,
    /// The reasons.
    pub skipped: Vec<String>,
}

pub fn parse(output: &str) -> Results {
    let mut results = Results::default();
    for line in output.lines() {
        if let Some(reason) = directive(line, "SKIP").filter(|_| line.starts_with("1..0")) {
            results.skipped.push(reason.to_owned());
            continue;
        }
        let (ok, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => continue,
        };
        // prove's own verdict on a file is a lone "ok" or "ok   12 ms".
        if !rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) || is_duration(rest) {
            continue;
        }
        if let Some(reason) = directive(line, "SKIP") {
            results.skipped.push(reason.to_owned());
        } else if ok || directive(line, "TODO").is_some() {
            results.passed += 1;
        } else {
            results.failed.push(line.to_owned());
        }
    }
    results
}

/// The text behind "# SKIP" or "# TODO".
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
        assert_eq!(results.failed, ["not ok 2 - c"]);
        assert_eq!(results.skipped, ["no such thing"]);
    }

    #[test]
    fn a_file_skipped_as_a_whole_is_skipped_once() {
        let results = parse("1..0 # SKIP no kvm\nskipped: no kvm\n");
        assert_eq!(results.skipped, ["no kvm"]);
        assert_eq!(results.passed, 0);
    }
}

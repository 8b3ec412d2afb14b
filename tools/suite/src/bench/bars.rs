// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bars: what each figure has to reach.

use super::Measured;

pub struct Bar {
    id: &'static str,
    pub text: &'static str,
    rule: Rule,
}

enum Rule {
    /// At most so many times Linux's (and what is granted on top), with
    /// exactly so many exits.
    Times(f64, Option<f64>),
    /// Linux's is at least so many times ours.
    Better(f64),
    /// At most so many, and Linux's at least so many times ours.
    AtMost(f64, Option<f64>),
    AtLeast(f64),
    /// As much as Linux's, up or down by this part, and at most so many.
    Same(f64, f64),
}

const BARS: [Bar; 15] = [
    bar("getpid_ring0", "≤ 1.1 × Linux, 1 exit", Rule::Times(1.1, Some(1.0))),
    bar("getpid_ring3", "≤ 1.6 × Linux, 1 exit", Rule::Times(1.6, Some(1.0))),
    bar("getpid_slow", "≤ 3 × Linux", Rule::Times(3.0, None)),
    bar("first_touch", "≤ 1.1 × Linux, 1 exit", Rule::Times(1.1, Some(1.0))),
    bar("trap", "≤ 100; Linux / Dune ≥ 40", Rule::AtMost(100.0, Some(40.0))),
    bar("protect_cycle", "Linux / Dune ≥ 120", Rule::Better(120.0)),
    bar("intercept", "ptrace / Dune ≥ 60", Rule::Better(60.0)),
    bar("mprotect", "≤ 1.25 × outside, plus the call", Rule::Times(1.25, None)),
    bar("munmap_1g", "≤ 1.1 × outside", Rule::Times(1.1, None)),
    bar("roundtrip", "≤ 1,300", Rule::AtMost(1300.0, None)),
    bar("enter", "≤ 60,000", Rule::AtMost(60_000.0, None)),
    // Its "linux" is `enter`: the same with few mappings.
    bar("enter_10000", "as enter ± 5 %, ≤ 60,000", Rule::Same(0.05, 60_000.0)),
    bar("memory_vcpu", "≤ 64 KB", Rule::AtMost(64.0 * 1024.0, None)),
    bar("memory_tables", "≤ 256 KB", Rule::AtMost(256.0 * 1024.0, None)),
    bar("processes", "≥ 1,000", Rule::AtLeast(1000.0)),
];

const fn bar(id: &'static str, text: &'static str, rule: Rule) -> Bar {
    Bar { id, text, rule }
}

pub fn ids() -> impl Iterator<Item = &'static str> {
    BARS.iter().map(|bar| bar.id)
}

impl Bar {
    pub fn of(id: &str) -> Option<&'static Bar> {
        BARS.iter().find(|bar| bar.id == id)
    }

    /// What is compared with Linux and has nothing to compare with, or counts
    /// exits and does not tell them, misses its bar.
    pub fn is_met(&self, measured: &Measured) -> bool {
        let Measured { linux, dune, exits, allowance, .. } = measured;
        let linux = linux.unwrap_or(f64::NAN);
        match self.rule {
            Rule::Times(times, wanted) => {
                *dune <= times * linux + allowance && (wanted.is_none() || *exits == wanted)
            }
            Rule::Better(times) => linux >= times * dune,
            Rule::AtMost(most, times) => {
                *dune <= most && times.is_none_or(|times| linux >= times * dune)
            }
            Rule::AtLeast(least) => *dune >= least,
            Rule::Same(part, most) => *dune <= most && (dune - linux).abs() <= part * linux,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(id: &str, linux: Option<f64>, dune: f64, exits: Option<f64>) -> bool {
        let unit = "instructions".to_owned();
        let measured = Measured { id: id.to_owned(), unit, linux, dune, exits, allowance: 0.0 };
        Bar::of(id).unwrap().is_met(&measured)
    }

    #[test]
    fn bars_are_held() {
        assert!(met("getpid_ring0", Some(364.0), 400.0, Some(1.0)));
        assert!(!met("getpid_ring0", Some(364.0), 401.0, Some(1.0)));
        assert!(!met("getpid_ring0", Some(364.0), 364.0, Some(2.0)));
        assert!(!met("getpid_ring0", Some(364.0), 364.0, None));
        assert!(met("trap", Some(4000.0), 100.0, None));
        assert!(!met("trap", Some(3999.0), 100.0, None));
        assert!(met("processes", None, 1000.0, None));
        assert!(met("enter_10000", Some(50_000.0), 52_500.0, None));
        assert!(!met("enter_10000", Some(50_000.0), 52_501.0, None));
    }

    #[test]
    fn nothing_to_compare_with_is_no_success() {
        assert!(!met("intercept", None, 1.0, None));
        assert!(!met("mprotect", None, 1.0, None));
    }
}

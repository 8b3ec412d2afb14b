// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bars: what each figure has to reach.

use dune_machine::{MachineType, SVM, VMX};

use super::{Figure, Measured};

pub struct Bar {
    id: &'static str,
    pub text: &'static str,
    rule: Rule,
    of: Of,
}

/// Whose bar it is. AMD's is shown for Intel's figure as well where Intel has
/// none of its own, for comparison: the mechanism is another one.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Amd,
    Intel,
    Both,
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

/// In the page's order. What Linux's figure is where it is not Linux's: of
/// `enter_10000` it is `enter`, the same with few mappings; of what is measured
/// beside KVM the same without KVM.
const BARS: [Bar; 24] = [
    amd("getpid_ring0", "≤ 1.1 × Linux, 1 exit", Rule::Times(1.1, Some(1.0))),
    intel("getpid_ring0", "≤ 1.2 × Linux, 1 exit", Rule::Times(1.2, Some(1.0))),
    amd("getpid_ring3", "≤ 1.6 × Linux, 1 exit", Rule::Times(1.6, Some(1.0))),
    amd("getpid_slow", "≤ 3 × Linux", Rule::Times(3.0, None)),
    amd("first_touch", "≤ 1.1 × Linux, 1 exit", Rule::Times(1.1, Some(1.0))),
    intel("first_touch", "≤ 1.5 × Linux, 1 exit", Rule::Times(1.5, Some(1.0))),
    amd("trap", "≤ 100; Linux / Dune ≥ 40", Rule::AtMost(100.0, Some(40.0))),
    intel("trap", "≤ 100", Rule::AtMost(100.0, None)),
    amd("protect_cycle", "Linux / Dune ≥ 120", Rule::Better(120.0)),
    amd("intercept", "ptrace / Dune ≥ 60", Rule::Better(60.0)),
    amd("mprotect", "≤ 1.25 × outside, plus the call", Rule::Times(1.25, None)),
    amd("munmap_1g", "≤ 1.1 × outside", Rule::Times(1.1, None)),
    amd("roundtrip", "≤ 1,300", Rule::AtMost(1300.0, None)),
    amd("enter", "≤ 60,000", Rule::AtMost(60_000.0, None)),
    amd("enter_10000", "as enter ± 5 %, ≤ 60,000", Rule::Same(0.05, 60_000.0)),
    amd("memory_vcpu", "≤ 64 KB", Rule::AtMost(64.0 * 1024.0, None)),
    amd("memory_tables", "≤ 256 KB", Rule::AtMost(256.0 * 1024.0, None)),
    amd("processes", "≥ 1,000", Rule::AtLeast(1000.0)),
    beside_kvm("getpid_ring0_kvm_idle"),
    beside_kvm("getpid_ring0_kvm_vm"),
    beside_kvm("first_touch_kvm_idle"),
    beside_kvm("first_touch_kvm_vm"),
    beside_kvm("trap_kvm_idle"),
    beside_kvm("trap_kvm_vm"),
];

const fn amd(id: &'static str, text: &'static str, rule: Rule) -> Bar {
    Bar { id, text, rule, of: Of::Amd }
}

const fn intel(id: &'static str, text: &'static str, rule: Rule) -> Bar {
    Bar { id, text, rule, of: Of::Intel }
}

const fn beside_kvm(id: &'static str) -> Bar {
    Bar { id, text: "≤ 1.05 × without KVM", rule: Rule::Times(1.05, None), of: Of::Both }
}

pub fn ids() -> impl Iterator<Item = &'static str> {
    BARS.iter().filter(|bar| bar.of != Of::Intel).map(|bar| bar.id)
}

/// By id, kernel and machine; what has no bar comes last.
pub fn sort(figures: &mut [Figure]) {
    let place = |id: &str| BARS.iter().position(|bar| bar.id == id).unwrap_or(BARS.len());
    let series = |kernel: &str| kernel.parse::<dune_machine::Series>().ok();
    figures.sort_by(|a, b| {
        let key = |f: &Figure| (place(&f.id), series(&f.kernel), f.machine.clone());
        key(a).cmp(&key(b))
    });
}

impl Bar {
    pub fn of(id: &str, machine_type: &MachineType) -> Option<&'static Bar> {
        let all = || BARS.iter().filter(|bar| bar.id == id);
        all().find(|bar| bar.binds(machine_type)).or_else(|| all().next())
    }

    pub fn binds(&self, machine_type: &MachineType) -> bool {
        match self.of {
            Of::Amd => *machine_type == SVM,
            Of::Intel => *machine_type == VMX,
            Of::Both => true,
        }
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

    fn met_in(
        machine_type: &MachineType,
        id: &str,
        figures: (Option<f64>, f64, Option<f64>),
    ) -> bool {
        let (linux, dune, exits) = figures;
        let (id, unit) = (id.to_owned(), "instructions".to_owned());
        let measured = Measured { id, unit, linux, dune, exits, allowance: 0.0, detail: None };
        Bar::of(&measured.id, machine_type).unwrap().is_met(&measured)
    }

    fn met(id: &str, linux: Option<f64>, dune: f64, exits: Option<f64>) -> bool {
        met_in(&SVM, id, (linux, dune, exits))
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
    fn intel_has_bars_of_its_own() {
        let call = |dune| met_in(&VMX, "getpid_ring0", (Some(340.0), dune, Some(1.0)));
        assert!(call(408.0));
        assert!(!call(409.0));
        assert!(Bar::of("getpid_ring0", &VMX).unwrap().binds(&VMX));
        assert!(!Bar::of("roundtrip", &VMX).unwrap().binds(&VMX));
        assert!(Bar::of("trap_kvm_vm", &VMX).unwrap().binds(&VMX));
    }

    #[test]
    fn nothing_to_compare_with_is_no_success() {
        assert!(!met("intercept", None, 1.0, None));
        assert!(!met("mprotect", None, 1.0, None));
    }
}

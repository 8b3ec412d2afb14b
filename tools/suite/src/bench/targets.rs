// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures, what each is compared with, and its target, which it has to reach.

use dune_machine::{MachineType, SVM, VMX};

use super::Measured;

/// A figure that the programs of bench/ print.
pub struct Subject {
    pub id: &'static str,
    /// The subject of the measurement, for people.
    pub title: &'static str,
    pub baseline: Baseline,
    targets: &'static [Target],
}

/// The meaning of the column "Linux".
#[derive(Clone, Copy, PartialEq)]
pub enum Baseline {
    /// The same work in the same process outside of Dune mode.
    Linux,
    /// The same work under a ptrace tracer.
    Ptrace,
    /// An ioctl of the same device that does nothing.
    EmptyIoctl,
    /// `enter`, the same with few mappings.
    Enter,
    /// The same in Dune mode without KVM.
    NoKvm,
    Nothing,
}

pub struct Target {
    vendor: Vendor,
    pub text: &'static str,
    rule: Rule,
}

/// The vendor whose target it is. Where Intel has no target of its own, AMD's is shown
/// for comparison, since the mechanism differs.
#[derive(Clone, Copy, PartialEq)]
enum Vendor {
    Amd,
    Intel,
    Both,
}

enum Rule {
    /// Dune's figure is at most this many times Linux's, plus an allowance that
    /// the program prints, and it has exactly this many exits.
    Times(f64, Option<f64>),
    /// Linux's figure is at least this many times Dune's.
    Better(f64),
    /// Dune's figure is at most this, and Linux's at least so many times Dune's.
    AtMost(f64, Option<f64>),
    AtLeast(f64),
    /// Dune's figure differs from Linux's by at most this part of it, and is at
    /// most this.
    Same(f64, f64),
}

use Baseline::{EmptyIoctl, Enter, Linux, NoKvm, Nothing, Ptrace};
use Rule::{AtLeast, AtMost, Better, Same, Times};

/// The subjects in the page's order.
pub const SUBJECTS: [Subject; 22] = [
    subject(
        "getpid_ring0",
        "getpid() from ring 0",
        Linux,
        &[
            amd("≤ 1.1 × Linux, 1 exit", Times(1.1, Some(1.0))),
            intel("≤ 1.2 × Linux, 1 exit", Times(1.2, Some(1.0))),
        ],
    ),
    subject(
        "getpid_ring3",
        "getpid() in the sandbox",
        Linux,
        &[amd("≤ 1.6 × Linux, 1 exit", Times(1.6, Some(1.0)))],
    ),
    subject(
        "getpid_slow",
        "getpid() by the slow path",
        Linux,
        &[amd("≤ 3 × Linux", Times(3.0, None))],
    ),
    subject(
        "first_touch",
        "first touch of a page",
        Linux,
        &[
            amd("≤ 1.1 × Linux, 1 exit", Times(1.1, Some(1.0))),
            intel("≤ 1.5 × Linux, 1 exit", Times(1.5, Some(1.0))),
        ],
    ),
    subject(
        "trap",
        "exception and handler",
        Linux,
        &[
            amd("≤ 100; Linux / Dune ≥ 40", AtMost(100.0, Some(40.0))),
            intel("≤ 100", AtMost(100.0, None)),
        ],
    ),
    subject(
        "protect_cycle",
        "protect, fault, unprotect",
        Linux,
        &[amd("Linux / Dune ≥ 120", Better(120.0))],
    ),
    subject(
        "intercept",
        "intercepted getpid()",
        Ptrace,
        &[amd("ptrace / Dune ≥ 60", Better(60.0))],
    ),
    subject(
        "gzip",
        "gzip -6 of 4 MB in the sandbox",
        Linux,
        &[intel("≤ 1.01 × Linux", Times(1.01, None))],
    ),
    subject(
        "mprotect",
        "mprotect()",
        Linux,
        &[amd("≤ 1.25 × outside, plus the call", Times(1.25, None))],
    ),
    subject("munmap_1g", "munmap() of 1 GB", Linux, &[amd("≤ 1.1 × outside", Times(1.1, None))]),
    subject(
        "roundtrip",
        "DUNE_RUN: into a guest and back",
        EmptyIoctl,
        &[amd("≤ 1,300", AtMost(1300.0, None))],
    ),
    subject("enter", "entering Dune mode", Nothing, &[amd("≤ 60,000", AtMost(60_000.0, None))]),
    subject(
        "enter_10000",
        "entering with 10,000 mappings",
        Enter,
        &[amd("within 5 % of `enter`, ≤ 60,000", Same(0.05, 60_000.0))],
    ),
    subject(
        "memory_vcpu",
        "memory of a vCPU",
        Nothing,
        &[amd("≤ 64 KB", AtMost(64.0 * 1024.0, None))],
    ),
    subject(
        "memory_tables",
        "memory of page tables",
        Nothing,
        &[amd("≤ 256 KB", AtMost(256.0 * 1024.0, None))],
    ),
    subject("processes", "processes at once", Nothing, &[amd("≥ 1,000", AtLeast(1000.0))]),
    with_kvm("getpid_ring0_kvm_idle", "getpid() from ring 0, KVM loaded"),
    with_kvm("getpid_ring0_kvm_vm", "getpid() from ring 0, KVM runs a VM"),
    with_kvm("first_touch_kvm_idle", "first touch of a page, KVM loaded"),
    with_kvm("first_touch_kvm_vm", "first touch of a page, KVM runs a VM"),
    with_kvm("trap_kvm_idle", "exception and handler, KVM loaded"),
    with_kvm("trap_kvm_vm", "exception and handler, KVM runs a VM"),
];

const fn subject(
    id: &'static str,
    title: &'static str,
    baseline: Baseline,
    targets: &'static [Target],
) -> Subject {
    Subject { id, title, baseline, targets }
}

const fn with_kvm(id: &'static str, title: &'static str) -> Subject {
    const TARGETS: &[Target] =
        &[Target {
            vendor: Vendor::Both, text: "≤ 1.05 × without KVM", rule: Times(1.05, None)
        }];
    subject(id, title, NoKvm, TARGETS)
}

const fn amd(text: &'static str, rule: Rule) -> Target {
    Target { vendor: Vendor::Amd, text, rule }
}

const fn intel(text: &'static str, rule: Rule) -> Target {
    Target { vendor: Vendor::Intel, text, rule }
}

/// The names of all figures.
pub fn ids() -> impl Iterator<Item = &'static str> {
    SUBJECTS.iter().map(|subject| subject.id)
}

/// Its place in the page: the last one, if it is not a subject.
pub fn place(id: &str) -> usize {
    ids().position(|other| other == id).unwrap_or(SUBJECTS.len())
}

impl Subject {
    /// The figure of this name.
    pub fn of(id: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|subject| subject.id == id)
    }

    /// Whether this machine type has the figure: one that has only Intel's targets is
    /// measured on Intel alone.
    pub fn is_measured_in(&self, machine: &str) -> bool {
        machine == VMX.name || self.targets.iter().any(|target| target.vendor != Vendor::Intel)
    }
}

impl Target {
    /// The target of a figure: this machine's own, or else another machine's for comparison.
    pub fn of(id: &str, machine_type: &MachineType) -> Option<&'static Target> {
        let targets = Subject::of(id)?.targets;
        targets.iter().find(|target| target.binds(machine_type)).or(targets.first())
    }

    /// Whether this is the machine's own target.
    pub fn binds(&self, machine_type: &MachineType) -> bool {
        match self.vendor {
            Vendor::Amd => *machine_type == SVM,
            Vendor::Intel => *machine_type == VMX,
            Vendor::Both => true,
        }
    }

    /// A figure misses its target as well where the target compares it with Linux's
    /// and there is none, or counts exits and the program did not print them.
    pub fn is_met(&self, measured: &Measured) -> bool {
        let Measured { linux, dune, exits, allowance, .. } = measured;
        let linux = linux.unwrap_or(f64::NAN);
        match self.rule {
            Times(times, wanted) => {
                *dune <= times * linux + allowance && (wanted.is_none() || *exits == wanted)
            }
            Better(times) => linux >= times * dune,
            AtMost(most, times) => *dune <= most && times.is_none_or(|times| linux >= times * dune),
            AtLeast(least) => *dune >= least,
            Same(part, most) => *dune <= most && (dune - linux).abs() <= part * linux,
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
        Target::of(&measured.id, machine_type).unwrap().is_met(&measured)
    }

    fn met(id: &str, linux: Option<f64>, dune: f64, exits: Option<f64>) -> bool {
        met_in(&SVM, id, (linux, dune, exits))
    }

    #[test]
    fn targets_are_held() {
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
    fn intel_has_targets_of_its_own() {
        let call = |dune| met_in(&VMX, "getpid_ring0", (Some(340.0), dune, Some(1.0)));
        assert!(call(408.0));
        assert!(!call(409.0));
        assert!(Target::of("getpid_ring0", &VMX).unwrap().binds(&VMX));
        assert!(!Target::of("roundtrip", &VMX).unwrap().binds(&VMX));
        assert!(Target::of("trap_kvm_vm", &VMX).unwrap().binds(&VMX));
    }

    #[test]
    fn a_target_without_a_baseline_is_missed() {
        assert!(!met("intercept", None, 1.0, None));
        assert!(!met("mprotect", None, 1.0, None));
    }
}

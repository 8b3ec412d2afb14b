// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures, what each is compared with, its target, which it has to reach, and the misses that
//! are accepted.

use dune_machine::{MachineType, Series, SVM, VMX};
use serde::Serialize;

use super::{numbers, Measured};
use Baseline::{EmptyIoctl, Enter, Linux, NoGuard, NoKvm, Ptrace};
use Rule::{AtLeast, AtMost, AtMostKb, BaselineTimes, Near, PlusExits, TimesBaseline};

/// A figure that the programs of bench/ print.
pub struct Subject {
    pub id: &'static str,
    /// The subject of the measurement, for people.
    pub title: &'static str,
    /// None, if there is nothing to compare with.
    pub baseline: Option<Baseline>,
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
    /// The same by Linux without the guard beneath it.
    NoGuard,
}

impl Baseline {
    /// Its name in the page.
    pub fn name(self) -> &'static str {
        match self {
            Linux => "Linux",
            Ptrace => "ptrace",
            EmptyIoctl => "empty ioctl",
            Enter => "`enter`",
            NoKvm => "without KVM",
            NoGuard => "without the guard",
        }
    }
}

pub struct Target {
    vendor: Vendor,
    rule: Rule,
    accepted: Option<AcceptedMiss>,
}

/// A known miss. The figure still has to keep to `bound`, which leaves a few percent of room, so
/// that make bench-check fails when the figure gets worse.
struct AcceptedMiss {
    kernels: &'static [Series],
    bound: Rule,
    /// A sentence for the page, in Markdown; its lines are indented by two.
    reason: &'static str,
}

/// How a figure compares with its target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Met,
    /// The miss is a known one, and within its bound.
    Accepted,
    Missed,
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
    /// Dune's figure is at most `most` times the baseline's, plus the program's allowance,
    /// and it has exactly this many exits. `plus` describes the allowance.
    TimesBaseline { most: f64, exits: Option<u32>, plus: Option<&'static str> },
    /// The baseline's figure is at least `least` times Dune's.
    BaselineTimes { least: f64 },
    /// Dune's figure is at most `most`, and the baseline's is at least `baseline_times`
    /// times Dune's.
    AtMost { most: f64, baseline_times: Option<f64> },
    /// Dune's figure is at most `each` more than the baseline's for each exit.
    PlusExits { each: f64 },
    /// Dune's figure, which is in bytes, is at most this many KB.
    AtMostKb { most: u32 },
    /// Dune's figure is at least this.
    AtLeast { least: f64 },
    /// Dune's figure differs from the baseline's by at most `part` of it, and is at most
    /// `most`.
    Near { part: f64, most: f64 },
}

impl Rule {
    /// The target for the page.
    fn text(&self, baseline: Option<Baseline>) -> String {
        // A test ensures that a rule which names the baseline has one.
        let baseline = baseline.map_or("no baseline", Baseline::name);
        match self {
            TimesBaseline { most, exits, plus } => {
                let exits = match exits {
                    None => String::new(),
                    Some(1) => ", 1 exit".to_owned(),
                    Some(exits) => format!(", {exits} exits"),
                };
                let plus = plus.map(|plus| format!(", plus {plus}")).unwrap_or_default();
                format!("≤ {most} × {baseline}{exits}{plus}")
            }
            BaselineTimes { least } => format!("{baseline} / Dune ≥ {least}"),
            AtMost { most, baseline_times: None } => format!("≤ {}", numbers::number(*most)),
            AtMost { most, baseline_times: Some(times) } => {
                format!("≤ {}; {baseline} / Dune ≥ {times}", numbers::number(*most))
            }
            PlusExits { each } => format!("≤ {baseline} + {each} × exits"),
            AtMostKb { most } => format!("≤ {}", numbers::number(f64::from(*most) * 1024.0)),
            AtLeast { least } => format!("≥ {}", numbers::number(*least)),
            Near { part, most } => {
                format!("within {:.0} % of {baseline}, ≤ {}", part * 100.0, numbers::number(*most))
            }
        }
    }

    /// The largest ratio of Dune's figure to the baseline's that the target permits. None,
    /// if the target is not one of ratios.
    fn ratio(&self) -> Option<f64> {
        match *self {
            TimesBaseline { most, .. } => Some(most),
            BaselineTimes { least } => Some(1.0 / least),
            AtMost { baseline_times, .. } => baseline_times.map(|times| 1.0 / times),
            Near { part, .. } => Some(1.0 + part),
            PlusExits { .. } | AtMostKb { .. } | AtLeast { .. } => None,
        }
    }

    /// A figure misses its target as well where the target compares it with the baseline's
    /// and there is none, or counts exits and the program did not print them.
    fn is_met(&self, measured: &Measured) -> bool {
        let Measured { linux, dune, exits: counted, allowance, .. } = measured;
        let linux = linux.unwrap_or(f64::NAN);
        match *self {
            TimesBaseline { most, exits, .. } => {
                *dune <= most * linux + allowance
                    && exits.is_none_or(|exits| *counted == Some(f64::from(exits)))
            }
            BaselineTimes { least } => linux >= least * dune,
            AtMost { most, baseline_times } => {
                *dune <= most && baseline_times.is_none_or(|times| linux >= times * dune)
            }
            PlusExits { each } => counted.is_some_and(|exits| *dune <= linux + each * exits),
            AtMostKb { most } => *dune <= f64::from(most) * 1024.0,
            AtLeast { least } => *dune >= least,
            Near { part, most } => *dune <= most && (dune - linux).abs() <= part * linux,
        }
    }
}

/// The kernels that every change must pass.
const BOTH_KERNELS: &[Series] = &[Series::V6_1, Series::V6_12];

/// The subjects in the page's order.
pub const SUBJECTS: [Subject; 49] = [
    subject(
        "getpid_ring0",
        "getpid() from ring 0",
        Linux,
        &[amd(times_with_exit(1.1)), intel(times_with_exit(1.2))],
    ),
    subject("getpid_ring3", "getpid() in the sandbox", Linux, &[amd(times_with_exit(1.6))]),
    subject("getpid_seccomp", "getpid() with a seccomp filter", Linux, &[amd(times(1.2))]),
    subject(
        "getpid_slow",
        "getpid() by the slow path",
        Linux,
        &[amd(times(3.0)).accepting(
            BOTH_KERNELS,
            times(4.8),
            "The call takes two full kernel entries, one of them an ioctl ([decision
  0011](decisions/0011-slow-path-stays-at-two-system-calls.md)).",
        )],
    ),
    subject("getpid_native", "getpid() by the stub", Linux, &[amd(times(3.5))]),
    subject(
        "first_touch",
        "first touch of a page",
        Linux,
        &[amd(times_with_exit(1.1)), intel(times_with_exit(1.5))],
    ),
    subject(
        "trap",
        "exception and handler",
        Linux,
        &[amd(AtMost { most: 100.0, baseline_times: Some(40.0) }), intel(at_most(100.0))],
    ),
    subject(
        "protect_cycle",
        "protect, fault, unprotect",
        Linux,
        &[amd(BaselineTimes { least: 120.0 })],
    ),
    subject(
        "intercept",
        "intercepted getpid()",
        Ptrace,
        &[amd(BaselineTimes { least: 60.0 }).accepting(
            &[Series::V6_1],
            BaselineTimes { least: 55.0 },
            "ptrace executes fewer instructions on 6.1 than on 6.12, where as many instructions of
  Dune meet the target.",
        )],
    ),
    subject(
        "fork",
        "fork(), exit and wait in the sandbox",
        Linux,
        &[
            amd(times(1.25)),
            intel(times(1.25)).accepting(
                &[Series::V6_1],
                times(1.27),
                "The same module takes 1.245 to 1.26 times as many, from one boot to the next
  ([decision 0075](decisions/0075-fork-keeps-what-can-be-read.md)).",
            ),
        ],
    ),
    subject(
        "spawn",
        "/bin/true as a child in the sandbox",
        Linux,
        &[
            amd(times(1.25)),
            intel(times(1.25)).accepting(
                &[Series::V6_1],
                times(1.4),
                "In the sandbox an execve also makes a vCPU, and copies private memory ([decision
  0061](decisions/0061-execve-without-a-native-start.md)), and faults fill the mirror.",
            ),
        ],
    ),
    subject("gzip", "gzip -6 of 4 MB in the sandbox", Linux, &[intel(times(1.01))]),
    subject(
        "mprotect",
        "mprotect()",
        Linux,
        &[amd(TimesBaseline { most: 1.25, exits: None, plus: Some("the call") })],
    ),
    subject("munmap_1g", "munmap() of 1 GB", Linux, &[amd(times(1.1))]),
    subject(
        "region_512g",
        "mmap(), touch and munmap() of 512 GB in the sandbox",
        Linux,
        &[both(times(1.1))],
    ),
    subject("roundtrip", "DUNE_RUN: into a guest and back", EmptyIoctl, &[amd(at_most(1300.0))]),
    alone("enter", "entering Dune mode", &[amd(at_most(60_000.0))]),
    subject(
        "enter_10000",
        "entering with 10,000 mappings",
        Enter,
        &[amd(Near { part: 0.05, most: 60_000.0 }).accepting(
            BOTH_KERNELS,
            Near { part: 0.14, most: 58_000.0 },
            "The difference is Linux's own mmap() of the run page, in a deeper tree of mappings
  ([decision 0012](decisions/0012-run-page-is-mapped-from-the-descriptor.md)).",
        )],
    ),
    alone("memory_vcpu", "memory of a vCPU", &[amd(AtMostKb { most: 64 })]),
    alone(
        "memory_private",
        "private memory of a program in the sandbox",
        &[both(AtMostKb { most: 192 })],
    ),
    alone("memory_template", "what the first program of a sandbox has in addition", &[]),
    alone("memory_tables", "memory of page tables", &[amd(AtMostKb { most: 256 })]),
    alone("processes", "processes at once", &[amd(AtLeast { least: 1000.0 })]),
    subject(
        "keys_encrypt_4k",
        "guard-keys: encryption of 4 KB (Linux: the same code in a program)",
        Linux,
        &[],
    ),
    subject("keys_sign_4k", "guard-keys: a signature of 4 KB (Linux: likewise)", Linux, &[]),
    with_kvm("getpid_ring0_kvm_idle", "getpid() from ring 0, KVM loaded"),
    with_kvm("getpid_ring0_kvm_vm", "getpid() from ring 0, KVM runs a VM"),
    with_kvm("first_touch_kvm_idle", "first touch of a page, KVM loaded"),
    with_kvm("first_touch_kvm_vm", "first touch of a page, KVM runs a VM"),
    with_kvm("trap_kvm_idle", "exception and handler, KVM loaded"),
    with_kvm("trap_kvm_vm", "exception and handler, KVM runs a VM"),
    with_guard("guard_getpid", "getpid()"),
    with_guard("guard_touch", "first touch of a page"),
    with_guard("guard_change", "to another process and back, by two pipes"),
    with_guard("guard_fork", "fork(), exit and wait"),
    with_guard("guard_compile", "a compiler's run (cc1 -O2, 100 functions)"),
    alone("guard_idle", "exits in a second in which nothing happens", &[amd(at_most(0.0))]),
    alone("guard_call", "VMMCALL that does nothing: an exit", &[]),
    alone(
        "guard_entry",
        "call of a function inside, and its return: 2 crossings, beyond their exits",
        &[amd(at_most(200.0))],
    ),
    alone(
        "guard_entry_call",
        "the same with a call of the kernel's: 4 crossings, beyond their exits",
        &[amd(at_most(400.0))],
    ),
    alone(
        "guard_tick",
        "tick of the timer inside, beyond the kernel's own work: 2 crossings",
        &[amd(at_most(400.0)).accepting(
            BOTH_KERNELS,
            at_most(460.0),
            "The kernel's own work differs by some 15,000 instructions between the two loops
  that are subtracted, or 60 for each tick: the image takes 398
  ([decision 0076](decisions/0076-crossings-are-compiled-for-what-is-known.md)).",
        )],
    ),
    subject(
        "guard_send",
        "1 MB sent by TCP through e1000",
        NoGuard,
        &[amd(plus_exits(110.0)).accepting(BOTH_KERNELS, plus_exits(320.0), TCP_MISS)],
    ),
    subject(
        "guard_send_leaves",
        "the same with leaves",
        NoGuard,
        &[amd(times(1.1)).accepting(BOTH_KERNELS, times(1.8), LEAVES_MISS)],
    ),
    subject(
        "guard_receive",
        "1 MB received",
        NoGuard,
        &[amd(plus_exits(110.0)).accepting(BOTH_KERNELS, plus_exits(320.0), TCP_MISS)],
    ),
    subject(
        "guard_receive_leaves",
        "the same with leaves",
        NoGuard,
        &[amd(times(1.1)).accepting(BOTH_KERNELS, times(2.2), LEAVES_MISS)],
    ),
    alone("guard_sent", "a packet sent", &[]),
    alone("guard_sent_leaves", "the same with leaves", &[]),
    alone("guard_received", "a packet received", &[]),
    alone("guard_received_leaves", "the same with leaves", &[]),
];

const TCP_MISS: &str = "A crossing costs half of what `guard_entry` has, and its exit
  (`guard_call`): about 230 instructions.";

const LEAVES_MISS: &str = "Most of the calls that are left are of functions that use the stack, so
  that they cannot be leaves ([decision 0073](decisions/0073-leaves-are-copies-of-the-guard.md)).
  Linux itself needs some 3,400 instructions for a packet received.";

/// The figures of the guard, which has a section of its own on the page.
pub fn is_guards(id: &str) -> bool {
    id.starts_with("guard_")
}

const fn subject(
    id: &'static str,
    title: &'static str,
    baseline: Baseline,
    targets: &'static [Target],
) -> Subject {
    Subject { id, title, baseline: Some(baseline), targets }
}

/// A subject without a baseline.
const fn alone(id: &'static str, title: &'static str, targets: &'static [Target]) -> Subject {
    Subject { id, title, baseline: None, targets }
}

const fn with_kvm(id: &'static str, title: &'static str) -> Subject {
    const TARGETS: &[Target] = &[both(times(1.05))];
    subject(id, title, NoKvm, TARGETS)
}

const fn with_guard(id: &'static str, title: &'static str) -> Subject {
    const TARGETS: &[Target] = &[amd(times(1.01))];
    subject(id, title, NoGuard, TARGETS)
}

const fn both(rule: Rule) -> Target {
    Target { vendor: Vendor::Both, rule, accepted: None }
}

const fn amd(rule: Rule) -> Target {
    Target { vendor: Vendor::Amd, rule, accepted: None }
}

const fn intel(rule: Rule) -> Target {
    Target { vendor: Vendor::Intel, rule, accepted: None }
}

const fn times(most: f64) -> Rule {
    TimesBaseline { most, exits: None, plus: None }
}

const fn plus_exits(each: f64) -> Rule {
    PlusExits { each }
}

const fn at_most(most: f64) -> Rule {
    AtMost { most, baseline_times: None }
}

const fn times_with_exit(most: f64) -> Rule {
    TimesBaseline { most, exits: Some(1), plus: None }
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
    /// measured on Intel alone, and the guard is AMD's.
    pub fn is_measured_in(&self, machine: &str) -> bool {
        if is_guards(self.id) {
            return machine == SVM.name;
        }
        machine == VMX.name || self.targets.iter().any(|target| target.vendor != Vendor::Intel)
    }

    /// The target in this machine: its own, or else another machine's for comparison.
    pub fn target(&self, machine_type: &MachineType) -> Option<&'static Target> {
        self.targets.iter().find(|target| target.binds(machine_type)).or(self.targets.first())
    }

    /// The bound and the reason of the miss that is accepted in this machine on this kernel, for
    /// people.
    pub fn accepted_miss(
        &self,
        machine_type: &MachineType,
        series: Series,
    ) -> Option<(String, &'static str)> {
        let target = self.target(machine_type).filter(|target| target.binds(machine_type))?;
        let miss = target.accepted.as_ref().filter(|miss| miss.kernels.contains(&series))?;
        Some((miss.bound.text(self.baseline), miss.reason))
    }
}

impl Target {
    /// The target for the page, where it is `subject`'s.
    pub fn text(&self, subject: &Subject) -> String {
        self.rule.text(subject.baseline)
    }

    /// The largest ratio of Dune's figure to the baseline's that the target permits. None,
    /// if the target is not one of ratios.
    pub fn ratio(&self) -> Option<f64> {
        self.rule.ratio()
    }

    /// Whether this is the machine's own target.
    pub fn binds(&self, machine_type: &MachineType) -> bool {
        match self.vendor {
            Vendor::Amd => *machine_type == SVM,
            Vendor::Intel => *machine_type == VMX,
            Vendor::Both => true,
        }
    }

    pub fn judge(&self, measured: &Measured, series: Series) -> Outcome {
        let is_accepted =
            |miss: &AcceptedMiss| miss.kernels.contains(&series) && miss.bound.is_met(measured);
        if self.rule.is_met(measured) {
            Outcome::Met
        } else if self.accepted.as_ref().is_some_and(is_accepted) {
            Outcome::Accepted
        } else {
            Outcome::Missed
        }
    }

    const fn accepting(
        self,
        kernels: &'static [Series],
        bound: Rule,
        reason: &'static str,
    ) -> Self {
        Target { accepted: Some(AcceptedMiss { kernels, bound, reason }), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(id: &str, machine_type: &MachineType) -> &'static Target {
        Subject::of(id).unwrap().target(machine_type).unwrap()
    }

    fn measured(id: &str, linux: Option<f64>, dune: f64, exits: Option<f64>) -> Measured {
        let (id, unit) = (id.to_owned(), "instructions".to_owned());
        Measured {
            id,
            unit,
            linux,
            dune,
            exits,
            allowance: 0.0,
            detail: None,
            functions: Vec::new(),
        }
    }

    fn met_in(
        machine_type: &MachineType,
        id: &str,
        (linux, dune, exits): (Option<f64>, f64, Option<f64>),
    ) -> bool {
        let measured = measured(id, linux, dune, exits);
        target(id, machine_type).judge(&measured, Series::V6_1) == Outcome::Met
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
        assert!(met("guard_send", Some(5000.0), 7200.0, Some(20.0)));
        assert!(!met("guard_send", Some(5000.0), 7201.0, Some(20.0)));
        assert!(!met("guard_send", Some(5000.0), 5000.0, None));
        assert!(met("enter_10000", Some(50_000.0), 52_500.0, None));
        assert!(!met("enter_10000", Some(50_000.0), 52_501.0, None));
    }

    #[test]
    fn a_miss_is_accepted_within_its_bound_and_on_its_kernels() {
        let judge = |linux, dune, series| {
            target("intercept", &SVM).judge(&measured("intercept", linux, dune, None), series)
        };
        assert_eq!(judge(Some(6000.0), 100.0, Series::V6_1), Outcome::Met);
        assert_eq!(judge(Some(5999.0), 100.0, Series::V6_1), Outcome::Accepted);
        assert_eq!(judge(Some(5500.0), 100.0, Series::V6_1), Outcome::Accepted);
        assert_eq!(judge(Some(5499.0), 100.0, Series::V6_1), Outcome::Missed);
        assert_eq!(judge(Some(5999.0), 100.0, Series::V6_12), Outcome::Missed);
        assert_eq!(judge(None, 100.0, Series::V6_1), Outcome::Missed);
        let enter = measured("enter_10000", Some(50_123.0), 56_679.0, None);
        let judge = |series| target("enter_10000", &SVM).judge(&enter, series);
        assert_eq!(judge(Series::V6_1), Outcome::Accepted);
        assert_eq!(judge(Series::Newest), Outcome::Missed);
    }

    #[test]
    fn intel_has_targets_of_its_own() {
        let call = |dune| met_in(&VMX, "getpid_ring0", (Some(340.0), dune, Some(1.0)));
        assert!(call(408.0));
        assert!(!call(409.0));
        assert!(target("getpid_ring0", &VMX).binds(&VMX));
        assert!(!target("roundtrip", &VMX).binds(&VMX));
        assert!(target("trap_kvm_vm", &VMX).binds(&VMX));
    }

    #[test]
    fn a_target_reads_as_its_rule() {
        let text = |id: &str, machine_type| {
            let subject = Subject::of(id).unwrap();
            subject.target(machine_type).unwrap().text(subject)
        };
        assert_eq!(text("getpid_ring0", &SVM), "≤ 1.1 × Linux, 1 exit");
        assert_eq!(text("getpid_slow", &SVM), "≤ 3 × Linux");
        assert_eq!(text("getpid_native", &SVM), "≤ 3.5 × Linux");
        assert_eq!(text("trap", &SVM), "≤ 100; Linux / Dune ≥ 40");
        assert_eq!(text("trap", &VMX), "≤ 100");
        assert_eq!(text("intercept", &SVM), "ptrace / Dune ≥ 60");
        assert_eq!(text("mprotect", &SVM), "≤ 1.25 × Linux, plus the call");
        assert_eq!(text("roundtrip", &SVM), "≤ 1,300");
        assert_eq!(text("enter_10000", &SVM), "within 5 % of `enter`, ≤ 60,000");
        assert_eq!(text("memory_vcpu", &SVM), "≤ 65,536");
        assert_eq!(text("processes", &SVM), "≥ 1,000");
        assert_eq!(text("trap_kvm_vm", &VMX), "≤ 1.05 × without KVM");
        assert_eq!(text("guard_send", &SVM), "≤ without the guard + 110 × exits");
    }

    #[test]
    fn a_target_that_names_the_baseline_has_one() {
        for subject in SUBJECTS {
            for target in subject.targets {
                let bound = target.accepted.as_ref().map(|miss| miss.bound.text(subject.baseline));
                for text in [Some(target.text(&subject)), bound].into_iter().flatten() {
                    assert!(!text.contains("no baseline"), "{}: {text}", subject.id);
                }
            }
        }
    }

    #[test]
    fn a_target_is_missed_if_the_baseline_was_not_measured() {
        assert!(!met("intercept", None, 1.0, None));
        assert!(!met("mprotect", None, 1.0, None));
    }
}

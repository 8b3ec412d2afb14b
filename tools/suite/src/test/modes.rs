// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to boot a kernel that change what the module finds below it: a table,
//! and for each a proof, from inside the machine, that it was really so.

use anyhow::{ensure, Context as _, Result};
use dune_machine::Series;

use crate::context::Context;
use crate::test::machines::{self, Phase};
use crate::test::tally::Tally;

struct Mode {
    name: &'static str,
    machine: Machine,
    /// The first of the kernels that can be booted so.
    since: Series,
    /// Processors, where the number matters.
    cpus: Option<u32>,
    /// Config.takes_turns
    takes_turns: bool,
    /// Config.newest_emulator
    newest_emulator: bool,
    kernel_arguments: &'static [&'static str],
    cpu_features: &'static [&'static str],
    /// A shell command that succeeds in the machine where the mode is active.
    proof: &'static str,
    /// What runs: beginnings of names.
    folders: &'static [&'static str],
}

/// Where a mode can be had.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    Any,
    Svm,
    /// With this processor; none: its own.
    Vmx(Option<&'static str>),
}

impl Machine {
    fn is(self, context: &Context) -> bool {
        match self {
            Machine::Any => true,
            Machine::Svm => !context.is_vmx(),
            Machine::Vmx(_) => context.is_vmx(),
        }
    }
}

/// What touches every mechanism of the module and of libdune.
const BROAD: &[&str] = &["kernel", "libdune", "run/hostile"];

/// What touches the world switch, system calls and faults.
const SWITCH: &[&str] = &[
    "kernel/coherence",
    "kernel/hostile",
    "kernel/hoststate",
    "kernel/signals",
    "kernel/syscall",
    "kernel/trace",
    "libdune",
];

/// The same, and the sandbox where each gigabyte in use costs a table.
const SMALL_PAGES: &[&str] = &[
    "kernel/coherence",
    "kernel/hostile",
    "kernel/hoststate",
    "kernel/signals",
    "kernel/syscall",
    "kernel/trace",
    "libdune",
    "run/hostile",
    "run/limits",
];

/// The default boot, without a mode: the kernel lies at a random place, says
/// its loader (loadflags in the boot parameters), and has the mitigations that
/// the processor asks for.
pub const DEFAULT_PROOF: &str =
    "[ $(($(od -An -tu1 -j529 -N1 /sys/kernel/boot_params/data) & 2)) = 2 ]";

/// What one processor does to another that is in a guest.
const SMP: &[&str] = &[
    "kernel/coherence",
    "kernel/hotplug",
    "kernel/ldt",
    "kernel/lifetime",
    "kernel/processes",
    "kernel/signals",
    "kernel/soak",
];

/// Life beside KVM, whose machines need SVM or VT-x as we do.
const KVM: &[&str] = &["kvm"];

/// On several processors, and not the tests that ran beside it on one.
const KVM_SMP: &[&str] = &["kvm/beside", "kvm/kvmguest", "kvm/order"];

/// Physical addresses have 40 bits there: only the module's own tests know how
/// to do with them (tests/kernel/low.c).
const RYZEN: &[&str] = &["kernel/syscall", "kernel/uapi"];

/// What a mode does not say.
const PLAIN: Mode = Mode {
    name: "",
    machine: Machine::Any,
    since: Series::V6_1,
    cpus: None,
    takes_turns: false,
    newest_emulator: false,
    kernel_arguments: &[],
    cpu_features: &[],
    proof: DEFAULT_PROOF,
    folders: &[],
};

const MODES: [Mode; 16] = [
    // Each time that KVM comes or goes, the kernel patches code that other
    // processors are about to execute.
    Mode { name: "kvm", takes_turns: true, proof: "modprobe -n kvm", folders: KVM, ..PLAIN },
    // On by itself in the vmx machine. Processors that want it may have
    // protection keys.
    Mode {
        name: "pti",
        machine: Machine::Svm,
        kernel_arguments: &["pti=on"],
        cpu_features: &["pku"],
        proof: "grep -qw pti /proc/cpuinfo",
        folders: BROAD,
        ..PLAIN
    },
    Mode {
        name: "la57",
        machine: Machine::Svm,
        cpu_features: &["la57"],
        proof: "grep -qw la57 /proc/cpuinfo",
        folders: BROAD,
        ..PLAIN
    },
    // As on Intel's older processors, and in many virtual machines.
    Mode {
        name: "small-pages",
        machine: Machine::Svm,
        cpu_features: &["-pdpe1gb"],
        proof: "! grep -qw pdpe1gb /proc/cpuinfo",
        folders: SMALL_PAGES,
        ..PLAIN
    },
    Mode {
        name: "nokaslr",
        machine: Machine::Svm,
        kernel_arguments: &["nokaslr"],
        proof: "[ $(($(od -An -tu1 -j529 -N1 /sys/kernel/boot_params/data) & 2)) = 0 ]",
        folders: SWITCH,
        ..PLAIN
    },
    Mode {
        name: "retpoline",
        kernel_arguments: &["spectre_v2=retpoline,generic"],
        proof: "grep -q Retpolines /sys/devices/system/cpu/vulnerabilities/spectre_v2",
        folders: SWITCH,
        ..PLAIN
    },
    Mode {
        name: "nomitigations",
        kernel_arguments: &["mitigations=off"],
        proof: "grep -q ^Vulnerable /sys/devices/system/cpu/vulnerabilities/spectre_v2",
        folders: SWITCH,
        ..PLAIN
    },
    Mode {
        name: "preempt",
        kernel_arguments: &["preempt=full"],
        proof: "dmesg | grep -q 'Dynamic Preempt: full'",
        folders: BROAD,
        ..PLAIN
    },
    // Debian's kernels know IBT since 6.12, QEMU's processors do not; FineIBT
    // is in none of Debian's kernels, which gcc compiles. This processor says how
    // fast its clock is, which Bochs's is not: a second would last a minute. And
    // what it says of AVX-512 Linux does not believe: it does without XSAVE, so
    // that is seen too (7.2 falls over it, but where it is told beforehand).
    Mode {
        name: "ibt",
        machine: Machine::Vmx(Some("tigerlake")),
        since: Series::V6_12,
        kernel_arguments: &["ibt=on", "tsc_early_khz=50000", "noxsave"],
        proof: "dmesg | grep -q 'Indirect Branch Tracking enabled'",
        folders: SWITCH,
        ..PLAIN
    },
    // A newer Intel processor: accessed and dirty bits and 1 GB pages in EPT,
    // INVPCID.
    Mode {
        name: "haswell",
        machine: Machine::Vmx(Some("corei7_haswell_4770")),
        proof: "grep -qw invpcid /proc/cpuinfo",
        folders: &["kernel/coherence", "kernel/granule", "kernel/uapi", "libdune"],
        ..PLAIN
    },
    // An interrupt's return may call the scheduler, which finds nobody else.
    Mode {
        name: "kvm-preempt",
        cpus: Some(2),
        takes_turns: true,
        kernel_arguments: &["preempt=full"],
        proof: "dmesg | grep -q 'Dynamic Preempt: full'",
        folders: &["kvm/meanwhile"],
        ..PLAIN
    },
    // AMD's processor in the emulator of the other machine, a second opinion on
    // SVM. It has MWAITX, which never wakes up, and XRSTOR refuses what XSAVE saved.
    Mode {
        name: "ryzen",
        machine: Machine::Vmx(Some("ryzen")),
        kernel_arguments: &["clearcpuid=221", "noxsave"],
        proof: "grep -qw npt /proc/cpuinfo",
        folders: RYZEN,
        ..PLAIN
    },
    // The svm machine has two processors anyway.
    Mode {
        name: "smp",
        machine: Machine::Vmx(None),
        cpus: Some(2),
        proof: "[ $(nproc) = 2 ]",
        folders: SMP,
        ..PLAIN
    },
    Mode {
        name: "kvm-smp",
        machine: Machine::Vmx(None),
        cpus: Some(2),
        proof: "[ $(nproc) = 2 ]",
        folders: KVM_SMP,
        ..PLAIN
    },
    // A second opinion: what another emulator makes of the same code. Its
    // firmware is of its own version.
    Mode {
        name: "qemu-newest",
        machine: Machine::Svm,
        newest_emulator: true,
        proof: "! grep -q ^1.16 /sys/class/dmi/id/bios_version",
        folders: BROAD,
        ..PLAIN
    },
    // Not a way to boot, but to install (make deb, docs/install.md).
    Mode { name: "package", machine: Machine::Svm, folders: &["package"], ..PLAIN },
];

/// The names of those that can be had in this machine with this kernel.
pub fn names(context: &Context, series: Series) -> Vec<&'static str> {
    let fits = |mode: &&Mode| mode.machine.is(context) && mode.since <= series;
    MODES.iter().filter(fits).map(|mode| mode.name).collect()
}

/// The mode of this name.
pub fn run(
    context: &Context,
    series: Series,
    only: Option<&str>,
    name: &str,
    tally: &mut Tally,
) -> Result<()> {
    let mode = MODES.iter().find(|mode| mode.name == name);
    let mode = mode.with_context(|| format!("there is no mode {name}"))?;
    ensure!(mode.machine.is(context), "{name} cannot be had in this machine");
    ensure!(mode.since <= series, "{name} cannot be had with {series}");
    let mut phase =
        Phase::new(&format!("{}-{name}", context.name_of(series)), context.machine(series)?);
    phase.config.kernel_arguments.extend(mode.kernel_arguments.iter().map(|&s| s.into()));
    phase.config.cpu_features.extend(mode.cpu_features.iter().map(|&s| s.into()));
    if let Machine::Vmx(Some(model)) = mode.machine {
        phase.config.model = Some(model.to_owned());
    }
    phase.config.takes_turns = mode.takes_turns;
    phase.config.newest_emulator = mode.newest_emulator;
    if let Some(cpus) = mode.cpus {
        phase.config.cpus = cpus;
    }
    phase.proof = Some(mode.proof);
    phase.folders = Some(mode.folders.to_vec());
    machines::run(context, &phase, only, tally)
}

pub fn parse(name: &str) -> Result<String, String> {
    if MODES.iter().any(|mode| mode.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<_> = MODES.iter().map(|mode| mode.name).collect();
    Err(format!("no such mode; there are: {}", names.join(", ")))
}

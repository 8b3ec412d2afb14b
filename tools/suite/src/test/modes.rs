// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to boot a kernel that change what the module finds below it: a table,
//! and for each a proof, from inside the machine, that it was really so.

use anyhow::{ensure, Result};
use dune_machine::Series;

use crate::context::Context;
use crate::test::machines::{self, Phase};
use crate::test::tally::Tally;

struct Mode {
    name: &'static str,
    machine: Machine,
    /// The first of the kernels that can be booted so.
    since: Series,
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
    /// With this processor.
    Vmx(&'static str),
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

/// The default boot, without a mode: the kernel lies at a random place, says
/// its loader (loadflags in the boot parameters), and has the mitigations that
/// the processor asks for.
pub const DEFAULT_PROOF: &str =
    "[ $(($(od -An -tu1 -j529 -N1 /sys/kernel/boot_params/data) & 2)) = 2 ]";

/// Life beside KVM, whose machines need SVM or VT-x as we do.
const KVM: &[&str] = &["kvm"];

const MODES: [Mode; 10] = [
    Mode {
        name: "kvm",
        machine: Machine::Any,
        since: Series::V6_1,
        kernel_arguments: &[],
        cpu_features: &[],
        proof: "modprobe -n kvm",
        folders: KVM,
    },
    Mode {
        name: "pti",
        machine: Machine::Any,
        since: Series::V6_1,
        kernel_arguments: &["pti=on"],
        cpu_features: &[],
        proof: "grep -qw pti /proc/cpuinfo",
        folders: BROAD,
    },
    Mode {
        name: "la57",
        machine: Machine::Svm,
        since: Series::V6_1,
        kernel_arguments: &[],
        cpu_features: &["la57"],
        proof: "grep -qw la57 /proc/cpuinfo",
        folders: BROAD,
    },
    // As on Intel's older processors, and in many virtual machines.
    Mode {
        name: "small-pages",
        machine: Machine::Svm,
        since: Series::V6_1,
        kernel_arguments: &[],
        cpu_features: &["-pdpe1gb"],
        proof: "! grep -qw pdpe1gb /proc/cpuinfo",
        folders: SWITCH,
    },
    Mode {
        name: "nokaslr",
        machine: Machine::Svm,
        since: Series::V6_1,
        kernel_arguments: &["nokaslr"],
        cpu_features: &[],
        proof: "[ $(($(od -An -tu1 -j529 -N1 /sys/kernel/boot_params/data) & 2)) = 0 ]",
        folders: SWITCH,
    },
    Mode {
        name: "retpoline",
        machine: Machine::Any,
        since: Series::V6_1,
        kernel_arguments: &["spectre_v2=retpoline,generic"],
        cpu_features: &[],
        proof: "grep -q Retpolines /sys/devices/system/cpu/vulnerabilities/spectre_v2",
        folders: SWITCH,
    },
    Mode {
        name: "nomitigations",
        machine: Machine::Any,
        since: Series::V6_1,
        kernel_arguments: &["mitigations=off"],
        cpu_features: &[],
        proof: "grep -q ^Vulnerable /sys/devices/system/cpu/vulnerabilities/spectre_v2",
        folders: SWITCH,
    },
    Mode {
        name: "preempt",
        machine: Machine::Any,
        since: Series::V6_1,
        kernel_arguments: &["preempt=full"],
        cpu_features: &[],
        proof: "dmesg | grep -q 'Dynamic Preempt: full'",
        folders: BROAD,
    },
    // Debian's kernels know IBT since 6.12, QEMU's processors do not; FineIBT
    // is in none of Debian's kernels, which gcc compiles.
    Mode {
        name: "ibt",
        machine: Machine::Vmx("tigerlake"),
        since: Series::V6_12,
        kernel_arguments: &["ibt=on"],
        cpu_features: &[],
        proof: "dmesg | grep -q 'Indirect Branch Tracking enabled'",
        folders: SWITCH,
    },
    // Not a way to boot, but to install (make deb, docs/install.md).
    Mode {
        name: "package",
        machine: Machine::Svm,
        since: Series::V6_1,
        kernel_arguments: &[],
        cpu_features: &[],
        proof: DEFAULT_PROOF,
        folders: &["package"],
    },
];

/// The modes whose name is `name`, or all for "all".
pub fn run(
    context: &Context,
    series: Series,
    only: Option<&str>,
    name: &str,
    tally: &mut Tally,
) -> Result<()> {
    let wanted = |mode: &&Mode| match name {
        "all" => mode.machine.is(context) && mode.since <= series,
        _ => name == mode.name,
    };
    for mode in MODES.iter().filter(wanted) {
        ensure!(mode.machine.is(context), "{name} cannot be had in this machine");
        ensure!(mode.since <= series, "{name} cannot be had with {series}");
        let mut phase = Phase::new(
            &format!("{}-{}", context.name_of(series), mode.name),
            context.machine(series)?,
        );
        phase.config.kernel_arguments.extend(mode.kernel_arguments.iter().map(|&s| s.into()));
        phase.config.cpu_features.extend(mode.cpu_features.iter().map(|&s| s.into()));
        if let Machine::Vmx(model) = mode.machine {
            phase.config.model = Some(model.to_owned());
        }
        phase.proof = Some(mode.proof);
        phase.folders = Some(mode.folders.to_vec());
        machines::run(context, &phase, only, tally)?;
    }
    Ok(())
}

pub fn parse(name: &str) -> Result<String, String> {
    if name == "all" || MODES.iter().any(|mode| mode.name == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<_> = MODES.iter().map(|mode| mode.name).collect();
    Err(format!("no such mode; there are: all, {}", names.join(", ")))
}

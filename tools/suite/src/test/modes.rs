// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to boot a kernel that change what the module finds below it: a table,
//! and for each a proof, from inside the machine, that it was really so.

use anyhow::Result;
use dune_machine::Series;

use crate::context::Context;
use crate::test::machines::{self, Phase};
use crate::test::tally::Tally;

struct Mode {
    name: &'static str,
    kernel_arguments: &'static [&'static str],
    cpu_features: &'static [&'static str],
    /// A shell command that succeeds in the machine where the mode is active.
    proof: &'static str,
    /// What runs: beginnings of names.
    folders: &'static [&'static str],
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

const MODES: [Mode; 7] = [
    Mode {
        name: "pti",
        kernel_arguments: &["pti=on"],
        cpu_features: &[],
        proof: "grep -qw pti /proc/cpuinfo",
        folders: BROAD,
    },
    Mode {
        name: "la57",
        kernel_arguments: &[],
        cpu_features: &["la57"],
        proof: "grep -qw la57 /proc/cpuinfo",
        folders: BROAD,
    },
    Mode {
        name: "nokaslr",
        kernel_arguments: &["nokaslr"],
        cpu_features: &[],
        proof: "[ $(($(od -An -tu1 -j529 -N1 /sys/kernel/boot_params/data) & 2)) = 0 ]",
        folders: SWITCH,
    },
    Mode {
        name: "retpoline",
        kernel_arguments: &["spectre_v2=retpoline,generic"],
        cpu_features: &[],
        proof: "grep -q Retpolines /sys/devices/system/cpu/vulnerabilities/spectre_v2",
        folders: SWITCH,
    },
    Mode {
        name: "nomitigations",
        kernel_arguments: &["mitigations=off"],
        cpu_features: &[],
        proof: "grep -q ^Vulnerable /sys/devices/system/cpu/vulnerabilities/spectre_v2",
        folders: SWITCH,
    },
    Mode {
        name: "preempt",
        kernel_arguments: &["preempt=full"],
        cpu_features: &[],
        proof: "dmesg | grep -q 'Dynamic Preempt: full'",
        folders: BROAD,
    },
    // Not a way to boot, but to install (make deb, docs/install.md).
    Mode {
        name: "package",
        kernel_arguments: &[],
        cpu_features: &[],
        proof: DEFAULT_PROOF,
        folders: &["package"],
    },
];

/// The modes whose name is `name`, or all for "all".
pub fn run(context: &Context, series: Series, name: &str, tally: &mut Tally) -> Result<()> {
    for mode in MODES.iter().filter(|mode| name == "all" || name == mode.name) {
        let mut phase = Phase::new(
            &format!("{}-{}", context.name_of(series), mode.name),
            context.machine(series)?,
        );
        phase.config.kernel_arguments.extend(mode.kernel_arguments.iter().map(|&s| s.into()));
        phase.config.cpu_features.extend(mode.cpu_features.iter().map(|&s| s.into()));
        phase.proof = Some(mode.proof);
        phase.folders = Some(mode.folders.to_vec());
        machines::run(context, &phase, None, tally)?;
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a machine is to be: its type, kernel, CPUs, memory, directories and modules.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dune_protocol::{Setup, Share};

use crate::device::Device;
use crate::error::{Context, Result};
use crate::kernel::Kernel;
use crate::machine_type::MachineType;
use crate::trace::Trace;

/// Every machine has these. They switch off what takes time at boot and is of no use to a
/// test. panic=-1 resets at once. The kernel's test of the timer would panic
/// where the host is so busy that the emulator delivers fewer than ten ticks in
/// the time allowed.
const KERNEL_ARGUMENTS: &str = "console=ttyS0,115200 quiet loglevel=4 panic=-1 tsc=reliable \
     no_timer_check rcupdate.rcu_expedited=1 cryptomgr.notests watchdog_thresh=30 \
     rcupdate.rcu_cpu_stall_timeout=60";

/// Arguments of counting mode: every run must take the same path, so nothing is random.
const COUNTING_ARGUMENTS: &str = "nokaslr norandmaps";

/// The CPUs for programs.
#[derive(Debug, Clone)]
pub enum Cpus {
    /// So many CPUs, which run as fast as the emulator can. If there are several, they
    /// are numbered from 1, and CPU 0 is left to the kernel (for the reason in qemu.rs).
    Free(u32),
    /// Counting mode, for exact and repeatable counts of instructions: one CPU, whose time
    /// stamp counter counts them, and nothing random.
    Counting {
        /// The instructions to trace: see power_off_traced().
        trace: Option<Trace>,
    },
}

impl Cpus {
    /// Their number.
    pub fn count(&self) -> u32 {
        match self {
            Cpus::Free(count) => *count,
            Cpus::Counting { .. } => 1,
        }
    }

    pub(crate) fn is_counting(&self) -> bool {
        matches!(self, Cpus::Counting { .. })
    }

    pub(crate) fn trace(&self) -> Option<&Trace> {
        match self {
            Cpus::Free(_) => None,
            Cpus::Counting { trace } => trace.as_ref(),
        }
    }
}

/// A machine that is to be booted.
#[derive(Debug, Clone)]
pub struct Config {
    /// The row of the table of machine types.
    pub machine_type: &'static MachineType,
    /// The emulator's name for another processor than the machine type's.
    pub cpu_model: Option<String>,
    /// The kernel that it boots.
    pub kernel: Kernel,
    /// The CPUs for programs, and how they are executed.
    pub cpus: Cpus,
    /// The memory, in megabytes.
    pub memory: u32,
    /// Added to the kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// How many times longer than usual a second lasts in Bochs. A debug kernel
    /// would otherwise be busy with its timer's ticks alone.
    pub second_factor: u32,
    /// Whether QEMU has one thread for all CPUs, which take turns. With a thread
    /// for each, one CPU may execute code as it was before another one patched
    /// it: a breakpoint that is gone.
    pub single_thread: bool,
    /// Whether to take the newest QEMU (newest_qemu.rs) instead of the installed
    /// one.
    pub newest_qemu: bool,
    /// Features added to the CPU model ("la57"), removed from it ("-pdpe1gb"), or set to a
    /// value ("phys-bits=52").
    pub cpu_features: Vec<String>,
    /// Devices for tests, in QEMU alone.
    pub devices: Vec<&'static Device>,
    /// Network cards of QEMU's, by its names. Each is alone in a network in which only QEMU's
    /// router answers (10.0.2.2), and a server with files (10.0.2.100; qemu.rs).
    pub network_cards: Vec<String>,
    /// Directories in which writes reach the host, by absolute path without links.
    pub shares: Vec<PathBuf>,
    /// Directories that programs need, for a machine that has copies of the files.
    pub copies: Vec<PathBuf>,
    /// Kernel modules to load, by their path on the host.
    pub insmod: Vec<PathBuf>,
    /// How long booting may take.
    pub boot_timeout: Duration,
    /// Gets messages about what takes a while.
    pub say: fn(&str),
}

impl Config {
    /// The machine type's usual machine, with one CPU and this kernel.
    pub fn new(machine_type: &'static MachineType, kernel: Kernel) -> Self {
        Config {
            machine_type,
            cpu_model: None,
            kernel,
            cpus: Cpus::Free(1),
            memory: machine_type.memory,
            kernel_arguments: Vec::new(),
            second_factor: 1,
            single_thread: false,
            newest_qemu: false,
            cpu_features: Vec::new(),
            devices: Vec::new(),
            network_cards: Vec::new(),
            shares: Vec::new(),
            copies: Vec::new(),
            insmod: Vec::new(),
            boot_timeout: machine_type.boot_timeout,
            say: |_| (),
        }
    }

    /// The kernel's command line, with the arguments of this emulator, some of which a
    /// configuration may not need.
    pub(crate) fn command_line(&self, of_emulator: &[Option<&str>]) -> String {
        let counting = self.cpus.is_counting().then_some(COUNTING_ARGUMENTS);
        let own = self.kernel_arguments.iter().map(String::as_str);
        let of_all = [Some(KERNEL_ARGUMENTS), counting].into_iter().flatten();
        let of_emulator = of_emulator.iter().copied().flatten();
        of_all.chain(of_emulator).chain(own).collect::<Vec<_>>().join(" ")
    }

    /// The shares with their tags, which have a number instead of the path since
    /// QEMU limits them to 31 bytes.
    pub(crate) fn shares_by_tag(&self) -> impl Iterator<Item = (String, &Path)> {
        self.shares.iter().enumerate().map(|(n, path)| (format!("share{n}"), path.as_path()))
    }

    /// What the agent is told about this machine.
    pub(crate) fn setup(&self) -> Result<Setup> {
        let absolute = |path: &PathBuf| std::path::absolute(path).context("finding a directory");
        let shares = self.shares_by_tag().map(|(tag, path)| Share { tag, path: path.to_owned() });
        Ok(Setup {
            hostname: nix::unistd::gethostname().context("finding the host name")?,
            root: self.machine_type.root,
            shares: shares.collect(),
            modules_root: absolute(&self.kernel.root)?,
            insmod: self.insmod.iter().map(absolute).collect::<Result<_>>()?,
        })
    }
}

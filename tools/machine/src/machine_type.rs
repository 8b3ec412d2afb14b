// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of machine, one row each: everything that differs between `svm`
//! and `vmx` and is not the emulator's own command line. docs/glossary.md has
//! the words: machine type, CPU model, mode, harness.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dune_protocol::Root;

use crate::error::{Error, Result};

/// A row of the table.
pub struct MachineType {
    /// The type's name, as `--machine` takes it.
    pub name: &'static str,
    /// The vendor of the processors.
    pub vendor: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// The CPU model, unless the user asks for another.
    pub cpu_model: &'static str,
    /// The memory in megabytes, unless the user asks for another amount.
    pub memory: u32,
    /// How long booting may take.
    pub boot_timeout: Duration,
    /// How many times longer than in the fastest machine a program may take.
    pub time_factor: u32,
    /// The same for the time limits inside the tests (TEST_TIME_FACTOR). None: the tests' own.
    pub test_time_factor: Option<u32>,
    /// Whether the emulator may execute code that the kernel has already
    /// replaced: QEMU does when it has one thread for each CPU.
    pub may_run_stale_code: bool,
    /// The source of the machine's files.
    pub root: Root,
    /// The modules that the agent needs to reach them. modprobe finds all other modules on
    /// the root file system.
    pub(crate) initramfs_modules: &'static [&'static str],
    /// Which emulator it runs in. machine.rs calls it.
    pub(crate) emulator: EmulatorName,
}

/// The emulators.
#[derive(Clone, Copy)]
pub(crate) enum EmulatorName {
    Qemu,
    Bochs,
}

/// AMD SVM, by QEMU.
pub static SVM: MachineType = MachineType {
    name: "svm",
    vendor: "AMD",
    summary: "AMD SVM with nested paging, emulated by QEMU",
    cpu_model: "EPYC",
    memory: 2048,
    boot_timeout: Duration::from_secs(300),
    time_factor: 1,
    test_time_factor: None,
    may_run_stale_code: true,
    root: Root::Shared,
    initramfs_modules: &[
        "virtio_pci",
        "virtio_console",
        "9pnet_virtio",
        "9p",
        "overlay",
        "virtio_rng",
    ],
    emulator: EmulatorName::Qemu,
};

/// Intel VT-x, by Bochs, which emulates some 50 million instructions a second. The
/// CPU model has the microarchitecture of the Dune paper.
pub static VMX: MachineType = MachineType {
    name: "vmx",
    vendor: "Intel",
    summary: "Intel VT-x with EPT, emulated by Bochs: slow, and with copies of the files",
    cpu_model: "corei7_ivy_bridge_3770k",
    memory: 1024,
    boot_timeout: Duration::from_secs(900),
    time_factor: 4,
    test_time_factor: Some(10),
    may_run_stale_code: false,
    root: Root::Images,
    initramfs_modules: &["ata_piix", "sd_mod", "squashfs", "overlay"],
    emulator: EmulatorName::Bochs,
};

impl MachineType {
    /// The first one is the default.
    pub const ALL: [&'static MachineType; 2] = [&SVM, &VMX];

    /// The one that is used where the user names none.
    pub const DEFAULT: &'static MachineType = Self::ALL[0];

    /// Whether this is the default one.
    pub fn is_default(&self) -> bool {
        self == Self::DEFAULT
    }

    /// Whether directories of the host can be written to from inside.
    pub fn shares_files(&self) -> bool {
        self.root == Root::Shared
    }
}

impl PartialEq for MachineType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MachineType {}

impl fmt::Debug for MachineType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for MachineType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// Finds a machine type by its name.
impl FromStr for &'static MachineType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = || MachineType::ALL.map(|one| one.name).join(", ");
        MachineType::ALL.into_iter().find(|one| one.name == text).ok_or_else(|| {
            Error::Usage(format!("no machine type {text:?}; there are: {}", known()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_types_are_found_by_name() {
        assert_eq!("vmx".parse::<&MachineType>().unwrap(), &VMX);
        let error = "tdx".parse::<&MachineType>().unwrap_err();
        assert_eq!(error.to_string(), "no machine type \"tdx\"; there are: svm, vmx");
        assert!(SVM.is_default() && !VMX.is_default());
    }
}

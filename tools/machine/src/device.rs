// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that a machine may have besides its own, one row each. They are for tests of the
//! guard, and no driver of Linux's needs them.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A row of the table.
pub struct Device {
    /// As `--device` takes it.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// QEMU's arguments.
    pub(crate) arguments: &'static [&'static str],
}

impl Device {
    /// All devices.
    pub const ALL: [&'static Device; 8] = [
        &Device {
            name: "edu",
            summary: "a device that computes and copies memory, on bus 0",
            arguments: &["-device", "edu"],
        },
        &Device {
            name: "bridges",
            summary: "two PCI bridges; beneath one of them is another edu",
            arguments: &[
                "-device",
                "pci-bridge,id=bridge,chassis_nr=1,shpc=off",
                "-device",
                "edu,bus=bridge,addr=1",
                "-device",
                "pci-bridge,id=other,chassis_nr=2,shpc=off",
            ],
        },
        &Device {
            name: "e1000",
            summary: "a network interface without a network, whose registers are also ports",
            arguments: &[
                "-netdev",
                "hubport,id=nic,hubid=0",
                "-device",
                "e1000,netdev=nic,romfile=",
            ],
        },
        &Device {
            name: "ivshmem",
            summary: "a device with a BAR of 32 MB, which is memory",
            arguments: &[
                "-object",
                "memory-backend-ram,id=shared,size=32M",
                "-device",
                "ivshmem-plain,memdev=shared",
            ],
        },
        &Device {
            name: "ib700",
            summary: "a watchdog with two ports, which sends an NMI",
            arguments: &["-device", "ib700", "-action", "watchdog=inject-nmi"],
        },
        &Device {
            name: "root-port",
            summary: "a port of PCI Express, for q35; beneath it is another edu",
            arguments: &["-device", "pcie-root-port,id=link,chassis=1", "-device", "edu,bus=link"],
        },
        // QEMU takes the last type of machine.
        &Device {
            name: "q35",
            summary: "another chipset, whose PCI configuration space is also in memory",
            arguments: &["-machine", "q35"],
        },
        &Device {
            name: "no-i8042",
            summary: "no keyboard controller: ports 64h and 92h reset nothing",
            arguments: &["-machine", "i8042=off"],
        },
    ];
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Finds a device by its name.
impl FromStr for &'static Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = || Device::ALL.map(|one| one.name).join(", ");
        Device::ALL
            .into_iter()
            .find(|one| one.name == text)
            .ok_or_else(|| Error::Usage(format!("no device {text:?}; there are: {}", known())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_name() {
        assert_eq!("edu".parse::<&Device>().unwrap().arguments, ["-device", "edu"]);
        let error = "floppy".parse::<&Device>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no device \"floppy\"; there are: edu, bridges, e1000, ivshmem, ib700, root-port, \
             q35, no-i8042"
        );
    }
}

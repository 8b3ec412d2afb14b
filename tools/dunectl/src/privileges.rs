// SPDX-License-Identifier: MIT OR Apache-2.0
//! The privileges of a guarded module, as the administrator writes them, and the list that the
//! guard takes (kernel/guard/hv/privilege/privilege.h). docs/guard-privileges.md has the form.
//!
//! A device is named by its PCI address; sysfs has its BARs, and the bridges above it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// An entry of a binding: `[[privilege]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Privilege {
    /// All BARs of a device.
    Mmio { device: String },
    /// I/O ports, or those of a device that has no other BARs.
    Ports { device: Option<String>, first: Option<u16>, count: Option<u32> },
    /// Model-specific registers.
    Msr {
        first: u32,
        #[serde(default = "one")]
        count: u32,
    },
    /// The guard's services.
    Monitor {},
}

fn one() -> u32 {
    1
}

/// A file with privileges. A binding may have more.
#[derive(Debug, Deserialize)]
pub struct Privileges {
    #[serde(rename = "privilege", default)]
    pub privileges: Vec<Privilege>,
}

/// The numbers of enum hv_privilege_kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    Bridge = 1,
    Mmio,
    Ports,
    Msr,
    Monitor,
}

/// HV_NO_FUNCTION.
const NO_FUNCTION: u32 = !0;
/// HV_PRIVILEGES.
const MOST: usize = 32;
const PAGE: u64 = 4096;
const BARS: usize = 6;
/// The BARs, and the ROM.
const OWN_RESOURCES: usize = BARS + 1;

/// The flags of a resource in sysfs (IORESOURCE_IO, _MEM, _UNSET).
const IO: u64 = 0x100;
const MEMORY: u64 = 0x200;
const UNSET: u64 = 0x2000_0000;

/// struct hv_privilege.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub function: u32,
    pub first: u64,
    pub size: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.first.wrapping_add(self.size).wrapping_sub(1);
        match self.kind {
            Kind::Bridge => write!(f, "bridge   {}", Address(self.function)),
            Kind::Mmio => {
                write!(f, "mmio     {:#x}-{last:#x} of {}", self.first, Address(self.function))
            }
            Kind::Ports if self.function != NO_FUNCTION => {
                write!(f, "ports    {:#x}-{last:#x} of {}", self.first, Address(self.function))
            }
            Kind::Ports => write!(f, "ports    {:#x}-{last:#x}", self.first),
            Kind::Msr => write!(f, "msr      {:#x}-{last:#x}", self.first),
            Kind::Monitor => write!(f, "monitor"),
        }
    }
}

/// A function's address, as it is written.
struct Address(u32);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address(function) = self;
        write!(f, "0000:{:02x}:{:02x}.{}", function >> 8, function >> 3 & 31, function & 7)
    }
}

type Result<T> = std::result::Result<T, String>;

/// A line of a device's file `resource` that is not empty.
#[derive(Debug, Clone, Copy)]
struct Resource {
    first: u64,
    last: u64,
    flags: u64,
}

/// The guard's list for these privileges, with the BARs and bridges of this sysfs.
pub fn resolve(privileges: &[Privilege], sysfs: &Path) -> Result<Vec<Entry>> {
    let mut list = List { sysfs, entries: Vec::new() };
    for privilege in privileges {
        list.add(privilege)?;
    }
    if list.entries.len() > MOST {
        return Err(format!(
            "a module can have {MOST} BARs, bridges, ranges of ports and registers, and these are \
             {}",
            list.entries.len()
        ));
    }
    Ok(list.entries)
}

/// The list in the guard's form: an array of struct hv_privilege.
pub fn to_bytes(entries: &[Entry]) -> Vec<u8> {
    let bytes = entries.iter().flat_map(|one| {
        [
            &(one.kind as u32).to_le_bytes()[..],
            &one.function.to_le_bytes(),
            &one.first.to_le_bytes(),
            &one.size.to_le_bytes(),
        ]
        .concat()
    });
    bytes.collect()
}

struct List<'a> {
    sysfs: &'a Path,
    entries: Vec<Entry>,
}

impl List<'_> {
    fn push(&mut self, kind: Kind, function: u32, first: u64, size: u64) {
        let entry = Entry { kind, function, first, size };
        // Two devices have a bridge in common.
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
    }

    fn add(&mut self, privilege: &Privilege) -> Result<()> {
        match privilege {
            Privilege::Mmio { device } => self.add_device(device, true),
            Privilege::Ports { device: Some(device), first: None, count: None } => {
                self.add_device(device, false)
            }
            Privilege::Ports { device: None, first: Some(first), count } => {
                let (first, count) = (u64::from(*first), u64::from(count.unwrap_or(1)));
                if count == 0 || first + count > 0x10000 {
                    return Err(format!("there are no {count} ports from {first:#x} on"));
                }
                self.push(Kind::Ports, NO_FUNCTION, first, count);
                Ok(())
            }
            Privilege::Ports { .. } => {
                Err("a privilege \"ports\" has either a device, or first and count".to_owned())
            }
            Privilege::Msr { first, count } => {
                if *count == 0 || first.checked_add(count - 1).is_none() {
                    return Err(format!("there are no {count} MSRs from {first:#x} on"));
                }
                self.push(Kind::Msr, NO_FUNCTION, u64::from(*first), u64::from(*count));
                Ok(())
            }
            Privilege::Monitor {} => {
                self.push(Kind::Monitor, NO_FUNCTION, 0, 0);
                Ok(())
            }
        }
    }

    fn add_device(&mut self, device: &str, with_memory: bool) -> Result<()> {
        let wrong = |why: String| format!("device {device}: {why}");
        let function = function_of(device).map_err(wrong)?;
        let path = self.directory(device);
        let found = path.canonicalize();
        let found = found.map_err(|_| wrong("no such device: lspci -D lists them".to_owned()))?;
        let bars: Vec<_> = resources(&found, BARS).map_err(wrong)?;
        if bars.is_empty() {
            return Err(wrong("it has no BAR".to_owned()));
        }
        for bar in bars {
            let size = bar.last - bar.first + 1;
            if bar.flags & UNSET != 0 || bar.first == 0 {
                let why = "a BAR has no address: enable the device first (its file enable)";
                return Err(wrong(why.to_owned()));
            }
            if bar.flags & IO != 0 {
                self.push(Kind::Ports, function, bar.first, size);
                continue;
            }
            if !with_memory {
                let why = "its registers are also in memory: use the kind \"mmio\"";
                return Err(wrong(why.to_owned()));
            }
            self.check_page(&found, &bar).map_err(wrong)?;
            self.push(Kind::Mmio, function, bar.first, size);
        }
        for bridge in bridges(&found).map_err(wrong)? {
            self.push(Kind::Bridge, bridge, 0, 0);
        }
        Ok(())
    }

    fn directory(&self, device: &str) -> PathBuf {
        self.sysfs.join("bus/pci/devices").join(device)
    }

    /// Whole pages are hidden from the kernel, so no other device may be in a page of the BAR.
    fn check_page(&self, device: &Path, bar: &Resource) -> Result<()> {
        if bar.first & (PAGE - 1) != 0 {
            return Err(format!("the BAR at {:#x} does not begin at a page", bar.first));
        }
        let end = (bar.last | (PAGE - 1)) + 1;
        let all = fs::read_dir(self.sysfs.join("bus/pci/devices")).map_err(|e| e.to_string())?;
        for other in all {
            let other = other.map_err(|e| e.to_string())?.path();
            if other.canonicalize().is_ok_and(|path| path == device) {
                continue;
            }
            let shares = |one: &Resource| {
                one.flags & MEMORY != 0 && one.first < end && bar.first <= one.last
            };
            if resources(&other, OWN_RESOURCES)?.iter().any(shares) {
                let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Err(format!("{name} has a BAR in the same page, {:#x}", bar.first));
            }
        }
        Ok(())
    }
}

/// Bus, device and function, of an address such as 0000:00:04.0.
fn function_of(address: &str) -> Result<u32> {
    let parse = || {
        let (domain, rest) = address.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        let hex = |text: &str, digits: usize, most: u32| {
            let value = u32::from_str_radix(text, 16).ok().filter(|value| *value <= most);
            value.filter(|_| text.len() == digits && !text.starts_with('+'))
        };
        let whole = hex(bus, 2, 0xff)? << 8 | hex(device, 2, 31)? << 3 | hex(function, 1, 7)?;
        Some((hex(domain, 4, 0xffff)?, whole))
    };
    match parse() {
        Some((0, function)) => Ok(function),
        Some(_) => Err("the guard knows the PCI domain 0000 alone".to_owned()),
        None => Err("an address is written as 0000:00:04.0".to_owned()),
    }
}

/// The first `count` resources of a device, without those that it does not have.
fn resources(device: &Path, count: usize) -> Result<Vec<Resource>> {
    let path = device.join("resource");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut resources = Vec::new();
    for line in text.lines().take(count) {
        let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        let words: Option<Vec<u64>> = line.split_whitespace().map(number).collect();
        match words.as_deref() {
            Some(&[_, _, 0]) => {}
            Some(&[first, last, flags]) if first <= last => {
                resources.push(Resource { first, last, flags });
            }
            _ => return Err(format!("{}: a line that is not known: {line:?}", path.display())),
        }
    }
    Ok(resources)
}

/// The bridges above a device, by its place in /sys/devices/pci0000:00/.
fn bridges(device: &Path) -> Result<Vec<u32>> {
    let mut names = device.components().map(|part| part.as_os_str().to_string_lossy());
    if !names.by_ref().any(|name| name == "pci0000:00") {
        return Err("it is not beneath bus 0, where the guard would know all bridges".to_owned());
    }
    let path: Vec<String> = names.map(|name| name.into_owned()).collect();
    let above = path.len().saturating_sub(1);
    path[..above].iter().map(|name| function_of(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A sysfs of its own, removed in the end.
    struct Sysfs(PathBuf);

    impl Sysfs {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir();
            let root = root.join(format!("dunectl-privileges-{}-{name}", std::process::id()));
            fs::create_dir_all(root.join("bus/pci/devices")).unwrap();
            Sysfs(root)
        }

        /// A device at this place beneath /sys/devices, with these resources.
        fn add(&self, place: &str, resources: &[(u64, u64, u64)]) {
            let directory = self.0.join("devices").join(place);
            fs::create_dir_all(&directory).unwrap();
            let line = |n: usize| {
                let (first, last, flags) = resources.get(n).copied().unwrap_or_default();
                format!("{first:#018x} {last:#018x} {flags:#018x}\n")
            };
            fs::write(directory.join("resource"), (0..13).map(line).collect::<String>()).unwrap();
            let name = place.rsplit('/').next().unwrap();
            symlink(&directory, self.0.join("bus/pci/devices").join(name)).unwrap();
        }

        fn resolve(&self, text: &str) -> Result<Vec<Entry>> {
            let parsed: Privileges = toml::from_str(text).map_err(|e| e.message().to_owned())?;
            resolve(&parsed.privileges, &self.0)
        }
    }

    impl Drop for Sysfs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn machine(name: &str) -> Sysfs {
        let sysfs = Sysfs::new(name);
        let none = (0, 0, 0);
        let edu = (0xfe10_0000, 0xfe1f_ffff, 0x40200);
        sysfs.add("pci0000:00/0000:00:05.0", &[]);
        sysfs.add("pci0000:00/0000:00:05.0/0000:01:01.0", &[edu]);
        let e1000 = [(0xfebc_0000, 0xfebd_ffff, 0x40200), (0xc040, 0xc07f, 0x40101)];
        sysfs.add("pci0000:00/0000:00:03.0", &e1000);
        let ports = [(0xc100, 0xc1ff, 0x40101)];
        sysfs.add("pci0000:00/0000:00:04.0", &ports);
        let small =
            [(0xfebf_0000, 0xfebf_00ff, 0x40200), none, (0x8_0000_0000, 0x8_01ff_ffff, 0x14220c)];
        sysfs.add("pci0000:00/0000:00:06.0", &small);
        sysfs.add("pci0000:00/0000:00:07.0", &[(0xfebe_0000, 0xfebe_00ff, 0x40200)]);
        sysfs.add("pci0000:00/0000:00:08.0", &[(0xfebe_0100, 0xfebe_01ff, 0x40200)]);
        sysfs.add("pci0000:00/0000:00:09.0", &[(0, 0xfff, 0x2004_0200)]);
        sysfs.add("pci0000:40/0000:40:01.0", &[(0xfe30_0000, 0xfe3f_ffff, 0x40200)]);
        sysfs
    }

    fn entry(kind: Kind, function: u32, first: u64, size: u64) -> Entry {
        Entry { kind, function, first, size }
    }

    fn device(kind: &str, address: &str) -> String {
        format!("[[privilege]]\nkind = {kind:?}\ndevice = {address:?}\n")
    }

    #[test]
    fn a_device_has_all_bars_and_the_bridges_above_it() {
        let sysfs = machine("device");
        assert_eq!(
            sysfs.resolve(&device("mmio", "0000:01:01.0")).unwrap(),
            [entry(Kind::Mmio, 0x108, 0xfe10_0000, 0x10_0000), entry(Kind::Bridge, 0x28, 0, 0)]
        );
        let list = sysfs.resolve(&device("mmio", "0000:01:01.0")).unwrap();
        assert_eq!(list[0].to_string(), "mmio     0xfe100000-0xfe1fffff of 0000:01:01.0");
        assert_eq!(list[1].to_string(), "bridge   0000:00:05.0");
        assert_eq!(
            sysfs.resolve(&device("mmio", "0000:00:03.0")).unwrap(),
            [
                entry(Kind::Mmio, 0x18, 0xfebc_0000, 0x2_0000),
                entry(Kind::Ports, 0x18, 0xc040, 0x40)
            ]
        );
        assert_eq!(
            sysfs.resolve(&device("ports", "0000:00:04.0")).unwrap(),
            [entry(Kind::Ports, 0x20, 0xc100, 0x100)]
        );
        assert_eq!(
            sysfs.resolve(&device("mmio", "0000:00:06.0")).unwrap(),
            [
                entry(Kind::Mmio, 0x30, 0xfebf_0000, 0x100),
                entry(Kind::Mmio, 0x30, 0x8_0000_0000, 0x200_0000)
            ]
        );
    }

    #[test]
    fn ports_registers_and_services_are_written_as_numbers() {
        let sysfs = machine("numbers");
        let text = "[[privilege]]\nkind = \"ports\"\nfirst = 0x443\n\
                    [[privilege]]\nkind = \"ports\"\nfirst = 0xfff0\ncount = 16\n\
                    [[privilege]]\nkind = \"msr\"\nfirst = 0xc0010073\n\
                    [[privilege]]\nkind = \"monitor\"\n[[privilege]]\nkind = \"monitor\"\n";
        let list = sysfs.resolve(text).unwrap();
        assert_eq!(
            list,
            [
                entry(Kind::Ports, NO_FUNCTION, 0x443, 1),
                entry(Kind::Ports, NO_FUNCTION, 0xfff0, 16),
                entry(Kind::Msr, NO_FUNCTION, 0xc001_0073, 1),
                entry(Kind::Monitor, NO_FUNCTION, 0, 0),
            ]
        );
        let bytes = to_bytes(&list);
        assert_eq!(bytes.len(), 4 * 24);
        assert_eq!(bytes[..8], [3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(bytes[8..24], [0x43, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[48..60], [4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x73, 0, 1, 0xc0]);
    }

    #[test]
    fn what_cannot_be_guarded_is_refused_with_the_reason() {
        let sysfs = machine("wrong");
        let refuses = |text: &str, reason: &str| {
            let error = sysfs.resolve(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        };
        refuses(&device("mmio", "0000:00:1f.0"), "no such device");
        refuses(&device("mmio", "00:03.0"), "an address is written as");
        refuses(&device("mmio", "0000:00:3.0"), "an address is written as");
        refuses(&device("mmio", "0001:00:03.0"), "domain");
        refuses(&device("mmio", "0000:00:05.0"), "no BAR");
        refuses(&device("mmio", "0000:00:07.0"), "0000:00:08.0 has a BAR in the same page");
        refuses(&device("mmio", "0000:00:08.0"), "does not begin at a page");
        refuses(&device("mmio", "0000:00:09.0"), "has no address");
        refuses(&device("mmio", "0000:40:01.0"), "not beneath bus 0");
        refuses(&device("ports", "0000:00:03.0"), "use the kind \"mmio\"");
        refuses("[[privilege]]\nkind = \"ports\"\n", "either a device, or first");
        refuses("[[privilege]]\nkind = \"ports\"\nfirst = 0xfff0\ncount = 17\n", "no 17 ports");
        refuses("[[privilege]]\nkind = \"msr\"\nfirst = 0xffffffff\ncount = 2\n", "no 2 MSRs");
        refuses("[[privilege]]\nkind = \"disk\"\n", "unknown variant");
        refuses("[[privilege]]\nkind = \"monitor\"\nfirst = 1\n", "unknown field");
        let many: String = (0..33)
            .map(|n| format!("[[privilege]]\nkind = \"ports\"\nfirst = {}\n", 0x300 + n))
            .collect();
        refuses(&many, "these are 33");
    }
}

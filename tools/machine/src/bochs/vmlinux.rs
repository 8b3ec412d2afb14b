// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel in a boot image (bzImage), unpacked and moved to a random address
//! for KASLR, as the image's own start-up code would do it. At the speed of an
//! instruction-by-instruction emulator, that code takes a minute.

use std::fs;
use std::io::Read;
use std::process::Command;

use crate::error::{Context, Error, Result};
use crate::host_command;
use crate::kept::made_once;
use crate::kernel::Kernel;

/// The address of a kernel that is not moved, physical and as linked
/// (CONFIG_PHYSICAL_START of every distribution).
pub(super) const PHYSICAL_START: u64 = 0x100_0000;

/// Kernels and their moves are aligned to this.
pub(super) const ALIGNMENT: u64 = 2 << 20;

/// A kernel with KASLR lies within this size, from address 0 of its map.
const IMAGE_SPACE: u64 = 1 << 30;

/// Linked addresses are physical addresses plus this.
const KERNEL_MAP: u64 = 0xffff_ffff_8000_0000;

const LOAD: u32 = 1;

/// The name of a kept kernel, before the hash of its boot image.
const UNPACKED: &str = "vmlinux.unpacked-";

/// A boot image (bzImage); the boot protocol's header is a part of it.
pub(super) struct BootImage {
    bytes: Vec<u8>,
}

/// A kernel that has been unpacked.
pub(super) struct Vmlinux {
    /// The contents of memory from PHYSICAL_START on.
    pub memory: Vec<u8>,
    /// A physical address, of a kernel that is not moved.
    pub entry: u64,
    relocations: Relocations,
}

/// The places of the addresses that a move changes. Their own linked addresses
/// are given by the lower half.
#[derive(Debug, Default, PartialEq, Eq)]
struct Relocations {
    wide: Vec<u32>,
    /// 32 bits that decrease as the kernel's address increases (until 6.14).
    inverse: Vec<u32>,
    narrow: Vec<u32>,
}

impl BootImage {
    pub(super) fn read(kernel: &Kernel) -> Result<Self> {
        let path = kernel.image();
        let bytes = fs::read(&path).context(format!("reading {}", path.display()))?;
        let image = BootImage { bytes };
        if image.bytes.len() > 0x1000 && image.bytes[0x202..0x206] == *b"HdrS" {
            Ok(image)
        } else {
            Err(Error::Kernel(format!("{} is not a kernel", path.display())))
        }
    }

    /// The part of the header that boot_params takes, with its offset, which is the same
    /// there.
    pub(super) fn header(&self) -> (usize, &[u8]) {
        (0x1f1, &self.bytes[0x1f1..0x202 + usize::from(self.bytes[0x201])])
    }

    /// How much memory the kernel takes before it knows which memory is in use.
    pub(super) fn init_size(&self) -> u64 {
        self.word(0x260).into()
    }

    fn word(&self, offset: usize) -> u32 {
        word(&self.bytes, offset)
    }

    /// The compressed kernel, without the length that follows it; in gzip's
    /// format the same length is part of it.
    fn payload(&self) -> Option<&[u8]> {
        let sectors = match self.bytes[0x1f1] {
            0 => 4,
            sectors => usize::from(sectors),
        };
        let begin = (sectors + 1) * 512 + self.word(0x248) as usize;
        let length = self.word(0x24c) as usize;
        let payload = self.bytes.get(begin..begin + length)?;
        match payload {
            [0x1f, 0x8b, ..] => Some(payload),
            _ => payload.get(..length.checked_sub(4)?),
        }
    }
}

impl Vmlinux {
    /// Unpacks the kernel once for each boot image; the result is kept in the kernel's directory.
    pub(super) fn of(kernel: &Kernel, image: &BootImage) -> Result<Self> {
        let bytes = unpacked(kernel, image)?;
        parse(&bytes).ok_or_else(|| {
            Error::Kernel(format!(
                "{} contains no kernel of a known format",
                kernel.image().display()
            ))
        })
    }

    /// How many times it can be moved by ALIGNMENT.
    pub(super) fn moves(&self, init_size: u64) -> u64 {
        (IMAGE_SPACE - PHYSICAL_START).saturating_sub(init_size) / ALIGNMENT
    }

    /// Moves the linked addresses.
    pub(super) fn relocate(&mut self, delta: u64) -> Result<()> {
        let memory = &mut self.memory;
        let broken = || Error::Kernel("the kernel's relocations point outside of it".to_owned());
        let mut at = |linked: u32, apply: &dyn Fn(&mut [u8])| {
            // Sign-extended, as all of the kernel's addresses are.
            let address = (linked as i32 as u64).wrapping_sub(KERNEL_MAP + PHYSICAL_START);
            let place = usize::try_from(address).ok().and_then(|at| memory.get_mut(at..at + 8));
            place.map(apply).ok_or_else(broken)
        };
        let narrow = |by: u32| {
            move |place: &mut [u8]| {
                let value = word(place, 0).wrapping_add(by);
                place[..4].copy_from_slice(&value.to_le_bytes());
            }
        };
        for &linked in &self.relocations.narrow {
            at(linked, &narrow(delta as u32))?;
        }
        for &linked in &self.relocations.inverse {
            at(linked, &narrow((delta as u32).wrapping_neg()))?;
        }
        for &linked in &self.relocations.wide {
            at(linked, &|place| {
                let value = double(place, 0).wrapping_add(delta);
                place[..8].copy_from_slice(&value.to_le_bytes());
            })?;
        }
        Ok(())
    }
}

/// The contents of the file with the unpacked kernel.
fn unpacked(kernel: &Kernel, image: &BootImage) -> Result<Vec<u8>> {
    let mut kept = made_once(&kernel.root, UNPACKED, &image.bytes, || unpack(kernel, image))?;
    let mut bytes = Vec::new();
    kept.read_to_end(&mut bytes).context("reading the unpacked kernel")?;
    Ok(bytes)
}

fn unpack(kernel: &Kernel, image: &BootImage) -> Result<Vec<u8>> {
    let unknown = || {
        Error::Kernel(format!("{} is compressed in an unknown format", kernel.image().display()))
    };
    let payload = image.payload().ok_or_else(unknown)?;
    let (program, arguments): (_, &[&str]) = match payload {
        [0xfd, b'7', b'z', ..] => ("xz", &["-dc"]),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", &["-dcq", "--long=31"]),
        [0x1f, 0x8b, ..] => ("gzip", &["-dc"]),
        [0x02, 0x21, 0x4c, 0x18, ..] => ("lz4", &["-dcq"]),
        _ => return Err(unknown()),
    };
    let output = host_command::filter(Command::new(program).args(arguments), payload)?;
    host_command::stdout_of(output, format!("{program} cannot unpack the kernel"))
}

/// Parses an ELF file that is followed by its relocations.
fn parse(bytes: &[u8]) -> Option<Vmlinux> {
    if !bytes.starts_with(b"\x7fELF") || bytes.len() < 64 {
        return None;
    }
    let short = |offset| u16::from_le_bytes([bytes[offset], bytes[offset + 1]]) as usize;
    let (programs, size, count) = (double(bytes, 32) as usize, short(54), short(56));
    let mut memory = Vec::new();
    for header in (0..count).map(|n| programs + n * size) {
        let header = bytes.get(header..header + 56)?;
        if word(header, 0) != LOAD {
            continue;
        }
        let (offset, address) = (double(header, 8) as usize, double(header, 24));
        let length = double(header, 32) as usize;
        let to = usize::try_from(address.checked_sub(PHYSICAL_START)?).ok()?;
        if memory.len() < to + length {
            memory.resize(to + length, 0);
        }
        memory[to..to + length].copy_from_slice(bytes.get(offset..offset + length)?);
    }
    let sections = double(bytes, 40) as usize + short(58) * short(60);
    let relocations = Relocations::parse(bytes.get(sections..)?)?;
    // The entry is already a physical address.
    Some(Vmlinux { memory, entry: double(bytes, 24), relocations })
}

impl Relocations {
    /// Three lists, each after a zero, to be read from the end: narrow, inverse
    /// (which newer kernels do not have), wide.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return None;
        }
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut lists: Vec<Vec<u32>> =
            words.split(|&word| word == 0).skip(1).map(<[u32]>::to_vec).collect();
        if lists.iter().all(Vec::is_empty) {
            return Some(Relocations::default());
        }
        let narrow = lists.pop()?;
        let (wide, inverse) = match lists.len() {
            1 => (lists.pop()?, Vec::new()),
            2 => {
                let inverse = lists.pop()?;
                (lists.pop()?, inverse)
            }
            _ => return None,
        };
        Some(Relocations { wide, inverse, narrow })
    }
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

fn double(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn relocations_are_read_from_the_end() {
        let old = Relocations::parse(&bytes(&[0, 1, 2, 0, 3, 0, 4, 5])).unwrap();
        assert_eq!(old.wide, [1, 2]);
        assert_eq!(old.inverse, [3]);
        assert_eq!(old.narrow, [4, 5]);
        let new = Relocations::parse(&bytes(&[0, 1, 2, 0, 4, 5])).unwrap();
        assert_eq!((new.wide.len(), new.inverse.len(), new.narrow.len()), (2, 0, 2));
        let without = Relocations::parse(&bytes(&[0, 0, 0])).unwrap();
        assert_eq!(without, Relocations::default());
    }

    #[test]
    fn a_move_changes_the_listed_addresses() {
        let at = |offset: u32| 0x8100_0000 + offset;
        let relocations =
            Relocations { wide: vec![at(0)], inverse: vec![at(8)], narrow: vec![at(16)] };
        let memory = bytes(&[1, 2, 100, 7, 0x8100_0000, 9]);
        let mut kernel = Vmlinux { memory, entry: PHYSICAL_START, relocations };
        kernel.relocate(0x20).unwrap();
        assert_eq!(kernel.memory, bytes(&[0x21, 2, 100 - 0x20, 7, 0x8100_0020, 9]));
        kernel.relocations.narrow.push(at(24));
        assert!(kernel.relocate(0x20).is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk that the machine boots from: a sector of code (boot.S), followed by
//! what that code loads into memory. The kernel is on it as its own start-up code
//! would have unpacked it (vmlinux.rs), so a boot begins in the kernel proper.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use crate::bochs::vmlinux::{BootImage, Vmlinux, ALIGNMENT, PHYSICAL_START};
use crate::error::{Context, Error, Result};
use crate::kernel::Kernel;

std::arch::global_asm!(include_str!("boot.S"), options(att_syntax));

extern "C" {
    #[link_name = "dune_boot_sector"]
    static BOOT_SECTOR: [u8; SECTOR];
}

const SECTOR: usize = 512;

/// Fields of the boot sector.
const ENTRY: usize = 0x170;
const TABLE: usize = ENTRY + 4;
/// The last entry is the end mark.
const ENTRIES: usize = (510 - TABLE) / 12 - 1;

/// Low memory: boot_params, the command line, page tables (boot.S).
const LOW: u64 = 0x10000;
const PAGE: usize = 4096;
const COMMAND_LINE: usize = PAGE;
const PAGE_TABLES: usize = 2 * PAGE;
/// One of level 4, one of level 3, and one of level 2 for each of 4 GB.
const TABLES: usize = 6;

/// Space above the initramfs, for ACPI's tables.
const RESERVED_TOP: u64 = 1 << 20;
/// The end of the memory below the first device.
const DEVICES: u64 = 0xc000_0000;

/// A run of this many zeros is left out of the disk.
const GAP: usize = 256 << 10;

/// Offsets in struct boot_params (arch/x86/include/uapi/asm/bootparam.h).
const TYPE_OF_LOADER: usize = 0x210;
const LOADFLAGS: usize = 0x211;
const RAMDISK_IMAGE: usize = 0x218;
const RAMDISK_SIZE: usize = 0x21c;
const COMMAND_LINE_POINTER: usize = 0x228;
const LOADED_HIGH: u8 = 1;
const KASLR_FLAG: u8 = 2;
const UNREGISTERED_LOADER: u8 = 0xff;

/// Writes the disk for a machine with `memory` megabytes.
pub(super) fn write(
    disk: &File,
    kernel: &Kernel,
    initramfs: &[u8],
    command_line: &str,
    memory: u32,
) -> Result<()> {
    let image = BootImage::read(kernel)?;
    let mut vmlinux = Vmlinux::of(kernel, &image)?;
    let top = (u64::from(memory) << 20).min(DEVICES) - RESERVED_TOP;
    let ramdisk = (top - initramfs.len() as u64) & !(PAGE as u64 - 1);
    let room = ramdisk.checked_sub(PHYSICAL_START + image.init_size()).ok_or_else(|| {
        Error::Usage(format!("{memory} MB of memory are too few for this kernel"))
    })?;

    let (mut base, mut flags) = (PHYSICAL_START, LOADED_HIGH);
    if !command_line.split(' ').any(|word| word == "nokaslr") {
        flags |= KASLR_FLAG;
        base += random(room / ALIGNMENT + 1)? * ALIGNMENT;
        vmlinux.relocate(random(vmlinux.moves(image.init_size()) + 1)? * ALIGNMENT)?;
    }

    let low = low_memory(&image, flags, (ramdisk, initramfs.len() as u64), command_line)?;
    let mut pieces = vec![(LOW, &low[..]), (ramdisk, initramfs)];
    let kernel_pieces = without_gaps(&vmlinux.memory, ENTRIES - pieces.len());
    pieces.extend(kernel_pieces.map(|(at, piece)| (base + at as u64, piece)));
    write_pieces(disk, base + (vmlinux.entry - PHYSICAL_START), &pieces)
}

/// The memory from LOW on that the kernel expects. `ramdisk`: the initramfs's address and size.
fn low_memory(
    image: &BootImage,
    flags: u8,
    ramdisk: (u64, u64),
    command_line: &str,
) -> Result<Vec<u8>> {
    let mut low = vec![0; PAGE_TABLES + TABLES * PAGE];
    let (at, header) = image.header();
    low[at..at + header.len()].copy_from_slice(header);
    low[TYPE_OF_LOADER] = UNREGISTERED_LOADER;
    low[LOADFLAGS] |= flags;
    put(&mut low, RAMDISK_IMAGE, ramdisk.0);
    put(&mut low, RAMDISK_SIZE, ramdisk.1);
    put(&mut low, COMMAND_LINE_POINTER, LOW + COMMAND_LINE as u64);
    if command_line.len() >= PAGE {
        return Err(Error::Usage("too many arguments for the kernel".to_owned()));
    }
    low[COMMAND_LINE..COMMAND_LINE + command_line.len()].copy_from_slice(command_line.as_bytes());
    map_four_gigabytes(&mut low);
    Ok(low)
}

/// Writes the boot sector, whose table names the pieces and their addresses in memory, and
/// after it the pieces.
fn write_pieces(disk: &File, entry_point: u64, pieces: &[(u64, &[u8])]) -> Result<()> {
    // SAFETY: the sector is 512 bytes that are never written to.
    let mut sector = unsafe { BOOT_SECTOR };
    put(&mut sector, ENTRY, entry_point);
    let mut next = 1;
    for (number, (address, piece)) in pieces.iter().enumerate() {
        let sectors = piece.len().div_ceil(SECTOR);
        let entry = TABLE + 12 * number;
        put(&mut sector, entry, next as u64);
        put(&mut sector, entry + 4, sectors as u64);
        put(&mut sector, entry + 8, *address);
        disk.write_all_at(piece, (next * SECTOR) as u64).context("writing the boot disk")?;
        next += sectors;
    }
    disk.write_all_at(&sector, 0).context("writing the boot disk")?;
    // Bochs accepts only whole cylinders.
    let cylinder = 16 * 63 * SECTOR as u64;
    let length = ((next * SECTOR) as u64).next_multiple_of(cylinder);
    disk.set_len(length).context("writing the boot disk")
}

/// Addresses and sizes below 4 GB.
fn put(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 4].copy_from_slice(&(value as u32).to_le_bytes());
}

/// One to one, by pages of 2 MB.
fn map_four_gigabytes(low: &mut [u8]) {
    const PRESENT_WRITABLE: u64 = 3;
    const LARGE: u64 = 0x80;
    let address = |table: usize| LOW + (PAGE_TABLES + table * PAGE) as u64;
    let mut set = |table: usize, index: usize, value: u64| {
        let at = PAGE_TABLES + table * PAGE + index * 8;
        low[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    set(0, 0, address(1) | PRESENT_WRITABLE);
    for gigabyte in 0..4 {
        set(1, gigabyte, address(2 + gigabyte) | PRESENT_WRITABLE);
        for index in 0..512 {
            let page = (gigabyte as u64) << 30 | (index as u64) << 21;
            set(2 + gigabyte, index, page | LARGE | PRESENT_WRITABLE);
        }
    }
}

/// The pieces between long runs of zeros, since memory is zero to begin with. At
/// most `most` pieces.
fn without_gaps(memory: &[u8], most: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for (number, chunk) in memory.chunks(GAP).enumerate() {
        let (begin, end) = (number * GAP, number * GAP + chunk.len());
        if chunk.iter().all(|&byte| byte == 0) {
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.1 == begin => last.1 = end,
            _ => pieces.push((begin, end)),
        }
    }
    while pieces.len() > most {
        let (_, end) = pieces.pop().expect("the loop runs only with pieces");
        pieces.last_mut().expect("`most` is at least 1").1 = end;
    }
    pieces.into_iter().map(|(begin, end)| (begin, &memory[begin..end]))
}

/// A random number below `limit`, which is not 0.
fn random(limit: u64) -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("reading /dev/urandom")?;
    Ok(u64::from_le_bytes(bytes) % limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_of_zeros_are_left_out() {
        let mut memory = vec![0; 5 * GAP + 10];
        memory[GAP + 1] = 1;
        memory[2 * GAP] = 1;
        memory[5 * GAP + 9] = 1;
        let pieces = |most| without_gaps(&memory, most).map(|(at, piece)| (at, piece.len()));
        assert_eq!(pieces(5).collect::<Vec<_>>(), [(GAP, 2 * GAP), (5 * GAP, 10)]);
        assert_eq!(pieces(1).collect::<Vec<_>>(), [(GAP, 4 * GAP + 10)]);
    }

    #[test]
    fn boot_sector_has_its_signature() {
        // SAFETY: the sector is never written to.
        let sector = unsafe { BOOT_SECTOR };
        assert_eq!(sector[510..], [0x55, 0xaa]);
        assert!(sector[ENTRY..510].iter().all(|&byte| byte == 0));
        assert_ne!(sector[ENTRY - 8..ENTRY], [0; 8]);
    }
}

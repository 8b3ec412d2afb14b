// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves: functions of the running kernel that a guarded module executes itself, without leaving.
//! A binding has them as `[[leaf]]`, with a hash of what they are in the running kernel's memory;
//! the guard compares that when it takes its copies (kernel/guard/hv/leaf.c).
//!
//! `dunectl guard leaves` proposes those that drivers call often. It reads them by /proc/kallsyms
//! and /proc/kcore, and takes no function that moves the stack pointer, as the kernel's own tables
//! for unwinding (ORC) tell.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::text::{from_hex, to_hex};

type Result<T> = std::result::Result<T, String>;

/// `DUNE_GUARD_LEAVES`
const MOST: usize = 32;
/// `DUNE_GUARD_NO_SYMBOL`
const NO_SYMBOL: u32 = 0xffff_ffff;
const MOST_BYTES: u64 = 4096;

/// The kernel's return thunks, with the functions that they call. One of them is in use.
const RETURN_THUNKS: [&[&str]; 5] = [
    &["__x86_return_thunk"],
    &["retbleed_return_thunk"],
    &["srso_return_thunk", "srso_safe_ret"],
    &["srso_alias_return_thunk", "srso_alias_safe_ret"],
    &["its_return_thunk"],
];

/// Functions that drivers call often, and that call nothing; and where they continue on processors
/// that have string instructions for it.
const FUNCTIONS: [(&str, &[&str]); 7] = [
    ("memcpy", &["memcpy_erms", "memcpy_orig"]),
    ("memset", &["memset_erms", "memset_orig"]),
    ("memmove", &[]),
    ("is_vmalloc_addr", &[]),
    ("skb_put", &[]),
    ("skb_trim", &[]),
    ("napi_schedule_prep", &[]),
];

/// An entry `[[leaf]]` of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    pub symbol: String,
    pub size: u32,
    pub sha256: String,
}

/// The list in the guard's form, an array of struct dune_guard_leaf; and how many it has. `symbols`
/// are the description's.
pub fn to_bytes(leaves: &[Leaf], symbols: &HashMap<String, u16>) -> Result<(Vec<u8>, u32)> {
    if leaves.is_empty() {
        return Ok((Vec::new(), 0));
    }
    if leaves.len() > MOST {
        return Err(format!("a module can have {MOST} leaves, and these are {}", leaves.len()));
    }
    let names = Names::read()?;
    let mut bytes = Vec::new();
    for leaf in leaves {
        let address = names.address(&leaf.symbol)?;
        let wrong = || format!("the sha256 of {} is no SHA-256", leaf.symbol);
        let hash: [u8; 32] = from_hex(&leaf.sha256).ok_or_else(wrong)?;
        let symbol = symbols.get(&leaf.symbol).map_or(NO_SYMBOL, |&number| number.into());
        bytes.extend(address.to_le_bytes());
        bytes.extend(leaf.size.to_le_bytes());
        bytes.extend(symbol.to_le_bytes());
        bytes.extend(hash);
    }
    Ok((bytes, leaves.len() as u32))
}

/// Entries `[[leaf]]` for a module that calls these functions, as text.
pub fn propose(calls: &[&str]) -> Result<String> {
    let kernel = Kernel::open()?;
    let mut text = String::new();
    let mut add = |symbol: &str, is_needed: bool| -> Result<()> {
        let Some((address, size)) = kernel.names.find(symbol) else { return Ok(()) };
        if size > MOST_BYTES || !(kernel.keeps_stack(address, size)? || is_needed) {
            return Ok(());
        }
        let hash = to_hex(&Sha256::digest(kernel.read(address, size)?));
        text += &format!("[[leaf]]\nsymbol = {symbol:?}\nsize = {size}\nsha256 = \"{hash}\"\n");
        Ok(())
    };
    for thunk in RETURN_THUNKS {
        if kernel.returns_by(thunk[0])? {
            thunk.iter().try_for_each(|one| add(one, true))?;
        }
    }
    for (function, parts) in FUNCTIONS.iter().filter(|(function, _)| calls.contains(function)) {
        add(function, false)?;
        parts.iter().try_for_each(|one| add(one, false))?;
    }
    Ok(text)
}

/// The symbols of the kernel itself, sorted by address.
struct Names(Vec<(u64, String)>);

impl Names {
    fn read() -> Result<Names> {
        let path = "/proc/kallsyms";
        let names = Names::parse(&fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?);
        match names.0.last() {
            Some((1.., _)) => Ok(names),
            _ => Err(format!("{path} shows addresses to root alone")),
        }
    }

    fn parse(text: &str) -> Names {
        let mut all: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                // A module's symbol has the module after it.
                let [address, _, name] = words[..] else { return None };
                Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
            })
            .collect();
        all.sort();
        Names(all)
    }

    fn address(&self, name: &str) -> Result<u64> {
        let found = self.0.iter().find(|(_, one)| one == name);
        found.map(|one| one.0).ok_or_else(|| format!("this kernel has no function {name}"))
    }

    /// The address, and the distance to the next symbol.
    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let address = self.address(name).ok()?;
        let next = self.0.partition_point(|one| one.0 <= address);
        Some((address, self.0.get(next)?.0 - address))
    }
}

/// The memory of the running kernel.
struct Kernel {
    names: Names,
    core: File,
    /// Of the core file: linear addresses, sizes and offsets.
    parts: Vec<(u64, u64, u64)>,
    /// The addresses from which the entries of ORC hold, and whether RSP is then where the function
    /// began, or nothing is known.
    orc: Vec<(u64, bool)>,
}

const CORE: &str = "/proc/kcore";

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("of this length")
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(bytes, at))
}

impl Kernel {
    fn open() -> Result<Kernel> {
        let wrong = |e: std::io::Error| format!("{CORE}: {e}");
        let core = File::open(CORE).map_err(wrong)?;
        let mut header = [0; 64];
        core.read_exact_at(&mut header, 0).map_err(wrong)?;
        let count = u16::from_le_bytes(number(&header, 56));
        let mut parts = Vec::new();
        for i in 0..u64::from(count) {
            let mut part = [0; 56];
            core.read_exact_at(&mut part, word(&header, 32) + i * 56).map_err(wrong)?;
            parts.push((word(&part, 16), word(&part, 32), word(&part, 8)));
        }
        let names = Names::read()?;
        let mut kernel = Kernel { names, core, parts, orc: Vec::new() };
        kernel.orc = kernel.read_orc().unwrap_or_default();
        Ok(kernel)
    }

    fn read(&self, address: u64, size: u64) -> Result<Vec<u8>> {
        let part = self.parts.iter().find(|(first, length, _)| {
            address >= *first && size <= *length && address - first <= length - size
        });
        let &(first, _, offset) =
            part.ok_or_else(|| format!("{CORE} has nothing at {address:#x}"))?;
        let mut bytes = vec![0; size as usize];
        self.core
            .read_exact_at(&mut bytes, offset + (address - first))
            .map_err(|e| format!("{CORE}: {e}"))?;
        Ok(bytes)
    }

    fn read_between(&self, first: &str, last: &str) -> Result<(u64, Vec<u8>)> {
        let (from, to) = (self.names.address(first)?, self.names.address(last)?);
        Ok((from, self.read(from, to.saturating_sub(from))?))
    }

    fn read_orc(&self) -> Result<Vec<(u64, bool)>> {
        let (start, places) = self.read_between("__start_orc_unwind_ip", "__stop_orc_unwind_ip")?;
        let (_, entries) = self.read_between("__start_orc_unwind", "__stop_orc_unwind")?;
        let places = places.chunks_exact(4).enumerate().map(|(i, place)| {
            let distance = i32::from_le_bytes(number(place, 0));
            (start + 4 * i as u64).wrapping_add_signed(distance.into())
        });
        // struct orc_entry: the offset from sp_reg, that from bp_reg, and sp_reg in four bits.
        let entries = entries.chunks_exact(6).map(|entry| {
            let offset = i16::from_le_bytes(number(entry, 0));
            matches!((offset, entry[4] & 15), (8, ORC_SP) | (_, ORC_UNDEFINED))
        });
        Ok(places.zip(entries).collect())
    }

    /// Whether RSP points to the return address at each instruction.
    fn keeps_stack(&self, address: u64, size: u64) -> Result<bool> {
        if self.orc.is_empty() {
            return Err("this kernel has no tables for unwinding (CONFIG_UNWINDER_ORC)".to_owned());
        }
        Ok(keeps_stack(&self.orc, address, size))
    }

    /// Whether the kernel's functions return by a jump to this one.
    fn returns_by(&self, thunk: &str) -> Result<bool> {
        let Some((target, _)) = self.names.find(thunk) else { return Ok(false) };
        let start = self.names.address("_stext")?;
        Ok(jumps_to(start, &self.read(start, 0x40000)?, target))
    }
}

const ORC_UNDEFINED: u8 = 0;
const ORC_SP: u8 = 5;

fn keeps_stack(orc: &[(u64, bool)], address: u64, size: u64) -> bool {
    let first = orc.partition_point(|one| one.0 <= address).saturating_sub(1);
    let last = orc.partition_point(|one| one.0 < address + size);
    first < last && orc[first..last].iter().all(|one| one.1)
}

fn jumps_to(start: u64, code: &[u8], target: u64) -> bool {
    code.windows(5).enumerate().any(|(i, bytes)| {
        let distance = i32::from_le_bytes(number(bytes, 1));
        let next = start + i as u64 + 5;
        bytes[0] == 0xe9 && next.wrapping_add_signed(distance.into()) == target
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_at_the_next_symbol() {
        let names = Names::parse(
            "ffffffff81000200 T memset\nffffffff81000100 T memcpy\nffffffff81000100 T __memcpy\n\
             ffffffff81000140 t other\t[module]\n",
        );
        assert_eq!(names.find("memcpy"), Some((0xffff_ffff_8100_0100, 0x100)));
        assert_eq!(names.find("memset"), None);
        assert!(names.address("other").unwrap_err().contains("no function other"));
    }

    #[test]
    fn a_leaf_never_moves_the_stack_pointer() {
        let orc = [(100, true), (120, false), (130, true), (200, true)];
        assert!(keeps_stack(&orc, 100, 20));
        assert!(!keeps_stack(&orc, 100, 21));
        assert!(!keeps_stack(&orc, 125, 5));
        assert!(keeps_stack(&orc, 130, 100));
        assert!(!keeps_stack(&[], 100, 20));
    }

    #[test]
    fn a_jump_is_found() {
        let code = [0x90, 0xe9, 0xfa, 0xff, 0xff, 0xff, 0xc3];
        assert!(jumps_to(1000, &code, 1000));
        assert!(!jumps_to(1000, &code, 1001));
    }
}

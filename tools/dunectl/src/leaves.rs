// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaves: functions of the running kernel that a guarded module executes itself, without leaving.
//! A binding has them as `[[leaf]]`, with a hash of what they are in the running kernel's memory;
//! the guard compares that when it takes its copies (kernel/guard/hv/leaf.c).
//!
//! `dunectl guard leaves` proposes those that drivers call often. It reads them by /proc/kallsyms
//! and /proc/kcore, and takes no function that moves the stack pointer, as the kernel's own tables
//! for unwinding (ORC) tell.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::kernel::{number, Kernel};
use crate::text::{from_hex, to_hex};

type Result<T> = std::result::Result<T, String>;

/// `DUNE_GUARD_LEAVES`
const MOST: usize = 32;
const MOST_BYTES: u64 = 4096;

/// The kernel's return thunks, with the functions that they call. One of them is in use.
pub const RETURN_THUNKS: [&[&str]; 5] = [
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

/// The list in the guard's form, an array of struct dune_guard_leaf; and how many it has.
pub fn to_bytes(leaves: &[Leaf], kernel: &Kernel) -> Result<(Vec<u8>, u32)> {
    if leaves.len() > MOST {
        return Err(format!("a module can have {MOST} leaves, and these are {}", leaves.len()));
    }
    let mut bytes = Vec::new();
    for leaf in leaves {
        let address = kernel.address(&leaf.symbol)?;
        let wrong = || format!("the sha256 of {} is no SHA-256", leaf.symbol);
        let hash: [u8; 32] = from_hex(&leaf.sha256).ok_or_else(wrong)?;
        bytes.extend(address.to_le_bytes());
        bytes.extend(leaf.size.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(hash);
    }
    Ok((bytes, leaves.len() as u32))
}

/// Entries `[[leaf]]` for a module that calls these functions, as text.
pub fn propose(calls: &[&str]) -> Result<String> {
    let kernel = Kernel::open()?;
    let orc = read_orc(&kernel).unwrap_or_default();
    let mut text = String::new();
    let mut add = |symbol: &str, is_needed: bool| -> Result<()> {
        let Some((address, size)) = kernel.find(symbol) else { return Ok(()) };
        if size > MOST_BYTES || !(is_needed || may_take(&orc, address, size)?) {
            return Ok(());
        }
        let hash = to_hex(&Sha256::digest(kernel.read(address, size)?));
        text += &format!("[[leaf]]\nsymbol = {symbol:?}\nsize = {size}\nsha256 = \"{hash}\"\n");
        Ok(())
    };
    for thunk in RETURN_THUNKS {
        if returns_by(&kernel, thunk[0])? {
            thunk.iter().try_for_each(|one| add(one, true))?;
        }
    }
    for (function, parts) in FUNCTIONS.iter().filter(|(function, _)| calls.contains(function)) {
        add(function, false)?;
        parts.iter().try_for_each(|one| add(one, false))?;
    }
    Ok(text)
}

fn read_between(kernel: &Kernel, first: &str, last: &str) -> Result<(u64, Vec<u8>)> {
    let (from, to) = (kernel.address(first)?, kernel.address(last)?);
    Ok((from, kernel.read(from, to.saturating_sub(from))?))
}

/// The addresses from which the entries of ORC hold, and whether RSP is then where the function
/// began, or nothing is known.
fn read_orc(kernel: &Kernel) -> Result<Vec<(u64, bool)>> {
    let (start, places) = read_between(kernel, "__start_orc_unwind_ip", "__stop_orc_unwind_ip")?;
    let (_, entries) = read_between(kernel, "__start_orc_unwind", "__stop_orc_unwind")?;
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
fn may_take(orc: &[(u64, bool)], address: u64, size: u64) -> Result<bool> {
    if orc.is_empty() {
        return Err("this kernel has no tables for unwinding (CONFIG_UNWINDER_ORC)".to_owned());
    }
    Ok(keeps_stack(orc, address, size))
}

/// Whether the kernel's functions return by a jump to this one.
fn returns_by(kernel: &Kernel, thunk: &str) -> Result<bool> {
    let Some((target, _)) = kernel.find(thunk) else { return Ok(false) };
    let start = kernel.address("_stext")?;
    Ok(jumps_to(start, &kernel.read(start, 0x40000)?, target))
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

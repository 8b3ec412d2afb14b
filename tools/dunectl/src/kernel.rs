// SPDX-License-Identifier: MIT OR Apache-2.0
//! The running kernel: where its symbols are, by /proc/kallsyms, and what its memory has, by
//! /proc/kcore. A file can take the place of both (`dunectl guard encode --kernel`).

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

type Result<T> = std::result::Result<T, String>;

const NAMES: &str = "/proc/kallsyms";
const CORE: &str = "/proc/kcore";
/// How a module's entry in the table of what it exports is named.
const TABLE: &str = "__ksymtab_";

pub struct Kernel {
    /// The symbols of the kernel itself, sorted by address.
    names: Vec<(u64, String)>,
    /// What modules may refer to: the global symbols of the kernel, and the exported ones of the
    /// modules that are loaded.
    exported: HashMap<String, u64>,
    memory: Memory,
}

enum Memory {
    Core(Core),
    /// By their addresses.
    Words(HashMap<u64, u64>),
}

/// @parts: linear addresses, sizes and offsets in the file
struct Core {
    file: File,
    parts: Vec<(u64, u64, u64)>,
}

pub fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("of this length")
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(bytes, at))
}

impl Kernel {
    /// The running one.
    pub fn open() -> Result<Kernel> {
        let text = fs::read_to_string(NAMES).map_err(|e| format!("{NAMES}: {e}"))?;
        let kernel = Kernel::parse(&text, Memory::Core(Core::open()?));
        match kernel.names.last() {
            Some((1.., _)) => Ok(kernel),
            _ => Err(format!("{NAMES} shows addresses to root alone")),
        }
    }

    /// One that a file describes: the lines of /proc/kallsyms, and lines ADDRESS = VALUE.
    pub fn read_from(path: &Path) -> Result<Kernel> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let hexadecimal = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
        let one = |line: &str| {
            let (address, value) = line.split_once(" = ")?;
            Some((hexadecimal(address)?, hexadecimal(value)?))
        };
        let words = text.lines().filter_map(one).collect();
        Ok(Kernel::parse(&text, Memory::Words(words)))
    }

    fn parse(text: &str, memory: Memory) -> Kernel {
        let mut names = Vec::new();
        let mut exported = HashMap::new();
        let mut modules = Vec::new();
        let mut in_tables = HashSet::new();
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            // A module's symbol has the module after it.
            let [address, kind, name, ref module @ ..] = words[..] else { continue };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if let [module] = *module {
                if let Some(name) = name.strip_prefix(TABLE) {
                    in_tables.insert((name, module));
                }
                modules.push((address, name, module));
            } else if kind != "=" {
                if kind.starts_with(|c: char| c.is_ascii_uppercase()) {
                    exported.insert(name.to_owned(), address);
                }
                names.push((address, name.to_owned()));
            }
        }
        modules.retain(|&(_, name, module)| in_tables.contains(&(name, module)));
        for (address, name, _) in modules {
            exported.entry(name.to_owned()).or_insert(address);
        }
        names.sort();
        Kernel { names, exported, memory }
    }

    /// The address of a function or a variable of the kernel itself.
    pub fn address(&self, name: &str) -> Result<u64> {
        let found = self.names.iter().find(|(_, one)| one == name);
        found.map(|one| one.0).ok_or_else(|| format!("this kernel has no function {name}"))
    }

    /// The address, and the distance to the next symbol.
    pub fn find(&self, name: &str) -> Option<(u64, u64)> {
        let address = self.address(name).ok()?;
        let next = self.names.partition_point(|one| one.0 <= address);
        Some((address, self.names.get(next)?.0 - address))
    }

    /// Where a module finds a symbol that is not its own.
    pub fn exported(&self, name: &str) -> Option<u64> {
        self.exported.get(name).copied()
    }

    pub fn read(&self, address: u64, size: u64) -> Result<Vec<u8>> {
        match &self.memory {
            Memory::Core(core) => core.read(address, size),
            Memory::Words(words) => Ok((address..address + size)
                .step_by(8)
                .flat_map(|at| words.get(&at).copied().unwrap_or_default().to_le_bytes())
                .collect()),
        }
    }

    pub fn words(&self, address: u64, size: u64) -> Result<Vec<u64>> {
        Ok(self.read(address, size)?.chunks_exact(8).map(|bytes| word(bytes, 0)).collect())
    }
}

impl Core {
    fn open() -> Result<Core> {
        let wrong = |e: std::io::Error| format!("{CORE}: {e}");
        let file = File::open(CORE).map_err(wrong)?;
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0).map_err(wrong)?;
        let count = u16::from_le_bytes(number(&header, 56));
        let mut parts = Vec::new();
        for i in 0..u64::from(count) {
            let mut part = [0; 56];
            file.read_exact_at(&mut part, word(&header, 32) + i * 56).map_err(wrong)?;
            parts.push((word(&part, 16), word(&part, 32), word(&part, 8)));
        }
        Ok(Core { file, parts })
    }

    fn read(&self, address: u64, size: u64) -> Result<Vec<u8>> {
        let part = self.parts.iter().find(|(first, length, _)| {
            address >= *first && size <= *length && address - first <= length - size
        });
        let &(first, _, offset) =
            part.ok_or_else(|| format!("{CORE} has nothing at {address:#x}"))?;
        let mut bytes = vec![0; size as usize];
        self.file
            .read_exact_at(&mut bytes, offset + (address - first))
            .map_err(|e| format!("{CORE}: {e}"))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Kernel {
        Kernel::parse(
            "ffffffff81000200 T memset\nffffffff81000100 T memcpy\nffffffff81000100 T __memcpy\n\
             ffffffffc0000140 t other\t[module]\nffffffffc0000180 t shared\t[module]\n\
             ffffffffc0000800 r __ksymtab_shared\t[module]\nffffffffc0100000 t shared\t[b]\n\
             ffffffff81000080 t shared\n0000000000001000 A pcpu_hot\n\
             ffffffff81000100 = 12\n",
            Memory::Words([(0xffff_ffff_8100_0100, 0x12)].into()),
        )
    }

    #[test]
    fn a_function_ends_at_the_next_symbol() {
        let kernel = kernel();
        assert_eq!(kernel.find("memcpy"), Some((0xffff_ffff_8100_0100, 0x100)));
        assert_eq!(kernel.find("memset"), None);
        assert!(kernel.address("other").unwrap_err().contains("no function other"));
    }

    #[test]
    fn modules_find_what_is_exported() {
        let kernel = kernel();
        assert_eq!(kernel.exported("memset"), Some(0xffff_ffff_8100_0200));
        assert_eq!(kernel.exported("shared"), Some(0xffff_ffff_c000_0180));
        assert_eq!(kernel.exported("pcpu_hot"), Some(0x1000));
        assert_eq!(kernel.exported("other"), None);
        assert_eq!(kernel.words(0xffff_ffff_8100_0100, 16), Ok(vec![0x12, 0]));
    }
}

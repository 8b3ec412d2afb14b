// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metadata of a module, and their text: TOML, which a person can read and compare.

use std::fmt;

use serde::Deserialize;

use super::module::{Region, Relocation, RelocationKind, Target};
use super::sites::{Content, Hole, Targets};
use crate::text::{from_hex, to_hex};

pub const VERSION: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    pub version: u32,
    pub name: String,
    pub class: Class,
    /// The kernel's release.
    pub kernel: String,
    /// The names of all sections, to which the indices in all other fields refer.
    pub names: Vec<String>,
    pub sections: Vec<SectionText>,
    pub sites: Vec<SiteGroup>,
    pub entries: Vec<Entry>,
    pub exits: Vec<Exit>,
    pub bugs: Vec<(usize, u64)>,
    pub fixups: Vec<Fixup>,
}

/// Keeps secrets (S), or is a driver that nobody changed (D).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Class {
    D,
    S,
}

/// A section that is loaded. It is content if it has a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionText {
    pub name: String,
    pub region: Region,
    pub offset: u64,
    pub size: u64,
    /// SHA-256, with zeros for relocations and patch sites.
    pub hash: Option<[u8; 32]>,
    pub relocations: Vec<Relocation>,
}

/// Patch sites of a section that may have the same contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteGroup {
    pub kind: String,
    pub section: usize,
    pub contents: Vec<Content>,
    pub at: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub section: usize,
    pub offset: u64,
    pub symbol: String,
    pub why: Vec<Why>,
}

/// Why a function is an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    Init,
    Exit,
    Exported,
    Address,
}

impl Why {
    fn name(self) -> &'static str {
        match self {
            Why::Init => "init",
            Why::Exit => "exit",
            Why::Exported => "exported",
            Why::Address => "address",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Exit {
    pub symbol: String,
    pub calls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixup {
    pub from: (usize, u64),
    pub to: (usize, u64),
    /// The general register that the kernel sets before it continues there, by its number.
    pub register: Option<u8>,
}

const INTRODUCTION: &str = "\
# The content of a kernel module, by `dunectl guard describe`. docs/guard-modules.md explains it.
# A place is a section and an offset in it. \"extern:\" marks a symbol that is not the module's own.
# Relative targets (pc32, pc64) count from the end of the field, as the processor does. Those to
# which only Linux's patches lead are [return] (a return thunk), [indirect REGISTER], [ftrace],
# [paravirt] and [static-call NAME].
";

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{INTRODUCTION}version = {}\nname = {:?}\n", self.version, self.name)?;
        write!(f, "class = \"{:?}\"\nkernel = {:?}\n", self.class, self.kernel)?;
        f.write_str(
            "\n# The functions that may be called from outside, and why they are known there.\n",
        )?;
        list(f, "entries", &self.entries, |entry| {
            let why: Vec<_> = entry.why.iter().map(|why| format!("{:?}", why.name())).collect();
            let at = self.place(entry.section, entry.offset as i64);
            let (symbol, why) = (&entry.symbol, why.join(", "));
            format!("{{ at = \"{at}\", symbol = \"{symbol}\", why = [{why}] }}")
        })?;
        f.write_str(
            "\n# The functions outside that the code calls or jumps to, and at how many places.\n",
        )?;
        list(f, "exits", &self.exits, |exit| {
            format!("{{ symbol = \"{}\", calls = {} }}", exit.symbol, exit.calls)
        })?;
        f.write_str(
            "\n# The instructions of BUG() and WARN(): #UD; a WARN() continues after it.\n",
        )?;
        list(f, "bugs", &self.bugs, |at| format!("\"{}\"", self.place(at.0, at.1 as i64)))?;
        f.write_str(
            "\n# Where the code continues after an exception, and which register is set then.\n",
        )?;
        list(f, "fixups", &self.fixups, |fixup| {
            let place = |at: (usize, u64)| self.place(at.0, at.1 as i64);
            let (from, to) = (place(fixup.from), place(fixup.to));
            let register = fixup.register.map_or(String::new(), |n| format!(", register = {n}"));
            format!("{{ from = \"{from}\", to = \"{to}\"{register} }}")
        })?;
        for section in &self.sections {
            write!(f, "\n[[section]]\nname = \"{}\"\n", section.name)?;
            writeln!(f, "region = \"{}\"", section.region.name())?;
            write!(f, "offset = {:#x}\nsize = {:#x}\n", section.offset, section.size)?;
            if let Some(hash) = &section.hash {
                writeln!(f, "sha256 = \"{}\"", to_hex(hash))?;
                list(f, "relocations", &section.relocations, |one| {
                    format!("\"{:#x} {}\"", one.offset, self.relocation(one))
                })?;
            }
        }
        f.write_str("\n# The places that Linux patches, with all contents that they may have.\n")?;
        for site in &self.sites {
            write!(f, "\n[[site]]\nkind = \"{}\"\n", site.kind)?;
            writeln!(f, "section = \"{}\"", self.names[site.section])?;
            list(f, "contents", &site.contents, |one| format!("\"{}\"", self.content(one)))?;
            f.write_str("at = [")?;
            for (n, at) in site.at.iter().enumerate() {
                write!(f, "{}{at:#x}", if n % 10 == 0 { "\n  " } else { " " })?;
                f.write_str(",")?;
            }
            f.write_str("\n]\n")?;
        }
        Ok(())
    }
}

/// A list, one element in a line.
fn list<T>(
    f: &mut fmt::Formatter,
    name: &str,
    elements: &[T],
    text: impl Fn(&T) -> String,
) -> fmt::Result {
    if elements.is_empty() {
        return writeln!(f, "{name} = []");
    }
    writeln!(f, "{name} = [")?;
    for element in elements {
        writeln!(f, "  {},", text(element))?;
    }
    writeln!(f, "]")
}

impl Metadata {
    fn place(&self, section: usize, offset: i64) -> String {
        signed(&self.names[section], offset)
    }

    fn relocation(&self, relocation: &Relocation) -> String {
        let target = match &relocation.target {
            Target::Own { section, offset } => self.place(*section, *offset),
            Target::External { symbol, addend: 0 } => format!("extern:{symbol}"),
            Target::External { symbol, addend } => signed(&format!("extern:{symbol}"), *addend),
        };
        format!("{} {target}", relocation.kind.name())
    }

    fn content(&self, content: &Content) -> String {
        let mut words = Vec::new();
        let mut next = 0;
        for hole in &content.holes {
            let bytes = &content.bytes[next..hole.offset() as usize];
            words.extend(bytes.iter().map(|&byte| to_hex(&[byte])));
            words.push(match hole {
                Hole::Outside { targets, .. } => format!("[{}]", to_word(targets)),
                Hole::Relocation(relocation) => format!("[{}]", self.relocation(relocation)),
            });
            next = (hole.offset() + hole.size()) as usize;
        }
        words.extend(content.bytes[next..].iter().map(|&byte| to_hex(&[byte])));
        words.join(" ")
    }

    /// Reads the text. An error names the line, or the element.
    pub fn parse(text: &str) -> Result<Metadata, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
        if file.version != VERSION {
            let version = file.version;
            return Err(format!("metadata of version {version}, where {VERSION} is known"));
        }
        let names = Names(file.section.iter().map(|section| section.name.clone()).collect());
        let sections = file.section.iter().map(|section| names.section(section));
        let sections = sections.collect::<Result<_, _>>()?;
        let site = |site: &FileSite| {
            let contents = site.contents.iter().map(|text| names.content(text));
            Ok(SiteGroup {
                kind: site.kind.clone(),
                section: names.index(&site.section)?,
                contents: contents.collect::<Result<_, String>>()?,
                at: site.at.clone(),
            })
        };
        let entry = |entry: FileEntry| {
            let (section, offset) = names.unsigned(&entry.at)?;
            Ok(Entry { section, offset, symbol: entry.symbol, why: entry.why })
        };
        let fixup = |fixup: &FileFixup| {
            if fixup.register.is_some_and(|register| register > 15) {
                return Err(format!("{:?} sets a register that does not exist", fixup.from));
            }
            Ok(Fixup {
                from: names.unsigned(&fixup.from)?,
                to: names.unsigned(&fixup.to)?,
                register: fixup.register,
            })
        };
        Ok(Metadata {
            version: file.version,
            name: file.name,
            class: file.class,
            kernel: file.kernel,
            sections,
            sites: file.site.iter().map(site).collect::<Result<_, String>>()?,
            entries: file.entries.into_iter().map(entry).collect::<Result<_, String>>()?,
            exits: file.exits,
            bugs: file.bugs.iter().map(|at| names.unsigned(at)).collect::<Result<_, _>>()?,
            fixups: file.fixups.iter().map(fixup).collect::<Result<_, String>>()?,
            names: names.0,
        })
    }
}

fn to_word(targets: &Targets) -> String {
    match targets {
        Targets::Return => "return".to_owned(),
        Targets::Indirect(register) => format!("indirect {register}"),
        Targets::Ftrace => "ftrace".to_owned(),
        Targets::Paravirt => "paravirt".to_owned(),
        Targets::StaticCall(name) => format!("static-call {name}"),
    }
}

fn from_word(word: &str) -> Option<Targets> {
    Some(match word.split_once(' ').unwrap_or((word, "")) {
        ("return", "") => Targets::Return,
        ("indirect", register) => Targets::Indirect(register.to_owned()),
        ("ftrace", "") => Targets::Ftrace,
        ("paravirt", "") => Targets::Paravirt,
        ("static-call", name) => Targets::StaticCall(name.to_owned()),
        _ => return None,
    })
}

fn signed(name: &str, offset: i64) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{name}{sign}{:#x}", offset.unsigned_abs())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    name: String,
    class: Class,
    kernel: String,
    entries: Vec<FileEntry>,
    exits: Vec<Exit>,
    bugs: Vec<String>,
    fixups: Vec<FileFixup>,
    section: Vec<FileSection>,
    #[serde(default)]
    site: Vec<FileSite>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    at: String,
    symbol: String,
    why: Vec<Why>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFixup {
    from: String,
    to: String,
    register: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSection {
    name: String,
    region: String,
    offset: u64,
    size: u64,
    sha256: Option<String>,
    #[serde(default)]
    relocations: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSite {
    kind: String,
    section: String,
    contents: Vec<String>,
    at: Vec<u64>,
}

/// The sections' names, for reading places.
struct Names(Vec<String>);

impl Names {
    fn index(&self, name: &str) -> Result<usize, String> {
        let index = self.0.iter().position(|one| one == name);
        index.ok_or_else(|| format!("there is no section {name:?}"))
    }

    fn place(&self, text: &str) -> Result<(usize, i64), String> {
        let (name, offset) = split_offset(text)?;
        Ok((self.index(name)?, offset))
    }

    fn unsigned(&self, text: &str) -> Result<(usize, u64), String> {
        let (section, offset) = self.place(text)?;
        let offset = u64::try_from(offset).map_err(|_| format!("{text:?} is before a section"))?;
        Ok((section, offset))
    }

    fn section(&self, section: &FileSection) -> Result<SectionText, String> {
        let hash = section.sha256.as_deref().map(hash).transpose()?;
        let unknown = || format!("{:?} is no region of a module", section.region);
        let relocations = section.relocations.iter().map(|text| {
            let wrong = || format!("{text:?} is no relocation");
            let (offset, rest) = text.split_once(' ').ok_or_else(wrong)?;
            self.relocation(number(offset)?, rest)
        });
        Ok(SectionText {
            name: section.name.clone(),
            region: Region::by_name(&section.region).ok_or_else(unknown)?,
            offset: section.offset,
            size: section.size,
            hash,
            relocations: relocations.collect::<Result<_, _>>()?,
        })
    }

    fn relocation(&self, offset: u64, text: &str) -> Result<Relocation, String> {
        let wrong = || format!("{text:?} is no relocation");
        let (kind, target) = text.split_once(' ').ok_or_else(wrong)?;
        let kind = RelocationKind::by_name(kind).ok_or_else(wrong)?;
        let target = match target.strip_prefix("extern:") {
            Some(text) if text.contains(['+', '-']) => {
                let (symbol, addend) = split_offset(text)?;
                Target::External { symbol: symbol.to_owned(), addend }
            }
            Some(symbol) => Target::External { symbol: symbol.to_owned(), addend: 0 },
            None => {
                let (section, offset) = self.place(target)?;
                Target::Own { section, offset }
            }
        };
        Ok(Relocation { offset, kind, target })
    }

    fn content(&self, text: &str) -> Result<Content, String> {
        let mut content = Content { bytes: vec![], holes: vec![] };
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let word;
            if let Some(hole) = rest.strip_prefix('[') {
                let unended = || format!("{text:?} has no ]");
                (word, rest) = hole.split_once(']').ok_or_else(unended)?;
                let offset = content.bytes.len() as u64;
                let hole = match from_word(word) {
                    Some(targets) => Hole::Outside { offset, targets },
                    None => Hole::Relocation(self.relocation(offset, word)?),
                };
                content.bytes.resize((offset + hole.size()) as usize, 0);
                content.holes.push(hole);
            } else {
                (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                content.bytes.push(byte(word)?);
            }
            rest = rest.trim_start();
        }
        Ok(content)
    }
}

fn split_offset(text: &str) -> Result<(&str, i64), String> {
    let wrong = || format!("{text:?} is no name with an offset");
    let sign = text.rfind(['+', '-']).ok_or_else(wrong)?;
    let offset = i64::try_from(number(&text[sign + 1..])?).map_err(|_| wrong())?;
    Ok((&text[..sign], if text.as_bytes()[sign] == b'-' { -offset } else { offset }))
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| format!("{text:?} is no hexadecimal number"))
}

fn byte(text: &str) -> Result<u8, String> {
    let [byte] = from_hex(text).ok_or_else(|| format!("{text:?} is no byte"))?;
    Ok(byte)
}

fn hash(text: &str) -> Result<[u8; 32], String> {
    from_hex(text).ok_or_else(|| format!("{text:?} is no SHA-256"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
version = 3
name = "example"
class = "D"
kernel = "6.1.0-1-amd64"
entries = [
  { at = ".text+0x10", symbol = "open", why = ["init", "address"] },
]
exits = [
  { symbol = "netif_rx", calls = 2 },
]
bugs = [
  ".text+0x20",
]
fixups = [
  { from = ".text+0x1", to = ".text+0x2" },
  { from = ".text+0x5", to = ".text+0x9", register = 3 },
]
[[section]]
name = ".text"
region = "text"
offset = 0x0
size = 0x40
sha256 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
relocations = [
  "0x5 pc32 extern:netif_rx",
  "0x15 abs32s .data-0x8",
  "0x19 abs64 extern:jiffies+0x4",
]
[[section]]
name = ".data"
region = "data"
offset = 0x0
size = 0x8
[[site]]
kind = "return"
section = ".text"
contents = [
  "c3 cc cc cc cc",
  "e9 [return]",
  "e9 [pc32 .text+0x3]",
  "e9 [indirect r11]",
  "e8 [ftrace]",
  "e8 [paravirt]",
  "e8 [static-call cond_resched]",
]
at = [0x1, 0x30]
"#;

    #[test]
    fn what_is_written_is_read() {
        let metadata = Metadata::parse(EXAMPLE).unwrap();
        assert_eq!(metadata.sites[0].contents[1].bytes, [0xe9, 0, 0, 0, 0]);
        assert_eq!(metadata.entries[0].why, [Why::Init, Why::Address]);
        assert_eq!(Metadata::parse(&metadata.to_string()).unwrap(), metadata);
    }

    #[test]
    fn a_mistake_is_named() {
        for (old, new, error) in [
            ("version = 3", "version = 1", "metadata of version 1, where 3 is known"),
            ("\"e9 [return]\"", "\"e9 [return\"", "has no ]"),
            ("\"e9 [return]\"", "\"+9\"", "\"+9\" is no byte"),
            ("[ftrace]", "[outside]", "is no relocation"),
            ("pc32 extern:netif_rx", "pc16 extern:netif_rx", "is no relocation"),
            (".data-0x8", ".bss-0x8", "there is no section \".bss\""),
            ("0x15 abs32s", "15 abs32s", "\"15\" is no hexadecimal number"),
            ("\"0011", "\"g011", "is no SHA-256"),
            ("region = \"data\"", "region = \"here\"", "\"here\" is no region"),
            ("from = \".text+", "from = \".text-", "is before a section"),
            ("register = 3", "register = 16", "sets a register that does not exist"),
            ("name = \"example\"", "nome = \"example\"", "nome"),
        ] {
            assert!(EXAMPLE.contains(old), "{old}");
            let wrong = Metadata::parse(&EXAMPLE.replace(old, new)).unwrap_err();
            assert!(wrong.contains(error), "{wrong}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel module's object file: its sections, where Linux loads them, and its relocations with
//! their targets. The file is read by the library `object`; it may be wrong in any way.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use dune_machine::{Error, Result};
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{
    elf, Architecture, FileKind, LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _,
    RelocationFlags, RelocationTarget, SectionFlags, SectionIndex, SymbolKind, SymbolSection,
};

/// No module that is of use here is larger.
const LARGEST: usize = 64 << 20;

/// Linux moves these to its memory for data that is read-only once init has returned
/// (`module_mark_ro_after_init()`).
const RO_AFTER_INIT: [&str; 2] = [".data..ro_after_init", "__jump_table"];

/// Sections that Linux reads and does not load, although they are marked as memory.
const NOT_LOADED: [&str; 3] = [".modinfo", "__versions", ".data..percpu"];

/// The parts of memory to which Linux loads a module, each at an address of its own. The order and
/// the numbers are those of `enum content_region` in kernel/guard/hv/content.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    Text,
    Rodata,
    RoAfterInit,
    Data,
    InitText,
    InitRodata,
    InitData,
    PerCpu,
}

impl Region {
    pub const ALL: [Region; 8] = [
        Region::Text,
        Region::Rodata,
        Region::RoAfterInit,
        Region::Data,
        Region::InitText,
        Region::InitRodata,
        Region::InitData,
        Region::PerCpu,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Region::Text => "text",
            Region::Rodata => "rodata",
            Region::RoAfterInit => "ro-after-init",
            Region::Data => "data",
            Region::InitText => "init-text",
            Region::InitRodata => "init-rodata",
            Region::InitData => "init-data",
            Region::PerCpu => "per-cpu",
        }
    }

    pub fn by_name(name: &str) -> Option<Region> {
        Region::ALL.into_iter().find(|region| region.name() == name)
    }

    /// Whether its code is executed.
    pub fn is_text(self) -> bool {
        matches!(self, Region::Text | Region::InitText)
    }
}

/// A kernel module.
pub struct Module {
    pub name: String,
    /// The release of the kernel for which it was built: the first word of vermagic.
    pub kernel: String,
    /// By the section's index in the file.
    pub sections: Vec<Section>,
    pub functions: Vec<Function>,
}

#[derive(Default)]
pub struct Section {
    pub name: String,
    /// Where it is loaded; None if it is not.
    pub place: Option<(Region, u64)>,
    pub size: u64,
    /// Empty if the file has none, as for .bss.
    pub data: Vec<u8>,
    /// Sorted by their offsets.
    pub relocations: Vec<Relocation>,
}

impl Section {
    pub fn is_text(&self) -> bool {
        self.place.is_some_and(|(region, _)| region.is_text())
    }

    /// The relocation of the field at this offset.
    pub fn relocation_at(&self, offset: u64) -> Option<&Relocation> {
        let index = self.relocations.binary_search_by_key(&offset, |one| one.offset).ok()?;
        self.relocations.get(index)
    }
}

impl Module {
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name && section.place.is_some())
    }
}

/// A function's symbol.
pub struct Function {
    pub name: String,
    pub section: usize,
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelocationKind {
    Abs64,
    Abs32,
    Abs32s,
    Pc32,
    Pc64,
}

impl RelocationKind {
    /// The number is that of `enum content_relocation_kind` in kernel/guard/hv/content.h.
    pub const ALL: [RelocationKind; 5] = [
        RelocationKind::Abs64,
        RelocationKind::Abs32,
        RelocationKind::Abs32s,
        RelocationKind::Pc32,
        RelocationKind::Pc64,
    ];

    pub fn size(self) -> u64 {
        match self {
            RelocationKind::Abs64 | RelocationKind::Pc64 => 8,
            _ => 4,
        }
    }

    pub fn is_relative(self) -> bool {
        matches!(self, RelocationKind::Pc32 | RelocationKind::Pc64)
    }

    pub fn name(self) -> &'static str {
        match self {
            RelocationKind::Abs64 => "abs64",
            RelocationKind::Abs32 => "abs32",
            RelocationKind::Abs32s => "abs32s",
            RelocationKind::Pc32 => "pc32",
            RelocationKind::Pc64 => "pc64",
        }
    }

    pub fn by_name(name: &str) -> Option<RelocationKind> {
        RelocationKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    fn from_elf(number: elf::RelocationType) -> Option<RelocationKind> {
        Some(match number {
            elf::R_X86_64_64 => RelocationKind::Abs64,
            elf::R_X86_64_32 => RelocationKind::Abs32,
            elf::R_X86_64_32S => RelocationKind::Abs32s,
            // To Linux the two are the same.
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => RelocationKind::Pc32,
            elf::R_X86_64_PC64 => RelocationKind::Pc64,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Symbol and addend in one: an offset in a section, by its index. It may be outside of it.
    Own { section: usize, offset: i64 },
    /// A symbol of the kernel's or of another module's.
    External { symbol: String, addend: i64 },
}

/// A relative relocation counts from the end of its field, as the processor does with the target of
/// a branch, and not from its beginning as ELF does: the target of a call is what it calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relocation {
    pub offset: u64,
    pub kind: RelocationKind,
    pub target: Target,
}

impl Relocation {
    pub fn end(&self) -> u64 {
        self.offset + self.kind.size()
    }

    /// Where it points, if that is in the module.
    pub fn own_target(&self) -> Option<(usize, i64)> {
        match self.target {
            Target::Own { section, offset } => Some((section, offset)),
            Target::External { .. } => None,
        }
    }
}

pub fn wrong(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Usage(format!("{}: {why}", path.display()))
}

/// Reads a module; the file may be compressed by xz, zstd or gzip. A signature after the object
/// file has no effect.
pub fn read(path: &Path) -> Result<Module> {
    let file = fs::read(path).map_err(|e| wrong(path, e))?;
    let bytes = unpack(path, file)?;
    if bytes.len() > LARGEST {
        return Err(wrong(path, "no module has more than 64 MB"));
    }
    parse(path, &bytes)
}

fn unpack(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
    let (program, arguments): (_, &[&str]) = match bytes[..] {
        [0xfd, b'7', b'z', ..] => ("xz", &["-dc"]),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", &["-dcq"]),
        [0x1f, 0x8b, ..] => ("gzip", &["-dc"]),
        _ => return Ok(bytes),
    };
    let missing = |e| match e {
        std::io::ErrorKind::NotFound => {
            Error::Environment(format!("{program} is missing: install the package that has it"))
        }
        e => wrong(path, format!("running {program}: {e}")),
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| missing(e.kind()))?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let output = std::thread::scope(|scope| {
        // The exit status shows whether the program read all of it.
        scope.spawn(move || stdin.write_all(&bytes));
        child.wait_with_output()
    });
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        _ => Err(wrong(path, format!("{program} cannot unpack it"))),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Module> {
    match FileKind::parse(bytes) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return Err(wrong(path, "an object file of 32 bits, not of 64")),
        _ => return Err(wrong(path, "not a kernel module (it is no ELF file)")),
    }
    let broken = |e| wrong(path, format!("a damaged ELF file: {e}"));
    let header = elf::FileHeader64::<LittleEndian>::parse(bytes).map_err(broken)?;
    if header.e_machine.get(LittleEndian) != elf::EM_X86_64 {
        return Err(wrong(path, "an object file for another processor than x86-64"));
    }
    if header.e_type.get(LittleEndian) != elf::ET_REL {
        return Err(wrong(path, "not a kernel module (an ELF file, but a linked program)"));
    }
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(broken)?;
    debug_assert_eq!(file.architecture(), Architecture::X86_64);

    let mut sections = Vec::new();
    for section in file.sections() {
        let index = section.index().0;
        if sections.len() <= index {
            sections.resize_with(index + 1, Section::default);
        }
        sections[index] = read_section(path, &section).map_err(|e| e.unwrap_or_else(broken))?;
    }
    let info = sections.iter().find(|section| section.name == ".modinfo");
    let info = info.ok_or_else(|| wrong(path, "not a kernel module (it has no .modinfo)"))?;
    let info = ModuleInfo::parse(&info.data);
    let missing = |what| wrong(path, format!("its .modinfo has no {what}"));
    if !sections.iter().any(|section| section.name == ".gnu.linkonce.this_module") {
        return Err(wrong(path, "not a linked module: it has no .gnu.linkonce.this_module"));
    }
    let name = info.get("name").ok_or_else(|| missing("name"))?;
    let kernel = info.get("vermagic").and_then(|text| text.split(' ').next());
    let module = Module {
        name: name.to_owned(),
        kernel: kernel.ok_or_else(|| missing("vermagic"))?.to_owned(),
        functions: functions(&file, sections.len()),
        sections: lay_out(sections, &file).ok_or_else(|| wrong(path, "it is too large"))?,
    };
    let count = module.sections.len();
    let points_nowhere = |relocation: &Relocation| {
        relocation.own_target().is_some_and(|(section, _)| section >= count)
    };
    let mut relocations = module.sections.iter().flat_map(|section| &section.relocations);
    if relocations.any(points_nowhere) {
        return Err(wrong(path, "a relocation to a section that does not exist"));
    }
    let mut names = HashSet::new();
    for section in module.sections.iter().filter(|section| section.place.is_some()) {
        let name = &section.name;
        if !names.insert(name) {
            return Err(wrong(path, format!("it has two sections {name}")));
        }
        if name.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\' || c == '+') {
            return Err(wrong(path, format!("the section's name {name:?} is not supported")));
        }
    }
    Ok(module)
}

struct ModuleInfo(HashMap<String, String>);

impl ModuleInfo {
    fn parse(data: &[u8]) -> Self {
        let entries = data.split(|&byte| byte == 0).filter_map(|entry| {
            let (key, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        });
        ModuleInfo(entries.collect())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

type Read<'a> = ElfFile64<'a, LittleEndian>;
type ReadSection<'a, 'f> = object::read::elf::ElfSection64<'a, 'f, LittleEndian>;

fn is_loaded(section: &ReadSection) -> bool {
    matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & elf::SHF_ALLOC.0 != 0)
}

/// The error is None where the file is damaged in a way that the library found.
fn read_section(path: &Path, section: &ReadSection) -> std::result::Result<Section, BrokenOr> {
    let name = section.name().map_err(BrokenOr::Broken)?.to_owned();
    let mut read = Section { size: section.size(), name, ..Section::default() };
    if !is_loaded(section) {
        return Ok(read);
    }
    read.data = section.data().map_err(BrokenOr::Broken)?.to_vec();
    let file = section.elf_file();
    for (offset, relocation) in section.relocations() {
        let refuse =
            |why: String| BrokenOr::Other(wrong(path, format!("{}+{offset:#x}: {why}", read.name)));
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        if r_type == elf::R_X86_64_NONE {
            continue;
        }
        let kind = RelocationKind::from_elf(r_type)
            .ok_or_else(|| refuse(format!("a relocation of the unknown kind {}", r_type.0)))?;
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return Err(refuse("a relocation without a symbol".to_owned()));
        };
        let symbol = file.symbol_by_index(index).map_err(BrokenOr::Broken)?;
        let end = if kind.is_relative() { kind.size() as i64 } else { 0 };
        let addend = relocation.addend().wrapping_add(end);
        let target = match symbol.section() {
            SymbolSection::Undefined => Target::External {
                symbol: symbol.name().map_err(BrokenOr::Broken)?.to_owned(),
                addend,
            },
            SymbolSection::Section(SectionIndex(section)) => {
                Target::Own { section, offset: (symbol.address() as i64).wrapping_add(addend) }
            }
            _ => return Err(refuse("a relocation to a symbol without a section".to_owned())),
        };
        let relocation = Relocation { offset, kind, target };
        if offset.checked_add(kind.size()).is_none_or(|end| end > read.data.len() as u64) {
            return Err(refuse("a relocation outside of its section".to_owned()));
        }
        read.relocations.push(relocation);
    }
    read.relocations.sort();
    if let Some(pair) = read.relocations.windows(2).find(|pair| pair[0].end() > pair[1].offset) {
        let offset = pair[1].offset;
        return Err(BrokenOr::Other(wrong(
            path,
            format!("{}+{offset:#x}: two relocations of the same bytes", read.name),
        )));
    }
    Ok(read)
}

enum BrokenOr {
    Broken(object::Error),
    Other(Error),
}

impl BrokenOr {
    fn unwrap_or_else(self, broken: impl Fn(object::Error) -> Error) -> Error {
        match self {
            BrokenOr::Broken(e) => broken(e),
            BrokenOr::Other(e) => e,
        }
    }
}

fn functions(file: &Read, sections: usize) -> Vec<Function> {
    let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    functions
        .filter_map(|symbol| {
            let name = symbol.name().ok()?.to_owned();
            let section = symbol.section_index().filter(|index| index.0 < sections)?.0;
            Some(Function { name, section, offset: symbol.address() })
        })
        .collect()
}

/// Linux places the sections of a region one after the other, in the order of the file
/// (`layout_sections()`).
fn lay_out(mut sections: Vec<Section>, file: &Read) -> Option<Vec<Section>> {
    let mut ends = [0u64; Region::ALL.len()];
    for section in file.sections() {
        let read = &mut sections[section.index().0];
        let Some(region) = region_of(&section, &read.name) else { continue };
        let end = &mut ends[region as usize];
        let offset = end.checked_next_multiple_of(section.align().max(1))?;
        *end = offset.checked_add(read.size).filter(|&end| end <= LARGEST as u64)?;
        read.place = Some((region, offset));
    }
    Some(sections)
}

fn region_of(section: &ReadSection, name: &str) -> Option<Region> {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
    if name == ".data..percpu" {
        return Some(Region::PerCpu);
    }
    if !is_loaded(section) || NOT_LOADED.contains(&name) {
        return None;
    }
    let is_init = name.starts_with(".init");
    let region = if sh_flags.0 & elf::SHF_EXECINSTR.0 != 0 {
        (Region::Text, Region::InitText)
    } else if sh_flags.0 & elf::SHF_WRITE.0 == 0 {
        (Region::Rodata, Region::InitRodata)
    } else if RO_AFTER_INIT.contains(&name) {
        (Region::RoAfterInit, Region::InitData)
    } else {
        (Region::Data, Region::InitData)
    };
    Some(if is_init { region.1 } else { region.0 })
}

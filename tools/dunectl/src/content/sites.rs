// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places at which Linux itself changes the code of a module while it loads it, or later: patch
//! sites. The module's own tables name them. Each has a closed set of contents, which is made here
//! as Linux makes it (arch/x86/kernel/alternative.c, static_call.c, jump_label.c, ftrace.c of 6.1
//! and 6.12).

use std::collections::BTreeMap;

use super::module::{Module, Relocation, RelocationKind, Section, Target};

/// Which targets outside of the module a call or jump may have that Linux leads elsewhere. Their
/// addresses are those of the running kernel, by targets.rs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Targets {
    /// The return thunk that this processor needs.
    Return,
    /// A thunk for a call or jump through this register.
    Indirect(String),
    /// What ftrace has in the place of __fentry__.
    Ftrace,
    /// A function of pv_ops.
    Paravirt,
    /// The function of a static call with this name, or its trampoline.
    StaticCall(String),
}

/// A call or jump of which Linux decides where it goes, and a relocation that is the file's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hole {
    /// 4 bytes, relative.
    Outside {
        offset: u64,
        targets: Targets,
    },
    Relocation(Relocation),
}

impl Hole {
    pub fn offset(&self) -> u64 {
        match self {
            Hole::Outside { offset, .. } => *offset,
            Hole::Relocation(relocation) => relocation.offset,
        }
    }

    pub fn size(&self) -> u64 {
        match self {
            Hole::Outside { .. } => 4,
            Hole::Relocation(relocation) => relocation.kind.size(),
        }
    }

    fn moved(&self, by: i64) -> Hole {
        let offset = self.offset().wrapping_add_signed(by);
        match self {
            Hole::Outside { targets, .. } => Hole::Outside { offset, targets: targets.clone() },
            Hole::Relocation(relocation) => {
                Hole::Relocation(Relocation { offset, ..relocation.clone() })
            }
        }
    }
}

/// One of the contents that a patch site may have. Bytes in holes are 0, and the holes are sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub holes: Vec<Hole>,
}

impl Content {
    fn of(bytes: &[u8]) -> Content {
        Content { bytes: bytes.to_vec(), holes: Vec::new() }
    }

    /// These bytes, and one of these relative targets outside of the module.
    fn branch(opcode: &[u8], targets: Targets) -> Content {
        let offset = opcode.len() as u64;
        Content {
            bytes: [opcode, &[0; 4]].concat(),
            holes: vec![Hole::Outside { offset, targets }],
        }
    }

    /// These bytes, and this relative target.
    fn branch_to(opcode: &[u8], target: Target) -> Content {
        let offset = opcode.len() as u64;
        let hole = Relocation { offset, kind: RelocationKind::Pc32, target };
        Content { bytes: [opcode, &[0; 4]].concat(), holes: vec![Hole::Relocation(hole)] }
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn then(mut self, rest: &[u8]) -> Content {
        self.bytes.extend(rest);
        self
    }

    /// With another content from `offset` on. None if that cuts a hole in two.
    fn with(&self, offset: u64, other: &Content) -> Option<Content> {
        let end = offset + other.len();
        let mut holes = Vec::new();
        for hole in &self.holes {
            if hole.offset() + hole.size() <= offset || hole.offset() >= end {
                holes.push(hole.clone());
            } else if hole.offset() < offset || hole.offset() + hole.size() > end {
                return None;
            }
        }
        holes.extend(other.holes.iter().map(|hole| hole.moved(offset as i64)));
        holes.sort_by_key(Hole::offset);
        let mut bytes = self.bytes.clone();
        bytes.get_mut(offset as usize..end as usize)?.copy_from_slice(&other.bytes);
        Some(Content { bytes, holes })
    }
}

/// Why Linux patches a site, in the order in which it does that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Paravirt,
    Retpoline,
    Return,
    Alternative,
    Ibt,
    Lock,
    JumpLabel,
    StaticCall,
    Mcount,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Paravirt => "paravirt",
            Kind::Retpoline => "retpoline",
            Kind::Return => "return",
            Kind::Alternative => "alternative",
            Kind::Ibt => "ibt",
            Kind::Lock => "lock",
            Kind::JumpLabel => "jump-label",
            Kind::StaticCall => "static-call",
            Kind::Mcount => "mcount",
        }
    }
}

/// One patch of one place.
#[derive(Debug)]
struct Patch {
    kind: Kind,
    section: usize,
    offset: u64,
    len: u64,
    contents: Vec<Content>,
}

impl Patch {
    fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// A place with all contents that it may have.
pub struct Site {
    /// The names of the kinds; several where patches overlap, joined by "+".
    pub kind: String,
    pub section: usize,
    pub offset: u64,
    pub contents: Vec<Content>,
}

type Result<T> = std::result::Result<T, String>;
/// A section's index, and an offset in it.
type Place = (usize, u64);

/// More than any site has: the combinations of patches that overlap.
const MOST_CONTENTS: usize = 200;

const NOPS: [&[u8]; 11] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x66, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];
const NOP: u8 = 0x90;
const INT3: u8 = 0xcc;
const CALL: u8 = 0xe8;
const JMP: u8 = 0xe9;
const JMP8: u8 = 0xeb;
const CS: u8 = 0x2e;
const RETURN: &[u8] = &[0xc3, INT3, INT3, INT3, INT3];
const LFENCE: &[u8] = &[0x0f, 0xae, 0xe8];
/// XOR EAX, EAX, of 5 bytes: a static call of a function that returns 0.
const XOR5: &[u8] = &[CS, CS, CS, 0x31, 0xc0];
/// How the names of static calls' trampolines begin.
pub const TRAMPOLINE: &str = "__SCT__";
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];

/// What Linux writes where `len` bytes do nothing: single NOPs, the longest ones up to 8 bytes (6.1)
/// or one of up to 11 bytes and else a jump (since 6.5).
fn nops(len: usize) -> Vec<Vec<u8>> {
    let mut all = vec![vec![NOP; len]];
    let mut eights = vec![];
    while eights.len() < len {
        eights.extend(NOPS[(len - eights.len()).min(8) - 1]);
    }
    all.push(eights);
    all.push(match len {
        0 => vec![],
        1..=11 => NOPS[len - 1].to_vec(),
        12..128 => [&[JMP8, len as u8 - 2][..], &vec![INT3; len - 2]].concat(),
        _ => {
            let distance = (len as u32 - 5).to_le_bytes();
            [&[JMP][..], &distance, &vec![INT3; len - 5]].concat()
        }
    });
    all.sort();
    all.dedup();
    all
}

/// Finds all patch sites of a module.
pub fn find(module: &Module) -> Result<Vec<Site>> {
    let mut patches = simple_patches(module)?;
    patches.extend(alternatives(module, &patches)?);
    patches.sort_by_key(|patch| (patch.section, patch.offset, patch.kind));
    let mut sites = Vec::new();
    let mut rest = &patches[..];
    while let [first, ..] = rest {
        let (mut end, mut count) = (first.end(), 0);
        while let Some(next) = rest.get(count) {
            if next.section != first.section || next.offset >= end {
                break;
            }
            end = end.max(next.end());
            count += 1;
        }
        let (cluster, others) = rest.split_at(count.max(1));
        let mut kinds: Vec<_> = cluster.iter().map(|patch| patch.kind).collect();
        kinds.sort();
        kinds.dedup();
        sites.push(Site {
            kind: kinds.into_iter().map(Kind::name).collect::<Vec<_>>().join("+"),
            section: first.section,
            offset: first.offset,
            contents: contents(module, cluster, (first.section, first.offset), end)?,
        });
        rest = others;
    }
    Ok(sites)
}

fn place(module: &Module, (section, offset): Place) -> String {
    format!("{}+{offset:#x}", module.sections[section].name)
}

/// The file's content of a place.
fn original(module: &Module, at: Place, end: u64) -> Result<Content> {
    let (section, offset) = at;
    let data = &module.sections[section].data;
    let bytes = data.get(offset as usize..end as usize);
    let mut bytes =
        bytes.ok_or_else(|| format!("{}: a patch site outside", place(module, at)))?.to_vec();
    let mut holes = Vec::new();
    for relocation in &module.sections[section].relocations {
        if relocation.end() <= offset || relocation.offset >= end {
            continue;
        }
        if relocation.offset < offset || relocation.end() > end {
            return Err(format!("{}: a patch site cuts a relocation", place(module, at)));
        }
        let (start, size) = ((relocation.offset - offset) as usize, relocation.kind.size());
        bytes[start..start + size as usize].fill(0);
        holes.push(Hole::Relocation(relocation.clone()).moved(-(offset as i64)));
    }
    Ok(Content { bytes, holes })
}

/// All contents that a place can have after these patches of it.
fn contents<'a>(
    module: &Module,
    patches: impl IntoIterator<Item = &'a Patch>,
    at: Place,
    end: u64,
) -> Result<Vec<Content>> {
    let mut patches: Vec<_> = patches.into_iter().collect();
    patches.sort_by_key(|patch| patch.kind);
    let mut all = vec![original(module, at, end)?];
    for patch in patches {
        let offset = patch.offset - at.1;
        let mut next = all.clone();
        for content in &all {
            for new in &patch.contents {
                let cut = || format!("{}: patch sites cut a relocation", place(module, at));
                next.push(content.with(offset, new).ok_or_else(cut)?);
            }
            if patch.kind == Kind::Alternative {
                next.extend(with_other_nops(content, offset, offset + patch.len));
            }
        }
        next.sort();
        next.dedup();
        if next.len() > MOST_CONTENTS {
            return Err(format!("{}: too many patches overlap", place(module, at)));
        }
        all = next;
    }
    Ok(all)
}

/// With the single NOPs at the end of the range `from..to` as Linux rewrites them.
fn with_other_nops(content: &Content, from: u64, to: u64) -> Vec<Content> {
    let (from, to) = (from as usize, to as usize);
    let free = content.holes.iter().map(|hole| (hole.offset() + hole.size()) as usize);
    let start = free.filter(|&end| end <= to).max().unwrap_or(0).max(from);
    let run = content.bytes[start..to].iter().rev().take_while(|&&byte| byte == NOP).count();
    let with = |bytes: Vec<u8>| content.with((to - run) as u64, &Content::of(&bytes));
    nops(run).into_iter().filter_map(with).collect()
}

/// The places of which a table's relocations are the addresses. `is_wanted` selects them by their
/// offset in the table.
fn addresses(module: &Module, name: &str, is_wanted: impl Fn(u64) -> bool) -> Result<Vec<Place>> {
    let Some(table) = module.section(name) else { return Ok(vec![]) };
    let wanted = table.relocations.iter().filter(|relocation| is_wanted(relocation.offset));
    wanted.map(|relocation| address(module, table, relocation)).collect()
}

/// Where an entry of a table points. What is relative there counts from the field's beginning.
pub fn address(module: &Module, table: &Section, relocation: &Relocation) -> Result<Place> {
    let wrong = || format!("{}+{:#x}: points nowhere in the module", table.name, relocation.offset);
    let (section, offset) = relocation.own_target().ok_or_else(wrong)?;
    let field = if relocation.kind.is_relative() { relocation.kind.size() as i64 } else { 0 };
    let offset = u64::try_from(offset.wrapping_sub(field)).map_err(|_| wrong())?;
    if offset > module.sections.get(section).ok_or_else(wrong)?.size {
        return Err(wrong());
    }
    Ok((section, offset))
}

fn bytes_at(module: &Module, (section, offset): Place) -> &[u8] {
    module.sections[section].data.get(offset as usize..).unwrap_or_default()
}

fn any(_: u64) -> bool {
    true
}

/// All patches but alternatives.
fn simple_patches(module: &Module) -> Result<Vec<Patch>> {
    let mut patches = Vec::new();
    let mut add = |kind, at: Place, contents: Vec<Content>| {
        let len = contents[0].len();
        let (section, offset) = at;
        if !module.sections[section].is_text() || bytes_at(module, at).len() < len as usize {
            return Err(format!("{}: a patch site outside of the code", place(module, at)));
        }
        patches.push(Patch { kind, section, offset, len, contents });
        Ok(())
    };
    for at in addresses(module, ".return_sites", any)? {
        if bytes_at(module, at).first() != Some(&JMP) {
            return Err(format!("{}: an unknown return site", place(module, at)));
        }
        add(Kind::Return, at, vec![Content::branch(&[JMP], Targets::Return), Content::of(RETURN)])?;
    }
    for at in addresses(module, ".retpoline_sites", any)? {
        add(Kind::Retpoline, at, retpoline(module, at)?)?;
    }
    for (at, len) in paravirt_sites(module)? {
        let mut contents: Vec<_> = nops(len).iter().map(|bytes| Content::of(bytes)).collect();
        if len >= 5 {
            let calls = nops(len - 5).into_iter();
            contents
                .extend(calls.map(|rest| Content::branch(&[CALL], Targets::Paravirt).then(&rest)));
        }
        add(Kind::Paravirt, at, contents)?;
    }
    for at in addresses(module, ".ibt_endbr_seal", any)? {
        if bytes_at(module, at).starts_with(ENDBR64) {
            let poison = [[0x66, 0x0f, 0x1f, 0x00], [0x0f, 0x1f, 0x40, 0xd6]];
            add(Kind::Ibt, at, poison.map(|bytes| Content::of(&bytes)).into())?;
        }
    }
    for at in addresses(module, ".smp_locks", any)? {
        // DS, which has no effect there.
        add(Kind::Lock, at, vec![Content::of(&[0xf0]), Content::of(&[0x3e])])?;
    }
    for at in addresses(module, "__mcount_loc", any)? {
        add(
            Kind::Mcount,
            at,
            vec![Content::branch(&[CALL], Targets::Ftrace), Content::of(NOPS[4])],
        )?;
    }
    for (at, contents) in jump_labels(module)? {
        add(Kind::JumpLabel, at, contents)?;
    }
    for (at, contents) in static_calls(module)? {
        add(Kind::StaticCall, at, contents)?;
    }
    Ok(patches)
}

/// A call, jump or conditional jump to __x86_indirect_thunk_REGISTER becomes one through the
/// register where the thunk is not needed (`patch_retpoline()`).
fn retpoline(module: &Module, at: Place) -> Result<Vec<Content>> {
    const REGISTERS: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let unknown = || format!("{}: an unknown retpoline", place(module, at));
    let bytes = bytes_at(module, at);
    let prefix = usize::from(bytes.first() == Some(&CS));
    let (opcode, is_jump, condition) = match bytes[prefix..] {
        [CALL, ..] => (1, false, None),
        [JMP, ..] => (1, true, None),
        [0x0f, second @ 0x80..=0x8f, ..] => (2, true, Some(second & 0xf)),
        _ => return Err(unknown()),
    };
    let field = prefix + opcode;
    let relocation =
        module.sections[at.0].relocation_at(at.1 + field as u64).ok_or_else(unknown)?;
    let Target::External { symbol, .. } = &relocation.target else { return Err(unknown()) };
    let register = symbol.strip_prefix("__x86_indirect_thunk_").ok_or_else(unknown)?;
    let register = REGISTERS.iter().position(|&name| name == register).ok_or_else(unknown)?;
    let len = field + 4;

    let targets = Targets::Indirect(REGISTERS[register].to_owned());
    let mut contents = vec![Content::branch(&bytes[..field], targets)];
    for fence in [&[][..], LFENCE] {
        let mut new = Vec::new();
        if let Some(condition) = condition {
            new.extend([0x70 + (condition ^ 1), len as u8 - 2]);
        }
        new.extend(fence);
        if register >= 8 {
            new.push(0x41);
        }
        new.extend([0xff, if is_jump { 0xe0 } else { 0xd0 } + (register & 7) as u8]);
        if is_jump && new.len() < len {
            new.push(INT3);
        }
        if new.len() <= len {
            let rest = nops(len - new.len()).into_iter();
            contents.extend(rest.map(|rest| Content::of(&[&new[..], &rest].concat())));
        }
    }
    Ok(contents)
}

/// struct paravirt_patch_site (until 6.7): the address, the type and the length.
fn paravirt_sites(module: &Module) -> Result<Vec<(Place, usize)>> {
    let Some(table) = module.section(".parainstructions") else { return Ok(vec![]) };
    let sites = table.relocations.iter().map(|relocation| {
        let at = address(module, table, relocation)?;
        let len = table.data.get(relocation.offset as usize + 9);
        Ok((at, len.copied().filter(|&len| len > 0).ok_or("a short .parainstructions")?.into()))
    });
    sites.collect()
}

/// struct jump_entry: the code, the target, and the key, of 4, 4 and 8 bytes.
fn jump_labels(module: &Module) -> Result<Vec<(Place, Vec<Content>)>> {
    let codes = addresses(module, "__jump_table", |offset| offset % 16 == 0)?;
    let targets = addresses(module, "__jump_table", |offset| offset % 16 == 4)?;
    if codes.len() != targets.len() {
        return Err("__jump_table has incomplete entries".to_owned());
    }
    let one = |(at, target): (Place, Place)| {
        let bytes = bytes_at(module, at);
        let is_short = match bytes {
            [JMP8, ..] => true,
            [JMP, ..] => false,
            _ if bytes.starts_with(NOPS[1]) => true,
            _ if bytes.starts_with(NOPS[4]) => false,
            _ => return Err(format!("{}: an unknown jump label", place(module, at))),
        };
        let far = || format!("{}: a short jump label with a far target", place(module, at));
        let (nop, jump) = if is_short {
            let distance = (target.1 as i64).wrapping_sub(at.1 as i64 + 2);
            let distance = i8::try_from(distance).ok().filter(|_| at.0 == target.0);
            let jump = Content::of(&[JMP8, distance.ok_or_else(far)? as u8]);
            (NOPS[1], jump)
        } else {
            let jump = if at.0 == target.0 {
                let distance = (target.1 as i64).wrapping_sub(at.1 as i64 + 5) as u32;
                Content::of(&[JMP]).then(&distance.to_le_bytes())
            } else {
                let (section, offset) = (target.0, target.1 as i64);
                Content::branch_to(&[JMP], Target::Own { section, offset })
            };
            (NOPS[4], jump)
        };
        Ok((at, vec![Content::of(nop), jump]))
    };
    codes.into_iter().zip(targets).map(one).collect()
}

/// struct static_call_site: the code and the key, of 4 bytes each; and the module's own trampolines,
/// which a static call patches as well. Of the module's own static calls, only the first function is
/// known: the module's data say what it is later.
fn static_calls(module: &Module) -> Result<Vec<(Place, Vec<Content>)>> {
    let mut calls = Vec::new();
    if let Some(table) = module.section(".static_call_sites") {
        for relocation in table.relocations.iter().filter(|one| one.offset % 8 == 0) {
            let at = address(module, table, relocation)?;
            let (opcode, fixed) = match bytes_at(module, at) {
                [CALL, ..] => (vec![CALL], vec![NOPS[4], XOR5]),
                [JMP, ..] => (vec![JMP], vec![RETURN]),
                [0x0f, second @ 0x80..=0x8f, ..] => (vec![0x0f, *second], vec![]),
                _ => return Err(format!("{}: an unknown static call", place(module, at))),
            };
            let mut contents: Vec<_> = fixed.into_iter().map(Content::of).collect();
            if opcode[0] != CALL {
                // Without a function it is a return.
                contents.push(Content::branch(&opcode, Targets::Return));
            }
            let field = at.1 + opcode.len() as u64;
            let old = module.sections[at.0].relocation_at(field).map(|one| &one.target);
            if let Some(Target::External { symbol, .. }) = old {
                let name = symbol.strip_prefix(TRAMPOLINE).unwrap_or(symbol).to_owned();
                contents.push(Content::branch(&opcode, Targets::StaticCall(name)));
            }
            let key = table.relocation_at(relocation.offset + 4);
            if let Some(function) = key.and_then(|key| first_function(module, table, key)) {
                contents.push(Content::branch_to(&opcode, function));
            }
            calls.push((at, contents));
        }
    }
    for symbol in module.functions.iter().filter(|one| one.name.starts_with(TRAMPOLINE)) {
        let at = (symbol.section, symbol.offset);
        if bytes_at(module, at).first() == Some(&JMP) {
            let jump = Content::branch(&[JMP], Targets::Return);
            calls.push((at, vec![jump, Content::of(RETURN)]));
        }
    }
    Ok(calls)
}

/// The function with which a static call of the module's own begins: the first word of its key.
fn first_function(module: &Module, table: &Section, key: &Relocation) -> Option<Target> {
    let (section, offset) = address(module, table, key).ok()?;
    // The two low bits are flags.
    let function = module.sections[section].relocation_at(offset & !3)?;
    (function.kind == RelocationKind::Abs64).then(|| function.target.clone())
}

/// struct alt_instr: the code, its replacement, flags, and at the end both lengths. It has 12
/// bytes, or 14 since 6.3.
fn alternatives(module: &Module, inner: &[Patch]) -> Result<Vec<Patch>> {
    let Some(table) = module.section(".altinstructions") else { return Ok(vec![]) };
    let entries: Vec<_> = table.relocations.chunks_exact(2).collect();
    let size = match entries[..] {
        [] => return Ok(vec![]),
        [first, second, ..] => second[0].offset - first[0].offset,
        _ => table.size,
    };
    if !matches!(size, 12 | 14) || table.size != size * entries.len() as u64 {
        return Err("an unknown format of .altinstructions".to_owned());
    }
    let mut sites: BTreeMap<Place, Vec<(Place, u64, u64)>> = BTreeMap::new();
    for entry in entries {
        let start = entry[0].offset;
        if start % size != 0 || entry[1].offset != start + 4 {
            return Err("an unknown format of .altinstructions".to_owned());
        }
        let at = address(module, table, &entry[0])?;
        let replacement = address(module, table, &entry[1])?;
        let lens = &table.data[(start + size) as usize - 2..];
        sites.entry(at).or_default().push((replacement, lens[0].into(), lens[1].into()));
    }
    let mut patches = Vec::new();
    for (at, entries) in sites {
        let len = entries.iter().map(|entry| entry.1).max().unwrap_or(0);
        if !module.sections[at.0].is_text() || (bytes_at(module, at).len() as u64) < len {
            return Err(format!("{}: an alternative outside of the code", place(module, at)));
        }
        let whole = original(module, at, at.1 + len)?;
        let mut contents = Vec::new();
        for (from, old, new) in entries {
            for content in replacements(module, at, from, new, inner)? {
                // Linux pads up to the length of the longest entry (6.12), or of this one.
                for len in [len, old] {
                    let pad = len.checked_sub(content.len());
                    let pad = pad.ok_or_else(|| {
                        format!("{}: too short for its replacement", place(module, at))
                    })?;
                    for rest in nops(pad as usize) {
                        contents.extend(whole.with(0, &content.clone().then(&rest)));
                    }
                }
            }
            // Since 6.8 a call through pv_ops is an alternative.
            if whole.bytes.starts_with(&[0xff]) && old >= 5 {
                for rest in nops(old as usize - 5) {
                    contents.extend(
                        whole.with(0, &Content::branch(&[CALL], Targets::Paravirt).then(&rest)),
                    );
                }
                let empty = nops(old as usize);
                contents.extend(empty.iter().filter_map(|one| whole.with(0, &Content::of(one))));
            }
        }
        contents.sort();
        contents.dedup();
        let (section, offset) = at;
        patches.push(Patch { kind: Kind::Alternative, section, offset, len, contents });
    }
    Ok(patches)
}

/// What a replacement is at the place of the code that it replaces, without padding.
fn replacements(
    module: &Module,
    at: Place,
    from: Place,
    len: u64,
    inner: &[Patch],
) -> Result<Vec<Content>> {
    let end = from.1 + len;
    let inside = |one: &&Patch| one.section == from.0 && one.offset >= from.1 && one.end() <= end;
    let mut all = contents(module, inner.iter().filter(inside), from, end)?;
    // Where possible, Linux makes a jump short.
    let mut short = Vec::new();
    for content in &all {
        let [Hole::Relocation(hole)] = &content.holes[..] else { continue };
        let Some(target) = hole.own_target().filter(|_| content.bytes == [JMP, 0, 0, 0, 0]) else {
            continue;
        };
        let place_of = |(section, offset): (usize, i64)| {
            let (region, start) = module.sections.get(section)?.place?;
            Some((region, start as i64 + offset))
        };
        let here = place_of((at.0, at.1 as i64 + 2));
        let (Some(here), Some(there)) = (here, place_of(target)) else { continue };
        if let Ok(distance) = i8::try_from(there.1 - here.1) {
            if here.0 == there.0 {
                let jump = [JMP8, distance as u8];
                short.push(Content::of(&jump).then(NOPS[2]));
                short.push(Content::of(&jump).then(&[INT3; 3]));
            }
        }
    }
    all.extend(short);
    Ok(all)
}

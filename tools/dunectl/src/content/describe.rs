// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metadata of a module: what is content and what is not, its hashes, entry points and exits.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::metadata::{Class, Entry, Exit, Fixup, Metadata, SectionText, SiteGroup, Why, VERSION};
use super::module::{Module, Region, Relocation, Section, Target};
use super::sites::{self, Site};

type Result<T> = std::result::Result<T, String>;

/// Tables that Linux reads, and no code of the module. What they say about its code is in the
/// metadata, so they are no content. A name that ends with a star is the beginning of names.
const TABLES: [&str; 24] = [
    "__bug_table",
    "__ex_table",
    "__jump_table",
    "__kcrctab*",
    "__ksymtab*",
    "__mcount_loc",
    "__modver",
    "__param",
    "__patchable_function_entries",
    "__tracepoints_ptrs",
    "__tracepoints_strings",
    "__version_ext*",
    ".altinstructions",
    ".call_sites",
    ".cfi_sites",
    ".ibt_endbr_seal",
    ".note*",
    ".orc_*",
    ".parainstructions",
    ".retpoline_sites",
    ".return_sites",
    ".smp_locks",
    ".static_call_sites",
    ".static_call_tramp_key",
];

/// The tables whose addresses nobody calls.
const NOT_CALLED: [&str; 15] = [
    "__bug_table",
    "__ex_table",
    "__jump_table",
    "__mcount_loc",
    "__patchable_function_entries",
    ".altinstructions",
    ".call_sites",
    ".cfi_sites",
    ".ibt_endbr_seal",
    ".orc_*",
    ".parainstructions",
    ".retpoline_sites",
    ".return_sites",
    ".smp_locks",
    ".static_call_sites",
];

fn is_of(name: &str, list: &[&str]) -> bool {
    list.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// Code, and constants.
fn is_content(section: &Section) -> bool {
    match section.place {
        Some((Region::Text | Region::InitText, _)) => true,
        Some((Region::Rodata | Region::InitRodata, _)) => !is_of(&section.name, &TABLES),
        _ => false,
    }
}

/// Describes a module.
pub fn metadata(module: &Module) -> Result<Metadata> {
    let sites = sites::find(module)?;
    let loaded = module.sections.iter().enumerate().filter(|(_, one)| one.place.is_some());
    let sections = loaded
        .map(|(index, section)| {
            let (region, offset) = section.place.expect("selected by that");
            let inside = sites.iter().filter(|site| site.section == index);
            let mut text = SectionText {
                name: section.name.clone(),
                region,
                offset,
                size: section.size,
                hash: None,
                relocations: vec![],
            };
            if is_content(section) {
                if section.data.len() as u64 != section.size {
                    return Err(format!("{} has code without content", section.name));
                }
                let (hash, relocations) = masked(section, inside);
                text.hash = Some(hash);
                text.relocations = relocations;
            }
            Ok(text)
        })
        .collect::<Result<_>>()?;
    Ok(Metadata {
        version: VERSION,
        name: module.name.clone(),
        class: Class::D,
        kernel: module.kernel.clone(),
        names: module.sections.iter().map(|section| section.name.clone()).collect(),
        sections,
        sites: grouped(sites),
        entries: entries(module),
        exits: exits(module),
        bugs: bugs(module)?,
        fixups: fixups(module)?,
    })
}

/// The hash of a section with zeros where relocations and patch sites are, and the relocations
/// outside of patch sites.
fn masked<'a>(
    section: &Section,
    sites: impl Iterator<Item = &'a Site>,
) -> ([u8; 32], Vec<Relocation>) {
    let mut data = section.data.clone();
    let mut in_sites = BTreeSet::new();
    for site in sites {
        let (start, end) = (site.offset, site.offset + site.contents[0].bytes.len() as u64);
        data[start as usize..end as usize].fill(0);
        in_sites.extend(start..end);
    }
    let outside = |one: &&Relocation| !in_sites.contains(&one.offset);
    let relocations: Vec<_> = section.relocations.iter().filter(outside).cloned().collect();
    for one in &relocations {
        data[one.offset as usize..one.end() as usize].fill(0);
    }
    (Sha256::digest(&data).into(), relocations)
}

fn grouped(sites: Vec<Site>) -> Vec<SiteGroup> {
    let mut groups: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for site in sites {
        let key = (site.kind, site.section, site.contents);
        groups.entry(key).or_default().push(site.offset);
    }
    groups
        .into_iter()
        .map(|((kind, section, contents), at)| SiteGroup { kind, section, contents, at })
        .collect()
}

/// Whether the relocation is the target of a call or a jump: a relative field after E8, E9 or 0F 8x.
/// The byte before any other relative field is a ModRM byte below 40h.
fn is_branch(section: &Section, relocation: &Relocation) -> bool {
    let before = |n| {
        let index = (relocation.offset as usize).checked_sub(n)?;
        section.data.get(index).copied()
    };
    section.is_text()
        && relocation.kind.is_relative()
        && match before(1) {
            Some(0xe8 | 0xe9) => true,
            Some(0x80..=0x8f) => before(2) == Some(0x0f),
            _ => false,
        }
}

/// The functions that the kernel may call: it knows the addresses of no others.
fn entries(module: &Module) -> Vec<Entry> {
    let mut functions: BTreeMap<(usize, u64), &str> = BTreeMap::new();
    let own = |name: &str| !name.starts_with("__pfx_") && !name.starts_with("__cfi_");
    for function in module.functions.iter().filter(|function| own(&function.name)) {
        let name = functions.entry((function.section, function.offset)).or_insert(&function.name);
        // A function has its own name besides that of the module's init.
        if matches!(*name, "init_module" | "cleanup_module") {
            *name = &function.name;
        }
    }
    let mut found: BTreeMap<(usize, u64), BTreeSet<Why>> = BTreeMap::new();
    for section in module.sections.iter().filter(|section| section.place.is_some()) {
        if is_of(&section.name, &NOT_CALLED) {
            continue;
        }
        let is_exported = section.name.starts_with("__ksymtab");
        let is_module = section.name == ".gnu.linkonce.this_module";
        for relocation in section.relocations.iter().filter(|one| !is_branch(section, one)) {
            let target = if section.is_text() {
                relocation
                    .own_target()
                    .and_then(|(section, offset)| Some((section, u64::try_from(offset).ok()?)))
            } else {
                sites::address(module, section, relocation).ok()
            };
            let Some(target) = target.filter(|target| functions.contains_key(target)) else {
                continue;
            };
            if !module.sections[target.0].is_text() {
                continue;
            }
            let why = match () {
                () if is_exported => Why::Exported,
                () if is_module => {
                    // struct module has init before exit.
                    let first = &section.relocations[0];
                    let has_init = module.functions.iter().any(|one| one.name == "init_module");
                    if first.offset == relocation.offset && has_init {
                        Why::Init
                    } else {
                        Why::Exit
                    }
                }
                () => Why::Address,
            };
            found.entry(target).or_default().insert(why);
        }
    }
    let entry = |((section, offset), why): (_, BTreeSet<_>)| Entry {
        section,
        offset,
        symbol: functions[&(section, offset)].to_owned(),
        why: why.into_iter().collect(),
    };
    found.into_iter().map(entry).collect()
}

/// The functions outside that the code calls or jumps to.
fn exits(module: &Module) -> Vec<Exit> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for section in module.sections.iter().filter(|section| section.is_text()) {
        for relocation in section.relocations.iter().filter(|one| is_branch(section, one)) {
            if let Target::External { symbol, .. } = &relocation.target {
                *found.entry(symbol).or_default() += 1;
            }
        }
    }
    found.into_iter().map(|(symbol, calls)| Exit { symbol: symbol.to_owned(), calls }).collect()
}

/// The instructions of the bug table: a WARN() continues after such a one.
fn bugs(module: &Module) -> Result<Vec<(usize, u64)>> {
    let Some(table) = module.section("__bug_table") else { return Ok(vec![]) };
    let mut bugs = Vec::new();
    for relocation in &table.relocations {
        let at = sites::address(module, table, relocation)?;
        if module.sections[at.0].is_text() {
            bugs.push(at);
        }
    }
    bugs.sort();
    bugs.dedup();
    Ok(bugs)
}

/// struct exception_table_entry: the instruction, where to continue, and a type.
fn fixups(module: &Module) -> Result<Vec<Fixup>> {
    let Some(table) = module.section("__ex_table") else { return Ok(vec![]) };
    let mut fixups = Vec::new();
    for pair in table.relocations.chunks(2) {
        let [from, to] = pair else { return Err("__ex_table has an incomplete entry".to_owned()) };
        if from.offset % 12 != 0 || to.offset != from.offset + 4 {
            return Err("an unknown format of __ex_table".to_owned());
        }
        let from_place = sites::address(module, table, from)?;
        let to = sites::address(module, table, to)?;
        if !module.sections[from_place.0].is_text() || !module.sections[to.0].is_text() {
            return Err("__ex_table points outside of the code".to_owned());
        }
        let kind = table.data.get(from.offset as usize + 8..from.offset as usize + 10);
        let Some(&[kind, register]) = kind else {
            return Err("__ex_table has an incomplete entry".to_owned());
        };
        // By Linux's asm/extable_fixup_types.h: only the kind 0 sets no register.
        let register = (kind != 0).then_some(register & 15);
        fixups.push(Fixup { from: from_place, to, register });
    }
    fixups.sort();
    Ok(fixups)
}

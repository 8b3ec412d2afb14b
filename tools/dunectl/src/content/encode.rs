// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metadata in the form that the guard reads: kernel/guard/hv/content.h. All numbers are
//! little-endian; the parts come in the order of the header's counts.

use std::collections::HashMap;

use super::metadata::{Class, Metadata, SectionText, Why};
use super::module::{Relocation, RelocationKind, Target};
use super::sites::{Content, Hole, Targets};

const MAGIC: u32 = u32::from_le_bytes(*b"DGC1");
/// CONTENT_VERSION
const FORMAT: u32 = 4;
const HEADER: usize = 192;
const NAME: usize = 64;
/// `struct content_relocation`.region, instead of a region.
const EXTERNAL: u8 = 0xff;
const OUTSIDE: u8 = 0xfe;
/// `struct content_fixup`.reg, if the kernel sets none.
const NO_REGISTER: u32 = 16;

/// The kinds of patch sites that the kernel may still change after the comparison.
const FOLLOWING: [&str; 2] = ["jump-label", "mcount"];

type Result<T> = std::result::Result<T, String>;

/// Where the things are to which the module refers, and which are not its own.
pub trait Addresses {
    fn symbol(&self, name: &str) -> Result<u64>;
    fn targets(&self, targets: &Targets) -> Result<Vec<u64>>;
}

/// Without addresses, a description matches no module.
pub struct Nowhere;

impl Addresses for Nowhere {
    fn symbol(&self, _: &str) -> Result<u64> {
        Ok(0)
    }

    fn targets(&self, _: &Targets) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }
}

struct Encoder<'a> {
    addresses: &'a dyn Addresses,
    /// Their numbers, and their addresses by number.
    symbols: HashMap<&'a str, u16>,
    places: Vec<u64>,
    /// Where the addresses of these are in `targets`, and how many there are.
    slices: HashMap<&'a Targets, (u16, i64)>,
    targets: Vec<u64>,
    relocations: Part,
    sites: Part,
    contents: Part,
    holes: Part,
    bytes: Vec<u8>,
}

/// A part of the description: a number of structures.
#[derive(Default)]
struct Part {
    count: u32,
    bytes: Vec<u8>,
}

impl Part {
    fn add(&mut self, bytes: &[&[u8]]) {
        self.count += 1;
        self.bytes.extend(bytes.concat());
    }
}

/// Encodes the metadata. An error names what is inconsistent, or not there.
pub fn encode(metadata: &Metadata, addresses: &dyn Addresses) -> Result<Vec<u8>> {
    let mut encoder = Encoder {
        addresses,
        symbols: HashMap::new(),
        places: Vec::new(),
        slices: HashMap::new(),
        targets: Vec::new(),
        relocations: Part::default(),
        sites: Part::default(),
        contents: Part::default(),
        holes: Part::default(),
        bytes: Vec::new(),
    };
    let mut sections = Part::default();
    let mut content: Vec<_> = metadata.sections.iter().filter(|one| one.hash.is_some()).collect();
    content.sort_by_key(|section| (section.region, section.offset));
    for section in content {
        let relocations = encoder.relocations.count;
        for relocation in &section.relocations {
            let one = encoder.relocation(metadata, relocation)?;
            encoder.relocations.add(&[&one]);
        }
        let sites = encoder.sites.count;
        encoder.section_sites(metadata, section)?;
        sections.add(&[
            &(section.region as u32).to_le_bytes(),
            &word(section.offset)?,
            &word(section.size)?,
            &relocations.to_le_bytes(),
            &(encoder.relocations.count - relocations).to_le_bytes(),
            &sites.to_le_bytes(),
            &(encoder.sites.count - sites).to_le_bytes(),
            &section.hash.expect("selected by that"),
        ]);
    }
    let (mut entries, mut bugs, mut fixups) = (Part::default(), Part::default(), Part::default());
    for entry in &metadata.entries {
        let why = entry.why.iter().fold(0, |bits, &why| bits | 1 << why as u32);
        entries.add(&[&place(metadata, (entry.section, entry.offset))?, &u32::to_le_bytes(why)]);
    }
    for &at in &metadata.bugs {
        bugs.add(&[&place(metadata, at)?]);
    }
    for fixup in &metadata.fixups {
        let register = fixup.register.map_or(NO_REGISTER, u32::from);
        fixups.add(&[
            &place(metadata, fixup.from)?,
            &place(metadata, fixup.to)?,
            &register.to_le_bytes(),
        ]);
    }
    let Encoder { places, targets, relocations, sites, contents, holes, mut bytes, .. } = encoder;
    let addresses: Vec<_> =
        places.iter().chain(&targets).flat_map(|one| one.to_le_bytes()).collect();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let parts = [&sections, &relocations, &sites, &contents, &holes, &entries, &bugs, &fixups];
    let size = HEADER
        + addresses.len()
        + parts.iter().map(|part| part.bytes.len()).sum::<usize>()
        + bytes.len();
    let mut blob = Vec::with_capacity(size);
    blob.extend(MAGIC.to_le_bytes());
    blob.extend(FORMAT.to_le_bytes());
    blob.extend(word(size as u64)?);
    blob.extend(match metadata.class {
        Class::D => 0u32.to_le_bytes(),
        Class::S => 1u32.to_le_bytes(),
    });
    parts.iter().for_each(|part| blob.extend(part.count.to_le_bytes()));
    blob.extend(word(bytes.len() as u64)?);
    blob.extend(word(places.len() as u64)?);
    blob.extend(word(targets.len() as u64)?);
    blob.resize(HEADER - 2 * NAME, 0);
    for name in [&metadata.name, &metadata.kernel] {
        if name.len() >= NAME || name.contains('\0') {
            return Err(format!("the name {name:?} is too long"));
        }
        blob.extend(name.as_bytes());
        blob.resize(blob.len().next_multiple_of(NAME), 0);
    }
    blob.extend(addresses);
    parts.iter().for_each(|part| blob.extend(&part.bytes));
    blob.extend(bytes);
    Ok(blob)
}

fn word(number: u64) -> Result<[u8; 4]> {
    let number = u32::try_from(number).map_err(|_| format!("{number:#x} is too large"))?;
    Ok(number.to_le_bytes())
}

fn section(metadata: &Metadata, index: usize) -> Result<&SectionText> {
    let name = &metadata.names[index];
    let section = metadata.sections.iter().find(|section| section.name == *name);
    section.ok_or_else(|| format!("{name} is not loaded, but a relocation points there"))
}

/// `struct content_place`
fn place(metadata: &Metadata, (index, offset): (usize, u64)) -> Result<[u8; 8]> {
    let section = section(metadata, index)?;
    let [a, b, c, d] = (section.region as u32).to_le_bytes();
    let [e, f, g, h] = word(section.offset.saturating_add(offset))?;
    Ok([a, b, c, d, e, f, g, h])
}

impl<'a> Encoder<'a> {
    /// `struct content_relocation`
    fn relocation(&mut self, metadata: &Metadata, one: &'a Relocation) -> Result<[u8; 12]> {
        let (region, symbol, addend) = match &one.target {
            Target::Own { section: index, offset } => {
                let section = section(metadata, *index)?;
                (section.region as u8, 0, offset.saturating_add(section.offset as i64))
            }
            Target::External { symbol, addend } => (EXTERNAL, self.symbol(symbol)?, *addend),
        };
        relocation(one.offset, one.kind, region, symbol, addend)
    }

    fn symbol(&mut self, symbol: &'a str) -> Result<u16> {
        if let Some(&number) = self.symbols.get(symbol) {
            return Ok(number);
        }
        let number = u16::try_from(self.places.len()).map_err(|_| "too many symbols")?;
        self.places.push(self.addresses.symbol(symbol)?);
        self.symbols.insert(symbol, number);
        Ok(number)
    }

    /// The first one in `self.targets`, and their number.
    fn slice(&mut self, targets: &'a Targets) -> Result<(u16, i64)> {
        if let Some(&slice) = self.slices.get(targets) {
            return Ok(slice);
        }
        let first = u16::try_from(self.targets.len()).map_err(|_| "too many targets")?;
        let mut found = self.addresses.targets(targets)?;
        // A static call of nothing.
        found.retain(|&address| address != 0);
        found.sort();
        found.dedup();
        let slice = (first, found.len() as i64);
        self.targets.extend(found);
        self.slices.insert(targets, slice);
        Ok(slice)
    }

    fn section_sites(&mut self, metadata: &'a Metadata, section: &SectionText) -> Result<()> {
        let mut sites = Vec::new();
        for group in metadata.sites.iter().filter(|one| metadata.names[one.section] == section.name)
        {
            let first = self.contents.count;
            let len = group.contents.first().map_or(0, |content| content.bytes.len());
            if let Some(other) = group.contents.iter().find(|one| one.bytes.len() != len) {
                return Err(format!("contents of different lengths: {len}, {}", other.bytes.len()));
            }
            for content in &group.contents {
                self.content(metadata, content)?;
            }
            let follows = FOLLOWING.contains(&group.kind.as_str());
            let count = group.contents.len();
            sites.extend(group.at.iter().map(|&at| (at, len, count, follows, first)));
        }
        sites.sort();
        for (at, len, count, follows, first) in sites {
            let len = u16::try_from(len).map_err(|_| "a patch site is too long")?;
            let count = u8::try_from(count).map_err(|_| "a patch site has too many contents")?;
            self.sites.add(&[
                &word(at)?,
                &len.to_le_bytes(),
                &[count, u8::from(follows)],
                &first.to_le_bytes(),
            ]);
        }
        Ok(())
    }

    fn content(&mut self, metadata: &Metadata, content: &'a Content) -> Result<()> {
        let first = self.holes.count;
        for hole in &content.holes {
            let one = match hole {
                Hole::Outside { offset, targets } => {
                    let (first, count) = self.slice(targets)?;
                    relocation(*offset, RelocationKind::Pc32, OUTSIDE, first, count)?
                }
                Hole::Relocation(one) => self.relocation(metadata, one)?,
            };
            self.holes.add(&[&one]);
        }
        let short = |n| u16::try_from(n).map_err(|_| "a patch site is too long");
        let (len, holes) = (short(content.bytes.len())?, short(content.holes.len())?);
        let start = word(self.bytes.len() as u64)?;
        self.bytes.extend(&content.bytes);
        self.contents.add(&[
            &start,
            &first.to_le_bytes(),
            &len.to_le_bytes(),
            &holes.to_le_bytes(),
        ]);
        Ok(())
    }
}

fn relocation(
    offset: u64,
    kind: RelocationKind,
    region: u8,
    symbol: u16,
    addend: i64,
) -> Result<[u8; 12]> {
    let addend = i32::try_from(addend).map_err(|_| format!("{addend:#x} is too far"))?;
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&word(offset)?);
    bytes[4] = kind as u8;
    bytes[5] = region;
    bytes[6..8].copy_from_slice(&symbol.to_le_bytes());
    bytes[8..].copy_from_slice(&addend.to_le_bytes());
    Ok(bytes)
}

const _: () = assert!(Why::Init as u32 == 0 && Why::Address as u32 == 3);

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The administrator's binding of a module: a second file, which names the description by its hash,
//! the privileges that the module gets, the kernel's functions that it executes, and what happens
//! on suspicious activity around it. Whoever can write it decides what is guarded, so it has to be
//! root's alone.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::metadata::{Class, Metadata};
use crate::leaves::Leaf;
use crate::privileges::Privilege;
use crate::text::to_hex;

pub const DIRECTORY: &str = "/etc/dune/guard.d";
const VERSION: u32 = 1;

type Result<T> = std::result::Result<T, String>;

/// What happens on suspicious activity around a module; each includes those before it. The numbers
/// are `DUNE_GUARD_LOWER`, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The code continues without the module's privileges
    Lower = 1,
    /// And the guard's log has an entry
    #[default]
    Log,
    /// And the module is stopped for good
    Stop,
    /// And the kernel panics
    Panic,
}

impl Choice {
    /// The word of a binding for this number, if it is one of these.
    pub fn word(number: u32) -> Option<&'static str> {
        match number {
            1 => Some("lower"),
            2 => Some("log"),
            3 => Some("stop"),
            4 => Some("panic"),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    version: u32,
    name: String,
    class: Class,
    description: String,
    #[serde(rename = "on-suspicion", default)]
    on_suspicion: Choice,
    #[serde(rename = "privilege", default)]
    privileges: Vec<Privilege>,
    #[serde(rename = "leaf", default)]
    leaves: Vec<Leaf>,
}

/// What a binding decides about a module.
#[derive(Debug, PartialEq, Eq)]
pub struct Terms {
    pub privileges: Vec<Privilege>,
    pub on_suspicion: Choice,
    pub leaves: Vec<Leaf>,
}

fn hash(description: &[u8]) -> String {
    to_hex(&Sha256::digest(description))
}

/// Where the binding of a module is. A name that leads elsewhere is an error.
pub fn path(name: &str) -> Result<PathBuf> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(format!("{name:?} is no name of a module"));
    }
    Ok(Path::new(DIRECTORY).join(format!("{name}.toml")))
}

fn text(metadata: &Metadata, description: &[u8], on_suspicion: Choice) -> String {
    format!(
        "# What the guard does for the kernel module {name}: docs/guard-modules.md.\n\
         version = {VERSION}\n\
         name = {name:?}\n\
         class = \"{class:?}\"\n\
         # SHA-256 of the file that `dunectl guard describe` has made.\n\
         description = \"{hash}\"\n\
         # What happens on suspicious activity around it: lower, log, stop or panic.\n\
         on-suspicion = \"{choice}\"\n\
         # Without entries [[privilege]] the module has none: docs/guard-privileges.md.\n\
         # Entries [[leaf]] make it faster: dunectl guard leaves.\n",
        name = metadata.name,
        class = metadata.class,
        hash = hash(description),
        choice = Choice::word(on_suspicion as u32).unwrap_or_default(),
    )
}

/// Writes a binding without privileges. One that exists is replaced only if `force`.
pub fn write(
    path: &Path,
    metadata: &Metadata,
    description: &[u8],
    on_suspicion: Choice,
    force: bool,
) -> Result<()> {
    let error = |e: std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            format!("{} exists already: --force replaces it", path.display())
        }
        _ => format!("{}: {e}", path.display()),
    };
    if let Some(directory) = path.parent().filter(|one| !one.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    let mut options = File::options();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = options.open(path).map_err(error)?;
    file.write_all(text(metadata, description, on_suspicion).as_bytes()).map_err(error)
}

/// What the binding at `path` decides, if it is for this description. An error is the reason.
pub fn check(path: &Path, metadata: &Metadata, description: &[u8]) -> Result<Terms> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let mut file = File::open(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => {
            format!("{} is not bound: dunectl guard bind writes {}", metadata.name, path.display())
        }
        _ => wrong(e.to_string()),
    })?;
    let owner = file.metadata().map_err(|e| wrong(e.to_string()))?;
    if owner.uid() != 0 || owner.mode() & 0o022 != 0 {
        return Err(wrong("others than root may write it: chown root, chmod go-w".to_owned()));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|e| wrong(e.to_string()))?;
    agrees(&text, metadata, description).map_err(wrong)
}

/// A mistake in one line: the parser's own report has several, with the text.
fn mistake(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

fn agrees(text: &str, metadata: &Metadata, description: &[u8]) -> Result<Terms> {
    let one: Binding = toml::from_str(text).map_err(|e| mistake(text, &e))?;
    if one.version != VERSION {
        return Err(format!("a binding of version {}, where {VERSION} is known", one.version));
    }
    if one.name != metadata.name {
        return Err(format!("it binds {}, and the description is of {}", one.name, metadata.name));
    }
    if one.class != metadata.class {
        return Err(format!(
            "it has class {:?}, and the description has {:?}",
            one.class, metadata.class
        ));
    }
    if !one.description.eq_ignore_ascii_case(&hash(description)) {
        return Err(format!(
            "it is for another description of {}: bind the new one, if it is the right one",
            one.name
        ));
    }
    Ok(Terms { privileges: one.privileges, on_suspicion: one.on_suspicion, leaves: one.leaves })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        Metadata::parse(
            "version = 3\nname = \"example\"\nclass = \"D\"\nkernel = \"6.1\"\nentries = []\n\
             exits = []\nbugs = []\nfixups = []\nsection = []\n",
        )
        .unwrap()
    }

    #[test]
    fn what_is_written_binds() {
        let text = text(&metadata(), b"description", Choice::Stop);
        let terms = agrees(&text, &metadata(), b"description").unwrap();
        let nothing = (Vec::new(), Vec::new());
        assert_eq!((terms.privileges, terms.leaves), nothing);
        assert_eq!(terms.on_suspicion, Choice::Stop);
        let text = text
            + "[[privilege]]\nkind = \"monitor\"\n"
            + "[[leaf]]\nsymbol = \"memcpy\"\nsize = 32\nsha256 = \"00\"\n";
        let terms = agrees(&text, &metadata(), b"description").unwrap();
        assert_eq!(terms.privileges, [Privilege::Monitor {}]);
        let leaf = Leaf { symbol: "memcpy".to_owned(), size: 32, sha256: "00".to_owned() };
        assert_eq!(terms.leaves, [leaf]);
    }

    #[test]
    fn a_choice_has_its_word_and_log_is_the_default() {
        for one in Choice::value_variants() {
            let text = text(&metadata(), b"description", *one);
            assert_eq!(agrees(&text, &metadata(), b"description").unwrap().on_suspicion, *one);
        }
        assert_eq!((Choice::word(0), Choice::word(5)), (None, None));
        let text = text(&metadata(), b"description", Choice::Panic)
            .replace("on-suspicion = \"panic\"\n", "");
        let terms = agrees(&text, &metadata(), b"description").unwrap();
        assert_eq!(terms.on_suspicion, Choice::Log);
    }

    #[test]
    fn a_mistake_is_named() {
        let text = text(&metadata(), b"description", Choice::Log);
        for (old, new, error) in [
            ("version = 1", "version = 7", "a binding of version 7"),
            ("\"example\"", "\"other\"", "it binds other"),
            ("\"D\"", "\"S\"", "it has class S"),
            ("version", "privileges = []\nversion", "line 2: unknown field"),
            (
                "\"log\"",
                "\"reboot\"",
                "line 8: unknown variant `reboot`, expected one of `lower`, `log`, `stop`, `panic`",
            ),
            ("\"log\"", "\"\"", "expected one of `lower`, `log`, `stop`, `panic`"),
            ("\"log\"", "2", "line 8: "),
            ("description = \"", "description = \"0", "for another description"),
        ] {
            let wrong = text.replace(old, new);
            assert_ne!(wrong, text);
            let reason = agrees(&wrong, &metadata(), b"description").unwrap_err();
            assert!(reason.contains(error) && !reason.contains('\n'), "{reason}");
        }
    }

    #[test]
    fn a_name_stays_in_the_directory() {
        assert!(path("e1000e").is_ok());
        for name in ["", "../passwd", "a/b", ".hidden"] {
            assert!(path(name).is_err(), "{name}");
        }
    }
}

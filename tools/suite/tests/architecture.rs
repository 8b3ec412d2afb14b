// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lists of files in docs/architecture.md name every source file of kernel/, libdune/ and
//! run/ in the list of its directory, and no file that does not exist. Headers may be missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a list names for the directories of one of its headings.
struct Section {
    directories: Vec<PathBuf>,
    names: Vec<String>,
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns whether the word is the name of a file, perhaps with a `*`.
fn is_file_name(word: &str) -> bool {
    let suffixes = [".c", ".h", ".S", ".def"];
    suffixes.iter().any(|suffix| word.ends_with(suffix)) && !word.contains('/')
}

/// Reads the sections of all lists. A list follows the paragraph "... of `kernel/`, lowest
/// first"; a line with the smallest indent begins with the names of its directories.
fn sections(document: &str) -> Vec<Section> {
    let mut top = None;
    let mut sections: Vec<Section> = Vec::new();
    for line in document.lines() {
        if let Some((before, _)) = line.split_once("/`, lowest first") {
            top = before.rsplit_once('`').map(|(_, name)| name.to_owned());
        }
        if line == "All directories:" {
            break;
        }
        let (Some(top), Some(text)) = (&top, line.strip_prefix("    ")) else { continue };
        if !text.starts_with(' ') {
            let words = text.split_whitespace().take_while(|word| word.ends_with('/'));
            let directories: Vec<_> = words.map(|word| Path::new(top).join(word)).collect();
            if !directories.is_empty() {
                sections.push(Section { directories, names: Vec::new() });
            }
        }
        let is_end = |c: char| c.is_whitespace() || ",;:()".contains(c);
        let words = text.split(is_end).filter(|word| is_file_name(word));
        if let Some(section) = sections.last_mut() {
            section.names.extend(words.map(str::to_owned));
        }
    }
    sections
}

/// Returns all files below a directory of the sources.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(source().join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = directory.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => pattern == name,
    }
}

#[test]
fn lists_name_the_source_files() {
    let document = fs::read_to_string(source().join("docs/architecture.md")).unwrap();
    let sections = sections(&document);
    let depth = |section: &Section, file: &Path| {
        let prefixes = section.directories.iter().filter(|directory| file.starts_with(directory));
        prefixes.map(|directory| directory.components().count()).max()
    };
    let mut wrong = BTreeSet::new();
    let mut count = 0;
    for file in ["kernel", "libdune", "run"].iter().flat_map(|top| files(Path::new(top))) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let of_file = sections.iter().filter(|section| depth(section, &file).is_some());
        // The files directly in run/ are named in the text before its list.
        let Some(section) = of_file.max_by_key(|section| depth(section, &file)) else { continue };
        let is_source = name.ends_with(".c") || name.ends_with(".S");
        count += usize::from(is_source);
        if is_source && !section.names.iter().any(|pattern| matches(pattern, name)) {
            wrong.insert(format!("{} is not named", file.display()));
        }
    }
    for section in &sections {
        let files = section.directories.iter().flat_map(|directory| files(directory));
        let files: Vec<_> = files.collect();
        let exists = |pattern: &&String| {
            let name = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
            files.iter().any(|file| matches(pattern, &name(file)))
        };
        for pattern in section.names.iter().filter(|pattern| !exists(pattern)) {
            wrong.insert(format!("{pattern} is not in {:?}", section.directories));
        }
    }
    assert!(count > 100, "only {count} source files have a list");
    assert!(wrong.is_empty(), "docs/architecture.md: {wrong:#?}");
}

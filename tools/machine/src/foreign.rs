// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of a newer suite, adapted to run here: the compiler and the tools
//! that the headers of its kernels need, and emulators (newest_qemu.rs).
//!
//! They are unpacked with the libraries that they depend on, and each is set to
//! use the dynamic loader and the libraries of that directory. So they run like any
//! other program, without privileges and without another root directory.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, Result};
use crate::host_command;

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
const PREFIX: &str = "x86_64-linux-gnu-";

/// `root` holds the packages, and will be `target` when it is complete.
pub(crate) fn adopt(root: &Path, target: &Path) -> Result<()> {
    let mut programs = Vec::new();
    for directory in ["usr/bin", "usr/lib", "usr/libexec"].map(|directory| root.join(directory)) {
        if directory.exists() {
            find_programs(&directory, &mut programs)?;
        }
    }
    let output = host_command::output(
        Command::new("patchelf")
            .arg("--set-interpreter")
            .arg(target.join(LOADER))
            .args(["--force-rpath", "--set-rpath"])
            .arg(target.join(LIBRARIES))
            .args(&programs),
    )?;
    host_command::stdout_of(output, "patchelf failed").map(drop)
}

/// The headers name their compiler (and pahole) in a file of Debian's.
pub(crate) fn name_in_headers(root: &Path, target: &Path) -> Result<()> {
    let bin = target.join("usr/bin");
    let all = fs::read_dir(root.join("usr/src")).context("listing the headers")?;
    for headers in all.flatten() {
        let file = headers.path().join(".kernelvariables");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let adopted = format!("{}/{PREFIX}", bin.display());
        let text = text
            .replace(&format!("CROSS_COMPILE = {PREFIX}"), &format!("CROSS_COMPILE = {adopted}"))
            + &format!("override PAHOLE = {}/pahole\n", bin.display());
        fs::write(&file, text).context("rewriting .kernelvariables")?;
    }
    Ok(())
}

fn find_programs(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).context(format!("listing {}", directory.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        // The kernel's modules are many files, and no programs.
        if kind.is_dir() && entry.file_name() != "modules" {
            find_programs(&path, found)?;
        } else if kind.is_file() && names_a_loader(&path)? {
            found.push(path);
        }
    }
    Ok(())
}

fn names_a_loader(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path).context(format!("opening {}", path.display()))?;
    file.take(4096).read_to_end(&mut start).context(format!("reading {}", path.display()))?;
    Ok(has_interpreter(&start))
}

/// Whether a file that begins so is an ELF program with PT_INTERP.
fn has_interpreter(start: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let u16_at = |at: usize| Some(u16::from_le_bytes(start.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(start.get(at..at + 4)?.try_into().ok()?));
    if !start.starts_with(b"\x7fELF\x02") {
        return false;
    }
    let (Some(table), Some(size), Some(count)) = (u32_at(32), u16_at(54), u16_at(56)) else {
        return false;
    };
    (0..usize::from(count))
        .any(|n| u32_at(table as usize + n * usize::from(size)) == Some(PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_from_libraries_and_text() {
        let own = std::env::current_exe().unwrap();
        assert!(names_a_loader(&own).unwrap());
        assert!(!has_interpreter(b"#!/bin/sh\n"));
        assert!(!has_interpreter(b"\x7fELF\x02"));
        let mut library = fs::read(own).unwrap();
        library.truncate(4096);
        let table = u32::from_le_bytes(library[32..36].try_into().unwrap()) as usize;
        let headers = library[56];
        for n in 0..usize::from(headers) {
            library[table + n * 56] = 1;
        }
        assert!(!has_interpreter(&library));
    }
}

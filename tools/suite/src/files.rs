// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that keep a state from one run to the next.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The text of a file; none, if there is no file. A file that cannot be read is an error:
/// the next write would replace it.
pub fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("reading {}", path.display())),
    }
}

/// Writes a file completely or not at all, since an interruption may come at any time.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text).with_context(|| format!("writing {}", new.display()))?;
    fs::rename(&new, path).with_context(|| format!("writing {}", path.display()))
}

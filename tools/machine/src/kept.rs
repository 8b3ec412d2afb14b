// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are made once and kept. The name of each has a hash of what it was made
//! from. A date would not identify that: an older source may be installed, or copied, later.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Context, Result};

/// The file in `directory` whose name is `prefix` and the hash of `source`. If it does not
/// exist, it is written with what `make` returns, and replaces those of other sources.
pub(crate) fn made_once(
    directory: &Path,
    prefix: &str,
    source: &[u8],
    make: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<PathBuf> {
    let path = directory.join(format!("{prefix}{:016x}", fnv1a(source)));
    if path.exists() {
        return Ok(path);
    }
    let bytes = make()?;
    let describe = || format!("writing {}", path.display());
    let mut file = tempfile::NamedTempFile::new_in(directory).context(describe())?;
    file.write_all(&bytes).context(describe())?;
    file.persist(&path).map_err(|e| e.error).context(describe())?;
    remove_others(directory, prefix, &path);
    Ok(path)
}

/// Removes the files of other sources. A machine that runs has its file open. Another process
/// may have made `kept` at the same time, and may not have opened it yet.
fn remove_others(directory: &Path, prefix: &str, kept: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(prefix) && path != kept {
            let _ = fs::remove_file(path);
        }
    }
}

/// FNV-1a, 64 bits: the same with every Rust release, since the files' names outlive
/// the tool. (std leaves open how its DefaultHasher works.)
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_for_each_source() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let file = |source: &str, result: &str| {
            let make = || Ok(result.as_bytes().to_vec());
            let path = made_once(directory.path(), "kept-", source.as_bytes(), make).unwrap();
            (fs::read_to_string(&path).unwrap(), path)
        };
        let (first, old) = file("a", "1");
        assert_eq!(first, "1");
        assert_eq!(file("a", "2").0, "1");
        assert_eq!(file("b", "3").0, "3");
        assert!(!old.exists());
    }

    /// Vectors of the algorithm's authors.
    #[test]
    fn hashes_are_those_of_fnv1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are made from others and kept until those change, such as an initramfs. The name of
//! each has a hash of what it was made from. A date would not identify that: an older source may
//! be installed, or copied, later. (prepare.rs is for what stays as it is once it exists.)

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;

use crate::error::{Context, Result};

/// Opens the file in `directory` whose name is `prefix` and the hash of `source`. If it does
/// not exist, it is written with what `make` returns, and replaces those of other sources.
/// It is returned open, since another process may replace it at any time.
pub(crate) fn made_once(
    directory: &Path,
    prefix: &str,
    source: &[u8],
    make: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<File> {
    let name = format!("{prefix}{:016x}", fnv1a(source));
    let path = directory.join(&name);
    if let Ok(file) = File::open(&path) {
        return Ok(file);
    }
    let bytes = make()?;
    let describe = || format!("writing {}", path.display());
    let mut file = tempfile::NamedTempFile::new_in(directory).context(describe())?;
    file.write_all(&bytes).context(describe())?;
    let mut file = file.persist(&path).map_err(|e| e.error).context(describe())?;
    file.rewind().context(describe())?;
    remove_others(directory, prefix, name.as_ref());
    Ok(file)
}

fn remove_others(directory: &Path, prefix: &str, kept: &OsStr) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name != kept && name.to_string_lossy().starts_with(prefix) {
            let _ = fs::remove_file(entry.path());
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
    use std::io::Read;

    use super::*;

    fn text(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_is_made_once_for_each_source() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let file = |source: &str, result: &str| {
            let make = || Ok(result.as_bytes().to_vec());
            text(made_once(directory.path(), "kept-", source.as_bytes(), make).unwrap())
        };
        assert_eq!(file("a", "1"), "1");
        assert_eq!(file("a", "2"), "1");
        assert_eq!(file("b", "3"), "3");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_stays_usable_while_others_replace_it() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let file = |source: &[u8], make: &mut dyn FnMut()| {
            made_once(directory.path(), "kept-", source, || {
                make();
                Ok(source.to_vec())
            })
            .unwrap()
        };
        let mut first = None;
        let second = file(b"a", &mut || first = Some(file(b"a", &mut || ())));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        file(b"b", &mut || ());
        assert_eq!(text(first.expect("it was made")), "a");
        assert_eq!(text(second), "a");
    }

    /// Vectors of the algorithm's authors.
    #[test]
    fn hashes_are_those_of_fnv1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

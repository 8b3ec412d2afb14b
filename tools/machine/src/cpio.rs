// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes cpio archives in the "newc" format, which an initramfs has
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

pub(crate) struct Archive<W> {
    to: W,
    entries: u32,
}

impl<W: Write> Archive<W> {
    /// An empty archive, which is written to `to`.
    pub(crate) fn new(to: W) -> Self {
        Archive { to, entries: 0 }
    }

    /// Adds a directory.
    pub(crate) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, DIRECTORY | 0o755, &[])
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(name, FILE | mode, content)
    }

    /// Writes the archive's end.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.to)
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let name_size = name.len() as u32 + 1;
        self.entries += 1;
        write!(self.to, "070701")?;
        // inode, mode, uid, gid, links, mtime, size, device (2), rdev (2), name, checksum
        let inode = self.entries;
        for field in [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
            write!(self.to, "{field:08x}")?;
        }
        self.to.write_all(name.as_bytes())?;
        self.to.write_all(&[0])?;
        self.pad(6 + 13 * 8 + name_size as usize)?;
        self.to.write_all(content)?;
        self.pad(content.len())
    }

    fn pad(&mut self, length: usize) -> io::Result<()> {
        self.to.write_all(&[0; 3][..length.next_multiple_of(4) - length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned() {
        let mut archive = Archive::new(Vec::new());
        archive.directory("d").unwrap();
        archive.file("d/file", 0o644, b"hello").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let at = |needle: &[u8]| bytes.windows(needle.len()).position(|w| w == needle).unwrap();
        assert_eq!(at(b"hello") % 4, 0);
        assert_eq!((at(b"TRAILER!!!") - 110) % 4, 0);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding a program as execvp(3) does, with errors as those of env(1).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{access, AccessFlags};

/// execvp's default when there is no PATH (confstr(_CS_PATH)).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds a program by its name or path. `path` is the variable PATH, if it is set.
pub fn find(name: &OsStr, path: Option<OsString>) -> io::Result<PathBuf> {
    if name.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return executable(&path).map(|()| path);
    }
    let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
    let mut error = io::Error::from_raw_os_error(libc::ENOENT);
    for directory in path.as_bytes().split(|&byte| byte == b':') {
        // An empty entry is the working directory.
        let directory = if directory.is_empty() { b"." } else { directory };
        let candidate = Path::new(OsStr::from_bytes(directory)).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            // Like execvp, continue, but remember that the file exists.
            Err(e) if e.raw_os_error() == Some(libc::EACCES) => error = e,
            Err(_) => {}
        }
    }
    Err(error)
}

fn executable(path: &Path) -> io::Result<()> {
    // For a directory execve gives EACCES, although it has the x bit.
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(access(path, AccessFlags::X_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errno(name: &str, path: &str) -> Option<i32> {
        find(OsStr::new(name), Some(path.into())).unwrap_err().raw_os_error()
    }

    #[test]
    fn the_first_in_path_is_found() {
        let found = find(OsStr::new("sh"), Some("/nonexistent:/bin:/usr/bin".into())).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
        let found = find(OsStr::new("/bin/sh"), None).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
    }

    #[test]
    fn errors_are_those_of_execvp() {
        assert_eq!(errno("no-such-program", "/bin"), Some(libc::ENOENT));
        assert_eq!(errno("", "/bin"), Some(libc::ENOENT));
        assert_eq!(errno("/etc/passwd", "/bin"), Some(libc::EACCES));
        assert_eq!(errno("passwd", "/etc:/nonexistent"), Some(libc::EACCES));
        assert_eq!(errno("/bin", ""), Some(libc::EACCES));
    }
}

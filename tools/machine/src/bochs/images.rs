// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disks with copies of the host's files.
//!
//! - The base has all files of some Debian packages that are installed here and
//!   of the packages that they depend on (packages.rs, file_list.rs). It is made once for the
//!   versions that are installed, and kept in `MACHINES/base/`.
//! - The copies are made for one run and lie above the base: /etc, the kernel's
//!   modules, the project's programs and the directories that the run asks for. Their
//!   file has no name, so it ends with the run.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::file_list::FileList;
use super::packages::{Package, Packages};
use crate::config::Config;
use crate::error::{Context, Result};
use crate::host_command;
use crate::kept::fnv1a;
use crate::layout::Layout;
use crate::prepare;

/// Packages for the tests, the demo and users of a shell. Those that are
/// installed are copied, with all essential packages.
const PACKAGES: [&str; 31] = [
    "bash",
    "bc",
    "bsdextrautils",
    "busybox-static",
    "bzip2",
    "coreutils",
    "diffutils",
    "file",
    "findutils",
    "gawk",
    "gdb",
    "git",
    "grep",
    "gzip",
    "iproute2",
    "kmod",
    "libpython3.11-testsuite",
    "less",
    "make",
    "mount",
    "mawk",
    "perl",
    "procps",
    "psmisc",
    "python3",
    "sed",
    "sqlite3",
    "strace",
    "tar",
    "util-linux",
    "xz-utils",
];

/// Directories of modules that tests load. All modules take 400 MB.
const MODULE_DIRECTORIES: [&str; 7] = [
    "kernel/arch",
    "kernel/crypto",
    "kernel/drivers/block/zram",
    "kernel/fs/fuse",
    "kernel/lib",
    "kernel/mm",
    "kernel/virt",
];

/// The disks are far larger than their file systems: in Bochs a seek takes longer
/// the larger the part of the disk that it crosses.
const DISK_SIZE: u64 = 100 << 30;

/// Disk space for a base image while it is made, in bytes.
const NEEDED_SPACE: u64 = 2 << 30;

/// The version of the base image. It changes when base images are made differently.
const FORMAT: u32 = 3;

/// Makes the base image if there is none for what is installed.
pub(crate) fn prepare(layout: &Layout, say: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    let closure = Packages::installed()?.closure(&PACKAGES);
    let directory =
        std::path::absolute(layout.machines.join("base")).context("finding a directory")?;
    let image = directory.join(format!("{:016x}.img", hash_of(&closure)));
    if image.exists() {
        return Ok(image);
    }
    fs::create_dir_all(&directory).context(format!("making {}", directory.display()))?;
    prepare::once(
        &layout.machines,
        &image,
        NEEDED_SPACE,
        || image.exists(),
        |work| {
            say(&format!("copying the programs of {} packages into an image", closure.len()));
            let made = work.join("image");
            let file = File::create(&made).context("making an image")?;
            fill(&file, &FileList::of_packages(&closure)?)?;
            // A machine that still uses an old one has it open.
            for old in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let _ = fs::remove_file(old.path());
            }
            Ok(made)
        },
    )?;
    Ok(image)
}

/// Identifies the contents of a base image: by the versions of the packages, and by FORMAT
/// for everything else that decides the contents.
fn hash_of(packages: &BTreeSet<Package>) -> u64 {
    let mut text = format!("{FORMAT}\n");
    for Package { name, version } in packages {
        text += &format!("{name} {version}\n");
    }
    fnv1a(text.as_bytes())
}

/// The disk for this run.
pub(super) fn copies(layout: &Layout, config: &Config) -> Result<File> {
    let mut list = FileList::default();
    list.add_tree(Path::new("/etc"), &[])?;
    list.add_alternatives()?;
    let modules = config.kernel.modules();
    for entry in fs::read_dir(&modules).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            list.add(&entry.path())?;
        }
    }
    for directory in MODULE_DIRECTORIES {
        list.add_tree(&modules.join(directory), &[])?;
    }
    for path in &config.insmod {
        list.add(path)?;
    }
    let program = std::env::current_exe().context("finding the running program")?;
    for path in layout.programs().into_iter().chain([program]) {
        if path.exists() {
            list.add_tree(&path, &[])?;
        }
    }
    let left_out = layout.not_for_machines();
    for directory in &config.copies {
        list.add_tree(directory, &left_out)?;
    }
    fs::create_dir_all(&layout.machines).context("making a directory")?;
    let image = tempfile::tempfile_in(&layout.machines).context("making an image")?;
    fill(&image, &list)?;
    Ok(image)
}

/// Makes a file system of these files in `image`. It is read-only and not
/// compressed: of all file systems of Debian's kernels, this one takes the least
/// work to load its driver and to read.
fn fill(image: &File, list: &FileList) -> Result<()> {
    let mut archiver = Command::new("tar");
    archiver.args(["--create", "--no-recursion", "--null", "--verbatim-files-from"]);
    archiver.arg("--files-from=-").current_dir("/");
    archiver.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut archiver = host_command::spawn(&mut archiver)?;
    let mut maker = Command::new("sqfstar");
    maker.args(["-noI", "-noD", "-noF", "-noX", "-no-duplicates", "-no-progress", "-quiet"]);
    maker.arg("-force").arg(format!("/proc/self/fd/{}", image.as_raw_fd()));
    maker.stdin(archiver.stdout.take().expect("a pipe was asked for"));
    maker.stdout(Stdio::null()).stderr(Stdio::piped());
    inherit(&mut maker, image);
    let maker = host_command::spawn(&mut maker)?;

    let mut names = Vec::new();
    for path in &list.paths {
        names.extend_from_slice(path.strip_prefix("/").unwrap_or(path).as_os_str().as_bytes());
        names.push(0);
    }
    let stdin = archiver.stdin.take();
    let written = stdin.expect("a pipe was asked for").write_all(&names);
    let output = maker.wait_with_output().context("running sqfstar")?;
    // Files that the user may not read are not copied, which is no failure.
    archiver.wait().context("running tar")?;
    host_command::stdout_of(output, "cannot make an image")?;
    written.context("running tar")?;
    image.set_len(DISK_SIZE).context("making an image")
}

/// Gives the program this open file, with the same number.
fn inherit(command: &mut Command, file: &File) {
    use std::os::unix::process::CommandExt;
    let fd = file.as_raw_fd();
    // SAFETY: the closure makes a system call only.
    unsafe {
        command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

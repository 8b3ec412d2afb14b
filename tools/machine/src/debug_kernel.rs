// SPDX-License-Identifier: MIT OR Apache-2.0
//! The debug kernel: built from Debian's source package with debugging options,
//! and kept. `MACHINES/debug/` has the form of a prepared kernel.
//!
//! The build takes about a quarter of an hour on two cores, and less when only
//! the options have changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::apt::Apt;
use crate::error::{Context, Error, Result};
use crate::host_command;
use crate::kernel::{unpack, Kernel};
use crate::layout::Layout;
use crate::prepare::{self, check_space};

const SOURCE: &str = "linux-source-6.1";
const OPTIONS: &str = include_str!("../debug.config");

/// Disk space for source and objects, in bytes.
const NEEDED_SPACE: u64 = 6 << 30;

/// Disk space for the source alone, packed and unpacked, in bytes.
const SOURCE_SPACE: u64 = 2 << 30;

impl Kernel {
    /// Finds the kernel or builds it. `say` gets progress messages.
    ///
    /// # Errors
    ///
    /// The computer lacks something: the network, room on the disk, a program. Or the
    /// kernel does not build.
    pub fn prepare_debug(layout: &Layout, say: &mut dyn FnMut(&str)) -> Result<Self> {
        let root =
            std::path::absolute(layout.machines.join("debug")).context("finding a directory")?;
        let options = root.join("options");
        if fs::read_to_string(&options).is_ok_and(|built_with| built_with == OPTIONS) {
            return Self::at(&root, None);
        }
        fs::create_dir_all(&root).context(format!("making {}", root.display()))?;
        check_space(&root, NEEDED_SPACE)?;
        fetch_source(layout, &root, say)?;
        let source = root.join(SOURCE);
        configure(&source)?;
        say("debug kernel: building (a quarter of an hour on two cores)");
        let jobs = std::thread::available_parallelism().map_or(1, |n| n.get());
        make(&source, &[&format!("-j{jobs}"), "bzImage", "modules"])?;
        install(&root, &source)?;
        // This comes last: with this file, the kernel counts as prepared.
        fs::write(options, OPTIONS).context("keeping the kernel's options")?;
        Self::at(&root, None)
    }

    /// A file of the kernel's source, which is fetched if need be. Its style
    /// checker is one.
    ///
    /// # Errors
    ///
    /// The source cannot be fetched.
    pub fn source_file(
        layout: &Layout,
        name: &str,
        say: &mut dyn FnMut(&str),
    ) -> Result<std::path::PathBuf> {
        let root = layout.machines.join("debug");
        fs::create_dir_all(&root).context(format!("making {}", root.display()))?;
        fetch_source(layout, &root, say)?;
        Ok(root.join(SOURCE).join(name))
    }
}

fn fetch_source(layout: &Layout, root: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    let source = root.join(SOURCE);
    if source.exists() {
        return Ok(());
    }
    let machines = &layout.machines;
    prepare::once(
        machines,
        &source,
        SOURCE_SPACE,
        || source.exists(),
        |work| {
            say("debug kernel: downloading its source (140 MB)");
            let apt = Apt::update(&machines.join("apt/bookworm"), "bookworm")?;
            let package = apt.newest(SOURCE, |_| true)?;
            for archive in apt.download(&[package], work)? {
                unpack(&archive, work)?;
            }
            say("debug kernel: unpacking its source");
            let archive = work.join("usr/src").join(format!("{SOURCE}.tar.xz"));
            let mut tar = Command::new("tar");
            let output = host_command::output(tar.arg("-xJf").arg(&archive).arg("-C").arg(work))?;
            host_command::stdout_of(output, "cannot unpack the kernel's source")?;
            Ok(work.join(SOURCE))
        },
    )
}

fn configure(source: &Path) -> Result<()> {
    make(source, &["x86_64_defconfig", "kvm_guest.config"])?;
    let file = source.join(".config");
    let read = || fs::read_to_string(&file).context("reading the configuration");
    fs::write(&file, read()? + OPTIONS).context("writing the configuration")?;
    make(source, &["olddefconfig"])?;
    // An option that the kernel dropped would be a check that is missing.
    let config = read()?;
    let dropped = OPTIONS
        .lines()
        .filter(|line| line.starts_with("CONFIG_"))
        .find(|line| !config.lines().any(|set| set == *line));
    match dropped {
        None => Ok(()),
        Some(line) => Err(Error::Kernel(format!("the debug kernel cannot have {line}"))),
    }
}

fn make(source: &Path, arguments: &[&str]) -> Result<()> {
    // The flags of a make that runs this program are not for this one.
    let mut command = Command::new("make");
    command.args(arguments).current_dir(source).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    command.env_remove("MAKEOVERRIDES").env_remove("O").env("KBUILD_BUILD_TIMESTAMP", "1970-01-01");
    let output = host_command::output(&mut command)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(20)..].join("\n");
    Err(Error::Kernel(format!("building the debug kernel: make {}:\n{end}", arguments.join(" "))))
}

fn install(root: &Path, source: &Path) -> Result<()> {
    let release = fs::read_to_string(source.join("include/config/kernel.release"));
    let release = release.context("reading the kernel's release")?.trim().to_owned();
    let directory = |name: &str| {
        let path = root.join(name);
        fs::create_dir_all(&path).context(format!("making {}", path.display())).map(|()| path)
    };
    make(source, &["modules_install", &format!("INSTALL_MOD_PATH={}", root.display())])?;
    let headers = directory("usr/src")?.join(format!("linux-headers-{release}"));
    let _ = fs::remove_file(&headers);
    symlink(source, headers).context("linking the headers")?;
    let image = directory("boot")?.join(format!("vmlinuz-{release}"));
    fs::copy(source.join("arch/x86/boot/bzImage"), image).context("copying the kernel")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Another process that fetches the source holds the lock of all preparations.
    #[test]
    fn the_source_is_not_fetched_while_another_process_does() {
        let build = tempfile::tempdir().unwrap();
        let layout = Layout::of_build(build.path());
        let source = layout.machines.join("debug").join(SOURCE);
        fs::create_dir_all(&layout.machines).unwrap();
        let lock = File::create(layout.machines.join("lock")).unwrap();
        lock.lock().unwrap();
        thread::scope(|scope| {
            let found = scope.spawn(|| {
                let mut say = |message: &str| panic!("{message}");
                Kernel::source_file(&layout, "Makefile", &mut say)
            });
            // If the thread begins later, the test shows nothing, and passes.
            thread::sleep(Duration::from_millis(300));
            fs::create_dir_all(&source).unwrap();
            lock.unlock().unwrap();
            assert_eq!(found.join().unwrap().unwrap(), source.join("Makefile"));
        });
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest QEMU, as a second opinion on the module. It comes from Debian's
//! unstable suite with all packages that it depends on, is unpacked once in
//! `MACHINES/qemu-newest/` and never installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::apt::{Apt, UNSTABLE};
use crate::error::{Context, Result};
use crate::foreign;
use crate::kernel::unpack;
use crate::layout::Layout;
use crate::prepare;

const PACKAGE: &str = "qemu-system-x86";
const PROGRAM: &str = "usr/bin/qemu-system-x86_64";

/// Disk space for the packages, downloaded and unpacked, in bytes.
const NEEDED_SPACE: u64 = 400 << 20;

pub(crate) struct Qemu {
    root: PathBuf,
}

impl Qemu {
    /// Finds it or fetches it.
    pub(crate) fn prepare(layout: &Layout, say: fn(&str)) -> Result<Self> {
        let machines =
            std::path::absolute(&layout.machines).context("finding the cache of machines")?;
        let root = machines.join("qemu-newest");
        if !root.exists() {
            fetch(&machines, &root, say)?;
        }
        Ok(Qemu { root })
    }

    /// The emulator's program.
    pub(crate) fn program(&self) -> PathBuf {
        self.root.join(PROGRAM)
    }

    /// Arguments for its own firmware, which it uses instead of the installed one.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let data = ["usr/share/qemu", "usr/share/seabios"];
        data.iter().flat_map(|directory| ["-L".into(), self.root.join(directory).into()]).collect()
    }

    /// The variable that names the directory of its own plug-ins.
    pub(crate) fn environment(&self) -> (&'static str, PathBuf) {
        ("QEMU_MODULE_DIR", self.root.join("usr/lib/x86_64-linux-gnu/qemu"))
    }
}

fn fetch(machines: &Path, root: &Path, say: fn(&str)) -> Result<()> {
    prepare::once(
        machines,
        root,
        NEEDED_SPACE,
        || root.exists(),
        |work| {
            say(&format!("{PACKAGE}: reading the package lists of {UNSTABLE}"));
            let apt = Apt::update(&machines.join("apt").join(UNSTABLE), UNSTABLE)?;
            let package = apt.newest(PACKAGE, |_| true)?;
            say(&format!("{PACKAGE}: downloading {} and its libraries", package.version));
            let archives = apt.download_with_dependencies(&package, &work.join("packages"))?;
            say(&format!("{PACKAGE}: unpacking"));
            let new = work.join("root");
            for archive in &archives {
                unpack(archive, &new)?;
            }
            foreign::adopt(&new, root)?;
            Ok(new)
        },
    )
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's file system. Its lowest layer is the host's root, read-only
//! over 9p, or copies of the host's files on disks. An overlay in memory lies
//! over it. The shared directories, in which writes reach the host, are mounted where
//! the host has them, and the kernel's own file systems on top.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use dune_protocol::{Root, Setup, Share, IMAGE_DISKS, ROOT_TAG};
use nix::mount::{mount, MsFlags};
use nix::unistd::{chdir, chroot};

use crate::wait::wait_for;

const LOWER: &str = "/host";
/// The layer above LOWER, if the files are copies.
const COPIES: &str = "/copies";
const OVERLAY: &str = "/overlay";
const ROOT: &str = "/root";

/// The host's root does not change while a machine reads it, so all of it may
/// be cached. msize is the most that virtio-9p can carry in one request.
const LOWER_OPTIONS: &str = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";

/// Both sides write to a shared directory, so only mmap uses the page cache, which
/// it needs since programs must be able to map files there.
const SHARE_OPTIONS: &str = "trans=virtio,version=9p2000.L,msize=512000,cache=mmap";

/// How long a disk may take to appear after its driver was loaded.
const DISK_LIMIT: Duration = Duration::from_secs(60);

/// Mounts what the agent itself needs, in the initramfs.
pub fn mount_kernel_filesystems() -> Result<()> {
    mount_new("proc", "/proc", "")?;
    mount_new("sysfs", "/sys", "")?;
    mount_new("devtmpfs", "/dev", "mode=0755")
}

/// Makes the host's files the root of this process and of all later ones.
pub fn mount_root(setup: &Setup) -> Result<()> {
    match setup.shares.iter().find(|share| share.path == Path::new("/")) {
        Some(share) => mount_9p(&share.tag, ROOT, SHARE_OPTIONS, MsFlags::empty())?,
        None => mount_overlay(setup.root)?,
    }
    // The outer of two nested directories must be mounted first.
    let mut shares: Vec<&Share> =
        setup.shares.iter().filter(|share| share.path != Path::new("/")).collect();
    shares.sort_by_key(|share| share.path.components().count());
    for share in shares {
        let target = below_root(&share.path);
        mount_9p(&share.tag, &target, SHARE_OPTIONS, MsFlags::empty())
            .with_context(|| format!("sharing {}", share.path.display()))?;
    }
    mount_modules(&setup.modules_root).context("the kernel's modules")?;
    for name in ["proc", "sys", "dev"] {
        let to = Path::new(ROOT).join(name);
        fs::create_dir_all(&to).ok();
        mount_with(Some(Path::new("/").join(name)), &to, None, MsFlags::MS_MOVE, "")?;
    }
    switch_root()?;
    mount_in_new_root()
}

fn mount_overlay(root: Root) -> Result<()> {
    let lower = match root {
        Root::Shared => {
            mount_9p(ROOT_TAG, LOWER, LOWER_OPTIONS, MsFlags::MS_RDONLY)?;
            LOWER.to_owned()
        }
        Root::Images => {
            for (disk, directory) in IMAGE_DISKS.iter().zip([LOWER, COPIES]) {
                let (flags, from) = (MsFlags::MS_RDONLY, find_disk(disk)?);
                mount_with(Some(from), Path::new(directory), Some("squashfs"), flags, "")?;
            }
            format!("{COPIES}:{LOWER}")
        }
    };
    mount_new("tmpfs", OVERLAY, "mode=0755,size=80%,nr_inodes=0")?;
    let (upper, work) = (format!("{OVERLAY}/upper"), format!("{OVERLAY}/work"));
    fs::create_dir(&upper)?;
    fs::create_dir(&work)?;
    mount_new("overlay", ROOT, &format!("lowerdir={lower},upperdir={upper},workdir={work}"))
}

/// Waits for a disk.
fn find_disk(address: &str) -> Result<PathBuf> {
    let directory = format!("/sys/bus/scsi/devices/{address}/block");
    let disk = wait_for(DISK_LIMIT, || {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut devices = entries.map(|entry| Path::new("/dev").join(entry.file_name()));
        devices.find(|device| device.exists())
    });
    disk.with_context(|| format!("there is no disk {address}"))
}

/// Shows the running kernel's modules where modprobe looks for them.
fn mount_modules(host: &Path) -> Result<()> {
    let release = nix::sys::utsname::uname()?.release().to_owned();
    let from = below_root(host).join("lib/modules").join(&release);
    let to = Path::new(ROOT).join("lib/modules").join(&release);
    if from.is_dir() && fs::create_dir_all(&to).is_ok() {
        mount_with(Some(from), &to, None, MsFlags::MS_BIND, "")?;
    }
    Ok(())
}

fn switch_root() -> Result<()> {
    // The agent is in memory already and does not need its file any more.
    fs::remove_file("/init").ok();
    chdir(ROOT)?;
    mount_with(Some(".".into()), Path::new("/"), None, MsFlags::MS_MOVE, "")?;
    chroot(".")?;
    chdir("/")?;
    Ok(())
}

fn mount_in_new_root() -> Result<()> {
    mount_new("devpts", "/dev/pts", "mode=0620,gid=5,ptmxmode=0666")?;
    mount_new("tmpfs", "/dev/shm", "mode=1777")?;
    mount_new("tmpfs", "/run", "mode=0755")?;
    DirBuilder::new().mode(0o1777).create("/run/lock").ok();
    for (link, to) in [
        ("fd", "self/fd"),
        ("stdin", "self/fd/0"),
        ("stdout", "self/fd/1"),
        ("stderr", "self/fd/2"),
    ] {
        std::os::unix::fs::symlink(Path::new("/proc").join(to), Path::new("/dev").join(link)).ok();
    }
    // A kernel may lack any of these, which is no reason to fail.
    for (kind, target) in [
        ("tracefs", "/sys/kernel/tracing"),
        ("debugfs", "/sys/kernel/debug"),
        ("securityfs", "/sys/kernel/security"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("mqueue", "/dev/mqueue"),
    ] {
        mount_new(kind, target, "").ok();
    }
    Ok(())
}

/// Makes a device node usable by every user, as a udev rule does elsewhere.
pub fn allow_everyone(node: &Path) -> Result<()> {
    Ok(fs::set_permissions(node, Permissions::from_mode(0o666))?)
}

fn below_root(path: &Path) -> PathBuf {
    Path::new(ROOT).join(path.strip_prefix("/").unwrap_or(path))
}

fn mount_9p(tag: &str, target: impl AsRef<Path>, options: &str, flags: MsFlags) -> Result<()> {
    let target = target.as_ref();
    fs::create_dir_all(target).ok();
    mount_with(Some(tag.into()), target, Some("9p"), flags, options)
}

fn mount_new(kind: &str, target: &str, options: &str) -> Result<()> {
    fs::create_dir_all(target).ok();
    mount_with(Some(kind.into()), Path::new(target), Some(kind), MsFlags::empty(), options)
}

fn mount_with(
    source: Option<PathBuf>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    options: &str,
) -> Result<()> {
    mount(source.as_deref(), target, kind, flags, Some(options)).with_context(|| {
        format!("mounting {} on {}", kind.unwrap_or("a directory"), target.display())
    })
}

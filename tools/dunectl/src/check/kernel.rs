// SPDX-License-Identifier: MIT OR Apache-2.0
//! The running kernel: its version, what it permits, and the module.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dune_machine::{Layout, Series};
use nix::unistd::{Gid, Group};

use super::{read, Finding};
use crate::run::{open_device, DEVICE};

/// The module that programs in Dune mode need. `dunectl guard check` is for the other one.
const MODULE: &str = "dune";

/// The findings on the running kernel and the module. What they need differs a little by vendor.
pub fn findings(layout: &Layout, amd: bool) -> Vec<Finding> {
    let release = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let loaded = Path::new("/sys/module").join(MODULE).exists();
    let mut findings =
        vec![version(&release), lockdown(), secure_boot(), kvm(), kprobes(has_kprobes(), amd)];
    if !loaded {
        findings.push(headers(&release));
    }
    findings.push(module(layout, &release, loaded));
    findings.push(device(loaded));
    findings.push(runtime(layout));
    findings
}

fn version(release: &str) -> Finding {
    if Series::is_tested(release) {
        Finding::good("kernel", release)
    } else {
        let names = Series::tested().join(", ");
        Finding::note("kernel", format!("{release}; the tests run on Debian's {names}"))
    }
}

/// "none [integrity] confidentiality"
fn lockdown() -> Finding {
    let text = read("/sys/kernel/security/lockdown");
    let mode = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    match mode.map_or("none", |(mode, _)| mode) {
        "none" => Finding::good("lockdown", "off"),
        mode => Finding::note("lockdown", format!("{mode}: {SIGNED_ONLY}")),
    }
}

const SIGNED_ONLY: &str = "only signed modules load; dkms signs the modules with a key that \
     the firmware must learn once: mokutil --import /var/lib/dkms/mok.pub";

/// An EFI variable: four bytes of attributes, then one byte, where 1 means on.
fn secure_boot() -> Finding {
    const VARIABLE: &str =
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    let enforced = read("/sys/module/module/parameters/sig_enforce").trim() == "Y";
    match std::fs::read(VARIABLE) {
        Ok(variable) if variable.get(4) == Some(&1) => {
            Finding::note("Secure Boot", format!("on: {SIGNED_ONLY}"))
        }
        _ if enforced => Finding::note("signatures", format!("enforced: {SIGNED_ONLY}")),
        Ok(_) => Finding::good("Secure Boot", "off"),
        Err(_) if !Path::new("/sys/firmware/efi").exists() => {
            Finding::good("Secure Boot", "this computer did not boot by EFI")
        }
        Err(e) => Finding::note("Secure Boot", format!("unknown: {VARIABLE}: {e}")),
    }
}

/// Dune can be used alongside KVM in each of its states.
fn kvm() -> Finding {
    let users = |name: &str| {
        let module = Path::new("/sys/module").join(name);
        module.exists().then(|| read(module.join("refcnt")).trim().parse::<u32>().ok())
    };
    let machines = |users| match users {
        Some(0) => "no virtual machine runs",
        Some(_) => "virtual machines run",
        // A KVM that is part of the kernel's image has no count.
        None => "whether virtual machines run is unknown",
    };
    match users("kvm_amd").or(users("kvm_intel")) {
        Some(users) => Finding::good(
            "KVM",
            format!("loaded, {}: dune.ko can be used alongside it", machines(users)),
        ),
        None => Finding::good("KVM", "not loaded: dune.ko enables virtualization itself"),
    }
}

/// The module looks functions of the kernel up by a kprobe: the dispatcher of system calls, without
/// which they take the slow path, and on Intel the function that changes CR4, without which the
/// module does not load.
fn kprobes(has: bool, amd: bool) -> Finding {
    match (has, amd) {
        (true, _) => Finding::good("kprobes", "yes: system calls take the fast path"),
        (false, true) => Finding::note("kprobes", "none: system calls take the slow path"),
        (false, false) => Finding::lacking(
            "kprobes",
            "none: on Intel dune.ko does not load; boot a kernel with CONFIG_KPROBES",
        ),
    }
}

fn has_kprobes() -> bool {
    Path::new("/sys/kernel/debug/kprobes").exists() || has_symbol("register_kprobe")
}

fn has_symbol(name: &str) -> bool {
    read("/proc/kallsyms").lines().any(|line| line.split_whitespace().nth(2) == Some(name))
}

fn headers(release: &str) -> Finding {
    if Path::new("/lib/modules").join(release).join("build").exists() {
        Finding::good("headers", "installed, to build the modules with")
    } else {
        Finding::lacking(
            "headers",
            format!("none to build the modules with: apt-get install linux-headers-{release}"),
        )
    }
}

fn module(layout: &Layout, release: &str, is_loaded: bool) -> Finding {
    if is_loaded {
        return Finding::good("module", format!("{MODULE}.ko is loaded"));
    }
    if is_installed(release) {
        let advice = format!("installed, not loaded: as root, modprobe {MODULE}");
        return Finding::lacking("module", advice);
    }
    match layout.module(MODULE, release) {
        Some(path) => Finding::lacking(
            "module",
            format!("built, not loaded: as root, insmod {}", path.display()),
        ),
        None => Finding::lacking(
            "module",
            "not built for this kernel: install the package dune-dkms, or make module, in the \
             sources",
        ),
    }
}

/// Whether modprobe finds the module, installed by dkms or by hand.
fn is_installed(release: &str) -> bool {
    let dependencies = Path::new("/lib/modules").join(release).join("modules.dep");
    read(dependencies).lines().any(|line| {
        let file = line.split(':').next().unwrap_or_default().rsplit('/').next();
        // It may be compressed: "dune.ko.xz".
        let rest = file.and_then(|file| file.strip_prefix(MODULE)?.strip_prefix(".ko"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn device(loaded: bool) -> Finding {
    match (open_device(), loaded) {
        (Ok(()), _) => Finding::good("device", format!("{DEVICE} may be used{}", rights())),
        (Err(e), _) if e.kind() == std::io::ErrorKind::PermissionDenied => Finding::lacking(
            "device",
            format!("you may not use {DEVICE}{}: {}", rights(), permission_advice()),
        ),
        (Err(_), false) => Finding::lacking("device", format!("no {DEVICE}: load the module")),
        (Err(e), true) => Finding::lacking(
            "device",
            format!("{DEVICE}: {e}; the kernel's log (dmesg) has the reason"),
        ),
    }
}

/// " (group dune, mode 0660)"
fn rights() -> String {
    let Ok(data) = std::fs::metadata(DEVICE) else { return String::new() };
    format!(" (group {}, mode {:04o})", group_name(data.gid()), data.mode() & 0o7777)
}

fn group_name(gid: u32) -> String {
    match Group::from_gid(Gid::from_raw(gid)) {
        Ok(Some(group)) => group.name,
        _ => gid.to_string(),
    }
}

fn permission_advice() -> String {
    let data = std::fs::metadata(DEVICE);
    match data.ok().filter(|data| data.gid() != 0 && data.mode() & 0o060 == 0o060) {
        Some(data) => {
            let group = group_name(data.gid());
            format!("as root, adduser YOU {group}, and log in again (or: newgrp {group})")
        }
        None => "install packaging/60-dune.rules for udev, which gives it to the group dune".into(),
    }
}

fn runtime(layout: &Layout) -> Finding {
    match layout.runtime() {
        Ok(path) => Finding::good("runtime", path.display().to_string()),
        Err(e) => Finding::lacking("runtime", e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    #[test]
    fn only_intel_cannot_do_without_kprobes() {
        assert_eq!(kprobes(true, true).level, Level::Good);
        assert_eq!(kprobes(true, false).level, Level::Good);
        assert_eq!(kprobes(false, true).level, Level::Note);
        assert_eq!(kprobes(false, false).level, Level::Lacking);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The running kernel: which one, what it permits, and the module.

use std::path::Path;

use dune_machine::{Layout, Series};

use super::{read, Finding};
use crate::run::{open_device, DEVICE};

pub fn findings(layout: &Layout) -> Vec<Finding> {
    let release = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let loaded = Path::new("/sys/module/dune").exists();
    let mut findings = vec![version(&release), lockdown(), secure_boot(), kvm(), trace()];
    if !loaded {
        findings.push(headers(&release));
    }
    findings.push(module(layout, &release, loaded));
    findings.push(device(loaded));
    findings.push(runtime(layout));
    findings
}

fn version(release: &str) -> Finding {
    let tested = Series::ALL.iter().any(|series| {
        release.strip_prefix(series.name()).is_some_and(|rest| rest.starts_with(['.', '-']))
    });
    match tested {
        true => Finding::good("kernel", release),
        false => {
            let names = Series::ALL.map(Series::name).join(" and ");
            Finding::note("kernel", format!("{release}; the tests run on Debian's {names}"))
        }
    }
}

/// "none [integrity] confidentiality"
fn lockdown() -> Finding {
    let text = read("/sys/kernel/security/lockdown");
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        None => Finding::good("lockdown", "not in this kernel, or not to be seen"),
        Some(("none", _)) => Finding::good("lockdown", "off"),
        Some((mode, _)) => Finding::lacking(
            "lockdown",
            format!(
                "{mode}: only signed modules load; sign dune.ko with a key that the \
                     firmware knows (mokutil --import), or boot with lockdown=none"
            ),
        ),
    }
}

/// An EFI variable: four bytes of attributes, then one: 1 is on.
fn secure_boot() -> Finding {
    const VARIABLE: &str =
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    match std::fs::read(VARIABLE).unwrap_or_default().get(4) {
        Some(1) => Finding::note(
            "Secure Boot",
            "on: a kernel that enforces it loads dune.ko only signed (mokutil --import), or turn \
             it off in the firmware's set-up",
        ),
        Some(_) => Finding::good("Secure Boot", "off"),
        None => Finding::good("Secure Boot", "this computer did not boot by EFI"),
    }
}

fn kvm() -> Finding {
    let users = read("/sys/module/kvm_amd/refcnt").trim().parse().unwrap_or(0u32);
    match (Path::new("/sys/module/kvm_amd").exists(), users) {
        (false, _) => Finding::good("KVM", "kvm_amd is not loaded"),
        (true, 0) => Finding::good("KVM", "kvm_amd is loaded and no virtual machine runs"),
        (true, _) => Finding::note(
            "KVM",
            "virtual machines run: where dune.ko says that SVM is in use, end them first",
        ),
    }
}

/// The fast path of system calls looks a symbol up by a kprobe.
fn trace() -> Finding {
    match Path::new("/sys/kernel/debug/kprobes").exists() || has_symbol("register_kprobe") {
        true => Finding::good("kprobes", "yes: system calls take the fast path"),
        false => Finding::note("kprobes", "none: system calls take the slow path"),
    }
}

fn has_symbol(name: &str) -> bool {
    read("/proc/kallsyms").lines().any(|line| line.split_whitespace().nth(2) == Some(name))
}

fn headers(release: &str) -> Finding {
    match Path::new("/lib/modules").join(release).join("build").exists() {
        true => Finding::good("headers", "installed, to build dune.ko with"),
        false => Finding::lacking(
            "headers",
            format!("none to build dune.ko with: apt-get install linux-headers-{release}"),
        ),
    }
}

fn module(layout: &Layout, release: &str, loaded: bool) -> Finding {
    match (loaded, layout.module(release)) {
        (true, _) => Finding::good("module", "dune.ko is loaded"),
        (false, Some(path)) => {
            let advice = format!("built, not loaded: insmod {}", path.display());
            Finding::lacking("module", advice)
        }
        (false, None) => {
            Finding::lacking("module", "not built for this kernel: make module, in the sources")
        }
    }
}

fn device(loaded: bool) -> Finding {
    match (open_device(), loaded) {
        (Ok(()), _) => Finding::good("device", format!("{DEVICE} may be used")),
        (Err(e), _) if e.kind() == std::io::ErrorKind::PermissionDenied => Finding::lacking(
            "device",
            format!("{DEVICE} is not for you: as root, chmod 666 {DEVICE}, or a udev rule"),
        ),
        (Err(_), false) => Finding::lacking("device", format!("no {DEVICE}: load the module")),
        (Err(e), true) => {
            Finding::lacking("device", format!("{DEVICE}: {e}; the kernel's log (dmesg) says why"))
        }
    }
}

fn runtime(layout: &Layout) -> Finding {
    match layout.runtime() {
        Ok(path) => Finding::good("runtime", path.display().to_string()),
        Err(e) => Finding::lacking("runtime", e.to_string()),
    }
}

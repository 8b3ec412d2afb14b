// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor, as /proc/cpuinfo describes it, and what the firmware allows.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Finding;

/// On AMD a guest-physical address is an address of the process: 47 bits
/// (docs/architecture.md, Memory).
const NEEDED_BITS: u32 = 47;

/// The MSRs in which the firmware forbids virtualization: VM_CR (APM 15.30.1)
/// and IA32_FEATURE_CONTROL (SDM 25.7).
const VM_CR: u64 = 0xc001_0114;
const VM_CR_SVMDIS: u64 = 1 << 4;
const FEATURE_CONTROL: u64 = 0x3a;
const FEATURE_CONTROL_LOCK: u64 = 1 << 0;
const FEATURE_CONTROL_VMX: u64 = 1 << 2;

struct Cpu<'a> {
    text: &'a str,
}

impl<'a> Cpu<'a> {
    fn field(&self, name: &str) -> Option<&'a str> {
        self.text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    }

    fn has_in(&self, field: &str, flag: &str) -> bool {
        self.field(field).unwrap_or_default().split_whitespace().any(|word| word == flag)
    }

    fn has(&self, flag: &str) -> bool {
        self.has_in("flags", flag)
    }
}

pub fn findings(cpuinfo: &str) -> Vec<Finding> {
    let cpu = Cpu { text: cpuinfo };
    let model = cpu.field("model name").unwrap_or("unknown");
    let amd = matches!(cpu.field("vendor_id"), Some("AuthenticAMD" | "HygonGenuine"));
    if amd && cpu.has("svm") {
        let mut findings = vec![Finding::good("processor", format!("{model}, with AMD-V (SVM)"))];
        findings.extend(read_msr(VM_CR).map(vm_cr));
        findings.extend(svm(&cpu));
        return findings;
    }
    if !amd && cpu.has("vmx") {
        let mut findings = vec![Finding::good("processor", format!("{model}, with VT-x"))];
        findings.extend(read_msr(FEATURE_CONTROL).map(feature_control));
        findings.extend(vmx(&cpu));
        findings.extend(
            cpu.has("fred").then(|| {
                Finding::lacking("exceptions", "the kernel uses FRED: boot with fred=off")
            }),
        );
        return findings;
    }
    let name =
        if amd { "AMD-V (\"SVM Mode\")" } else { "VT-x (\"Intel Virtualization Technology\")" };
    let advice = format!(
        "{model}, without virtualization, or the firmware hides it: enable {name} in the \
         firmware's set-up; in a virtual machine, nested virtualization"
    );
    vec![Finding::lacking("processor", advice)]
}

fn svm(cpu: &Cpu) -> Vec<Finding> {
    vec![
        needed(cpu.has("npt"), "nested paging", "flag npt"),
        match cpu.field("address sizes").and_then(physical_bits) {
            Some(bits) if bits >= NEEDED_BITS => {
                Finding::good("addresses", format!("{bits} bits physical"))
            }
            Some(bits) => Finding::lacking(
                "addresses",
                format!(
                    "{bits} bits physical, of {NEEDED_BITS}; in QEMU, add phys-bits=48 to -cpu"
                ),
            ),
            None => Finding::note("addresses", "the kernel does not tell how wide they are"),
        },
    ]
}

fn vmx(cpu: &Cpu) -> Vec<Finding> {
    let has = |flag| cpu.has_in("vmx flags", flag);
    vec![
        needed(has("ept"), "nested paging", "EPT; flag ept of \"vmx flags\""),
        needed(has("vpid"), "TLB tags", "VPID; flag vpid of \"vmx flags\""),
        match has("ept_ad") {
            true => Finding::good("accessed bits", "yes (EPT A/D)"),
            false => Finding::good(
                "accessed bits",
                "no EPT A/D: the kernel takes pages of Dune processes for old ones sooner",
            ),
        },
        match cpu.field("address sizes").and_then(physical_bits) {
            Some(bits) => {
                let reach = (1u64 << bits.min(47)) >> 30;
                let text = format!("{bits} bits physical: a program may touch {reach} GB");
                Finding::good("addresses", text)
            }
            None => Finding::note("addresses", "the kernel does not tell how wide they are"),
        },
    ]
}

fn needed(has: bool, subject: &'static str, what: &str) -> Finding {
    match has {
        true => Finding::good(subject, "yes"),
        false => Finding::lacking(
            subject,
            format!("no ({what}): too old a processor, or a hypervisor that does not show it"),
        ),
    }
}

fn vm_cr(value: u64) -> Finding {
    match value & VM_CR_SVMDIS {
        0 => Finding::good("firmware", "leaves SVM on"),
        _ => Finding::lacking("firmware", "forbids SVM: enable \"SVM Mode\" in its set-up"),
    }
}

/// Not locked means that the kernel may enable it, and does.
fn feature_control(value: u64) -> Finding {
    match (value & FEATURE_CONTROL_LOCK, value & FEATURE_CONTROL_VMX) {
        (0, _) => Finding::good("firmware", "leaves VT-x to the kernel"),
        (_, 0) => Finding::lacking(
            "firmware",
            "forbids VT-x: enable \"Intel Virtualization Technology\" in its set-up",
        ),
        _ => Finding::good("firmware", "leaves VT-x on"),
    }
}

/// Only root may, and only where the driver msr is loaded. The kernel, too,
/// looks there, and hides the feature that is forbidden (AMD's since 6.6).
fn read_msr(number: u64) -> Option<u64> {
    let mut value = [0; 8];
    File::open("/dev/cpu/0/msr").ok()?.read_exact_at(&mut value, number).ok()?;
    Some(u64::from_le_bytes(value))
}

/// "48 bits physical, 48 bits virtual"
fn physical_bits(text: &str) -> Option<u32> {
    text.split_once(" bits physical")?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    fn lacking(cpuinfo: &str) -> Vec<&'static str> {
        let all = findings(cpuinfo).into_iter();
        all.filter(|one| one.level == Level::Lacking && one.subject != "firmware")
            .map(|one| one.subject)
            .collect()
    }

    #[test]
    fn complete_processors_lack_nothing() {
        let amd = "vendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nflags\t\t: fpu svm npt pdpe1gb\n\
                   address sizes\t: 48 bits physical, 48 bits virtual\n";
        assert!(lacking(amd).is_empty());
        let intel = "vendor_id : GenuineIntel\nflags : fpu vmx\nvmx flags : ept vpid\n\
                     address sizes : 36 bits physical, 48 bits virtual\n";
        assert!(lacking(intel).is_empty());
        let text = &findings(intel).pop().unwrap().text;
        assert!(text.ends_with("may touch 64 GB"), "{text}");
    }

    #[test]
    fn narrow_addresses_are_found() {
        let text = "vendor_id\t: AuthenticAMD\nflags\t\t: svm npt pdpe1gb\n\
                    address sizes\t: 40 bits physical, 48 bits virtual\n";
        assert_eq!(lacking(text), ["addresses"]);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(
            lacking("vendor_id : GenuineIntel\nflags : vmx\nvmx flags : vnmi ept_ad\n"),
            ["nested paging", "TLB tags"]
        );
        assert_eq!(lacking("vendor_id : GenuineIntel\nflags : fpu\n"), ["processor"]);
        assert_eq!(lacking("vendor_id : AuthenticAMD\nflags : fpu\n"), ["processor"]);
        assert_eq!(lacking(""), ["processor"]);
    }

    #[test]
    fn the_firmware_has_a_say() {
        assert_eq!(vm_cr(VM_CR_SVMDIS).level, Level::Lacking);
        assert_eq!(vm_cr(0).level, Level::Good);
        assert_eq!(feature_control(0).level, Level::Good);
        assert_eq!(feature_control(FEATURE_CONTROL_LOCK).level, Level::Lacking);
        assert_eq!(feature_control(FEATURE_CONTROL_LOCK | FEATURE_CONTROL_VMX).level, Level::Good);
    }
}

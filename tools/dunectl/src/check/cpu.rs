// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor, as /proc/cpuinfo describes it, and what the firmware allows.

use std::arch::x86_64::__cpuid;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Finding;

/// The address bits that the sandbox needs on AMD, where a guest-physical address is the process's.
/// Private memory lies above all of these: from 2^47 on, or from 2^48 if the kernel's page tables
/// have five levels (docs/architecture.md, Memory).
const NEEDED_BITS: u32 = 48;
const NEEDED_BITS_5_LEVELS: u32 = 49;

/// The MSRs in which the firmware forbids virtualization: VM_CR (APM 15.30.1)
/// and IA32_FEATURE_CONTROL (SDM 24.7).
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

    fn is_amd(&self) -> bool {
        matches!(self.field("vendor_id"), Some("AuthenticAMD" | "HygonGenuine"))
    }
}

/// Whether the processor has AMD's virtualization, if it has any.
pub fn is_amd(cpuinfo: &str) -> bool {
    Cpu { text: cpuinfo }.is_amd()
}

/// The width of a guest-physical address. /proc/cpuinfo shows less where memory
/// is encrypted: the bits of the key, which guests do not have (APM vol. 3,
/// E.4.7; `guest_address_bits()` of the module).
pub fn guest_address_bits() -> u32 {
    // SAFETY: every processor in 64-bit mode has the instruction and this
    // leaf. (Newer Rust knows that by itself.)
    #[allow(unused_unsafe)]
    let leaf = unsafe { __cpuid(0x8000_0008) };
    guest_bits(leaf.eax)
}

fn guest_bits(eax: u32) -> u32 {
    match eax >> 16 & 0xff {
        0 => eax & 0xff,
        bits => bits,
    }
}

/// Findings from /proc/cpuinfo and the width of a guest-physical address.
pub fn findings(cpuinfo: &str, bits: u32) -> Vec<Finding> {
    let cpu = Cpu { text: cpuinfo };
    let model = cpu.field("model name").unwrap_or("unknown");
    let amd = cpu.is_amd();
    if amd && cpu.has("svm") {
        let mut findings = vec![Finding::good("processor", format!("{model}, with AMD-V (SVM)"))];
        findings.extend(read_msr(VM_CR).map(vm_cr));
        findings.extend(svm(&cpu, bits));
        return findings;
    }
    if !amd && cpu.has("vmx") {
        let mut findings = vec![Finding::good("processor", format!("{model}, with VT-x"))];
        findings.extend(read_msr(FEATURE_CONTROL).map(feature_control));
        findings.extend(vmx(&cpu, bits));
        findings.extend(meltdown(&cpu));
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

/// On such a processor the runtime's memory is no secret (docs/mitigations.md).
fn meltdown(cpu: &Cpu) -> Option<Finding> {
    cpu.has_in("bugs", "cpu_meltdown").then(|| {
        Finding::note(
            "Meltdown",
            "a program in the sandbox can read its own runtime's memory, but not the kernel's",
        )
    })
}

fn svm(cpu: &Cpu, bits: u32) -> Vec<Finding> {
    // The kernel shows the flag only if its page tables have five levels.
    let wanted = if cpu.has("la57") { NEEDED_BITS_5_LEVELS } else { NEEDED_BITS };
    let mut findings = vec![
        needed(cpu.has("npt"), "nested paging", "flag npt"),
        if bits >= wanted {
            Finding::good("addresses", format!("{bits} bits guest-physical"))
        } else {
            Finding::lacking(
                "addresses",
                format!(
                    "{bits} bits guest-physical, of {wanted}; in QEMU, add phys-bits={wanted} to \
                     -cpu"
                ),
            )
        },
    ];
    if cpu.has_in("bugs", "tlb_mmatch") {
        findings.push(Finding::lacking(
            "erratum 383",
            "AMD family 10h, on which a guest could stop the computer: dune.ko does not load",
        ));
    }
    findings
}

fn vmx(cpu: &Cpu, bits: u32) -> Vec<Finding> {
    let has = |flag| cpu.has_in("vmx flags", flag);
    // A granule is a gigabyte. libdune numbers them by 16 bits, and never uses
    // number 0 (libdune/memory/granule.c).
    let reach = (1u64 << bits.min(46)) / (1 << 30) - 1;
    vec![
        needed(has("ept"), "nested paging", "EPT; flag ept of \"vmx flags\""),
        needed(has("vpid"), "TLB tags", "VPID; flag vpid of \"vmx flags\""),
        if has("ept_ad") {
            Finding::good("accessed bits", "yes (EPT A/D)")
        } else {
            Finding::good(
                "accessed bits",
                "no EPT A/D: the kernel considers pages of Dune processes old sooner",
            )
        },
        Finding::good(
            "addresses",
            format!(
                "{bits} bits guest-physical: a program may use memory in {reach} different \
                 gigabytes"
            ),
        ),
    ]
}

fn needed(has: bool, subject: &'static str, feature: &str) -> Finding {
    if has {
        Finding::good(subject, "yes")
    } else {
        Finding::lacking(
            subject,
            format!("no ({feature}): the processor is too old, or a hypervisor hides it"),
        )
    }
}

fn vm_cr(value: u64) -> Finding {
    match value & VM_CR_SVMDIS {
        0 => Finding::good("firmware", "leaves SVM enabled"),
        _ => Finding::lacking("firmware", "forbids SVM: enable \"SVM Mode\" in its set-up"),
    }
}

/// If the firmware has not locked IA32_FEATURE_CONTROL, the kernel sets it, and enables VT-x.
fn feature_control(value: u64) -> Finding {
    match (value & FEATURE_CONTROL_LOCK, value & FEATURE_CONTROL_VMX) {
        (0, _) => Finding::good("firmware", "leaves VT-x to the kernel"),
        (_, 0) => Finding::lacking(
            "firmware",
            "forbids VT-x: enable \"Intel Virtualization Technology\" in its set-up",
        ),
        _ => Finding::good("firmware", "leaves VT-x enabled"),
    }
}

/// Reads an MSR, which only root may do, and only if the driver msr is loaded.
/// The kernel looks there as well, and hides a feature that is forbidden (AMD's
/// since 6.6).
fn read_msr(number: u64) -> Option<u64> {
    let mut value = [0; 8];
    File::open("/dev/cpu/0/msr").ok()?.read_exact_at(&mut value, number).ok()?;
    Some(u64::from_le_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    fn lacking(cpuinfo: &str, bits: u32) -> Vec<String> {
        let all = findings(cpuinfo, bits).into_iter();
        all.filter(|one| one.level == Level::Lacking && one.subject != "firmware")
            .map(|one| one.subject)
            .collect()
    }

    #[test]
    fn complete_processors_lack_nothing() {
        let amd = "vendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nflags\t\t: fpu svm npt pdpe1gb\n";
        assert!(lacking(amd, 48).is_empty());
        let intel = "vendor_id : GenuineIntel\nflags : fpu vmx\nvmx flags : ept vpid\n";
        assert!(lacking(intel, 36).is_empty());
        for (bits, reach) in [(36, 63), (40, 1023), (46, 65_535), (48, 65_535)] {
            let text = &findings(intel, bits).pop().unwrap().text;
            assert!(text.ends_with(&format!("in {reach} different gigabytes")), "{text}");
        }
    }

    #[test]
    fn narrow_addresses_are_found() {
        let text = "vendor_id\t: AuthenticAMD\nflags\t\t: svm npt pdpe1gb\n";
        assert_eq!(lacking(text, 40), ["addresses"]);
        assert_eq!(lacking(text, 47), ["addresses"]);
        assert!(lacking(text, 48).is_empty());
    }

    #[test]
    fn five_levels_need_one_more_address_bit() {
        let text = "vendor_id\t: AuthenticAMD\nflags\t\t: svm npt la57\n";
        assert_eq!(lacking(text, 48), ["addresses"]);
        assert!(lacking(text, 49).is_empty());
    }

    #[test]
    fn erratum_383_is_found() {
        let of = |bugs| format!("vendor_id : AuthenticAMD\nflags : svm npt\nbugs : {bugs}\n");
        assert_eq!(lacking(&of("tlb_mmatch fxsave_leak"), 48), ["erratum 383"]);
        assert!(lacking(&of("fxsave_leak"), 48).is_empty());
    }

    /// An EPYC with SME: the kernel shows 43 bits physical.
    #[test]
    fn bits_of_a_key_are_not_subtracted() {
        let text = "vendor_id\t: AuthenticAMD\nflags\t\t: svm npt sme\n\
                    address sizes\t: 43 bits physical, 48 bits virtual\n";
        assert!(lacking(text, guest_bits(0x3030)).is_empty());
        assert_eq!(guest_bits(0x30_3034), 48);
    }

    #[test]
    fn missing_features_are_named() {
        assert_eq!(
            lacking("vendor_id : GenuineIntel\nflags : vmx\nvmx flags : vnmi ept_ad\n", 46),
            ["nested paging", "TLB tags"]
        );
        assert_eq!(lacking("vendor_id : GenuineIntel\nflags : fpu\n", 46), ["processor"]);
        assert_eq!(lacking("vendor_id : AuthenticAMD\nflags : fpu\n", 48), ["processor"]);
        assert_eq!(lacking("", 0), ["processor"]);
    }

    #[test]
    fn firmware_that_disables_virtualization_is_lacking() {
        assert_eq!(vm_cr(VM_CR_SVMDIS).level, Level::Lacking);
        assert_eq!(vm_cr(0).level, Level::Good);
        assert_eq!(feature_control(0).level, Level::Good);
        assert_eq!(feature_control(FEATURE_CONTROL_LOCK).level, Level::Lacking);
        assert_eq!(feature_control(FEATURE_CONTROL_LOCK | FEATURE_CONTROL_VMX).level, Level::Good);
    }
}

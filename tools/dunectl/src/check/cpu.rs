// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor, as /proc/cpuinfo describes it.

use super::Finding;

/// A guest's CR3 is an address of the process: 47 bits (see DESIGN of the
/// shared root in docs/architecture.md).
const NEEDED_BITS: u32 = 47;

pub fn findings(cpuinfo: &str) -> Vec<Finding> {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    let flags: Vec<&str> = field("flags").unwrap_or_default().split_whitespace().collect();
    let has = |flag: &str| flags.contains(&flag);
    let model = field("model name").unwrap_or("unknown");
    let mut findings = Vec::new();
    match field("vendor_id") {
        Some("AuthenticAMD" | "HygonGenuine") if has("svm") => {
            findings.push(Finding::good("processor", format!("{model}, with SVM")));
        }
        Some("AuthenticAMD" | "HygonGenuine") => {
            let advice =
                "without SVM: enable it (\"SVM Mode\") in the firmware's set-up, or, in a \
                          virtual machine, nested virtualization";
            findings.push(Finding::lacking("processor", format!("{model}, {advice}")));
            return findings;
        }
        _ => {
            let advice = "only AMD processors are supported so far: use the emulated machine";
            findings.push(Finding::lacking("processor", format!("{model}; {advice}")));
            return findings;
        }
    }
    findings.push(match has("npt") {
        true => Finding::good("nested paging", "yes"),
        false => {
            Finding::lacking("nested paging", "no (flag npt): an older processor cannot run it")
        }
    });
    findings.push(match has("pdpe1gb") {
        true => Finding::good("1 GB pages", "yes"),
        false => {
            Finding::lacking("1 GB pages", "no (flag pdpe1gb): an older processor cannot run it")
        }
    });
    findings.push(match field("address sizes").and_then(physical_bits) {
        Some(bits) if bits >= NEEDED_BITS => {
            Finding::good("addresses", format!("{bits} bits physical"))
        }
        Some(bits) => Finding::lacking(
            "addresses",
            format!("{bits} bits physical, of {NEEDED_BITS}; in QEMU, add phys-bits=48 to -cpu"),
        ),
        None => Finding::note("addresses", "the kernel does not tell how wide they are"),
    });
    findings
}

/// "48 bits physical, 48 bits virtual"
fn physical_bits(text: &str) -> Option<u32> {
    text.split_once(" bits physical")?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    fn levels(cpuinfo: &str) -> Vec<Level> {
        findings(cpuinfo).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn a_complete_processor_lacks_nothing() {
        let text =
            "vendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nflags\t\t: fpu svm npt pdpe1gb\n\
                    address sizes\t: 48 bits physical, 48 bits virtual\n";
        assert_eq!(levels(text), [Level::Good; 4]);
    }

    #[test]
    fn narrow_addresses_are_found() {
        let text = "vendor_id\t: AuthenticAMD\nflags\t\t: svm npt pdpe1gb\n\
                    address sizes\t: 40 bits physical, 48 bits virtual\n";
        assert_eq!(levels(text)[3], Level::Lacking);
    }

    #[test]
    fn others_are_told_so() {
        assert_eq!(levels("vendor_id : GenuineIntel\nflags : vmx\n"), [Level::Lacking]);
        assert_eq!(levels(""), [Level::Lacking]);
        assert_eq!(levels("vendor_id : AuthenticAMD\nflags : fpu\n"), [Level::Lacking]);
    }
}

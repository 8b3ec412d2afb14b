// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the options that choose a machine, in dunectl and in dune-suite: parsers for
//! clap.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::device::Device;
use crate::kernel::Series;
use crate::machine_type::MachineType;

/// The names of the machine types, each with its line of help.
pub fn machine_type() -> impl TypedValueParser<Value = &'static MachineType> {
    let value = |one: &MachineType| PossibleValue::new(one.name).help(one.summary);
    PossibleValuesParser::new(MachineType::ALL.map(value))
        .try_map(|name| name.parse::<&'static MachineType>())
}

/// The names of the devices for tests, each with its line of help.
pub fn device() -> impl TypedValueParser<Value = &'static Device> {
    let value = |one: &Device| PossibleValue::new(one.name).help(one.summary);
    PossibleValuesParser::new(Device::ALL.map(value))
        .try_map(|name| name.parse::<&'static Device>())
}

/// The names of the kernel series.
pub fn kernel_series() -> impl TypedValueParser<Value = Series> {
    PossibleValuesParser::new(Series::ALL.map(Series::name)).try_map(|name| name.parse::<Series>())
}

/// The most CPUs that a machine may have.
pub const MOST_CPUS: u32 = 16;

/// A number of CPUs.
pub fn cpus() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(MOST_CPUS))
}

/// The emulator's name for a CPU model, which becomes part of a command line (QEMU) or of a
/// file of settings (Bochs).
///
/// # Errors
///
/// The name is empty, or has a character that is not a letter, a digit, '_', '-' or '.'.
pub fn cpu_model(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !text.is_empty() && text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("a name has letters, digits, '_', '-' and '.'".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpu_models_are_one_word() {
        assert_eq!(cpu_model("corei7_haswell_4770").as_deref(), Ok("corei7_haswell_4770"));
        for wrong in ["", "EPYC,+x2apic", "a b", "a\nb"] {
            assert!(cpu_model(wrong).is_err(), "{wrong:?}");
        }
    }
}

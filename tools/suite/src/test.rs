// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test and make test-all (parts.rs): the tools' own tests (tools.rs), the harness's (harness.rs), and
//! all TAP programs in machines (machines.rs, tap.rs), booted in several ways
//! (modes.rs). tally.rs adds up.

pub mod debug;
mod harness;
pub mod machines;
pub mod modes;
pub mod parts;
mod records;
mod tally;
mod tap;
mod tools;

use anyhow::Result;
use dune_machine::Series;

use crate::context::Context;
use machines::Phase;
use tally::Tally;

/// All TAP programs on these kernels.
pub fn run(context: &Context, kernels: &[Series], only: Option<&str>) -> Result<u8> {
    let mut tally = Tally::new();
    kernels_as_they_are(context, kernels, only, &mut tally)?;
    if only.is_none() && !context.is_vmx() {
        if kernels.contains(&Series::V6_1) {
            modes::run(context, Series::V6_1, None, "pti", &mut tally)?;
        }
        for &series in kernels {
            vmx_in_short(&context.with_vmx(), series, &mut tally)?;
        }
    }
    Ok(tally.close())
}

/// Every mechanism of the other vendor's once: the machine is too slow for more.
const VMX_SHORT: &[&str] = &[
    "kernel/coherence",
    "kernel/fpu",
    "kernel/granule",
    "kernel/hostile",
    "kernel/ptrace",
    "kernel/signals",
    "kernel/syscall",
    "kernel/uapi",
    "kvm/kvmguest",
    "libdune/",
];

fn vmx_in_short(context: &Context, series: Series, tally: &mut Tally) -> Result<()> {
    let mut phase = Phase::new(&context.name_of(series), context.machine(series)?);
    phase.proof = Some(modes::DEFAULT_PROOF);
    phase.folders = Some(VMX_SHORT.to_vec());
    machines::run(context, &phase, None, tally)
}

/// The same in a mode.
pub fn run_mode(
    context: &Context,
    kernels: &[Series],
    only: Option<&str>,
    name: &str,
) -> Result<u8> {
    let mut tally = Tally::new();
    for &series in kernels {
        modes::run(context, series, only, name, &mut tally)?;
    }
    Ok(tally.close())
}

fn kernels_as_they_are(
    context: &Context,
    kernels: &[Series],
    only: Option<&str>,
    tally: &mut Tally,
) -> Result<()> {
    // The slow machine is asked for by itself, after all else.
    let everything = only.is_none() && !context.is_vmx();
    if everything {
        tools::run(context, tally)?;
    }
    if everything || only == Some("harness") {
        harness::run(context, tally)?;
    }
    if only == Some("harness") {
        return Ok(());
    }
    for &series in kernels {
        kernel_as_it_is(context, series, only, tally)?;
    }
    Ok(())
}

fn kernel_as_it_is(
    context: &Context,
    series: Series,
    only: Option<&str>,
    tally: &mut Tally,
) -> Result<()> {
    // The processor is the same: one kernel in full will do.
    if context.is_vmx() && only.is_none() && series != Series::V6_1 {
        return vmx_in_short(context, series, tally);
    }
    let mut phase = Phase::new(&context.name_of(series), context.machine(series)?);
    phase.proof = Some(modes::DEFAULT_PROOF);
    machines::run(context, &phase, only, tally)
}

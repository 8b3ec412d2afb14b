// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test: the tools' own tests (tools.rs), the harness's (harness.rs), and
//! all TAP programs in machines (machines.rs, tap.rs). tally.rs adds up.

pub mod debug;
mod harness;
mod machines;
mod tally;
mod tap;
mod tools;

use anyhow::Result;
use dune_machine::Series;

use crate::context::Context;
use machines::Phase;
use tally::Tally;

pub fn run(context: &Context, kernels: &[Series], only: Option<&str>) -> Result<u8> {
    let mut tally = Tally::new();
    if only.is_none() {
        tools::run(context, &mut tally)?;
    }
    if only.is_none_or(|text| text == "harness") {
        harness::run(context, &mut tally)?;
    }
    if only == Some("harness") {
        return Ok(tally.close());
    }
    for &series in kernels {
        let phase = Phase::new(series.name(), context.machine(series)?);
        machines::run(context, &phase, only, &mut tally)?;
    }
    if only.is_none() && kernels.contains(&Series::V6_1) {
        let mut phase = Phase::new("6.1-pti", context.machine(Series::V6_1)?);
        phase.config.kernel_arguments.push("pti=on".to_owned());
        phase.folders = Some(vec!["kernel", "libdune", "run/hostile"]);
        machines::run(context, &phase, None, &mut tally)?;
    }
    Ok(tally.close())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test-debug: the module's tests on a kernel with KASAN, PROVE_LOCKING
//! and DEBUG_ATOMIC_SLEEP, which is built once and kept.

use std::process::Command;

use anyhow::{bail, Context as _, Result};
use dune_machine::{Kernel, Series};

use crate::context::Context;
use crate::test::machines::{self, Phase};
use crate::test::tally::Tally;

/// kmemleak would scan all of memory for minutes, and finds what is not ours. The
/// rest is a third of the time to boot: names of constants in trace events,
/// and a source of randomness.
const ARGUMENTS: [&str; 2] = ["kmemleak=off", "initcall_blacklist=trace_eval_init,jent_mod_init"];

/// The module's tests, or those programs of all whose name contains `only`.
pub fn run(context: &Context, only: Option<&str>) -> Result<u8> {
    let mut tally = Tally::new();
    let kernel = Kernel::prepare_debug(&context.layout, &mut |what| println!("{what}"))?;
    build_module(context, &kernel)?;
    let name = format!("{}-debug", context.name_of(Series::V6_1));
    let mut phase = Phase::new(&name, context.machine_of(kernel)?);
    phase.config.kernel_arguments.extend(ARGUMENTS.map(str::to_owned));
    phase.config.boot_timeout *= 3;
    phase.config.slow_motion = 4;
    phase.folders = Some(vec![only.map_or("kernel", |_| "")]);
    machines::run(context, &phase, only, &mut tally)?;
    Ok(tally.close())
}

fn build_module(context: &Context, kernel: &Kernel) -> Result<()> {
    let status = Command::new("make")
        .arg("-C")
        .arg(context.source.join("kernel"))
        .arg(format!("O={}", context.build.display()))
        .arg(format!("KDIR={}", kernel.headers().display()))
        .arg(format!("RELEASE={}", kernel.release))
        .env_remove("MAKEFLAGS")
        .status()
        .context("running make")?;
    match status.success() {
        true => Ok(()),
        false => bail!("building dune.ko for {} failed", kernel.release),
    }
}

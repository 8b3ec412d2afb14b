// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel of make test-debug, with KASAN, PROVE_LOCKING and
//! DEBUG_ATOMIC_SLEEP. It is built once and kept; the module is built for it.

use std::process::Command;

use anyhow::{bail, Context as _, Result};
use dune_machine::{Kernel, Series};

use crate::context::Context;

/// The series from whose source the debug kernel is built.
pub const SERIES: Series = Series::V6_1;

/// Finds the kernel or builds it, and builds the module for it.
pub fn prepare(context: &Context) -> Result<Kernel> {
    let kernel = Kernel::prepare_debug(&context.layout, &mut |message| println!("{message}"))?;
    build_module(context, &kernel)?;
    Ok(kernel)
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
    if status.success() {
        Ok(())
    } else {
        bail!("building the modules for {} failed", kernel.release)
    }
}

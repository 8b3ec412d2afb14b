// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel of make test-debug, with KASAN, PROVE_LOCKING and
//! DEBUG_ATOMIC_SLEEP. It is built once and kept; the modules are built for it, and those
//! of the guard's tests.

use std::process::Command;

use anyhow::{bail, Context as _, Result};
use dune_machine::{Kernel, Series};

use crate::context::Context;

/// The series from whose source the debug kernel is built.
pub const SERIES: Series = Series::V6_1;

/// Finds the kernel or builds it, and builds the module for it.
pub fn prepare(context: &Context) -> Result<Kernel> {
    let kernel = Kernel::prepare_debug(&context.layout, &mut |message| println!("{message}"))?;
    for directory in ["kernel", "tests/guard/attack", "tests/guard/inside", "tests/guard/secret"] {
        build_modules(context, &kernel, directory)?;
    }
    Ok(kernel)
}

fn build_modules(context: &Context, kernel: &Kernel, directory: &str) -> Result<()> {
    let status = Command::new("make")
        .arg("-C")
        .arg(context.source.join(directory))
        .arg(format!("O={}", context.build.display()))
        .arg(format!("KDIR={}", kernel.headers().display()))
        .arg(format!("RELEASE={}", kernel.release))
        .env_remove("MAKEFLAGS")
        .status()
        .context("running make")?;
    if status.success() {
        Ok(())
    } else {
        bail!("building {directory} for {} failed", kernel.release)
    }
}

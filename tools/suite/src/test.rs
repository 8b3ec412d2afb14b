// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test, make test-all (parts.rs), make test-vmx and make test-debug (debug.rs). plan.rs
//! chooses what is tested: the tools' own tests (tools.rs), the harness's
//! (harness.rs), and TAP programs in machines (programs.rs, tap.rs) that are
//! booted in several ways (../table.rs). tally.rs adds the results up.

mod debug;
mod harness;
pub mod parts;
mod plan;
pub mod programs;
mod records;
mod tally;
mod tap;
mod tools;

use anyhow::Result;
use dune_machine::Series;

use crate::context::Context;
use plan::Work;
use tally::Tally;

/// What a command line asks for.
pub struct Wish<'a> {
    pub kernels: &'a [Series],
    pub only: Option<&'a str>,
    pub mode: Option<&'a str>,
    /// Print it, and run nothing.
    pub dry_run: bool,
}

/// All TAP programs on these kernels, or all of one mode.
pub fn run(context: &Context, wish: &Wish) -> Result<u8> {
    let works = match wish.mode {
        Some(name) => plan::mode(context, wish.kernels, wish.only, name)?,
        None => plan::make_test(context, wish.kernels, wish.only),
    };
    do_works(context, &works, wish.dry_run)
}

/// The tests in the Intel machine.
pub fn run_vmx(context: &Context, only: Option<&str>, dry_run: bool) -> Result<u8> {
    do_works(context, &plan::make_test_vmx(context, only)?, dry_run)
}

/// The module's tests on the debug kernel.
pub fn run_debug(context: &Context, only: Option<&str>, dry_run: bool) -> Result<u8> {
    do_works(context, &plan::make_test_debug(context, only)?, dry_run)
}

fn do_works(context: &Context, works: &[Work], dry_run: bool) -> Result<u8> {
    if dry_run {
        return describe(works);
    }
    let mut tally = Tally::new();
    for work in works {
        work.run(context, &mut tally)?;
    }
    Ok(tally.close())
}

fn describe<'a>(works: impl IntoIterator<Item = &'a Work>) -> Result<u8> {
    let texts: Vec<_> = works.into_iter().map(Work::describe).collect::<Result<_>>()?;
    print(&texts.concat());
    Ok(0)
}

/// The reader may stop once it knows enough.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

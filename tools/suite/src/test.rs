// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test, make test-all (parts.rs), make test-vmx and make test-debug (debug.rs). plan.rs
//! chooses what is tested: the tools' own tests (tools.rs), the harness's
//! (harness.rs), TAP programs on this computer (host.rs), and TAP programs in machines (programs.rs,
//! tap.rs) that are booted in several ways (../table.rs). tally.rs adds the results up.

mod debug;
mod harness;
mod host;
pub mod parts;
mod plan;
pub mod programs;
mod prove;
mod records;
mod tally;
pub mod tap;
mod tools;

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use dune_machine::Series;

use crate::context::Context;
use crate::Verdict;
use plan::Job;
use tally::Tally;

/// The tests that a command line asks for.
pub struct TestOptions<'a> {
    pub kernels: &'a [Series],
    pub only: Option<&'a str>,
    pub mode: Option<&'a str>,
    /// Print it, and run nothing.
    pub dry_run: bool,
}

/// All TAP programs on these kernels, or all of one mode.
pub fn run(context: &Context, options: &TestOptions) -> Result<Verdict> {
    let jobs = match options.mode {
        Some(name) => plan::mode(context, options.kernels, options.only, name)?,
        None => plan::make_test(context, options.kernels, options.only),
    };
    run_jobs(context, &jobs, options.dry_run)
}

/// The tests in the vmx machine.
pub fn run_vmx(context: &Context, only: Option<&str>, dry_run: bool) -> Result<Verdict> {
    run_jobs(context, &plan::make_test_vmx(context, only)?, dry_run)
}

/// The module's tests on the debug kernel.
pub fn run_debug(context: &Context, only: Option<&str>, dry_run: bool) -> Result<Verdict> {
    run_jobs(context, &plan::make_test_debug(context, only)?, dry_run)
}

fn run_jobs(context: &Context, jobs: &[Job], dry_run: bool) -> Result<Verdict> {
    if dry_run {
        return describe(jobs);
    }
    let mut tally = Tally::new();
    let (machines, others): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.boots());
    for jobs in [others, machines] {
        for (part, result) in run_side_by_side(context, jobs, &tally) {
            result?;
            tally.add(part);
        }
    }
    Ok(tally.close())
}

/// Runs two jobs at a time, since two processors are enough for that, but no two that have a
/// thread for each CPU: with two such machines of QEMU each test took three times as long. One of
/// them is busy with one thread most of the time. So one worker begins with these jobs, the other
/// one with the others, which let them run first (Process::run_after_others()), and whoever has
/// nothing more of its own helps with the others.
fn run_side_by_side(context: &Context, jobs: Vec<&Job>, tally: &Tally) -> Vec<(Tally, Result<()>)> {
    let (wide, mut narrow): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.has_threads());
    // What takes longest comes first, so that nobody waits for it at the end.
    narrow.sort_by_key(|job| !job.is_slow());
    let narrow = Mutex::new(narrow.into_iter());
    let next = || narrow.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run_one = |first: Vec<_>| {
        let mut part = tally.of_part();
        let mut all = first.into_iter().chain(std::iter::from_fn(&next));
        let result = all.try_for_each(|job: &Job| job.run(context, &mut part));
        (part, result)
    };
    thread::scope(|scope| {
        let workers = [wide, Vec::new()].map(|first| scope.spawn(move || run_one(first)));
        let joined = workers.map(|worker| worker.join());
        joined.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).into()
    })
}

fn describe<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Result<Verdict> {
    let texts: Vec<_> = jobs.into_iter().map(Job::describe).collect::<Result<_>>()?;
    print(&texts.concat());
    Ok(Verdict::Passed)
}

/// Writes to stdout. Ignores errors: a reader such as head may close the pipe early.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

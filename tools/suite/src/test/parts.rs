// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test-all: hours of tests, as parts that have names. Each can be run
//! alone; one that passed is not run again until the sources change, so that
//! an interrupted run resumes where it was (records.rs).

use anyhow::{bail, Result};
use dune_machine::Series;

use crate::context::Context;
use crate::test::plan::{self, Job};
use crate::test::records::Records;
use crate::test::tally::Tally;
use crate::Verdict;

struct Part {
    name: String,
    job: Job,
}

/// The parts whose names are `wanted`; all, if there are none.
pub fn run(
    context: &Context,
    kernels: &[Series],
    wanted: &[String],
    dry_run: bool,
) -> Result<Verdict> {
    let parts = chosen(context, kernels, wanted)?;
    if dry_run {
        return super::describe(parts.iter().map(|part| &part.job));
    }
    let records = Records::open(context)?;
    let mut tally = Tally::new();
    let mut resumed = Vec::new();
    for part in &parts {
        let key = records.key(part.job.machine()?);
        let mut of_part = tally.of_part();
        if let Some(record) = records.find(&part.name, &key) {
            tally.line(&format!("PASSED  {}: before, with the same sources", part.name));
            of_part.resume(record);
            resumed.push(part.name.as_str());
        } else {
            part.job.run(context, &mut of_part)?;
            if let Some(record) = of_part.record_if_passed() {
                if !records.keep(&part.name, &key, &record)? {
                    tally.line("        it will run again: the sources changed meanwhile");
                }
            }
        }
        tally.add(of_part);
    }
    if !resumed.is_empty() {
        tally.note(format!("not run again, having passed before: {}", resumed.join(", ")));
    }
    Ok(tally.close())
}

/// Their names, one a line, and which of them have passed.
pub fn list(context: &Context, kernels: &[Series]) -> Result<Verdict> {
    let records = Records::open(context)?;
    let mut text = String::new();
    for part in all(context, kernels) {
        // A kernel that was not fetched has passed nothing.
        let machine = part.job.machine();
        let has_passed = |machine| records.find(&part.name, &records.key(machine)).is_some();
        let passed = machine.is_ok_and(has_passed);
        let verdict = if passed { "  passed" } else { "" };
        text += &format!("{}{verdict}\n", part.name);
    }
    super::print(&text);
    Ok(Verdict::Passed)
}

fn chosen(context: &Context, kernels: &[Series], wanted: &[String]) -> Result<Vec<Part>> {
    let mut parts = all(context, kernels);
    if let Some(name) = wanted.iter().find(|name| parts.iter().all(|part| part.name != **name)) {
        bail!("there is no part {name}: make list-parts names them");
    }
    parts.retain(|part| wanted.is_empty() || wanted.contains(&part.name));
    Ok(parts)
}

fn all(context: &Context, kernels: &[Series]) -> Vec<Part> {
    let jobs = plan::make_test_all(context, kernels).into_iter();
    jobs.map(|(name, job)| Part { name, job }).collect()
}

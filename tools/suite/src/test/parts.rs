// SPDX-License-Identifier: MIT OR Apache-2.0
//! make test-all: hours of tests, as parts that have names. Each can be run
//! alone; one that passed is not run again until the sources change, so that
//! an interrupted run resumes where it was (records.rs).

use std::io::Write;

use anyhow::{bail, Result};
use dune_machine::{Kernel, Series};

use crate::context::Context;
use crate::test::records::{Key, Records};
use crate::test::tally::Tally;
use crate::test::{harness, kernel_as_it_is, modes, tools};

struct Part {
    name: String,
    context: Context,
    work: Work,
}

#[derive(Clone, Copy)]
enum Work {
    Tools,
    Harness,
    Kernel(Series),
    Mode(Series, &'static str),
}

/// The parts whose names are `wanted`; all, if there are none.
pub fn run(context: &Context, kernels: &[Series], wanted: &[String]) -> Result<u8> {
    let parts = chosen(context, kernels, wanted)?;
    let records = Records::open(context)?;
    let mut tally = Tally::new();
    let mut resumed = Vec::new();
    for part in &parts {
        let key = part.key(&records)?;
        let mut of_part = tally.of_part();
        if let Some(record) = records.find(&part.name, &key) {
            tally.say(&format!("PASSED  {}: before, with the same sources", part.name));
            of_part.resume(record);
            resumed.push(part.name.as_str());
        } else {
            part.run(&mut of_part)?;
            if let Some(record) = of_part.record_if_passed() {
                if !records.keep(&part.name, &key, &record)? {
                    tally.say("        it will run again: the sources changed meanwhile");
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
pub fn list(context: &Context, kernels: &[Series]) -> Result<u8> {
    let records = Records::open(context)?;
    let mut text = String::new();
    for part in all(context, kernels) {
        // A kernel that was not fetched has passed nothing.
        let passed = part.key(&records).is_ok_and(|key| records.find(&part.name, &key).is_some());
        let verdict = if passed { "  passed" } else { "" };
        text += &format!("{}{verdict}\n", part.name);
    }
    // Whoever reads may stop when they know enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(0)
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
    let mut parts = Vec::new();
    for context in context.in_all_machines() {
        let mut push = |name: String, work| {
            parts.push(Part { name, context: context.clone(), work });
        };
        if !context.is_vmx() {
            push("tools".to_owned(), Work::Tools);
            push("harness".to_owned(), Work::Harness);
        }
        for &series in kernels {
            push(context.name_of(series), Work::Kernel(series));
        }
        for &series in kernels {
            for mode in modes::names(&context, series) {
                push(format!("{}-{mode}", context.name_of(series)), Work::Mode(series, mode));
            }
        }
    }
    parts
}

impl Part {
    fn key(&self, records: &Records) -> Result<Key> {
        let release = match self.work {
            Work::Tools | Work::Harness => String::new(),
            Work::Kernel(series) | Work::Mode(series, _) => {
                Kernel::find(&self.context.layout, series)?.release
            }
        };
        Ok(records.key(&release))
    }

    fn run(&self, tally: &mut Tally) -> Result<()> {
        let context = &self.context;
        match self.work {
            Work::Tools => tools::run(context, tally),
            Work::Harness => harness::run(context, tally),
            Work::Kernel(series) => kernel_as_it_is(context, series, None, tally),
            Work::Mode(series, mode) => modes::run(context, series, None, mode, tally),
        }
    }
}

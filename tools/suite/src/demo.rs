// SPDX-License-Identifier: MIT OR Apache-2.0
//! make demo: real programs (programs.rs) natively and under dunectl run, in
//! one emulated machine, and a table of the results (table.rs). make demo-guard: guard.rs.

pub mod guard;
mod programs;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{bail, Context as _, Result};
use dune_machine::{Machine, Outcome, Run, Series};
use serde::Deserialize;

use crate::context::Context;
use crate::Verdict;
use programs::{Program, DIRECTORY, PREPARE, PROGRAMS};

/// The longest that one program may take.
const LIMIT: Duration = Duration::from_secs(120);

/// The file in which dune-run leaves its counters.
const STATS: &str = "/run/demo-stats";

/// The counters of a tree of processes.
#[derive(Debug, Default, Deserialize)]
struct Stats {
    exits: u64,
    syscalls_fast: u64,
    syscalls_slow: u64,
    /// Hypercalls with a number from DUNE_HOSTCALL on, which are the runtime's: privileged calls
    /// (fork, execve, exit), and what no system call can do, such as a probe of an address.
    hostcalls: u64,
    faults: u64,
}

/// A program's row in the table.
struct Row {
    name: &'static str,
    /// The differences from the native run.
    differences: Vec<&'static str>,
    status: String,
    stats: Option<Stats>,
}

/// Runs all programs and prints the table. Passes if all behave the same.
pub fn run(context: &Context, series: Series) -> Result<Verdict> {
    let begin = Instant::now();
    let config = context.machine(series)?;
    let vendor = context.machine_type().vendor;
    println!("Booting an emulated {vendor} machine with kernel {} ...", config.kernel.release);
    let mut machine = Machine::boot(&context.layout, &config)?;
    println!("Generating the programs' data (tree of files, 64 MB file) ...");
    let outcome = machine.run(&mut in_directory(context, &["sh", "-ec", PREPARE], "/"))?;
    if !outcome.status.success() {
        bail!("generating the data: {}", String::from_utf8_lossy(&outcome.stderr));
    }
    let mut rows = Vec::new();
    for (number, program) in PROGRAMS.iter().enumerate() {
        print!("[{}/{}] {}: natively ", number + 1, PROGRAMS.len(), program.name);
        flush();
        rows.push(compare(context, &mut machine, program)?);
    }
    let report = machine.power_off()?.error_report();
    println!();
    table::print(&rows);
    println!("\nDone in {} s.", begin.elapsed().as_secs());
    if let Some(report) = &report {
        println!("dune-suite: {report}");
    }
    let all_equal = rows.iter().all(|row| row.differences.is_empty());
    Ok(Verdict::passed_if(all_equal && report.is_none()))
}

fn compare(context: &Context, machine: &mut Machine, program: &Program) -> Result<Row> {
    let native = machine.run(&mut in_directory(context, program.argv, DIRECTORY))?;
    print!("{:.1} s, under dunectl run ", native.duration.as_secs_f32());
    flush();
    let mut run = in_directory(context, &[], DIRECTORY);
    run.program.argv = vec![context.dunectl().into(), "run".into(), "--no-machine".into()];
    run.program.argv.push(format!("--stats={STATS}").into());
    run.program.argv.push("--".into());
    run.program.argv.extend(program.argv.iter().map(Into::into));
    let dune = machine.run(&mut run)?;
    let differences = differences(&native, &dune);
    let verdict = if differences.is_empty() { "same" } else { "DIFFERENT" };
    println!("{:.1} s: {verdict}", dune.duration.as_secs_f32());
    if !differences.is_empty() {
        keep(context, program, &native, &dune)?;
    }
    let stats = machine.run(&mut in_directory(context, &["cat", STATS], "/"))?;
    machine.run(&mut in_directory(context, &["rm", "-f", STATS], "/"))?;
    Ok(Row {
        name: program.name,
        differences,
        status: dune.status.to_string(),
        stats: serde_json::from_slice(&stats.stdout).ok(),
    })
}

fn differences(native: &Outcome, dune: &Outcome) -> Vec<&'static str> {
    [
        ("status", native.status != dune.status),
        ("stdout", native.stdout != dune.stdout),
        ("stderr", native.stderr != dune.stderr),
    ]
    .into_iter()
    .filter_map(|(name, differs)| differs.then_some(name))
    .collect()
}

/// Keeps both outputs of a program that differed.
fn keep(context: &Context, program: &Program, native: &Outcome, dune: &Outcome) -> Result<()> {
    let directory = context.log_directory("demo")?;
    for (kind, outcome) in [("native", native), ("dune", dune)] {
        let path = |stream: &str| -> PathBuf {
            directory.join(format!("{}.{kind}.{stream}", program.argv[0].replace('/', "-")))
        };
        std::fs::write(path("stdout"), &outcome.stdout).context("keeping an output")?;
        std::fs::write(path("stderr"), &outcome.stderr).context("keeping an output")?;
    }
    println!("        both outputs are in {}", directory.display());
    Ok(())
}

fn in_directory(context: &Context, argv: &[&str], directory: &str) -> Run {
    let mut run = context.command(argv.iter().copied());
    run.program.directory = directory.into();
    run.timeout = Some(LIMIT * context.machine_type().time_factor);
    run
}

fn flush() {
    use std::io::Write;
    let _ = std::io::stdout().flush();
}

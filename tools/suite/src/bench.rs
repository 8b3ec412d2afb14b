// SPDX-License-Identifier: MIT OR Apache-2.0
//! make bench: runs the programs of build/bench in the counting machine, on
//! each kernel, holds their figures against the bars (bars.rs) and writes
//! build/bench.json and docs/benchmarks.md (page.rs).
//!
//! A program prints one line of JSON a figure (struct Measured); other lines
//! are for people. It measures Linux and Dune in the same run, and prints
//! medians.

mod bars;
mod page;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, Context as _, Result};
use dune_machine::{Kernel, Machine, Series};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use bars::Bar;

/// The longest that one program may take.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Cycles of a world switch there and back, to make of instructions and exits
/// a modelled number of cycles: the paper's own figure on Ivy Bridge.
const MODEL_EXIT_CYCLES: f64 = 750.0;

/// What a program prints.
#[derive(Debug, Deserialize)]
struct Measured {
    id: String,
    unit: String,
    /// None where there is nothing to compare with.
    linux: Option<f64>,
    dune: f64,
    /// VM exits of the Dune side.
    exits: Option<f64>,
    /// What the bar grants on top (for mprotect: the call itself).
    #[serde(default)]
    allowance: f64,
}

/// An object of build/bench.json.
#[derive(Debug, Serialize)]
struct Figure {
    id: String,
    machine: &'static str,
    kernel: String,
    unit: String,
    linux: Option<f64>,
    dune: f64,
    /// dune / linux
    ratio: Option<f64>,
    exits: Option<f64>,
    bar: String,
    met: bool,
    /// A model, not a measurement: instructions + 750 for each exit.
    modelled_cycles: Option<f64>,
}

pub fn run(context: &Context, kernels: &[Series]) -> Result<u8> {
    let mut figures = Vec::new();
    for &series in kernels {
        measure(context, series, &mut figures)?;
    }
    let json = serde_json::to_string_pretty(&figures)? + "\n";
    fs::write(context.build.join("bench.json"), json).context("writing bench.json")?;
    let page = page::write(&figures);
    fs::write(context.source.join("docs/benchmarks.md"), &page).context("writing the page")?;
    println!("\n{page}");
    let missing = bars::ids().filter(|id| !figures.iter().any(|figure| figure.id == *id));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        println!("not measured: {}", missing.join(", "));
    }
    let met = figures.iter().filter(|figure| figure.met).count();
    println!("{met} of {} figures meet their bars", figures.len());
    Ok(if met == figures.len() && missing.is_empty() { 0 } else { 1 })
}

fn measure(context: &Context, series: Series, figures: &mut Vec<Figure>) -> Result<()> {
    let mut config = context.machine_of(Kernel::find(&context.layout, series)?)?;
    config.cpus = 1;
    config.memory = 2048;
    config.counting = true;
    config.boot_timeout *= 3;
    println!("{series}: booting {} in counting mode", config.kernel.release);
    let mut machine = Machine::boot(&context.layout, &config)?;
    for program in programs(context)? {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut run = context.command([&program]);
        run.timeout = Some(LIMIT);
        let outcome = machine.run(&mut run)?;
        let text = String::from_utf8_lossy(&outcome.stdout);
        if !outcome.status.success() {
            let stderr = String::from_utf8_lossy(&outcome.stderr);
            bail!("{series} {name}: {}\n{text}{stderr}", outcome.status);
        }
        for line in text.lines().filter(|line| line.starts_with('{')) {
            let measured: Measured = serde_json::from_str(line)
                .with_context(|| format!("{name} printed no figure: {line}"))?;
            let figure = judge(measured, series);
            let mark = if figure.met { "met" } else { "MISSED" };
            println!("{series}: {:14} {:>10} {:6} ({})", figure.id, figure.dune, mark, figure.bar);
            figures.push(figure);
        }
    }
    if let Some(trouble) = machine.log().trouble() {
        bail!("the machine's kernel is in trouble:\n{trouble}");
    }
    machine.power_off()?;
    Ok(())
}

fn judge(measured: Measured, series: Series) -> Figure {
    let bar = Bar::of(&measured.id);
    let counts = measured.unit == "instructions";
    let model = |exits: f64| measured.dune + MODEL_EXIT_CYCLES * exits;
    Figure {
        machine: "svm",
        kernel: series.name().to_owned(),
        ratio: measured.linux.map(|linux| measured.dune / linux),
        bar: bar.as_ref().map(|bar| bar.text.to_owned()).unwrap_or_default(),
        // A figure without a bar is only for information.
        met: bar.is_none_or(|bar| bar.is_met(&measured)),
        modelled_cycles: measured.exits.filter(|_| counts).map(model),
        id: measured.id,
        unit: measured.unit,
        linux: measured.linux,
        dune: measured.dune,
        exits: measured.exits,
    }
}

fn programs(context: &Context) -> Result<Vec<PathBuf>> {
    let folder = context.build.join("bench");
    let entries = fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
    let mut programs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let data = path.metadata()?;
        if data.is_file() && data.permissions().mode() & 0o111 != 0 {
            programs.push(path);
        }
    }
    programs.sort();
    Ok(programs)
}

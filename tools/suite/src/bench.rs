// SPDX-License-Identifier: MIT OR Apache-2.0
//! make bench: runs the programs of build/bench in the counting machines, on
//! each kernel, compares their figures with the targets (targets.rs) and writes
//! build/bench.json, docs/benchmarks.md (page.rs), its plot (plot.rs) and the
//! table of README.md (readme.rs). The figures of machines and kernels that are
//! not measured now stay. make bench-check fails if a target is missed and the miss
//! is not an accepted one.
//!
//! A program prints one line of JSON for each figure (struct Measured); its other
//! lines are for readers. It measures Linux and Dune in the same run, and prints
//! medians. One program, build/bench/switch, is traced instead (switch.rs). Each
//! figure is judged by its target (figure.rs).

mod figure;
mod numbers;
mod page;
mod plot;
mod readme;
mod switch;
mod targets;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, ensure, Context as _, Result};
use dune_machine::{Cpus, Machine, MachineType, Series, SVM};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::files;
use crate::Verdict;
use figure::{Figure, Judgement};
use targets::{Outcome, Subject};

/// The network card of the svm machine, by QEMU's name. No driver is loaded for it but by
/// bench/guard_network.
const CARD: &str = "e1000";

/// The longest that one program may take.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// A line that a program prints.
#[derive(Debug, Deserialize)]
struct Measured {
    id: String,
    unit: String,
    /// None, if there is nothing to compare with.
    linux: Option<f64>,
    dune: f64,
    /// VM exits of the Dune side.
    exits: Option<f64>,
    /// Added to what the target permits (for mprotect: the call itself).
    #[serde(default)]
    allowance: f64,
    /// The parts of the figure, in words.
    #[serde(default)]
    detail: Option<String>,
    /// And by function, of a figure that counts crossings of a module's border.
    #[serde(default)]
    functions: Vec<OfFunction>,
}

/// The crossings of a module's border at one function, there and back.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OfFunction {
    border: Border,
    function: String,
    crossings: f64,
}

/// How the border is crossed there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Border {
    /// The kernel calls the module's function.
    Entry,
    /// The module calls the kernel's.
    Call,
    /// An interrupt comes in the module, or an exception.
    Interrupt,
}

/// Measures on these kernels; without any, on those for which the table has all tests
/// of the machine. `only`: the programs whose names contain this text, and not the world switch;
/// their figures are measured anew, and the others stay. Missed targets are not an error here, but
/// in check().
pub fn run(context: &Context, kernels: &[Series], only: Option<&str>) -> Result<Verdict> {
    let file = file(context);
    let mut figures = read(&file)?;
    let mut lacking = Vec::new();
    for machine_type in context.machine_types() {
        let context = context.in_machine(machine_type);
        let kernels = if kernels.is_empty() {
            context.table.default_mode(machine_type).full_kernels()
        } else {
            kernels
        };
        for &series in kernels {
            let measured = measure(&context, series, only)?;
            figures.retain(|figure: &Figure| {
                let is_old = only.is_none() || measured.iter().any(|new| new.id == figure.id);
                !(is_old && figure.is_of(machine_type.name, series.name()))
            });
            figures.extend(measured);
            if only.is_none() {
                lacking.extend(missing_figures(&figures, machine_type.name, series.name()));
            }
            sort(&mut figures);
            save(&file, &figures)?;
            write_page(&context, &figures)?;
        }
    }
    println!("\n{}", page::write(&figures));
    println!("{}", summary(&figures));
    if !lacking.is_empty() {
        println!("not measured: {}", lacking.join(", "));
    }
    Ok(Verdict::passed_if(lacking.is_empty()))
}

/// make bench-check: whether the figures that are saved meet all targets, or miss them as is
/// accepted.
pub fn check(context: &Context) -> Result<Verdict> {
    let figures = saved(context)?;
    let mut wrong = Vec::new();
    for machine_type in MachineType::ALL {
        let name = machine_type.name;
        let mut kernels: Vec<&str> = figures
            .iter()
            .filter(|figure| figure.machine == name)
            .map(|figure| figure.kernel.as_str())
            .collect();
        kernels.sort();
        kernels.dedup();
        if kernels.is_empty() {
            wrong.push(format!("nothing was measured in {name}"));
        }
        for kernel in kernels {
            let lacking = missing_figures(&figures, name, kernel);
            wrong.extend(lacking.iter().map(|figure| format!("not measured: {figure}")));
        }
    }
    for figure in figures.iter().filter(|figure| figure.outcome() == Some(Outcome::Missed)) {
        wrong.push(missed_text(figure));
    }
    for line in &wrong {
        println!("{line}");
    }
    println!("{}", summary(&figures));
    Ok(Verdict::passed_if(wrong.is_empty()))
}

fn missed_text(figure: &Figure) -> String {
    let Figure { id, machine, kernel, dune, linux, judgement, .. } = figure;
    let linux =
        linux.map(|linux| format!(", Linux {}", numbers::number(linux))).unwrap_or_default();
    let target = judgement.as_ref().map_or("", |judgement| &judgement.target);
    let accepted = machine
        .parse::<&MachineType>()
        .ok()
        .zip(kernel.parse::<Series>().ok())
        .and_then(|(machine_type, series)| Subject::of(id)?.accepted_miss(machine_type, series))
        .map(|(bound, _)| format!(" (accepted: {bound})"))
        .unwrap_or_default();
    let dune = numbers::number(*dune);
    format!("missed: {id} ({machine} {kernel}): {dune}{linux}; the target is {target}{accepted}")
}

/// Writes the page, its plot and the table of README.md from the figures that are
/// saved.
pub fn write_saved(context: &Context) -> Result<Verdict> {
    write_page(context, &saved(context)?)?;
    Ok(Verdict::Passed)
}

fn write_page(context: &Context, figures: &[Figure]) -> Result<()> {
    let docs = context.source.join("docs");
    fs::write(docs.join("benchmarks.md"), page::write(figures)).context("writing the page")?;
    fs::write(docs.join("benchmarks.svg"), plot::draw(figures)?).context("writing the plot")?;
    let path = context.source.join("README.md");
    let readme = fs::read_to_string(&path).context("reading README.md")?;
    fs::write(path, readme::update(&readme, figures)?).context("writing README.md")
}

fn summary(figures: &[Figure]) -> String {
    let count = |outcome| figures.iter().filter(|one| one.outcome() == Some(outcome)).count();
    let (met, accepted) = (count(Outcome::Met), count(Outcome::Accepted));
    let all = met + accepted + count(Outcome::Missed);
    format!("{met} of {all} figures meet their targets; {accepted} misses are accepted")
}

/// The figures that this machine and kernel should have and that are not there.
fn missing_figures(figures: &[Figure], machine: &str, kernel: &str) -> Vec<String> {
    let has = |id: &str| figures.iter().any(|one| one.id == id && one.is_of(machine, kernel));
    targets::SUBJECTS
        .iter()
        .filter(|subject| subject.is_measured_in(machine) && !has(subject.id))
        .map(|subject| format!("{} ({machine} {kernel})", subject.id))
        .collect()
}

/// Sorts the figures by id, kernel and machine.
fn sort(figures: &mut [Figure]) {
    let series = |kernel: &str| kernel.parse::<Series>().ok();
    figures.sort_by_cached_key(|figure| {
        (targets::place(&figure.id), series(&figure.kernel), figure.machine.clone())
    });
}

fn file(context: &Context) -> PathBuf {
    context.build.join("bench.json")
}

fn saved(context: &Context) -> Result<Vec<Figure>> {
    let figures = read(&file(context))?;
    ensure!(
        !figures.is_empty(),
        "no figures are saved in {}: run make bench",
        file(context).display()
    );
    Ok(figures)
}

/// The figures that were measured before; none, if there is no file. A file that cannot be
/// parsed is an error: run() would replace it and lose the figures that it does not measure.
fn read(file: &Path) -> Result<Vec<Figure>> {
    match files::read(file)? {
        Some(text) => serde_json::from_str(&text)
            .with_context(|| format!("reading {} (remove it to start anew)", file.display())),
        None => Ok(Vec::new()),
    }
}

fn save(file: &Path, figures: &[Figure]) -> Result<()> {
    files::write(file, &(serde_json::to_string_pretty(figures)? + "\n"))
}

fn measure(context: &Context, series: Series, only: Option<&str>) -> Result<Vec<Figure>> {
    let machine_type = context.machine_type();
    let machine_name = machine_type.name;
    let mut config = context.machine(series)?;
    config.boot_timeout *= 3;
    config.memory = config.memory.min(2048);
    if *machine_type == SVM {
        config.network_cards = vec![CARD.to_owned()];
    }
    let traced = context.build.join("bench/switch");
    let trace = match only {
        None => Some(switch::trace_from_label(&traced, machine_type)?),
        Some(_) => None,
    };
    config.cpus = Cpus::Counting { trace };
    println!("{machine_name} {series}: booting {} in counting mode", config.kernel.release);
    let mut machine = Machine::boot(&context.layout, &config)?;
    let mut figures = Vec::new();
    let mut add = |measured: Measured| {
        let figure = Figure::new(measured, machine_type, series);
        let verdict = match &figure.judgement {
            None => String::new(),
            Some(Judgement { target, outcome: Outcome::Met, .. }) => format!("met    ({target})"),
            Some(Judgement { target, outcome: Outcome::Missed, binding: true }) => {
                format!("MISSED ({target})")
            }
            Some(Judgement { target, outcome: Outcome::Accepted, binding: true }) => {
                format!("missed ({target}), as is accepted")
            }
            Some(Judgement { target, binding: false, .. }) => {
                format!("missed ({target}), the target of another machine")
            }
        };
        let Figure { id, dune, .. } = &figure;
        println!("{machine_name} {series}: {id:24} {dune:>10} {verdict}");
        figures.push(figure);
    };
    for program in programs(context, only)? {
        let measured = run_program(context, &mut machine, &program);
        let measured = measured.with_context(|| format!("{machine_name} {series}"))?;
        measured.into_iter().for_each(&mut add);
    }
    let symbols = machine.run(&mut context.command(["cat", "/proc/kallsyms"]))?.stdout;
    if let Some(report) = machine.log().error_report() {
        bail!("{report}");
    }
    if only.is_some() {
        machine.power_off()?;
        return Ok(figures);
    }
    let steps = machine.power_off_traced()?;
    let symbols = String::from_utf8_lossy(&symbols);
    let listing = format!("switch-{machine_name}-{series}.txt");
    fs::write(context.log_directory("bench")?.join(listing), switch::listing(&steps, &symbols)?)
        .context("writing the trace")?;
    switch::count(&steps, &symbols)?.into_iter().for_each(add);
    Ok(figures)
}

/// The figures that a program prints.
fn run_program(context: &Context, machine: &mut Machine, program: &Path) -> Result<Vec<Measured>> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut run = context.command([program]);
    run.timeout = Some(LIMIT * context.machine_type().time_factor);
    let outcome = machine.run(&mut run)?;
    let text = String::from_utf8_lossy(&outcome.stdout);
    if !outcome.status.success() {
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        bail!("{name}: {}\n{text}{stderr}", outcome.status);
    }
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| {
            serde_json::from_str(line).with_context(|| format!("{name} printed no figure: {line}"))
        })
        .collect()
}

fn programs(context: &Context, only: Option<&str>) -> Result<Vec<PathBuf>> {
    let directory = context.build.join("bench");
    let entries =
        fs::read_dir(&directory).with_context(|| format!("listing {}", directory.display()))?;
    let mut programs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let data = path.metadata()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_chosen = only.is_none_or(|text| name.contains(text));
        if is_chosen && data.is_file() && data.permissions().mode() & 0o111 != 0 {
            programs.push(path);
        }
    }
    ensure!(!programs.is_empty(), "no benchmark's name contains {}", only.unwrap_or_default());
    programs.sort();
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_file_means_no_figures() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let file = directory.path().join("bench.json");
        assert!(read(&file).expect("no file means no figures").is_empty());
        save(&file, &[Figure::example("open", 100.0, 50.0)]).expect("the file can be written");
        assert_eq!(read(&file).expect("the file can be read").len(), 1);
        fs::write(&file, "[{").expect("the file can be written");
        assert!(read(&file).is_err());
    }

    #[test]
    fn a_miss_names_the_bound_that_holds_for_its_kernel() {
        let on = |kernel: &str| {
            let figure = Figure::example("intercept", 5400.0, 100.0).with(Outcome::Missed);
            missed_text(&Figure { kernel: kernel.to_owned(), ..figure })
        };
        assert!(on("6.1").ends_with("(accepted: ptrace / Dune ≥ 55)"), "{}", on("6.1"));
        assert!(!on("6.12").contains("accepted"), "{}", on("6.12"));
    }
}

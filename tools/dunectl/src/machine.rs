// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl machine: the emulated machine, directly.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use dune_machine::{Config, Error, Kernel, Layout, Machine, Result, Run, Series};

use crate::cli::{Hardware, MachineCommand, MachineOptions, MachineRun};
use crate::exit::{End, FAILED};

pub fn run(command: &MachineCommand) -> Result<End> {
    let layout = Layout::find()?;
    match command {
        MachineCommand::Run(options) => run_command(&layout, options),
        MachineCommand::Shell(options) => shell(&layout, options),
        MachineCommand::List => list(&layout),
        MachineCommand::Prepare { kernels, update } => prepare(&layout, kernels, *update),
    }
}

fn run_command(layout: &Layout, options: &MachineRun) -> Result<End> {
    let mut run = Run::here(options.command.clone())?;
    run.program.credentials = None;
    run.timeout = options.timeout.map(Duration::from_secs);
    let mut machine = Machine::boot(layout, &config(layout, &options.options)?)?;
    let outcome = machine.run(&mut run)?;
    if options.log {
        eprint!("{}", machine.log().tail(usize::MAX));
    }
    let trouble = machine.log().trouble();
    machine.power_off()?;
    if let Some(trouble) = trouble {
        eprintln!("dunectl: the machine's kernel is in trouble ({}):\n{trouble}", outcome.status);
        return Ok(End::Code(FAILED));
    }
    Ok(End::Like(outcome.status))
}

fn shell(layout: &Layout, options: &MachineOptions) -> Result<End> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/bash"));
    let mut run = Run::here([shell])?;
    run.program.credentials = None;
    let mut machine = Machine::boot(layout, &config(layout, options)?)?;
    eprintln!("dunectl: what is written outside of --write folders is forgotten at the end");
    let outcome = machine.run(&mut run)?;
    machine.power_off()?;
    Ok(End::Like(outcome.status))
}

fn list(layout: &Layout) -> Result<End> {
    for series in Series::ALL {
        match Kernel::find(layout, series) {
            Ok(kernel) => {
                let module = match layout.module(&kernel.release) {
                    Some(_) => "dune.ko built",
                    None => "no dune.ko: run make",
                };
                println!("{series:5}  {:24}  {module}", kernel.release);
            }
            Err(_) => println!("{series:5}  not here; dunectl machine prepare {series}"),
        }
    }
    Ok(End::Code(0))
}

fn prepare(layout: &Layout, kernels: &[Series], update: bool) -> Result<End> {
    let kernels = if kernels.is_empty() { &Series::ALL } else { kernels };
    for &series in kernels {
        if update {
            Kernel::forget(layout, series)?;
        }
        let kernel = prepared(layout, series)?;
        println!("{series:5}  {}", kernel.release);
    }
    Ok(End::Code(0))
}

/// The kernel, fetched if need be, with a word on stderr.
pub fn prepared(layout: &Layout, series: Series) -> Result<Kernel> {
    Kernel::prepare(layout, series, &mut |what| eprintln!("dunectl: {what}"))
}

fn config(layout: &Layout, options: &MachineOptions) -> Result<Config> {
    let mut config = hardware(layout, &options.hardware, options.kernel_from.as_ref())?;
    config.counting = options.counting;
    config.kernel_arguments = options.kernel_arguments.clone();
    config.cpu_features = options.cpu_features.clone();
    config.shares = shares(&options.shares)?;
    if !options.no_module {
        config.insmod.extend(layout.module(&config.kernel.release));
    }
    Ok(config)
}

pub fn hardware(layout: &Layout, parts: &Hardware, from: Option<&PathBuf>) -> Result<Config> {
    let kernel = match from {
        Some(root) => Kernel::at(root, None)?,
        None => prepared(layout, parts.kernel)?,
    };
    let mut config = Config::new(kernel);
    config.cpus = parts.cpus;
    config.memory = parts.memory;
    Ok(config)
}

/// Absolute, without links and repetitions.
pub fn shares(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut shares = folders
        .iter()
        .map(|folder| {
            let error = |e| Error::Usage(format!("cannot share {}: {e}", folder.display()));
            fs::canonicalize(folder).map_err(error)
        })
        .collect::<Result<Vec<_>>>()?;
    shares.sort();
    shares.dedup();
    Ok(shares)
}

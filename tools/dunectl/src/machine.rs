// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl machine: the emulated machine by itself.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use dune_machine::{
    modules_text, Config, Cpus, Error, Kernel, Layout, Machine, MachineType, Result, Run, Series,
    Status,
};

use crate::cli::{MachineCommand, MachineOptions, MachineParts, MachineRun};
use crate::exit::{restore_sigpipe, End, FAILED};

/// Reported for a machine that cannot share the host's files.
pub const COPIES: &str =
    "its files are copies (packages, working directory), and all changes are discarded";

/// Runs a subcommand of dunectl machine.
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
    let mut machine = boot(layout, &options.options)?;
    let outcome = machine.run(&mut run)?;
    if options.log {
        eprint!("{}", machine.log().tail(usize::MAX));
    }
    end(machine, outcome.status)
}

/// Switches the machine off, and ends as the program did, unless the machine's kernel
/// reported an error.
pub fn end(machine: Machine, status: Status) -> Result<End> {
    match machine.power_off()?.error_report() {
        None => Ok(End::SameAs(status)),
        Some(report) => {
            eprintln!("dunectl: the program ended ({status}), but {report}");
            Ok(End::Code(FAILED))
        }
    }
}

fn shell(layout: &Layout, options: &MachineOptions) -> Result<End> {
    let shell = env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/bash"));
    let mut run = Run::here([shell])?;
    run.program.credentials = None;
    let mut machine = boot(layout, options)?;
    let outcome = machine.run(&mut run)?;
    machine.power_off()?;
    Ok(End::SameAs(outcome.status))
}

/// Boots, and reports what happens to files that are written where that differs
/// from the default machine.
fn boot(layout: &Layout, options: &MachineOptions) -> Result<Machine> {
    let config = config(layout, options)?;
    if !config.machine_type.shares_files() {
        eprintln!("dunectl: booting a {} machine; {COPIES}", config.machine_type);
    }
    Machine::boot(layout, &config)
}

fn list(layout: &Layout) -> Result<End> {
    restore_sigpipe();
    for series in Series::ALL {
        match Kernel::find(layout, series) {
            Ok(kernel) => {
                let modules = match kernel.project_modules(layout) {
                    Ok(_) => format!("with {}", modules_text("and")),
                    Err(e) => e.to_string(),
                };
                println!("{series:6}  {:24}  {modules}", kernel.release);
            }
            Err(_) => println!("{series:6}  not here; dunectl machine prepare {series}"),
        }
    }
    Ok(End::Code(0))
}

fn prepare(layout: &Layout, kernels: &[Series], update: bool) -> Result<End> {
    for &series in kernels {
        let kernel = if update {
            Kernel::update(layout, series, &mut say)?
        } else {
            prepared(layout, series)?
        };
        println!("{series:6}  {}", kernel.release);
    }
    // An installation makes the vmx machine's disk when it first boots one: the programs for that
    // may be missing (squashfs-tools), and the svm machine needs no disk.
    if layout.is_build() {
        for machine_type in MachineType::ALL {
            Machine::prepare(machine_type, layout, &mut say)?;
        }
    }
    Ok(End::Code(0))
}

/// The kernel, which is fetched if need be, with messages on stderr.
pub fn prepared(layout: &Layout, series: Series) -> Result<Kernel> {
    Kernel::prepare(layout, series, &mut say)
}

fn say(message: &str) {
    eprintln!("dunectl: {message}");
}

fn config(layout: &Layout, options: &MachineOptions) -> Result<Config> {
    let mut config =
        config_of(layout, options.machine, &options.parts, options.kernel_from.as_ref())?;
    if options.counting {
        if options.parts.cpus != 1 {
            return Err(Error::Usage("counting mode has one CPU".to_owned()));
        }
        config.cpus = Cpus::Counting { trace: None };
    }
    config.kernel_arguments = options.kernel_arguments.clone();
    config.cpu_features = options.cpu_features.clone();
    config.devices = options.devices.clone();
    config.shares = shares(&options.shares)?;
    if !options.no_module {
        match config.kernel.project_modules(layout) {
            Ok(modules) => config.insmod = modules,
            // A machine is of use without them, and its kernel may be the user's own.
            Err(e) => eprintln!("dunectl: booting without the project's modules: {e}"),
        }
    }
    Ok(config)
}

/// A machine with the parts that both `run` and `machine` have options for.
pub fn config_of(
    layout: &Layout,
    machine_type: &'static MachineType,
    parts: &MachineParts,
    from: Option<&PathBuf>,
) -> Result<Config> {
    let kernel = match from {
        Some(root) => Kernel::at(root, None)?,
        None => prepared(layout, parts.kernel)?,
    };
    let mut config = Config::new(machine_type, kernel);
    config.cpu_model = parts.model.clone();
    config.cpus = Cpus::Free(parts.cpus);
    config.memory = parts.memory.unwrap_or(config.memory);
    config.copies = vec![env::current_dir().map_err(|e| Error::Io {
        action: "finding the working directory".to_owned(),
        source: e,
    })?];
    config.say = say;
    Ok(config)
}

/// Absolute, without links and repetitions.
pub fn shares(directories: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut shares = directories
        .iter()
        .map(|directory| {
            let error = |e| Error::Usage(format!("cannot share {}: {e}", directory.display()));
            fs::canonicalize(directory).map_err(error)
        })
        .collect::<Result<Vec<_>>>()?;
    shares.sort();
    shares.dedup();
    Ok(shares)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl run: a program in the sandbox, on this computer or in the emulated
//! machine.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use dune_machine::{Error, Layout, Machine, MachineType, Result, Run, Status};

use crate::cli::{RunOptions, StatsTo};
use crate::exit::End;
use crate::lookup;
use crate::machine::{self, config_of, shares, COPIES};

/// The device that programs in the sandbox need.
pub const DEVICE: &str = "/dev/dune";

/// Runs the program where the options and this computer allow it.
pub fn run(options: &RunOptions) -> Result<End> {
    let layout = Layout::find()?;
    if options.machine.is_none() {
        match open_device() {
            Ok(()) => return run_here(&layout, options),
            Err(e) if options.no_machine => {
                let lacking = format!("{DEVICE}: {e}; dunectl check names what is missing");
                return Err(Error::Environment(lacking));
            }
            Err(_) => {}
        }
    }
    run_in_machine(&layout, options)
}

/// Succeeds if the device exists, may be used and has a driver.
pub fn open_device() -> io::Result<()> {
    File::options().read(true).write(true).open(DEVICE).map(drop)
}

/// Replaces this process by the sandbox's runtime.
fn run_here(layout: &Layout, options: &RunOptions) -> Result<End> {
    let runtime = layout.runtime()?;
    let name = &options.command[0];
    let program = match lookup::find(name, env::var_os("PATH")) {
        Ok(program) => program,
        Err(e) => {
            let status = Status::NotStarted(e.raw_os_error().unwrap_or(libc::ENOENT));
            eprintln!("dunectl: {}: {}", Path::new(name).display(), without_number(&e));
            return Ok(End::SameAs(status));
        }
    };
    let mut command = Command::new(&runtime);
    command.args(stats_argument(options));
    if program.as_os_str() != name {
        let mut argument = OsString::from("--argv0=");
        argument.push(name);
        command.arg(argument);
    }
    command.arg("--").arg(program).args(&options.command[1..]);
    let e = command.exec();
    Err(Error::Io { action: format!("executing {}", runtime.display()), source: e })
}

fn stats_argument(options: &RunOptions) -> Option<OsString> {
    Some(match options.stats.as_ref()? {
        StatsTo::Stderr => "--stats".into(),
        StatsTo::File(file) => {
            let mut argument = OsString::from("--stats=");
            argument.push(file);
            argument
        }
    })
}

/// Runs the same command in the machine, which has a /dev/dune.
fn run_in_machine(layout: &Layout, options: &RunOptions) -> Result<End> {
    let this = env::current_exe()
        .map_err(|e| Error::Io { action: "finding the running program".to_owned(), source: e })?;
    let mut argv = vec![OsString::from(this), "run".into(), "--no-machine".into()];
    argv.extend(stats_argument(options));
    argv.push("--".into());
    argv.extend(options.command.iter().cloned());
    let mut run = Run::here(argv)?;

    let machine_type = options.machine.unwrap_or(MachineType::DEFAULT);
    let mut config = config_of(layout, machine_type, &options.parts, None)?;
    let mut directories = options.shares.clone();
    if machine_type.shares_files() {
        directories.push(run.program.directory.clone());
    }
    config.shares = shares(&directories)?;
    config.insmod = config.kernel.project_modules(layout)?;
    let release = &config.kernel.release;

    let fate = if machine_type.shares_files() {
        format!("changes outside of {} are discarded", list(&config.shares))
    } else {
        COPIES.to_owned()
    };
    eprintln!("dunectl: running in an emulated machine (kernel {release}); {fate}");
    let mut machine = Machine::boot(layout, &config)?;
    let outcome = machine.run(&mut run)?;
    machine::end(machine, outcome.status)
}

fn list(directories: &[std::path::PathBuf]) -> String {
    directories
        .iter()
        .map(|directory| directory.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// "No such file or directory (os error 2)", without the number.
fn without_number(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

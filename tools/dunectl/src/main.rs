// SPDX-License-Identifier: MIT OR Apache-2.0
//! dunectl, the command.
//!
//! cli.rs has the options. Each command has a file: run.rs, machine.rs, guard.rs (with content.rs
//! for guard describe, privileges.rs for guard privileges, leaves.rs for guard leaves, crossings.rs
//! for guard crossings), keys.rs, check.rs. exit.rs is how they end; ioctl.rs and text.rs are what
//! several of them need.

mod check;
mod cli;
mod content;
mod crossings;
mod exit;
mod guard;
mod ioctl;
mod kernel;
mod keys;
mod leaves;
mod lookup;
mod machine;
mod privileges;
mod run;
mod text;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Machine { command } => machine::run(&command),
        Command::Guard { command } => guard::run(&command),
        Command::Keys { command } => keys::run(&command),
        Command::Check => check::run(),
    };
    match result {
        Ok(end) => exit::exit_code(end),
        Err(e) => exit::report(&e),
    }
}

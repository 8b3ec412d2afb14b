// SPDX-License-Identifier: MIT OR Apache-2.0
//! dune-suite: the commands of make that need emulated machines, and checkpatch. Each
//! command has a file: test.rs, fuzz.rs, decoy.rs, demo.rs, bench.rs, style.rs.
//!
//! Exit status: 0 if all is well, 1 if something failed, 2 if a machine failed, so
//! that nothing is known, or if an option is wrong, and 69 if this computer lacks
//! something.

mod bench;
mod campaign;
mod context;
mod decoy;
mod demo;
mod files;
mod fuzz;
mod style;
mod table;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dune_machine::{options, Series, UNAVAILABLE};

use crate::context::{Context, MachineOptions};
use crate::decoy::DecoyOptions;
use crate::test::TestOptions;

#[derive(Parser)]
#[command(
    about = "Drive the tests, the fuzzer, the demo and the benchmarks in emulated machines",
    after_help = NOTES
)]
struct Cli {
    /// The directory of the sources
    #[arg(long, default_value = ".")]
    source: PathBuf,
    #[command(flatten)]
    options: MachineOptions,
    #[command(subcommand)]
    command: Command,
}

const NOTES: &str = "\
Exit status:
  0   all passed
  1   a test failed, or a target is missed
  2   a machine failed: the result is unknown; or an option is wrong
  69  this computer lacks something

Examples:
  dune-suite test 6.1 --only kernel/syscall
  dune-suite test 6.1 --machine vmx --mode haswell
  dune-suite test-all 6.1 6.12 newest --dry-run";

#[derive(Subcommand)]
enum Command {
    /// Run the tests of make test on these kernels; with --machine vmx, --mode or --only, the
    /// tests of that machine, of that mode or with these names
    Test {
        #[command(flatten)]
        kernels: Kernels,
        /// Run only TAP programs whose name contains TEXT, or one of TEXT,TEXT...;
        /// "harness" runs the harness's own tests, "guard/model" the model of the guard's
        /// border control, "guard/content" the tests of the content of modules,
        /// "guard/keys_inside" those of the inside of guard-keys.ko, "guard/weak" those of
        /// weakened guards, "guard/crash" those of crash dumps, and "guard/panic" those of kernels
        /// that the guard makes panic
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// Boot in this mode of tests/suite.toml (pti, la57, ...)
        #[arg(long)]
        mode: Option<String>,
        /// Print which tests would run where, and run nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Run all tests on these kernels in every mode but debug, in parts; parts that passed are
    /// not run again
    TestAll {
        #[command(flatten)]
        kernels: Kernels,
        /// Run only this part (repeatable)
        #[arg(long = "part", value_name = "NAME")]
        parts: Vec<String>,
        /// Print the names of the parts, and mark those that have passed
        #[arg(long, conflicts_with = "parts")]
        list: bool,
        /// Print which tests would run where, and run nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Run the tests in the vmx machine, in the modes and on the kernels that tests/suite.toml
    /// has for this command (vmx_kernels)
    TestVmx {
        /// Run those of its tests whose name contains TEXT, or one of TEXT,TEXT..., in the
        /// default mode
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// Print which tests would run where, and run nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Run the module's tests on the debug kernel
    TestDebug {
        /// Run those of all TAP programs whose name contains TEXT, or one of TEXT,TEXT...
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
        /// Print which tests would run where, and run nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Run the fuzzers of dune.ko and of the guard from where they stopped the last time
    /// (FUZZ_SEED: another seed)
    Fuzz {
        #[command(flatten)]
        kernels: Kernels,
        /// One of the two: "dune" or "guard"
        #[arg(long, value_name = "NAME",
              value_parser = fuzz::SUBJECTS.iter().map(|one| one.name).collect::<Vec<_>>())]
        only: Option<String>,
        /// Stop after this many hours
        #[arg(long, default_value_t = 1.0)]
        hours: f64,
    },
    /// Attack the sandbox's checks, from where the attack stopped the last time
    Decoy {
        #[command(flatten)]
        kernels: Kernels,
        #[command(flatten)]
        options: DecoyOptions,
    },
    /// Measure, and write docs/benchmarks.md, its plot and the table of README.md
    Bench {
        /// Kernel series [default: all; of vmx those in full_kernels of tests/suite.toml]
        #[arg(value_name = "SERIES", value_parser = options::kernel_series())]
        kernels: Vec<Series>,
        /// Run the programs of bench/ whose name contains TEXT, and keep all other figures
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Check the figures that bench saved against their targets
    BenchCheck,
    /// Write docs/benchmarks.md, its plot and the table of README.md, from the figures
    /// that bench saved
    BenchPage,
    /// Run the kernel's style checker on these files
    Checkpatch {
        /// C and assembly files
        files: Vec<PathBuf>,
    },
    /// Run real programs, natively and under dunectl run
    Demo {
        /// Kernel series
        #[arg(long, value_name = "SERIES", default_value_t = Series::DEFAULT,
              value_parser = options::kernel_series())]
        kernel: Series,
    },
    /// Show what the guard does: a key and a network card that a hostile module wants
    DemoGuard {
        /// Kernel series
        #[arg(long, value_name = "SERIES", default_value_t = Series::DEFAULT,
              value_parser = options::kernel_series())]
        kernel: Series,
    },
}

/// The result of a command that ran. A command that could not run returns an error: the
/// exit status is 69 if this computer lacks something, and else 2.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// All is well.
    Passed,
    /// Something failed, or a target is missed.
    Failed,
    /// A machine failed, so the result is unknown.
    MachineFailed,
}

impl Verdict {
    fn passed_if(is_well: bool) -> Self {
        if is_well {
            Verdict::Passed
        } else {
            Verdict::Failed
        }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        ExitCode::from(match verdict {
            Verdict::Passed => 0,
            Verdict::Failed => 1,
            Verdict::MachineFailed => 2,
        })
    }
}

#[derive(clap::Args)]
struct Kernels {
    /// Kernel series, one or more. make test gives 6.1 and 6.12, and make test-all also gives
    /// newest
    #[arg(value_name = "SERIES", default_values_t = Series::ALL,
          value_parser = options::kernel_series())]
    kernels: Vec<Series>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = Context::new(&cli.source, cli.options).and_then(|context| match cli.command {
        Command::Test { kernels: Kernels { kernels }, only, mode, dry_run } => {
            let (only, mode) = (only.as_deref(), mode.as_deref());
            test::run(&context, &TestOptions { kernels: &kernels, only, mode, dry_run })
        }
        Command::TestAll { kernels: Kernels { kernels }, list: true, .. } => {
            test::parts::list(&context, &kernels)
        }
        Command::TestAll { kernels: Kernels { kernels }, parts, list: false, dry_run } => {
            test::parts::run(&context, &kernels, &parts, dry_run)
        }
        Command::TestVmx { only, dry_run } => test::run_vmx(&context, only.as_deref(), dry_run),
        Command::TestDebug { only, dry_run } => test::run_debug(&context, only.as_deref(), dry_run),
        Command::Fuzz { kernels: Kernels { kernels }, only, hours } => {
            fuzz::run(&context, &kernels, only.as_deref(), hours)
        }
        Command::Decoy { kernels: Kernels { kernels }, options } => {
            decoy::run(&context, &kernels, &options)
        }
        Command::Bench { kernels, only } => bench::run(&context, &kernels, only.as_deref()),
        Command::BenchCheck => bench::check(&context),
        Command::BenchPage => bench::write_saved(&context),
        Command::Checkpatch { files } => style::run(&context, &files),
        Command::Demo { kernel } => demo::run(&context, kernel),
        Command::DemoGuard { kernel } => demo::guard::run(&context, kernel),
    });
    match result {
        Ok(verdict) => verdict.into(),
        Err(e) => {
            eprintln!("dune-suite: {e:#}");
            let lacking = e.downcast_ref::<dune_machine::Error>();
            let is_lacking = lacking.is_some_and(|e| e.is_environment());
            ExitCode::from(if is_lacking { UNAVAILABLE } else { 2 })
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots a Debian kernel in an emulator with the host's file system inside
//! and runs programs there.
//!
//! - [`Layout`] knows where the parts are, in a build directory or installed.
//! - [`MachineType`] is one of the emulated computers, `svm` and `vmx`
//!   (machine_type.rs); [`Config`] is a machine of that type with its kernel,
//!   CPUs and so on (config.rs), also with a [`Device`] for tests (device.rs).
//! - [`Kernel`] is a kernel from Debian's packages: [`Kernel::prepare`] fetches
//!   it (apt.rs), unpacked below the cache directory and never installed. prepare.rs and kept.rs
//!   keep what was fetched and made; foreign.rs adapts programs of a newer Debian. debug_kernel.rs
//!   builds a kernel, and newest_qemu.rs fetches an emulator.
//! - [`Machine::boot`] makes the initramfs (initramfs.rs, cpio.rs), starts the
//!   emulator (emulator.rs: qemu.rs, bochs.rs) and waits for the agent in the
//!   machine (tools/agent), with which it exchanges messages (connection.rs).
//! - [`Machine::run`] runs a [`Run`], a [`Program`] with its streams (session.rs),
//!   and returns an [`Outcome`]: exit status, output, duration.
//! - [`KernelLog`] is the kernel's log, and finds the kernel's errors in it. [`Trace`] has the
//!   instructions that a machine executed.
//! - [`options`] has the options that choose a machine, for the command lines of dunectl and
//!   dune-suite.
//!
//! ```no_run
//! use dune_machine::{Config, Kernel, Layout, Machine, Run, Series, SVM};
//!
//! # fn main() -> dune_machine::Result<()> {
//! let layout = Layout::find()?;
//! let kernel = Kernel::find(&layout, Series::V6_1)?;
//! let mut machine = Machine::boot(&layout, &Config::new(&SVM, kernel))?;
//! let outcome = machine.run(&mut Run::new(["uname", "-r"]))?;
//! assert!(outcome.status.success());
//! machine.power_off()?;
//! # Ok(())
//! # }
//! ```
//!
//! No process survives: the emulator is killed when the [`Machine`] is
//! dropped, and by the kernel when the thread that booted it dies.

#![warn(unreachable_pub)]

mod apt;
mod bochs;
mod config;
mod connection;
mod cpio;
mod debug_kernel;
mod device;
mod emulator;
mod error;
mod foreign;
mod host_command;
mod initramfs;
mod kept;
mod kernel;
mod layout;
mod log;
mod machine;
mod machine_type;
mod newest_qemu;
pub mod options;
mod prepare;
mod program;
mod qemu;
mod session;
mod streams;
mod trace;

pub use config::{Config, Cpus};
pub use device::Device;
pub use error::{Error, Result, UNAVAILABLE};
pub use kernel::{Kernel, Series};
pub use layout::{modules_text, Layout, MODULES};
pub use log::KernelLog;
pub use machine::Machine;
pub use machine_type::{MachineType, SVM, VMX};
pub use session::{Outcome, Run};
pub use streams::{InputFrom, OutputTo};
pub use trace::{Step, Trace};

pub use dune_protocol::{Credentials, LogRecord, Program, Status, Stream};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first process of an emulated machine.
//!
//! The agent is linked statically and is /init of the initramfs. It loads the
//! modules that the initramfs contains (modules.rs), opens the port to the
//! harness (port.rs), makes the host's file system its root (mounts.rs), and
//! then runs one program after the other at the harness's request (run.rs). A
//! thread sends the kernel's log meanwhile (kernel_log.rs). The messages are
//! those of dune-protocol.
//!
//! Process 1 must not die: a panic in any thread aborts the process (panic=abort in the
//! Makefile), and then the kernel panics. The harness notices that and reports it with the
//! message on the console.

mod kernel_log;
mod modules;
mod mounts;
mod network;
mod port;
mod run;
mod wait;

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{bail, Context, Result};
use dune_protocol::{Setup, ToAgent, ToHarness};
use nix::sys::reboot::{reboot, RebootMode};

use crate::kernel_log::KernelLog;
use crate::port::Port;
use crate::run::Runner;

fn main() {
    if std::process::id() != 1 {
        eprintln!(
            "dune-agent is the first process of an emulated machine and cannot be used elsewhere"
        );
        std::process::exit(1);
    }
    if let Err(e) = serve() {
        // Before the port is open, the console is the only way out.
        eprintln!("dune-agent: {e:#}");
    }
    power_off();
}

fn serve() -> Result<()> {
    mounts::mount_kernel_filesystems().context("mounting /proc, /sys and /dev")?;
    modules::load_initial().context("loading the initial modules")?;
    let (mut requests, port) = port::open().context("opening the port to the harness")?;
    port.send(&ToHarness::Listening)?;
    let log = KernelLog::start(port.clone()).context("reading the kernel log")?;
    let Some(ToAgent::Setup(setup)) = requests.next()? else {
        bail!("the harness did not begin with the set-up");
    };
    if let Err(e) = set_up(&setup) {
        log.flush();
        port.send(&ToHarness::Failed(format!("{e:#}")))?;
        return Ok(());
    }
    log.flush();
    port.send(&ToHarness::Ready)?;
    serve_programs(&mut requests, port, log)
}

fn set_up(setup: &Setup) -> Result<()> {
    nix::unistd::sethostname(&setup.hostname).context("setting the host name")?;
    network::loopback_up().context("setting up the loopback interface")?;
    mounts::mount_root(setup).context("mounting the host's files")?;
    for path in &setup.insmod {
        modules::load_file(path)?;
        // As packaging/60-dune.rules: of the devices, only Dune's is for every user.
        if path.file_stem() == Some(OsStr::new("dune")) {
            mounts::allow_everyone(Path::new("/dev/dune"))
                .context("/dev/dune after loading its module")?;
        }
    }
    Ok(())
}

fn serve_programs(requests: &mut port::Requests, port: Port, log: KernelLog) -> Result<()> {
    let runner = Runner::new(port.clone(), log);
    while let Some(message) = requests.next()? {
        match message {
            ToAgent::Setup(_) => bail!("a second set-up"),
            ToAgent::Run(program) => {
                if let Err(e) = runner.start(&program) {
                    port.send(&ToHarness::Refused(format!("{e:#}")))?;
                }
            }
            ToAgent::Input(bytes) => runner.input(bytes),
            ToAgent::InputEnd => runner.input_end(),
            ToAgent::OutputClosed(stream) => runner.output_closed(stream),
            ToAgent::Signal(signal) => runner.signal(signal),
            ToAgent::WindowSize { rows, columns } => runner.window_size(rows, columns),
            ToAgent::PowerOff => break,
        }
    }
    Ok(())
}

fn power_off() -> ! {
    nix::unistd::sync();
    let _ = reboot(RebootMode::RB_POWER_OFF);
    // reboot() fails only without the privilege, which process 1 has.
    loop {
        nix::unistd::pause();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bochs, which emulates the `vmx` machine: its configuration, its disks, and its
//! connection to the agent.
//!
//! - bochs/boot.rs makes the disk that it boots from, and bochs/images.rs the two
//!   disks with copies of the host's files, since Bochs cannot share them.
//! - The first serial line is the console and goes into a file. The agent gets
//!   its messages on the second one, a pseudo-terminal, and answers on the parallel
//!   port, a pipe. In the machine's time, a serial line is as slow as a real one;
//!   the port takes a byte as fast as it is written.
//! - Debian's build has a debugger, in which Bochs starts: the file of commands is
//!   for it. SIGINT leads back to the debugger, which reports where a hung machine
//!   hangs.

mod boot;
mod file_list;
mod images;
mod packages;
mod vmlinux;

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dune_protocol::{LINE_WINDOW, PORTS_ARGUMENT};
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt, PtyMaster};
use nix::sys::signal::Signal;
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};

use crate::config::Config;
use crate::emulator::{memory_file, Channel, Emulator, Process};
use crate::error::{Context, Error, Result};
use crate::layout::Layout;
use crate::trace::{self, Step, Trace};

pub(crate) use images::prepare;

/// The program itself: /usr/bin/bochs is a script.
const PROGRAM: &str = "/usr/bin/bochs-bin";

const BIOS: &str = "/usr/share/bochs/BIOS-bochs-latest";
const VGA_BIOS: &str = "/usr/share/vgabios/vgabios.bin";
/// The display library that the settings below choose.
const SCREEN: &str = "/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so";

/// The files that Bochs needs, each with its package. The package bochs depends
/// on "vgabios | seabios" and "bochs-wx | bochs-gui", so it may be installed
/// without the ones that are needed here.
const FILES: [(&str, &str); 4] =
    [(PROGRAM, "bochs"), (BIOS, "bochsbios"), (VGA_BIOS, "vgabios"), (SCREEN, "bochs-term")];

/// How many instructions make a second of the machine's time. This is near what
/// an ordinary computer emulates in a second, so that time-outs have their usual
/// meaning.
const INSTRUCTIONS_PER_SECOND: u32 = 50_000_000;

/// 2026-01-01, as in counting mode everywhere.
const CLOCK: u64 = 1_767_225_600;

const KERNEL_ARGUMENTS: &str = "8250.nr_uarts=2";

/// A single CPU that waits for an interrupt is slower to emulate than one that
/// spins. With several CPUs, one that waits costs the others nothing.
const ONE_CPU_ARGUMENTS: &str = "idle=poll";

/// RDRAND and RDSEED, whose results differ from run to run.
const COUNTING_ARGUMENTS: &str = "clearcpuid=158,306";

/// The debugger's last commands: continue, and after a SIGINT print registers and
/// stack.
const COMMANDS: &str = "c\nr\nprint-stack 64\nq\n";

pub(crate) struct Bochs {
    process: Process,
    /// Kept open, since the line would otherwise hang up before Bochs opens it.
    _line: OwnedFd,
}

/// Starts Bochs with this initramfs, and returns its process and our ends of the connection
/// to the agent.
pub(crate) fn start(
    layout: &Layout,
    config: &Config,
    initramfs: &File,
) -> Result<(Box<dyn Emulator>, Channel)> {
    check_files(&FILES)?;
    check_config(config)?;
    let base = images::prepare(layout, &mut |message| (config.say)(message))?;
    let copies = images::copies(layout, config)?;
    let boot = boot_disk(config, initramfs)?;
    let (master, line, line_name) = serial_line().context("making the machine's serial line")?;
    let (from_agent, port) = nix::unistd::pipe2(OFlag::O_CLOEXEC).context("making a pipe")?;
    let console = memory_file(c"console")?;
    let console_there = console.try_clone().context("copying a file descriptor")?;
    let commands = config.cpus.trace().map(trace_commands).unwrap_or_default() + COMMANDS;
    let commands = file_with(c"commands", &commands)?;

    let path = |fd: &dyn AsFd| format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let files = Files {
        boot: &path(&boot),
        base: &base.display().to_string(),
        copies: &path(&copies),
        console: &path(&console_there),
        line: &line_name,
        port: &path(&port),
    };
    let settings = file_with(c"settings", &settings_text(config, &files))?;

    let mut command = Command::new(PROGRAM);
    command.args(["-q", "-f", &path(&settings), "-rc", &path(&commands)]);
    // Its text screen, which is not shown, needs a type of terminal.
    command.env("TERM", "vt100").env_remove("BXSHARE").env_remove("LTDL_LIBRARY_PATH");
    let inherited: Vec<OwnedFd> = vec![
        boot.into(),
        copies.into(),
        console_there.into(),
        port,
        settings.into(),
        commands.into(),
    ];
    let process = Process::start(command, "bochs", console, inherited)?;
    // Bochs is always busy. QEMU's threads wait for each other, so while one of them waits for a
    // processor, none makes progress: at equal priority, tests in QEMU took three times as long.
    process.run_after_others();
    let channel = Channel {
        from_agent: from_agent.into(),
        to_agent: OwnedFd::from(master).into(),
        window: Some(LINE_WINDOW),
    };
    Ok((Box::new(Bochs { process, _line: line }), channel))
}

/// Refuses what other machines have and Bochs does not.
fn check_config(config: &Config) -> Result<()> {
    if let Some(share) = config.shares.first() {
        return Err(Error::Usage(format!(
            "the vmx machine cannot write to {}: it has only copies of the host's files",
            share.display()
        )));
    }
    if !config.cpu_features.is_empty() {
        let lacking = "Bochs cannot add features to a processor: choose another with --model";
        return Err(Error::Usage(lacking.to_owned()));
    }
    if let Some(device) = config.devices.first() {
        let lacking = format!("Bochs has no device {}", device.name);
        return Err(Error::Usage(lacking));
    }
    if !config.network_cards.is_empty() {
        return Err(Error::Usage("the vmx machine has no network cards".to_owned()));
    }
    Ok(())
}

/// The disk with the kernel, its command line and the initramfs.
fn boot_disk(config: &Config, mut initramfs: &File) -> Result<File> {
    let disk = memory_file(c"boot")?;
    let mut archive = Vec::new();
    initramfs.read_to_end(&mut archive).context("reading the initramfs")?;
    let one = (config.cpus.count() == 1).then_some(ONE_CPU_ARGUMENTS);
    let counting = config.cpus.is_counting().then_some(COUNTING_ARGUMENTS);
    let always = [Some(KERNEL_ARGUMENTS), Some(PORTS_ARGUMENT)];
    let command_line = config.command_line(&[always, [one, counting]].concat());
    boot::write(&disk, &config.kernel, &archive, &command_line, config.memory)?;
    Ok(disk)
}

/// A pseudo-terminal: our end, Bochs's end, and the name by which Bochs opens it.
fn serial_line() -> nix::Result<(PtyMaster, OwnedFd, String)> {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname_r(&master)?;
    let line = open_raw(&name)?;
    Ok((master, line, name))
}

fn file_with(name: &CStr, text: &str) -> Result<File> {
    let mut file = memory_file(name)?;
    file.write_all(text.as_bytes()).context("writing a memory file")?;
    Ok(file)
}

/// Names every file that is missing, and the packages that have them.
fn check_files(files: &[(&str, &str)]) -> Result<()> {
    let missing = files.iter().filter(|(file, _)| !Path::new(file).exists());
    let (files, packages): (Vec<&str>, Vec<&str>) = missing.copied().unzip();
    if files.is_empty() {
        return Ok(());
    }
    Err(Error::Environment(format!(
        "Bochs lacks {}: run ./setup, or install {}",
        files.join(", "),
        packages.join(", ")
    )))
}

impl Emulator for Bochs {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn interrupt(&mut self) {
        self.process.signal(Signal::SIGINT);
        self.process.wait(Duration::from_secs(10));
    }

    /// Panics of Bochs itself, and the debugger's answers.
    fn is_message(&self, line: &str) -> bool {
        const WORDS: [&str; 2] = [">>PANIC<<", " | STACK "];
        const REGISTERS: [&str; 3] = ["r", "eflags", "CPU"];
        WORDS.iter().any(|words| line.contains(words))
            || REGISTERS.iter().any(|begin| line.starts_with(begin) && line.contains(':'))
    }

    fn steps(&mut self) -> Result<Vec<Step>> {
        Ok(trace::from_bochs(&self.process.messages()))
    }
}

/// Commands that continue to the beginning of the trace, and trace from there.
fn trace_commands(trace: &Trace) -> String {
    let Trace { address, steps } = trace;
    format!("lb {address:#x}\nc\nd 1\ntrace on\ns {steps}\ntrace off\n")
}

fn open_raw(name: &str) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let line = nix::fcntl::open(name, flags, nix::sys::stat::Mode::empty())?;
    let mut settings = tcgetattr(&line)?;
    cfmakeraw(&mut settings);
    tcsetattr(&line, SetArg::TCSANOW, &settings)?;
    Ok(line)
}

/// The paths that Bochs opens.
struct Files<'a> {
    boot: &'a str,
    base: &'a str,
    copies: &'a str,
    console: &'a str,
    line: &'a str,
    port: &'a str,
}

fn settings_text(config: &Config, files: &Files) -> String {
    let Files { boot, base, copies, console, line, port } = files;
    let (cpus, memory) = (config.cpus.count(), config.memory);
    let speed = INSTRUCTIONS_PER_SECOND * config.second_factor;
    let model = config.cpu_model.as_deref().unwrap_or(config.machine_type.cpu_model);
    let clock = if config.cpus.is_counting() { CLOCK.to_string() } else { "utc".to_owned() };
    // With "volatile", the file of the base stays as it is.
    format!(
        "config_interface: textconfig\n\
         display_library: term\n\
         romimage: file={BIOS}\n\
         vgaromimage: file={VGA_BIOS}\n\
         memory: guest={memory}, host={memory}\n\
         cpu: model={model}, count=1:{cpus}:1, ips={speed}, reset_on_triple_fault=0\n\
         clock: sync=none, time0={clock}\n\
         boot: disk\n\
         floppy_bootsig_check: disabled=1\n\
         ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\n\
         ata1: enabled=1, ioaddr1=0x170, ioaddr2=0x370, irq=15\n\
         ata0-master: type=disk, path=\"{boot}\", mode=flat\n\
         ata0-slave: type=disk, path=\"{base}\", mode=volatile\n\
         ata1-master: type=disk, path=\"{copies}\", mode=flat\n\
         com1: enabled=1, mode=file, dev={console}\n\
         com2: enabled=1, mode=term, dev={line}\n\
         parport1: enabled=1, file=\"{port}\"\n\
         log: -\n\
         panic: action=fatal\n\
         error: action=ignore\n\
         info: action=ignore\n\
         debug: action=ignore\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_file_is_named_with_its_package() {
        assert!(check_files(&[("/", "base-files")]).is_ok());
        let files = [("/none/bios", "bochsbios"), ("/", "base-files"), ("/none/vga", "vgabios")];
        let error = check_files(&files).expect_err("two of them do not exist");
        assert!(error.is_environment());
        assert_eq!(
            error.to_string(),
            "Bochs lacks /none/bios, /none/vga: run ./setup, or install bochsbios, vgabios"
        );
    }
}

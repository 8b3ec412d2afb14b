// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU, which emulates the `svm` machine, and its command line.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use dune_protocol::{PORT_NAME, ROOT_TAG};

use crate::config::Config;
use crate::emulator::{memory_file, Channel, Emulator, Process};
use crate::error::{Context, Error, Result};
use crate::layout::Layout;
use crate::newest_qemu;
use crate::trace::{self, Step};

const PROGRAM: &str = "qemu-system-x86_64";

/// phys-bits: TCG refuses a nested CR3 above the physical address width, and with
/// the shared root the guest's CR3 is a virtual address, which has 47 bits.
const FEATURES: &str = "+svm,+npt,phys-bits=48";

/// Devices that are not used would cost time in a boot.
const MACHINE: &str = "pc,usb=off,vmport=off,graphics=off";

/// A panic resets the machine, which ends the emulator (-no-reboot). A hung
/// machine is sent an NMI, so that it panics and reports where it hangs.
const KERNEL_ARGUMENTS: &str = "unknown_nmi_panic 8250.nr_uarts=1";

/// QEMU's first CPU must not enter guests while others run: XRSTOR, on any CPU,
/// clears a flag in the state of the *first* one without a lock
/// (cpu_clear_ignne() in target/i386/tcg). The same word has the flag for being in
/// a guest, so occasionally the flag change of a VMRUN or #VMEXIT on the first CPU is
/// lost, and the guest or the machine dies. Programs get as many CPUs as were asked for.
/// The first CPU is an additional one, for the kernel's own work.
const SEVERAL_ARGUMENTS: &str = "isolcpus=0";

/// Here RDRAND is really random, unlike in Bochs.
const COUNTING_ARGUMENTS: &str = "random.trust_cpu=off";

/// In the network of each card, besides QEMU's router, is a server: port 80 of 10.0.2.100 sends the
/// file whose name a line has, and port 81 answers with the SHA-256 of what it was sent. QEMU
/// starts a process of this user for each connection. Nothing else leads out of the network
/// (restrict=on), and the machine has all files of this computer anyway.
const SERVER: &str = "restrict=on,\
     guestfwd=tcp:10.0.2.100:80-cmd:sh -c 'read -r name && exec cat -- \"$name\"',\
     guestfwd=tcp:10.0.2.100:81-cmd:sha256sum";

pub(crate) struct Qemu {
    process: Process,
    monitor: UnixStream,
    tracer: Option<JoinHandle<Result<Vec<Step>>>>,
}

/// Starts QEMU with this initramfs, and returns its process and our ends of the connection
/// to the agent.
pub(crate) fn start(
    layout: &Layout,
    config: &Config,
    initramfs: &File,
) -> Result<(Box<dyn Emulator>, Channel)> {
    let pair = || UnixStream::pair().context("making a socket pair");
    let copied = "copying a file descriptor";
    let (port, port_there) = pair()?;
    let (monitor, monitor_there) = pair()?;
    let console = memory_file(c"console")?;
    let initramfs = initramfs.try_clone().context(copied)?;

    let mut command = program(layout, config)?;
    let initramfs_path = format!("/proc/self/fd/{}", initramfs.as_raw_fd());
    command.args(arguments(config, initramfs_path.as_ref()));
    command.args(["-chardev", &format!("socket,id=agent,fd={}", port_there.as_raw_fd())]);
    command.args(["-chardev", &format!("socket,id=monitor,fd={}", monitor_there.as_raw_fd())]);
    let console_there = console.try_clone().context(copied)?;
    let path = format!("file,id=console,path=/proc/self/fd/{}", console_there.as_raw_fd());
    command.args(["-chardev", &path]);
    let mut inherited: Vec<OwnedFd> =
        vec![port_there.into(), monitor_there.into(), console_there.into(), initramfs.into()];
    let mut debugger = None;
    if config.cpus.trace().is_some() {
        let (here, there) = pair()?;
        command.args(["-chardev", &format!("socket,id=debugger,fd={}", there.as_raw_fd())]);
        command.args(["-gdb", "chardev:debugger", "-S"]);
        inherited.push(there.into());
        debugger = Some(here);
    }
    let process = Process::start(command, "qemu-system-x86", console, inherited)?;
    if config.single_thread {
        // As in bochs.rs: machines with several threads come first.
        process.run_after_others();
    }
    let tracer = debugger.zip(config.cpus.trace().cloned());
    let tracer = tracer.map(|(stream, trace)| trace::step_qemu(stream, trace));
    let port = OwnedFd::from(port);
    let to_agent = File::from(port.try_clone().context(copied)?);
    Ok((
        Box::new(Qemu { process, monitor, tracer }),
        Channel { from_agent: File::from(port), to_agent, window: None },
    ))
}

impl Emulator for Qemu {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Sends an NMI, on which the kernel panics.
    fn interrupt(&mut self) {
        if self.monitor.write_all(b"nmi\n").is_ok() {
            self.process.wait(Duration::from_secs(30));
        }
    }

    fn is_message(&self, line: &str) -> bool {
        !line.contains("TCG doesn't support requested")
    }

    /// The tracer's connection ended with the process.
    fn steps(&mut self) -> Result<Vec<Step>> {
        let Some(tracer) = self.tracer.take() else { return Ok(Vec::new()) };
        tracer.join().map_err(|_| Error::Ended("the tracer has panicked".to_owned()))?
    }
}

fn program(layout: &Layout, config: &Config) -> Result<Command> {
    if !config.newest_qemu {
        return Ok(Command::new(PROGRAM));
    }
    let newest = newest_qemu::Qemu::prepare(layout, config.say)?;
    let mut command = Command::new(newest.program());
    let (name, value) = newest.environment();
    command.args(newest.arguments()).env(name, value);
    Ok(command)
}

fn arguments(config: &Config, initramfs: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(OsString::from));
    let word = |text: &'static str| OsStr::new(text);

    add(&["-no-user-config", "-nodefaults", "-no-reboot"].map(OsStr::new));
    add(&["-display", "none", "-machine", MACHINE].map(OsStr::new));
    add(&[word("-cpu"), cpu(config).as_ref()]);
    add(&accelerator(config).iter().map(OsStr::new).collect::<Vec<_>>());
    let cpus = config.cpus.count();
    let first = if cpus > 1 { 1 } else { 0 };
    add(&[word("-smp"), (first + cpus).to_string().as_ref()]);
    add(&[word("-m"), format!("{}M", config.memory).as_ref()]);
    add(&[word("-kernel"), config.kernel.image().as_ref()]);
    add(&[word("-initrd"), initramfs.as_ref()]);
    let several = (cpus > 1).then_some(SEVERAL_ARGUMENTS);
    let counting = config.cpus.is_counting().then_some(COUNTING_ARGUMENTS);
    let kernel_arguments = config.command_line(&[Some(KERNEL_ARGUMENTS), several, counting]);
    add(&[word("-append"), kernel_arguments.as_ref()]);

    add(&["-serial", "chardev:console", "-device", "virtio-serial-pci"].map(OsStr::new));
    let port = format!("virtserialport,chardev=agent,name={PORT_NAME}");
    add(&[word("-device"), port.as_ref()]);
    add(&["-mon", "chardev=monitor,mode=readline", "-device", "virtio-rng-pci"].map(OsStr::new));

    for device in &config.devices {
        add(&device.arguments.iter().map(OsStr::new).collect::<Vec<_>>());
    }

    for (n, card) in config.network_cards.iter().enumerate() {
        let (network, card) = (format!("user,id=net{n},{SERVER}"), format!("{card},netdev=net{n}"));
        add(&[word("-netdev"), network.as_ref()]);
        // The card's own firmware, which boots from the network, is not installed everywhere.
        add(&[word("-device"), format!("{card},romfile=").as_ref()]);
    }
    add(&share(ROOT_TAG, Path::new("/"), "on").each_ref().map(OsString::as_os_str));
    for (tag, path) in config.shares_by_tag() {
        add(&share(&tag, path, "off").each_ref().map(OsString::as_os_str));
    }
    arguments
}

/// How the processors are emulated.
fn accelerator(config: &Config) -> &'static [&'static str] {
    if config.cpus.is_counting() {
        &[
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=0,sleep=off",
            "-seed",
            "1",
            "-rtc",
            "base=2026-01-01,clock=vm",
        ]
    } else if config.single_thread {
        &["-accel", "tcg,thread=single"]
    } else {
        &["-accel", "tcg,thread=multi"]
    }
}

/// Users and modes are those of the host's files (security_model=none). A share
/// may span file systems, and QEMU keeps their inode numbers distinct (remap).
fn share(tag: &str, path: &Path, readonly: &str) -> [OsString; 4] {
    let mut directory = OsString::from(format!("local,id={tag},path="));
    directory.push(double_commas(path));
    directory.push(format!(",security_model=none,readonly={readonly},multidevs=remap"));
    let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
    ["-fsdev".into(), directory, "-device".into(), device.into()]
}

/// A comma in a value of an option is written twice.
fn double_commas(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut bytes = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        bytes.push(byte);
        if byte == b',' {
            bytes.push(byte);
        }
    }
    OsString::from_vec(bytes)
}

fn cpu(config: &Config) -> String {
    let model = config.cpu_model.as_deref().unwrap_or(config.machine_type.cpu_model);
    let features = config.cpu_features.iter().map(|feature| match feature.strip_prefix('-') {
        Some(absent) => format!(",-{absent}"),
        None if feature.contains('=') => format!(",{feature}"),
        None => format!(",+{feature}"),
    });
    format!("{model},{FEATURES}{}", features.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_directory_names_are_doubled() {
        assert_eq!(double_commas(Path::new("/a,b")), "/a,,b");
    }
}

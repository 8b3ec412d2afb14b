// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine: booted, used for one program after the other, switched off.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dune_protocol::{Setup, Share, ToGuest, ToHost};

use crate::connection::Connection;
use crate::emulator::Emulator;
use crate::error::{Context, Error, Result};
use crate::initramfs;
use crate::kernel::Kernel;
use crate::layout::Layout;
use crate::log::KernelLog;
use crate::machine_type::MachineType;
use crate::session::{self, Outcome, Run};
use crate::trace::{Step, Trace};

/// Lines of the log in a report of a failure.
const TAIL: usize = 60;

/// For every machine: nothing that costs time in a boot and shows nothing.
/// panic=-1 resets at once. The kernel's test of the timer panics where the host
/// is so busy that the emulator gets no ten ticks through in its time.
const KERNEL_ARGUMENTS: &str = "console=ttyS0,115200 quiet loglevel=4 panic=-1 tsc=reliable \
     no_timer_check rcupdate.rcu_expedited=1 cryptomgr.notests watchdog_thresh=30 \
     rcupdate.rcu_cpu_stall_timeout=60";

/// In counting mode every run must take the same way: no randomness.
const COUNTING_ARGUMENTS: &str = "nokaslr norandmaps";

/// What the machine is like.
#[derive(Debug, Clone)]
pub struct Config {
    pub machine_type: &'static MachineType,
    /// The emulator's name for another processor than the machine type's.
    pub cpu_model: Option<String>,
    pub kernel: Kernel,
    /// Processors for programs. More than one are numbered from 1: processor
    /// 0 is the kernel's then (qemu.rs says why).
    pub cpus: u32,
    /// In megabytes.
    pub memory: u32,
    /// Exact, repeatable counts of instructions: one CPU, whose time stamp
    /// counter counts them, and nothing random.
    pub counting: bool,
    pub kernel_arguments: Vec<String>,
    /// In Bochs, how many times longer a second lasts than usual: a kernel that
    /// checks itself would do nothing but count its ticks.
    pub slow_motion: u32,
    /// In QEMU, processors take turns. With a thread for each, one may execute
    /// code as it was before another patched it: a breakpoint that is gone.
    pub single_thread: bool,
    /// The newest QEMU of all (newest_qemu.rs) instead of the installed one.
    pub newest_qemu: bool,
    /// Of the processor, beyond what it has by itself: "la57".
    pub cpu_features: Vec<String>,
    /// Folders that are really written to, by absolute path without links.
    pub shares: Vec<PathBuf>,
    /// Folders that programs need, for a machine that only gets copies.
    pub copies: Vec<PathBuf>,
    /// Kernel modules to load, by their path on the host.
    pub insmod: Vec<PathBuf>,
    pub boot_timeout: Duration,
    /// Of a machine with one CPU: for power_off_traced().
    pub trace: Option<Trace>,
    /// Hears what takes a while.
    pub say: fn(&str),
}

impl Config {
    pub fn new(machine_type: &'static MachineType, kernel: Kernel) -> Self {
        Config {
            machine_type,
            cpu_model: None,
            kernel,
            cpus: 1,
            memory: machine_type.memory,
            counting: false,
            kernel_arguments: Vec::new(),
            slow_motion: 1,
            single_thread: false,
            newest_qemu: false,
            cpu_features: Vec::new(),
            shares: Vec::new(),
            copies: Vec::new(),
            insmod: Vec::new(),
            boot_timeout: machine_type.boot_timeout,
            trace: None,
            say: |_| (),
        }
    }

    /// The kernel's, with what only this emulator's machine needs.
    pub(crate) fn command_line(&self, more: &[&str]) -> String {
        let counting = if self.counting { COUNTING_ARGUMENTS } else { "" };
        let own = self.kernel_arguments.iter().map(String::as_str);
        let all = [KERNEL_ARGUMENTS, counting].into_iter().chain(more.iter().copied()).chain(own);
        all.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// QEMU limits tags to 31 bytes: a number, not the path.
    pub(crate) fn shares_by_tag(&self) -> impl Iterator<Item = (String, &Path)> {
        self.shares.iter().enumerate().map(|(n, path)| (format!("share{n}"), path.as_path()))
    }

    fn setup(&self) -> Result<Setup> {
        let absolute = |path: &PathBuf| std::path::absolute(path).context("finding a folder");
        let shares = self.shares_by_tag().map(|(tag, path)| Share { tag, path: path.to_owned() });
        Ok(Setup {
            hostname: nix::unistd::gethostname().context("finding the host name")?,
            root: self.machine_type.root,
            shares: shares.collect(),
            modules_root: Some(absolute(&self.kernel.root)?),
            insmod: self.insmod.iter().map(absolute).collect::<Result<_>>()?,
        })
    }
}

pub struct Machine {
    emulator: Box<dyn Emulator>,
    pub(crate) connection: Connection,
    pub(crate) log: KernelLog,
    boot_time: Duration,
}

impl Machine {
    /// Boots, and once more where the kernel dies before it has loaded a module
    /// of ours: with several processors TCG can run the breakpoint of a patch
    /// that is already complete (it translates code that is being changed).
    pub fn boot(layout: &Layout, config: &Config) -> Result<Self> {
        match Self::boot_once(layout, config) {
            Err(Error::Panicked { log, early: true }) if config.cpus > 1 => {
                eprintln!("the kernel panicked before it had loaded a module: once more\n{log}");
                Self::boot_once(layout, config)
            }
            result => result,
        }
    }

    fn boot_once(layout: &Layout, config: &Config) -> Result<Self> {
        if config.counting && config.cpus != 1 {
            return Err(Error::Usage("counting mode has one CPU".to_owned()));
        }
        for share in &config.shares {
            if !share.is_dir() {
                return Err(Error::Usage(format!("{} is not a folder", share.display())));
            }
        }
        let begin = Instant::now();
        let initramfs = initramfs::make(&config.kernel, config.machine_type, &layout.agent()?)?;
        let setup = config.setup()?;
        let (emulator, channel) = (config.machine_type.start)(layout, config, &initramfs)?;
        let mut machine = Machine {
            emulator,
            connection: Connection::new(channel)?,
            log: KernelLog::default(),
            boot_time: Duration::ZERO,
        };
        let deadline = begin + config.boot_timeout;
        loop {
            match machine.receive(Some(deadline))? {
                Some(ToHost::Listening) => machine.send(&ToGuest::Setup(setup.clone()))?,
                Some(ToHost::Ready) => break,
                Some(ToHost::Failed(reason)) => {
                    let tail = machine.tail();
                    return Err(Error::Agent(format!("{reason}\n{tail}")));
                }
                Some(_) => {}
                None => return Err(machine.hung("boot", config.boot_timeout)),
            }
        }
        machine.boot_time = begin.elapsed();
        Ok(machine)
    }

    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// Runs one program to its end.
    pub fn run(&mut self, run: &mut Run) -> Result<Outcome> {
        session::run(self, run)
    }

    /// What the kernel has said up to now.
    pub fn log(&self) -> &KernelLog {
        &self.log
    }

    /// Writes all shared folders back and ends the machine.
    pub fn power_off(mut self) -> Result<KernelLog> {
        self.end()?;
        Ok(self.log)
    }

    /// The same, and what was traced (Config::trace): nothing, if the machine
    /// never came to where the trace begins.
    pub fn power_off_traced(mut self) -> Result<Vec<Step>> {
        self.end()?;
        self.emulator.steps()
    }

    fn end(&mut self) -> Result<()> {
        const LIMIT: Duration = Duration::from_secs(60);
        self.send(&ToGuest::PowerOff)?;
        let deadline = Instant::now() + LIMIT;
        while let Ok(message) = self.receive(Some(deadline)) {
            if message.is_none() {
                return Err(self.hung("switch off", LIMIT));
            }
        }
        match self.emulator.process().wait(LIMIT) {
            Some(_) => Ok(()),
            None => Err(self.hung("switch off", LIMIT)),
        }
    }

    pub(crate) fn send(&mut self, message: &ToGuest) -> Result<()> {
        match self.connection.send(message) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.gone()),
        }
    }

    /// The next message except those for the log; `None` at the deadline.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> Result<Option<ToHost>> {
        loop {
            match self.connection.receive(deadline) {
                Ok(Some(ToHost::Log(records))) => self.log.extend(records),
                Ok(message) => return Ok(message),
                Err(_) => return Err(self.gone()),
            }
        }
    }

    /// The emulator closed the connection: why?
    pub(crate) fn gone(&mut self) -> Error {
        self.emulator.process().wait(Duration::from_secs(2));
        let console = self.emulator.process().console();
        if console.contains("Kernel panic") {
            // A module from outside of the kernel's tree taints it.
            let early = console.contains("Not tainted");
            return Error::Panicked { log: end_of_console(&console), early };
        }
        Error::Ended(format!("{}{}", self.messages(), self.tail()))
    }

    pub(crate) fn hung(&mut self, what: &'static str, limit: Duration) -> Error {
        self.emulator.interrupt();
        let log = format!("{}{}", self.tail(), self.messages());
        self.emulator.process().kill();
        Error::Hung { what, limit, log }
    }

    /// What the emulator itself said, without the chatter.
    fn messages(&mut self) -> String {
        let text = self.emulator.process().messages();
        let lines = text.lines().filter(|line| self.emulator.is_message(line));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// The log's end, with what only the console got to show.
    fn tail(&mut self) -> String {
        let console = end_of_console(&self.emulator.process().console());
        format!("{}{console}\n", self.log.tail(TAIL / 2))
    }
}

/// From where the kernel begins to complain, or else the last lines; without
/// the firmware's greeting, and without the return thunks that fill backtraces.
fn end_of_console(text: &str) -> String {
    const COMPLAINTS: [&str; 5] = ["] Kernel panic", "] BUG: ", "] Uhhuh", "] Oops", "] sysrq: "];
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| kernel_line(line).or(line.contains("dune-agent").then_some(line)))
        .filter(|line| !line.contains("  ? "))
        .collect();
    let complaint =
        lines.iter().position(|line| COMPLAINTS.iter().any(|words| line.contains(words)));
    let last = lines.len().saturating_sub(TAIL);
    let first =
        complaint.map_or(last, |complaint| complaint.min(last).max(last.saturating_sub(TAIL)));
    lines[first..].join("\n")
}

/// From its time on: the first line of a quiet kernel, which may be the one
/// that tells why it panics, comes right behind the firmware's last words.
fn kernel_line(line: &str) -> Option<&str> {
    line.match_indices('[').map(|(at, _)| &line[at..]).find(|rest| {
        let time = rest[1..].split_once(']').map(|(time, _)| time.trim_start());
        time.is_some_and(|time| time.parse::<f64>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_shown_from_its_beginning() {
        let noise = "[    3.0]  ? srso_return_thunk+0x5/0x10\n".repeat(200);
        let text = format!(
            "SeaBIOS\n\x1b[2JBooting from ROM..[    2.0] fine\n[    3.0] sysrq: Trigger a crash\n{noise}[    3.1] end\n"
        );
        assert_eq!(
            end_of_console(&text),
            "[    2.0] fine\n[    3.0] sysrq: Trigger a crash\n[    3.1] end"
        );
        let many: String = (0..500).map(|n| format!("[    4.0] {n}\n")).collect();
        assert!(end_of_console(&many).starts_with("[    4.0] 440\n"));
    }
}

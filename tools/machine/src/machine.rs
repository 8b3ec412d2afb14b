// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine: it is booted, runs one program after the other, and is switched
//! off.

use std::io;
use std::time::Duration;

use dune_protocol::{ToAgent, ToHarness};

use crate::config::Config;
use crate::connection::{Connection, Limit};
use crate::emulator::Emulator;
use crate::error::{Error, Result};
use crate::initramfs;
use crate::layout::Layout;
use crate::log::KernelLog;
use crate::machine_type::{EmulatorName, MachineType};
use crate::trace::Step;
use crate::{bochs, qemu};

/// Lines of the log in a report of a failure.
const TAIL: usize = 60;

/// A machine that has booted. It is killed when it is dropped.
pub struct Machine {
    emulator: Box<dyn Emulator>,
    pub(crate) connection: Connection,
    pub(crate) log: KernelLog,
    boot_time: Duration,
}

impl Machine {
    /// Makes what every machine of this type needs besides its kernel, so that the first boot
    /// need not make it.
    ///
    /// # Errors
    ///
    /// The computer lacks something: room on the disk, a program.
    pub fn prepare(
        machine_type: &MachineType,
        layout: &Layout,
        say: &mut dyn FnMut(&str),
    ) -> Result<()> {
        match machine_type.emulator {
            EmulatorName::Qemu => Ok(()),
            EmulatorName::Bochs => bochs::prepare(layout, say).map(drop),
        }
    }

    /// Boots. If the kernel panics before it has loaded a module from outside its
    /// tree, boots once more: with several CPUs, TCG may execute the breakpoint of
    /// a patch that is already complete, since it translates code that is being
    /// changed.
    ///
    /// # Errors
    ///
    /// The computer lacks something, the configuration is impossible, or the kernel did not
    /// boot: [`Error`] distinguishes them.
    pub fn boot(layout: &Layout, config: &Config) -> Result<Self> {
        match Self::boot_once(layout, config) {
            Err(Error::Panicked { log, early: true }) if config.cpus.count() > 1 => {
                let what = "the kernel panicked before it had loaded a module; booting once more";
                (config.say)(&format!("{what}\n{log}"));
                Self::boot_once(layout, config)
            }
            result => result,
        }
    }

    fn boot_once(layout: &Layout, config: &Config) -> Result<Self> {
        for share in &config.shares {
            if !share.is_dir() {
                return Err(Error::Usage(format!("{} is not a directory", share.display())));
            }
        }
        let mut limit = Limit::new(config.boot_timeout);
        let initramfs = initramfs::make(&config.kernel, config.machine_type, &layout.agent()?)?;
        let setup = config.setup()?;
        let start = match config.machine_type.emulator {
            EmulatorName::Qemu => qemu::start,
            EmulatorName::Bochs => bochs::start,
        };
        let (emulator, channel) = start(layout, config, &initramfs)?;
        let mut machine = Machine {
            emulator,
            connection: Connection::new(channel)?,
            log: KernelLog::default(),
            boot_time: Duration::ZERO,
        };
        loop {
            match machine.receive(&mut limit)? {
                Some(ToHarness::Listening) => machine.send(&ToAgent::Setup(setup.clone()))?,
                Some(ToHarness::Ready) => break,
                Some(ToHarness::Failed(reason)) => {
                    let log = machine.log_excerpt();
                    return Err(Error::Agent(format!("{reason}\n{log}")));
                }
                Some(_) => {}
                None => return Err(machine.hung("boot", config.boot_timeout)),
            }
        }
        machine.boot_time = limit.elapsed();
        Ok(machine)
    }

    /// How long booting took.
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// The kernel's log so far.
    pub fn log(&self) -> &KernelLog {
        &self.log
    }

    /// Writes all shared directories back and switches the machine off. Returns the whole log,
    /// with the messages of the shutdown.
    ///
    /// # Errors
    ///
    /// The machine did not switch off in time, or its kernel panicked meanwhile.
    pub fn power_off(mut self) -> Result<KernelLog> {
        self.end()?;
        Ok(self.log)
    }

    /// The same, and returns what was traced (Cpus::Counting). If the machine never reached the
    /// beginning of the trace, that is nothing in Bochs, and in QEMU the tracer has failed.
    ///
    /// # Errors
    ///
    /// The machine did not switch off in time, its kernel panicked meanwhile, or the tracer
    /// failed.
    pub fn power_off_traced(mut self) -> Result<Vec<Step>> {
        self.end()?;
        self.emulator.steps()
    }

    fn end(&mut self) -> Result<()> {
        const LIMIT: Duration = Duration::from_secs(60);
        self.send(&ToAgent::PowerOff)?;
        let mut limit = Limit::new(LIMIT);
        loop {
            match self.receive(&mut limit) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(self.hung("switch off", LIMIT)),
                // A module's reboot notifier runs while the kernel switches off.
                Err(e @ Error::Panicked { .. }) => return Err(e),
                // The emulator closes the connection when it ends.
                Err(_) => break,
            }
        }
        match self.emulator.process().wait(LIMIT) {
            Some(_) => Ok(()),
            None => Err(self.hung("switch off", LIMIT)),
        }
    }

    /// Sends a message to the agent.
    pub(crate) fn send(&mut self, message: &ToAgent) -> Result<()> {
        match self.connection.send(message) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.gone(&e)),
        }
    }

    /// The next message except those for the log; `None` once the limit is over.
    pub(crate) fn receive(&mut self, limit: &mut Limit) -> Result<Option<ToHarness>> {
        loop {
            match self.connection.receive(limit) {
                Ok(Some(ToHarness::Log(records))) => self.log.extend(records),
                Ok(message) => return Ok(message),
                Err(e) => return Err(self.gone(&e)),
            }
        }
    }

    /// The reason why the connection broke with the error `e`: the kernel panicked, the
    /// emulator ended, or else the error itself.
    pub(crate) fn gone(&mut self, e: &io::Error) -> Error {
        let has_ended = self.emulator.process().wait(Duration::from_secs(2)).is_some();
        let console = self.emulator.process().console();
        if console.contains("Kernel panic") {
            // A module from outside of the kernel's tree taints it.
            let early = console.contains("Not tainted");
            return Error::Panicked { log: end_of_console(&console), early };
        }
        let text = format!("{}{}", self.messages(), self.log_excerpt());
        if has_ended {
            Error::Ended(text)
        } else {
            Error::Connection(format!("{e}\n{text}"))
        }
    }

    /// The error of a machine that did not do something in time. The emulator reports where it
    /// hangs, and is killed.
    pub(crate) fn hung(&mut self, action: &'static str, limit: Duration) -> Error {
        self.emulator.interrupt();
        let log = format!("{}{}", self.log_excerpt(), self.messages());
        self.emulator.process().kill();
        Error::Hung { action, limit, log }
    }

    /// The emulator's own messages, as far as they matter.
    fn messages(&mut self) -> String {
        let text = self.emulator.process().messages();
        let lines = text.lines().filter(|line| self.emulator.is_message(line));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// An excerpt of the log, and the end of the console, which may have more.
    fn log_excerpt(&mut self) -> String {
        let console = end_of_console(&self.emulator.process().console());
        format!("{}{console}\n", self.log.excerpt(TAIL / 2))
    }
}

/// The console from the kernel's first error on, or else its last lines.
/// It lacks the firmware's messages and the return thunks that fill backtraces.
fn end_of_console(text: &str) -> String {
    const ERRORS: [&str; 5] = ["] Kernel panic", "] BUG: ", "] Uhhuh", "] Oops", "] sysrq: "];
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| kernel_line(line).or(line.contains("dune-agent").then_some(line)))
        .filter(|line| !line.contains("  ? "))
        .collect();
    let error = lines.iter().position(|line| ERRORS.iter().any(|words| line.contains(words)));
    let last = lines.len().saturating_sub(TAIL);
    let first = error.map_or(last, |error| error.min(last).max(last.saturating_sub(TAIL)));
    lines[first..].join("\n")
}

/// The part of a line that begins with the kernel's time. The first line of a
/// quiet kernel, which may be the reason of its panic, follows the firmware's last
/// words without a line break.
fn kernel_line(line: &str) -> Option<&str> {
    line.match_indices('[').map(|(at, _)| &line[at..]).find(|rest| {
        let time = rest[1..].split_once(']').map(|(time, _)| time.trim_start());
        time.is_some_and(|time| time.parse::<f64>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::process::Command;

    use dune_protocol::{LogRecord, Status, Stream};

    use super::*;
    use crate::emulator::{memory_file, Channel, Process};
    use crate::session::Run;
    use crate::streams::OutputTo;

    /// A process that stands for an emulator.
    struct Stub(Process);

    impl Emulator for Stub {
        fn process(&mut self) -> &mut Process {
            &mut self.0
        }

        fn interrupt(&mut self) {}

        fn is_message(&self, _line: &str) -> bool {
            true
        }

        fn steps(&mut self) -> Result<Vec<Step>> {
            Ok(Vec::new())
        }
    }

    /// A machine that switches off with these words on its console.
    fn machine_that_ends(words: &str) -> Machine {
        let mut console = memory_file(c"console").unwrap();
        console.write_all(words.as_bytes()).unwrap();
        let process = Process::start(Command::new("true"), "coreutils", console, Vec::new());
        let (from_agent, agents_end) = nix::unistd::pipe().unwrap();
        drop(agents_end);
        let to_agent = memory_file(c"requests").unwrap();
        let channel = Channel { from_agent: File::from(from_agent), to_agent, window: None };
        Machine {
            emulator: Box::new(Stub(process.unwrap())),
            connection: Connection::new(channel).unwrap(),
            log: KernelLog::default(),
            boot_time: Duration::ZERO,
        }
    }

    #[test]
    fn a_panic_while_switching_off_is_an_error() {
        assert!(machine_that_ends("[    2.0] reboot: Power down\n").power_off().is_ok());
        let panic = "[    2.0] Kernel panic - not syncing: x\n";
        match machine_that_ends(panic).power_off() {
            Err(Error::Panicked { log, .. }) => assert!(log.contains("not syncing: x"), "{log}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_broken_connection_is_reported_with_its_error() {
        let broken = io::Error::other("a frame of another build");
        let ended = machine_that_ends("").gone(&broken);
        assert!(matches!(ended, Error::Ended(_)), "{ended}");

        let mut running = machine_that_ends("");
        let process =
            Process::start(sleep(), "coreutils", memory_file(c"console").unwrap(), Vec::new());
        running.emulator = Box::new(Stub(process.unwrap()));
        let error = running.gone(&broken).to_string();
        assert!(error.contains("a frame of another build"), "{error}");
    }

    /// A machine, and the end of the line at which its agent would write.
    fn machine_and_agents_end() -> (Machine, File) {
        let mut machine = machine_that_ends("");
        let (from_agent, agents_end) = nix::unistd::pipe().unwrap();
        let to_agent = memory_file(c"requests").unwrap();
        let channel = Channel { from_agent: File::from(from_agent), to_agent, window: None };
        machine.connection = Connection::new(channel).unwrap();
        (machine, File::from(agents_end))
    }

    /// A machine whose agent sends this message without end.
    fn machine_that_floods(message: ToHarness) -> Machine {
        let (machine, mut agents_end) = machine_and_agents_end();
        std::thread::spawn(
            move || {
                while dune_protocol::write_frame(&mut agents_end, &message).is_ok() {}
            },
        );
        machine
    }

    #[test]
    fn a_limit_holds_against_a_flood_of_the_kernels_log() {
        let record = LogRecord { priority: 4, time: 0, text: "again".to_owned() };
        let mut machine = machine_that_floods(ToHarness::Log(vec![record]));
        let mut limit = Limit::new(Duration::from_millis(50));
        assert!(matches!(machine.receive(&mut limit), Ok(None)));
    }

    #[test]
    fn a_limit_holds_against_a_flood_of_output() {
        let mut machine = machine_that_floods(ToHarness::Output(Stream::Stdout, vec![b'y'; 100]));
        let mut run = Run::new(["yes"]);
        run.timeout = Some(Duration::from_millis(50));
        let error = machine.run(&mut run).unwrap_err();
        assert!(matches!(error, Error::Hung { .. }), "{error}");
    }

    /// The destination of the output of a program that ends while this writer blocks.
    struct SlowSink {
        agents_end: File,
        time: Duration,
    }

    impl Write for SlowSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let exited = ToHarness::Exited { status: Status::Exited(3), nanoseconds: 1 };
            dune_protocol::write_frame(&mut self.agents_end, &exited)?;
            std::thread::sleep(self.time);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_program_that_ended_while_its_output_was_written_is_not_hung() {
        let (mut machine, mut agents_end) = machine_and_agents_end();
        let output = ToHarness::Output(Stream::Stdout, b"y".to_vec());
        dune_protocol::write_frame(&mut agents_end, &output).unwrap();
        let limit = Duration::from_secs(1);
        let mut run = Run::new(["yes"]);
        run.timeout = Some(limit);
        run.stdout = OutputTo::Write(Box::new(SlowSink { agents_end, time: limit }));
        let outcome = machine.run(&mut run).unwrap();
        assert!(matches!(outcome.status, Status::Exited(3)), "{}", outcome.status);
    }

    fn sleep() -> Command {
        let mut command = Command::new("sleep");
        command.arg("60");
        command
    }

    #[test]
    fn a_panic_is_shown_from_its_beginning() {
        let noise = "[    3.0]  ? srso_return_thunk+0x5/0x10\n".repeat(200);
        let text = format!(
            "SeaBIOS\n\x1b[2JBooting from ROM..[    2.0] fine\n\
             [    3.0] sysrq: Trigger a crash\n{noise}[    3.1] end\n"
        );
        assert_eq!(
            end_of_console(&text),
            "[    2.0] fine\n[    3.0] sysrq: Trigger a crash\n[    3.1] end"
        );
        let many: String = (0..500).map(|n| format!("[    4.0] {n}\n")).collect();
        assert!(end_of_console(&many).starts_with("[    4.0] 440\n"));
    }
}

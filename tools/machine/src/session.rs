// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running one program in a machine: its streams, its signals and its end.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use dune_protocol::{LogRecord, Program, Status, Stream, ToAgent, ToHarness, INPUT_WINDOW};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{raise, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::connection::{wait, Limit};
use crate::error::{Context, Error, Result};
use crate::machine::Machine;
use crate::program;
use crate::streams::{window_size, InputFrom, Kinds, OutputTo, RawMode};

/// A program with its streams.
#[derive(Default)]
pub struct Run {
    /// The program and what it inherits. Its streams are chosen by the fields below.
    pub program: Program,
    /// The source of its input.
    pub stdin: InputFrom,
    /// The destination of its output.
    pub stdout: OutputTo,
    /// The destination of its error output.
    pub stderr: OutputTo,
    /// The time after which the machine counts as hung.
    pub timeout: Option<Duration>,
    /// Whether to pass on the signals that the program would get in this
    /// process's place.
    pub forward_signals: bool,
}

impl Run {
    /// Runs as root, in /, with a minimal environment. The output is captured.
    pub fn new<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Self {
        let program = program::plain(argv.into_iter().map(Into::into).collect());
        Run { program, ..Run::default() }
    }

    /// Runs as it would on the host in this process's place.
    ///
    /// # Errors
    ///
    /// This process has no working directory.
    pub fn here<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut run = Run {
            stdin: InputFrom::Inherit,
            stdout: OutputTo::Inherit,
            stderr: OutputTo::Inherit,
            forward_signals: true,
            ..Run::new(argv)
        };
        program::inherit(&mut run.program)?;
        Ok(run)
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub status: Status,
    /// The captured output.
    pub stdout: Vec<u8>,
    /// The captured error output.
    pub stderr: Vec<u8>,
    /// The run's duration by the machine's clock.
    pub duration: Duration,
    /// The kernel's messages during the run.
    pub log: Vec<LogRecord>,
    /// Those of them that report errors of the kernel.
    pub kernel_errors: Option<String>,
}

impl Machine {
    /// Runs a program and waits for its end.
    ///
    /// # Errors
    ///
    /// The machine hung or its connection broke, and it is then of no further use; or the
    /// agent could not try to start the program.
    pub fn run(&mut self, run: &mut Run) -> Result<Outcome> {
        let kinds = Kinds::of(&run.stdin, &run.stdout, &run.stderr);
        let mut program = run.program.clone();
        program.stdin = kinds.stdin;
        program.stdout = kinds.stdout;
        program.stderr = kinds.stderr;
        program.terminal = kinds.terminal.clone();
        let signals = run.forward_signals.then(Signals::collect).transpose()?;
        let first_record = self.log.records().len();
        self.send(&ToAgent::Run(program))?;
        let raw = kinds.raw.then(RawMode::enter).transpose().context("setting up the terminal")?;
        let mut session = Session {
            machine: self,
            limit: run.timeout.map(Limit::new),
            input: InputState::new(&mut run.stdin),
            stdout: Sink::new(&mut run.stdout, Stream::Stdout),
            stderr: Sink::new(&mut run.stderr, Stream::Stderr),
            signals,
            raw,
            has_terminal: kinds.terminal.is_some(),
        };
        let (status, duration) = session.serve()?;
        let (stdout, stderr) = (session.stdout.captured, session.stderr.captured);
        Ok(Outcome {
            status,
            stdout,
            stderr,
            duration,
            log: self.log.records()[first_record..].to_vec(),
            kernel_errors: self.log.kernel_errors_since(first_record),
        })
    }
}

struct Session<'a> {
    machine: &'a mut Machine,
    limit: Option<Limit>,
    input: InputState,
    stdout: Sink<'a>,
    stderr: Sink<'a>,
    signals: Option<Signals>,
    raw: Option<RawMode>,
    has_terminal: bool,
}

impl Session<'_> {
    fn serve(&mut self) -> Result<(Status, Duration)> {
        loop {
            while let Some(message) = self.machine.connection.next() {
                match message {
                    ToHarness::Output(stream, bytes) => self.output(stream, &bytes)?,
                    ToHarness::InputConsumed(bytes) => self.input.consumed(bytes),
                    ToHarness::Stopped(_) => self.stop(),
                    ToHarness::Exited { status, nanoseconds } => {
                        return Ok((status, Duration::from_nanos(nanoseconds)))
                    }
                    ToHarness::Refused(reason) => return Err(Error::Refused(reason)),
                    ToHarness::Failed(reason) => return Err(Error::Agent(reason)),
                    ToHarness::Log(records) => self.machine.log.extend(records),
                    ToHarness::Listening | ToHarness::Ready | ToHarness::LineRead(_) => {}
                }
            }
            self.wait()?;
        }
    }

    /// Waits for the machine, for input and for signals, and handles input and signals.
    fn wait(&mut self) -> Result<()> {
        while let Some(message) = self.input.take_bytes() {
            self.machine.send(&message)?;
        }
        // A message may have arrived while that was sent.
        if self.machine.connection.has_next() {
            return Ok(());
        }
        let (readable, input_ready, signal_ready) = {
            let stdin = io::stdin();
            let mut fds = vec![PollFd::new(self.machine.connection.as_fd(), PollFlags::POLLIN)];
            let input = self.input.wants_reading().then_some(fds.len());
            if input.is_some() {
                fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
            }
            let signal = self.signals.as_ref().map(|_| fds.len());
            if let Some(signals) = &self.signals {
                fds.push(PollFd::new(signals.0.as_fd(), PollFlags::POLLIN));
            }
            let over = wait(&mut fds, self.limit.as_mut()).context("waiting for the machine")?;
            if let Some(limit) = over {
                return Err(self.machine.hung("finish", limit));
            }
            let ready = |index: usize| fds[index].any().unwrap_or(true);
            (ready(0), input.is_some_and(ready), signal.is_some_and(ready))
        };
        if readable {
            if let Err(e) = self.machine.connection.fill() {
                return Err(self.machine.gone(&e));
            }
        }
        if signal_ready {
            self.forward_signals()?;
        }
        if input_ready {
            let message = self.input.read();
            self.machine.send(&message)?;
        }
        Ok(())
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<()> {
        let sink = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if sink.write(bytes) {
            return Ok(());
        }
        self.machine.send(&ToAgent::OutputClosed(stream))
    }

    fn forward_signals(&mut self) -> Result<()> {
        while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
            if signal == libc::SIGWINCH {
                if let (true, Some((rows, columns))) = (self.has_terminal, window_size()) {
                    self.machine.send(&ToAgent::WindowSize { rows, columns })?;
                }
            } else if signal == libc::SIGTSTP {
                // In the machine the program is alone in its session, and the kernel
                // ignores SIGTSTP for such a group.
                self.machine.send(&ToAgent::Signal(libc::SIGSTOP))?;
            } else {
                self.machine.send(&ToAgent::Signal(signal))?;
            }
        }
        Ok(())
    }

    /// The program stopped, so this process stops as well. When it continues, so
    /// does the program.
    fn stop(&mut self) {
        if self.signals.is_none() {
            return;
        }
        if let Some(raw) = &self.raw {
            raw.suspend();
        }
        let _ = raise(Signal::SIGSTOP);
        if let Some(raw) = &self.raw {
            raw.resume();
        }
        // SIGCONT, which continued this process, is one of the signals that are
        // passed on.
    }
}

/// The state of the program's input.
struct InputState {
    source: Source,
    /// How many bytes are in flight.
    outstanding: usize,
}

enum Source {
    None,
    Bytes(Vec<u8>),
    Stdin,
}

const INPUT_CHUNK: usize = 64 * 1024;

impl InputState {
    fn new(from: &mut InputFrom) -> Self {
        let source = match from {
            InputFrom::Null => Source::None,
            InputFrom::Bytes(bytes) => Source::Bytes(std::mem::take(bytes)),
            InputFrom::Inherit if Kinds::input_is_null() => Source::None,
            InputFrom::Inherit => Source::Stdin,
        };
        InputState { source, outstanding: 0 }
    }

    fn room(&self) -> usize {
        INPUT_WINDOW.saturating_sub(self.outstanding).min(INPUT_CHUNK)
    }

    fn consumed(&mut self, bytes: usize) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
    }

    fn wants_reading(&self) -> bool {
        matches!(self.source, Source::Stdin) && self.room() > 0
    }

    /// The next piece of input that was given as bytes, as large as the window allows.
    fn take_bytes(&mut self) -> Option<ToAgent> {
        let room = self.room();
        let Source::Bytes(bytes) = &mut self.source else { return None };
        if bytes.is_empty() {
            self.source = Source::None;
            return Some(ToAgent::InputEnd);
        }
        if room == 0 {
            return None;
        }
        let rest = bytes.split_off(room.min(bytes.len()));
        let now = std::mem::replace(bytes, rest);
        self.outstanding += now.len();
        Some(ToAgent::Input(now))
    }

    /// Reads standard input once, without std's buffer.
    fn read(&mut self) -> ToAgent {
        let mut buffer = vec![0; self.room()];
        match nix::unistd::read(io::stdin(), &mut buffer) {
            Ok(n) if n > 0 => {
                buffer.truncate(n);
                self.outstanding += n;
                ToAgent::Input(buffer)
            }
            Err(Errno::EINTR | Errno::EAGAIN) => ToAgent::Input(Vec::new()),
            _ => {
                self.source = Source::None;
                ToAgent::InputEnd
            }
        }
    }
}

/// The destination of one stream of output.
struct Sink<'a> {
    to: &'a mut OutputTo,
    stream: Stream,
    captured: Vec<u8>,
}

impl<'a> Sink<'a> {
    fn new(to: &'a mut OutputTo, stream: Stream) -> Self {
        Sink { to, stream, captured: Vec::new() }
    }

    /// Returns false if it has no reader any more.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let result = match (&mut *self.to, self.stream) {
            (OutputTo::Null, _) => Ok(()),
            (OutputTo::Capture, _) => {
                self.captured.extend_from_slice(bytes);
                Ok(())
            }
            (OutputTo::Inherit, Stream::Stdout) => write_all(io::stdout(), bytes),
            (OutputTo::Inherit, Stream::Stderr) => write_all(io::stderr(), bytes),
            (OutputTo::Write(to), _) => to.write_all(bytes).and_then(|()| to.flush()),
        };
        result.is_ok()
    }
}

/// Writes without std's buffers. Waits for a descriptor that does not block.
fn write_all(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match nix::unistd::write(&to, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                wait(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], None)?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// The signals for the program, which are blocked in this thread.
struct Signals(SignalFd, SigSet);

impl Signals {
    fn collect() -> Result<Self> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGWINCH,
            Signal::SIGCONT,
            Signal::SIGTSTP,
        ] {
            set.add(signal);
        }
        let before = set.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let fd = SignalFd::with_flags(&set, flags).context("waiting for signals")?;
        Ok(Signals(fd, before.context("blocking signals")?))
    }

    fn next(&self) -> Option<i32> {
        self.0.read_signal().ok().flatten().map(|info| info.ssi_signo as i32)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.1.thread_set_mask();
    }
}

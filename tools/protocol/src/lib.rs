// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages between the harness on the host (dune-machine) and the agent in
//! the machine (dune-agent). They use one virtio-serial port. Where the emulator
//! has none, they reach the agent over the second serial line and the harness
//! over the first parallel port, which is the only fast way out of Bochs.
//!
//! A frame is a length (u32, little-endian) and that many bytes of one
//! [`ToAgent`] or [`ToHarness`] message in postcard encoding. The order is:
//!
//! 1. agent: [`ToHarness::Listening`]; harness: [`ToAgent::Setup`]; agent:
//!    [`ToHarness::Ready`] or [`ToHarness::Failed`]
//! 2. harness: [`ToAgent::Run`], then input, signals and window sizes as they
//!    come; agent: output as it comes, then [`ToHarness::Exited`]; any number of
//!    times
//! 3. harness: [`ToAgent::PowerOff`]
//!
//! The kernel log comes at any time as [`ToHarness::Log`]. Everything that was
//! logged before a program ended comes before its [`ToHarness::Exited`].
//!
//! Input has a window, since the agent must never stop reading (the next
//! message may be a signal): the harness sends at most [`INPUT_WINDOW`] bytes
//! that the agent has not reported as consumed. Output needs no window: the port's
//! own backpressure stops the program when the harness does not read.
//!
//! The serial line loses bytes for which its UART has no room, so it has a
//! window as well, below the frames: [`LINE_WINDOW`] bytes, which
//! [`ToHarness::LineRead`] gives back.

mod frame;

pub use frame::{decode_frame, read_frame, write_frame, MAX_FRAME};

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The name of the virtio-serial port.
pub const PORT_NAME: &str = "dune.agent";

/// The kernel argument that makes the agent use the lines instead.
pub const PORTS_ARGUMENT: &str = "dune.agent=ttyS1,parport0";

/// How many bytes may be in flight on the serial line: as many as the UART
/// (16550A) buffers while the kernel has interrupts off. The kernel may keep them
/// off for longer than the bytes take, as when it frees hundreds of pages at once.
pub const LINE_WINDOW: usize = 16;

/// How many bytes of input may be in flight or waiting in the agent.
pub const INPUT_WINDOW: usize = 256 * 1024;

/// The largest piece of output in one message.
pub const OUTPUT_CHUNK: usize = 128 * 1024;

/// The 9p mount tag of the host's root.
pub const ROOT_TAG: &str = "root";

/// How the machine is set up before the first program runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// The machine's host name.
    pub hostname: OsString,
    /// The source of its files.
    pub root: Root,
    /// Directories of the host in which writes reach the host.
    pub shares: Vec<Share>,
    /// A directory on the host that holds `lib/modules/RELEASE`.
    pub modules_root: PathBuf,
    /// Modules to load, by their path on the host. Each makes a device of its own name,
    /// which every user may then use.
    pub insmod: Vec<PathBuf>,
}

/// The source of the machine's files. Writes to them stay in the machine's
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// The host's own root, by 9p.
    Shared,
    /// Copies on two disks: one of the host's programs, and above it one of the
    /// host's configuration and of the files that this run needs.
    Images,
}

/// The disks of [`Root::Images`], the lower first, by their SCSI addresses, since
/// their names depend on the order in which the kernel finds them.
pub const IMAGE_DISKS: [&str; 2] = ["0:0:1:0", "1:0:0:0"];

/// A directory of the host that is mounted, writable, where it is on the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Share {
    /// Its 9p mount tag.
    pub tag: String,
    /// Its absolute path, on the host and in the machine.
    pub path: PathBuf,
}

/// A program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// argv; the first is looked up in PATH as execvp does.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    /// The mask for new files, if it is not the agent's.
    pub umask: Option<u32>,
    /// Soft and hard limits by RLIMIT_ number.
    pub limits: Vec<(u32, u64, u64)>,
    /// The user; without one, root.
    pub credentials: Option<Credentials>,
    /// The kind of its standard input.
    pub stdin: Input,
    /// The kind of its standard output.
    pub stdout: Output,
    /// The kind of its standard error.
    pub stderr: ErrorOutput,
    /// Its terminal, if one of these streams is a terminal.
    pub terminal: Option<Terminal>,
}

/// The user and the groups of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The supplementary groups.
    pub groups: Vec<u32>,
}

/// The pseudo-terminal of a program some of whose streams are terminals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// The height of its window.
    pub rows: u16,
    /// The width of its window.
    pub columns: u16,
    /// The bytes of the host terminal's `struct termios`. None, if they cannot be read.
    pub termios: Option<Vec<u8>>,
}

/// The kind of a program's standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// /dev/null.
    #[default]
    Null,
    /// A pipe.
    Pipe,
    /// The program's terminal.
    Terminal,
}

/// The kind of a program's standard output, or of an error output of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// /dev/null.
    Null,
    /// A pipe.
    #[default]
    Pipe,
    /// The program's terminal.
    Terminal,
}

/// The kind of a program's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorOutput {
    /// One of its own.
    Own(Output),
    /// The same pipe as standard output's, so that the order is kept.
    SameAsStdout,
}

impl Default for ErrorOutput {
    fn default() -> Self {
        ErrorOutput::Own(Output::default())
    }
}

/// One of a program's two streams of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this status.
    Exited(i32),
    /// A signal killed it.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether the kernel dumped core.
        core: bool,
    },
    /// The program could not be executed; with the errno.
    NotStarted(i32),
}

impl Status {
    /// Whether it exited with status 0.
    pub fn success(self) -> bool {
        self == Status::Exited(0)
    }

    /// The status as a shell shows it.
    pub fn code(self) -> i32 {
        const ENOENT: i32 = 2;
        match self {
            Status::Exited(code) => code,
            Status::Signaled { signal, .. } => 128 + signal,
            Status::NotStarted(ENOENT) => 127,
            Status::NotStarted(_) => 126,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Exited(code) => write!(f, "exit status {code}"),
            Status::Signaled { signal, core } => {
                write!(f, "signal {signal}{}", if *core { " (core dumped)" } else { "" })
            }
            Status::NotStarted(errno) => {
                write!(f, "not started: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

/// One record of the kernel log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// syslog level; with a facility other than the kernel's in the upper bits.
    pub priority: u32,
    /// Microseconds since boot.
    pub time: u64,
    /// The message, without its priority and time.
    pub text: String,
}

impl LogRecord {
    /// Whether the kernel wrote it, and not a program through /dev/kmsg.
    pub fn is_kernel(&self) -> bool {
        self.priority >> 3 == 0
    }
}

impl std::fmt::Display for LogRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (s, us) = (self.time / 1_000_000, self.time % 1_000_000);
        write!(f, "[{s:5}.{us:06}] {}", self.text)
    }
}

/// A message to the agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first message: set the machine up.
    Setup(Setup),
    /// Run this program, after the previous one has ended.
    Run(Program),
    /// The next bytes of the program's input.
    Input(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The program's input has ended.
    InputEnd,
    /// This stream has no reader any more: the program is to get EPIPE.
    OutputClosed(Stream),
    /// A signal for the program's process group, or the terminal's foreground one.
    Signal(i32),
    /// The terminal's window has a new size.
    WindowSize {
        /// Its height.
        rows: u16,
        /// Its width.
        columns: u16,
    },
    /// Switch the machine off.
    PowerOff,
}

/// A message to the harness.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToHarness {
    /// The first message: from now on the agent reads what the harness sends.
    Listening,
    /// The agent has read this many bytes from the serial line.
    LineRead(usize),
    /// The machine is set up.
    Ready,
    /// The machine could not be set up, or the agent failed.
    Failed(String),
    /// New records of the kernel's log.
    Log(Vec<LogRecord>),
    /// Output of the program.
    Output(Stream, #[serde(with = "serde_bytes")] Vec<u8>),
    /// This many bytes of input are no longer in flight.
    InputConsumed(usize),
    /// The program stopped by job control.
    Stopped(i32),
    /// The agent could not try to execute the program.
    Refused(String),
    /// The program ended.
    Exited {
        /// How it ended.
        status: Status,
        /// Its duration by the machine's clock.
        nanoseconds: u64,
    },
}

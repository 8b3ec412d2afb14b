// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the harness on the host and the agent in the machine say to each
//! other, over one virtio-serial port; or, where the emulator has no such
//! thing, to the agent over the second serial line and from it over the first
//! parallel port, which is the one way out of Bochs that is fast.
//!
//! A frame is a length (u32, little-endian) and that many bytes of one
//! [`ToGuest`] or [`ToHost`] message in postcard encoding. The order is:
//!
//! 1. agent: [`ToHost::Listening`]; host: [`ToGuest::Setup`]; agent:
//!    [`ToHost::Ready`] or [`ToHost::Failed`]
//! 2. host: [`ToGuest::Run`], then input, signals and window sizes as they
//!    come; agent: output as it comes, then [`ToHost::Exited`]; any number of
//!    times
//! 3. host: [`ToGuest::PowerOff`]
//!
//! The kernel log comes at any time as [`ToHost::Log`]; all that was logged
//! before a program ended comes before its [`ToHost::Exited`].
//!
//! Input has a window, as the agent must never stop reading (a signal may be
//! next): the host sends at most [`INPUT_WINDOW`] bytes that the agent has not
//! reported as consumed. Output needs none: the port's own backpressure stops
//! the program when the host does not read.
//!
//! The serial line loses what its UART has no place for, so it has a window
//! too, below the frames: [`LINE_WINDOW`] bytes, given back by
//! [`ToHost::LineRead`].

mod frame;

pub use frame::{decode_frame, read_frame, write_frame, MAX_FRAME};

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The name of the virtio-serial port.
pub const PORT_NAME: &str = "dune.agent";

/// The kernel argument that says that there is none.
pub const PORTS_ARGUMENT: &str = "dune.agent=ttyS1,parport0";

/// How many bytes may be on their way on the serial line: as many as the UART
/// (16550A) keeps while the kernel has interrupts off. That can be for longer
/// than they take, as when it gives hundreds of pages back at once.
pub const LINE_WINDOW: usize = 16;

/// How many bytes of input may be on their way or waiting in the agent.
pub const INPUT_WINDOW: usize = 256 * 1024;

/// The largest piece of output in one message.
pub const OUTPUT_CHUNK: usize = 128 * 1024;

/// The 9p mount tag of the host's root.
pub const ROOT_TAG: &str = "root";

/// What the machine is to look like before the first program runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    pub hostname: OsString,
    pub root: Root,
    /// Folders of the host that are really written to.
    pub shares: Vec<Share>,
    /// A folder on the host that holds `lib/modules/RELEASE`.
    pub modules_root: Option<PathBuf>,
    /// Modules to load, by their path on the host.
    pub insmod: Vec<PathBuf>,
}

/// Where the machine's files come from. Whatever is written to them stays in
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// The host's own root, by 9p.
    Shared,
    /// Copies on two disks: of the host's programs, and over it of its
    /// configuration and of what this run needs.
    Images,
}

/// The disks of [`Root::Images`], the lower first, by their SCSI addresses:
/// their names are given in the order in which they are found.
pub const IMAGE_DISKS: [&str; 2] = ["0:0:1:0", "1:0:0:0"];

/// A folder of the host that is mounted, writable, where it is on the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Share {
    pub tag: String,
    pub path: PathBuf,
}

/// A program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// argv; the first is looked up in PATH as execvp does.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    pub umask: Option<u32>,
    /// Soft and hard limits by RLIMIT_ number.
    pub limits: Vec<(u32, u64, u64)>,
    pub credentials: Option<Credentials>,
    pub stdin: Input,
    pub stdout: Output,
    pub stderr: Output,
    pub terminal: Option<Terminal>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// The pseudo-terminal of a program some of whose streams are terminals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// The bytes of the host terminal's `struct termios`, if they are known.
    pub termios: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    #[default]
    Null,
    Pipe,
    Terminal,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    Null,
    #[default]
    Pipe,
    Terminal,
    /// For stderr: the same pipe as stdout, so that the order is kept.
    SameAsStdout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Exited(i32),
    Signaled {
        signal: i32,
        core: bool,
    },
    /// It could not be executed, with this errno.
    NotStarted(i32),
}

impl Status {
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
    pub text: String,
}

impl LogRecord {
    /// Written by the kernel, and not by a program through /dev/kmsg.
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

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToGuest {
    Setup(Setup),
    Run(Program),
    Input(#[serde(with = "serde_bytes")] Vec<u8>),
    InputEnd,
    /// Nobody reads this stream any more: the program is to see EPIPE.
    OutputClosed(Stream),
    /// For the program's process group, or the terminal's foreground one.
    Signal(i32),
    WindowSize {
        rows: u16,
        columns: u16,
    },
    PowerOff,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToHost {
    /// The first message: from now on, what the host sends is heard.
    Listening,
    /// So many bytes of the serial line have been read.
    LineRead(usize),
    Ready,
    /// The machine could not be set up, or the agent is in trouble.
    Failed(String),
    Log(Vec<LogRecord>),
    Output(Stream, #[serde(with = "serde_bytes")] Vec<u8>),
    /// So many bytes of input are on their way no more.
    InputConsumed(usize),
    /// The program stopped by job control.
    Stopped(i32),
    /// The program could not even be tried.
    Refused(String),
    Exited {
        status: Status,
        nanoseconds: u64,
    },
}

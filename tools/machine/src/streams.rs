// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's ends of a program's streams.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use dune_protocol::{ErrorOutput, Input, Output, Terminal};
use nix::libc::{winsize, TIOCGWINSZ};
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg, Termios};

nix::ioctl_read_bad!(get_window_size, TIOCGWINSZ, winsize);

/// The source of a program's input.
#[derive(Debug, Default)]
pub enum InputFrom {
    /// /dev/null.
    #[default]
    Null,
    /// These bytes, through a pipe.
    Bytes(Vec<u8>),
    /// This process's own standard input.
    Inherit,
}

/// The destination of a program's output.
#[derive(Default)]
pub enum OutputTo {
    /// /dev/null.
    Null,
    /// Into the [`crate::Outcome`].
    #[default]
    Capture,
    /// This process's own standard output or error.
    Inherit,
    /// This writer.
    Write(Box<dyn Write>),
}

/// The kinds of streams in the machine with which a program finds the same there as on
/// the host.
pub(crate) struct Kinds {
    pub stdin: Input,
    pub stdout: Output,
    pub stderr: ErrorOutput,
    pub terminal: Option<Terminal>,
    /// Whether keys go to the machine's terminal as they are pressed.
    pub raw: bool,
}

impl Kinds {
    /// Whether this process's standard input is /dev/null.
    pub(crate) fn input_is_null() -> bool {
        is_null(io::stdin().as_fd())
    }

    /// The kinds of these streams.
    pub(crate) fn of(stdin: &InputFrom, stdout: &OutputTo, stderr: &OutputTo) -> Self {
        let input = match stdin {
            InputFrom::Null => Input::Null,
            InputFrom::Bytes(_) => Input::Pipe,
            InputFrom::Inherit if io::stdin().is_terminal() => Input::Terminal,
            InputFrom::Inherit if is_null(io::stdin().as_fd()) => Input::Null,
            InputFrom::Inherit => Input::Pipe,
        };
        let output = output_kind(stdout, io::stdout().as_fd());
        let error = output_kind(stderr, io::stderr().as_fd());
        let raw = input == Input::Terminal && output == Output::Terminal;
        let has_terminal = input == Input::Terminal || [output, error].contains(&Output::Terminal);
        // 2>&1: only one pipe keeps the order of what is written to both.
        let is_one_pipe = match (stdout, stderr, output, error) {
            (OutputTo::Inherit, OutputTo::Inherit, Output::Pipe, Output::Pipe) => {
                same_file(io::stdout().as_fd(), io::stderr().as_fd())
            }
            _ => false,
        };
        Kinds {
            stdin: input,
            stdout: output,
            stderr: if is_one_pipe { ErrorOutput::SameAsStdout } else { ErrorOutput::Own(error) },
            terminal: has_terminal.then(|| terminal(raw)),
            raw,
        }
    }
}

fn output_kind(to: &OutputTo, inherited: BorrowedFd) -> Output {
    match to {
        OutputTo::Null => Output::Null,
        OutputTo::Inherit if inherited.is_terminal() => Output::Terminal,
        OutputTo::Inherit if is_null(inherited) => Output::Null,
        _ => Output::Pipe,
    }
}

fn metadata(fd: BorrowedFd) -> io::Result<std::fs::Metadata> {
    File::from(fd.try_clone_to_owned()?).metadata()
}

fn is_null(fd: BorrowedFd) -> bool {
    let null = std::fs::metadata("/dev/null");
    match (metadata(fd), null) {
        (Ok(a), Ok(b)) => a.file_type().is_char_device() && a.rdev() == b.rdev(),
        _ => false,
    }
}

fn same_file(a: BorrowedFd, b: BorrowedFd) -> bool {
    match (metadata(a), metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Calls `f` with the first of the standard streams that is a terminal.
fn with_terminal<T>(f: impl Fn(BorrowedFd) -> Option<T>) -> Option<T> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    for fd in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        if fd.is_terminal() {
            return f(fd);
        }
    }
    None
}

/// The rows and columns of this process's terminal, if it has one.
pub(crate) fn window_size() -> Option<(u16, u16)> {
    with_terminal(|fd| {
        let mut size = winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the kernel writes one winsize to this function's variable.
        unsafe { get_window_size(fd.as_raw_fd(), &mut size) }.ok()?;
        Some((size.ws_row, size.ws_col))
    })
}

/// The machine's terminal gets the settings of the host's. Where the host's
/// terminal continues to edit and echo lines, the machine's must not echo.
fn terminal(raw: bool) -> Terminal {
    let (rows, columns) = window_size().unwrap_or((24, 80));
    let termios = with_terminal(|fd| tcgetattr(fd).ok()).map(|termios| {
        let mut settings: libc::termios = termios.into();
        if !raw {
            settings.c_lflag &= !(libc::ECHO | libc::ECHONL);
        }
        // SAFETY: a termios is plain integers, read here byte by byte.
        unsafe {
            std::slice::from_raw_parts((&raw const settings).cast::<u8>(), size_of_val(&settings))
        }
        .to_vec()
    });
    Terminal { rows, columns, termios }
}

/// Puts standard input into raw mode until dropped.
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Raw mode from now on.
    pub(crate) fn enter() -> nix::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mode = RawMode { before };
        mode.resume();
        Ok(mode)
    }

    /// Raw mode again, after the shell used the terminal.
    pub(crate) fn resume(&self) {
        let mut raw = self.before.clone();
        cfmakeraw(&mut raw);
        let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw);
    }

    /// The mode of before, for the shell.
    pub(crate) fn suspend(&self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.suspend();
    }
}

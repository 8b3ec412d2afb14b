// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program's standard streams: the program has pipes, a pseudo-terminal or
//! /dev/null; the agent turns them into messages.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use dune_protocol::{
    ErrorOutput, Input, Output, Program, Stream, Terminal, ToHarness, OUTPUT_CHUNK,
};
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::libc::{termios, winsize, TIOCSWINSZ};
use nix::pty::{openpty, OpenptyResult};
use nix::unistd::{pipe2, Pid};

use crate::port::Port;

nix::ioctl_write_ptr_bad!(set_window_size, TIOCSWINSZ, winsize);

/// The program's ends.
pub struct ChildStreams {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// Whether it gets a controlling terminal, and by which stream.
    pub terminal: Option<u32>,
}

/// The agent's ends.
pub struct Streams {
    input: InputEnd,
    terminal: Option<File>,
    outputs: Vec<OutputPump>,
}

/// The channel to the thread that writes the program's input.
enum InputEnd {
    /// The input is /dev/null, or has ended.
    Closed,
    Pipe(Sender<Vec<u8>>),
    Terminal(Sender<Vec<u8>>),
}

struct OutputPump {
    stream: Stream,
    closed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Makes the streams that a program is to have, and starts the threads that serve them.
pub fn make(program: &Program, port: &Port) -> Result<(Streams, ChildStreams)> {
    let pty = program.terminal.as_ref().map(open_terminal).transpose()?;
    let mut maker = Maker { port, pty, controlling: None, outputs: Vec::new() };
    let (stdin, input) = maker.input(program.stdin)?;
    let stdout = maker.output(program.stdout, Stream::Stdout)?;
    let stderr = match program.stderr {
        ErrorOutput::SameAsStdout => stdout.try_clone()?,
        ErrorOutput::Own(kind) => maker.output(kind, Stream::Stderr)?,
    };
    // The terminal's output must reach a terminal on the host.
    let shown = match program.stdout {
        Output::Terminal => Stream::Stdout,
        _ => Stream::Stderr,
    };
    let terminal = maker.terminal(shown)?;
    let Maker { controlling, outputs, .. } = maker;
    let streams = Streams { input, terminal, outputs };
    Ok((streams, ChildStreams { stdin, stdout, stderr, terminal: controlling }))
}

/// The streams that make() has made so far.
struct Maker<'a> {
    port: &'a Port,
    pty: Option<OpenptyResult>,
    /// The first stream that is the terminal.
    controlling: Option<u32>,
    outputs: Vec<OutputPump>,
}

impl Maker<'_> {
    fn pty(&self) -> Result<&OpenptyResult> {
        self.pty.as_ref().context("a stream is to be a terminal, but there is none")
    }

    /// The program's standard input, and the channel to its other end.
    fn input(&mut self, kind: Input) -> Result<(OwnedFd, InputEnd)> {
        Ok(match kind {
            Input::Null => (null()?, InputEnd::Closed),
            Input::Terminal => {
                self.controlling = Some(0);
                let pty = self.pty()?;
                let (slave, master) = (pty.slave.try_clone()?, pty.master.try_clone()?);
                (slave, InputEnd::Terminal(pump_input(master.into(), self.port)))
            }
            Input::Pipe => {
                let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
                (read, InputEnd::Pipe(pump_input(write.into(), self.port)))
            }
        })
    }

    /// The program's end of an output.
    fn output(&mut self, kind: Output, stream: Stream) -> Result<OwnedFd> {
        match kind {
            Output::Null => null(),
            Output::Terminal => {
                self.controlling = self.controlling.or(Some(1 + stream as u32));
                Ok(self.pty()?.slave.try_clone()?)
            }
            Output::Pipe => {
                let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
                // Only for speed. The limit for unprivileged users does not apply.
                let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(1 << 20));
                self.outputs.push(pump_output(File::from(read), stream, self.port));
                Ok(write)
            }
        }
    }

    /// The agent's end of the terminal, if there is one. Its output is sent as `stream`'s.
    fn terminal(&mut self, stream: Stream) -> Result<Option<File>> {
        let Some(pty) = &self.pty else { return Ok(None) };
        let master = File::from(pty.master.try_clone()?);
        self.outputs.push(pump_output(master.try_clone()?, stream, self.port));
        Ok(Some(master))
    }
}

impl Streams {
    /// Passes input on to the program.
    pub fn input(&self, bytes: Vec<u8>) {
        if let InputEnd::Pipe(input) | InputEnd::Terminal(input) = &self.input {
            let _ = input.send(bytes);
        }
    }

    /// Closes the program's input; a terminal gets its end-of-file character.
    pub fn input_end(&mut self) {
        const END_OF_FILE: u8 = 4; // VEOF as Linux sets it up
        if let InputEnd::Terminal(input) = &self.input {
            let _ = input.send(vec![END_OF_FILE]);
        } else {
            self.input = InputEnd::Closed;
        }
    }

    /// Makes the program's writes to this stream fail.
    pub fn output_closed(&self, stream: Stream) {
        for pump in self.outputs.iter().filter(|pump| pump.stream == stream) {
            pump.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Changes the terminal's size, if there is one.
    pub fn window_size(&self, rows: u16, columns: u16) {
        if let Some(terminal) = &self.terminal {
            let _ = apply_window_size(terminal, rows, columns);
        }
    }

    /// The terminal's foreground process group.
    pub fn foreground_group(&self) -> Option<Pid> {
        nix::unistd::tcgetpgrp(self.terminal.as_ref()?).ok()
    }

    /// Waits until all output is sent. To be called when no writer is left.
    pub fn finish(self) {
        drop(self.input);
        drop(self.terminal);
        for pump in self.outputs {
            let _ = pump.thread.join();
        }
    }
}

fn null() -> Result<OwnedFd> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    Ok(null.context("opening /dev/null")?.into())
}

fn open_terminal(terminal: &Terminal) -> Result<OpenptyResult> {
    let pty = openpty(None, None).context("making a terminal")?;
    for fd in [&pty.master, &pty.slave] {
        fcntl(fd, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
    }
    let bytes = terminal.termios.as_ref();
    if let Some(bytes) = bytes.filter(|bytes| bytes.len() == size_of::<termios>()) {
        // SAFETY: the bytes are as many as a termios has, and any values of
        // its integer fields are valid; the kernel checks what they mean.
        unsafe {
            let settings: termios = std::ptr::read_unaligned(bytes.as_ptr().cast());
            libc::tcsetattr(pty.slave.as_raw_fd(), libc::TCSANOW, &settings);
        }
    }
    apply_window_size(&pty.master, terminal.rows, terminal.columns)?;
    Ok(pty)
}

fn apply_window_size(terminal: &impl AsFd, rows: u16, columns: u16) -> Result<()> {
    let size = winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the argument is a complete winsize that lives across the call.
    unsafe { set_window_size(terminal.as_fd().as_raw_fd(), &size) }?;
    Ok(())
}

/// Writes to the program what is sent to the returned channel, until that is
/// dropped. Input that the program no longer reads counts as consumed, too.
fn pump_input(mut to: File, port: &Port) -> Sender<Vec<u8>> {
    let (sender, receiver): (_, Receiver<Vec<u8>>) = channel();
    let port = port.clone();
    thread::spawn(move || {
        let mut wanted = true;
        for bytes in receiver {
            wanted = wanted && to.write_all(&bytes).is_ok();
            if port.send(&ToHarness::InputConsumed(bytes.len())).is_err() {
                return;
            }
        }
    });
    sender
}

fn pump_output(mut from: File, stream: Stream, port: &Port) -> OutputPump {
    let port = port.clone();
    let closed = Arc::new(AtomicBool::new(false));
    let is_closed = closed.clone();
    let thread = thread::spawn(move || {
        let mut buffer = vec![0; OUTPUT_CHUNK];
        while let Some(n) = read_some(&mut from, &mut buffer) {
            // Once the agent's end is dropped, the program gets EPIPE.
            if is_closed.load(Ordering::Relaxed) {
                return;
            }
            if port.send(&ToHarness::Output(stream, buffer[..n].to_vec())).is_err() {
                return;
            }
        }
    });
    OutputPump { stream, closed, thread }
}

/// `None` at the end, which a terminal's master reports as EIO.
fn read_some(from: &mut File, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(n) => return Some(n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running programs, one at a time.
//!
//! start() makes the streams (run/streams.rs), starts the program
//! (run/spawn.rs) and starts a thread that waits for its end. Processes that the
//! program leaves running then get a moment to finish their output and are
//! killed, so that the next program finds the machine as the first one did.

mod spawn;
mod streams;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use dune_protocol::{Program, Status, Stream, ToHarness};
use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use crate::kernel_log::KernelLog;
use crate::port::Port;
use streams::Streams;

/// How long processes may outlive the program: enough for the `tee` of a process
/// substitution, and too short for a daemon.
const GRACE: Duration = Duration::from_millis(500);

/// A process that has not died so long after SIGKILL never will.
const KILL_LIMIT: Duration = Duration::from_secs(20);

pub struct Runner {
    port: Port,
    log: KernelLog,
    running: Arc<Mutex<Option<Running>>>,
}

struct Running {
    pid: Pid,
    streams: Streams,
}

impl Runner {
    /// Sends what programs do to this port. The log is sent before a program's end is.
    pub fn new(port: Port, log: KernelLog) -> Self {
        Runner { port, log, running: Arc::default() }
    }

    /// Starts a program, or reports to the harness why execve failed.
    pub fn start(&self, program: &Program) -> Result<()> {
        let mut running = self.running();
        if running.is_some() {
            bail!("a program is already running");
        }
        let (streams, child) = streams::make(program, &self.port)?;
        let begin = Instant::now();
        match spawn::spawn(program, child)? {
            Ok(pid) => {
                *running = Some(Running { pid, streams });
                let waiter = Waiter {
                    pid,
                    begin,
                    port: self.port.clone(),
                    log: self.log.clone(),
                    running: self.running.clone(),
                };
                thread::spawn(move || waiter.wait());
            }
            Err(errno) => {
                let status = Status::NotStarted(errno as i32);
                self.port.send(&ToHarness::Exited { status, nanoseconds: 0 })?;
            }
        }
        Ok(())
    }

    /// Passes input on to the program.
    pub fn input(&self, bytes: Vec<u8>) {
        if let Some(running) = &*self.running() {
            running.streams.input(bytes);
        }
    }

    /// Closes the program's input.
    pub fn input_end(&self) {
        if let Some(running) = &mut *self.running() {
            running.streams.input_end();
        }
    }

    /// Makes the program's writes to this stream fail.
    pub fn output_closed(&self, stream: Stream) {
        if let Some(running) = &*self.running() {
            running.streams.output_closed(stream);
        }
    }

    /// Changes the size of the program's terminal.
    pub fn window_size(&self, rows: u16, columns: u16) {
        if let Some(running) = &*self.running() {
            running.streams.window_size(rows, columns);
        }
    }

    /// Sends a signal to the foreground process group of the program's terminal, or else to
    /// the program's group. Ignores errors: the program may have just ended.
    pub fn signal(&self, signal: i32) {
        if let Some(running) = &*self.running() {
            let group = running.streams.foreground_group().unwrap_or(running.pid);
            // SAFETY: killpg accesses no memory. (nix has no real-time signals.)
            unsafe { libc::killpg(group.as_raw(), signal) };
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Waiter {
    pid: Pid,
    begin: Instant,
    port: Port,
    log: KernelLog,
    running: Arc<Mutex<Option<Running>>>,
}

impl Waiter {
    fn wait(self) {
        let status = self.wait_for_program();
        let nanoseconds = self.begin.elapsed().as_nanos() as u64;
        let survivors = kill_remaining_processes();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            // A process that survives may keep the streams open forever.
            if survivors.is_none() {
                running.streams.finish();
            }
        }
        self.log.flush();
        let last = match survivors {
            None => ToHarness::Exited { status, nanoseconds },
            Some(which) => ToHarness::Failed(format!("a process does not die by SIGKILL: {which}")),
        };
        let _ = self.port.send(&last);
    }

    /// Reaps every process that ends, as process 1 must, until the program ends.
    fn wait_for_program(&self) -> Status {
        loop {
            match reap(libc::WUNTRACED) {
                Reaped::Ended(pid, status) if pid == self.pid => return status,
                Reaped::Stopped(pid, signal) if pid == self.pid => {
                    let _ = self.port.send(&ToHarness::Stopped(signal));
                }
                Reaped::NoChildren => panic!("process {} ended without being reaped", self.pid),
                _ => {}
            }
        }
    }
}

enum Reaped {
    Ended(Pid, Status),
    Stopped(Pid, i32),
    Nothing,
    NoChildren,
}

/// waitpid for any child. nix's function has no name for the real-time signals,
/// and so loses a process that one of them killed.
fn reap(flags: i32) -> Reaped {
    let mut status = 0;
    // SAFETY: the kernel writes the status to this function's variable.
    let pid = match unsafe { libc::waitpid(-1, &mut status, flags) } {
        -1 if Errno::last() == Errno::ECHILD => return Reaped::NoChildren,
        -1 | 0 => return Reaped::Nothing,
        pid => Pid::from_raw(pid),
    };
    if libc::WIFEXITED(status) {
        Reaped::Ended(pid, Status::Exited(libc::WEXITSTATUS(status)))
    } else if libc::WIFSIGNALED(status) {
        let (signal, core) = (libc::WTERMSIG(status), libc::WCOREDUMP(status));
        Reaped::Ended(pid, Status::Signaled { signal, core })
    } else if libc::WIFSTOPPED(status) {
        Reaped::Stopped(pid, libc::WSTOPSIG(status))
    } else {
        Reaped::Nothing
    }
}

/// Kills all processes but this one. Describes one that does not die.
fn kill_remaining_processes() -> Option<String> {
    if all_gone_within(GRACE) {
        return None;
    }
    let all = Pid::from_raw(-1);
    let _ = kill(all, Signal::SIGKILL);
    // A process may have forked while the signals were sent.
    let _ = kill(all, Signal::SIGKILL);
    if all_gone_within(KILL_LIMIT) {
        return None;
    }
    Some(describe_survivor())
}

fn all_gone_within(limit: Duration) -> bool {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match reap(libc::WNOHANG) {
            Reaped::NoChildren => return true,
            Reaped::Nothing if begin.elapsed() > limit => return false,
            Reaped::Nothing => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Reaped::Ended(..) | Reaped::Stopped(..) => {}
        }
    }
}

fn describe_survivor() -> String {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let read = |name| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let status = read("status");
        let field = |key: &str| {
            status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("?").trim().to_owned()
        };
        // Kernel threads are children of process 2.
        if pid > 2 && field("PPid:") != "2" {
            let (name, state) = (field("Name:"), field("State:"));
            return format!("{name} (pid {pid}, state {state}), in\n{}", read("stack"));
        }
    }
    "it is not in /proc".to_owned()
}

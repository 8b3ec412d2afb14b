// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts that all emulators have in common: a process that ends with this one, a
//! serial console, and two ends of a connection to the agent. There are two
//! emulators, qemu.rs and bochs.rs.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::signal::{killpg, SigSet, SigmaskHow, Signal};
use nix::unistd::Pid;

use crate::error::{Context, Error, Result};
use crate::trace::Step;

pub(crate) trait Emulator {
    fn process(&mut self) -> &mut Process;

    /// Makes a hung machine report where it hangs, on the console or among the
    /// messages, and waits for its end.
    fn interrupt(&mut self);

    /// Whether a line of the emulator's output is of use to a user.
    fn is_message(&self, line: &str) -> bool;

    /// The trace, after the emulator has ended.
    fn steps(&mut self) -> Result<Vec<Step>>;
}

/// The host's ends of the connection to the agent.
pub(crate) struct Channel {
    pub from_agent: File,
    pub to_agent: File,
    /// How many bytes may be in flight to the agent, where that is limited.
    pub window: Option<usize>,
}

/// A tenth of the usual share of a processor, if others want all of it.
const NICE: i32 = 10;

/// The emulator's process.
pub(crate) struct Process {
    child: Child,
    ended: Option<ExitStatus>,
    console: File,
    messages: File,
}

/// A file in memory, which an emulator finds as /proc/self/fd/N.
pub(crate) fn memory_file(name: &std::ffi::CStr) -> Result<File> {
    let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC).context("making a memory file")?;
    Ok(File::from(fd))
}

impl Process {
    /// Starts it with these descriptors open. It writes the output of the serial
    /// console to the file `console`.
    ///
    /// The host's kernel kills it when the calling thread ends, also when that is killed.
    pub(crate) fn start(
        mut command: Command,
        package: &str,
        console: File,
        inherited: Vec<OwnedFd>,
    ) -> Result<Self> {
        let messages = memory_file(c"messages")?;
        let both = [messages.try_clone(), messages.try_clone()];
        let [out, err] = both.map(|file| file.context("copying a file descriptor"));
        command.stdin(Stdio::null()).stdout(out?).stderr(err?);
        detach(&mut command, inherited);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                let lacking = format!("is missing: install {package}, or run ./setup");
                Error::Environment(format!("{program} {lacking}"))
            }
            _ => Error::Io { action: format!("starting {program}"), source: e },
        })?;
        Ok(Process { child, ended: None, console, messages })
    }

    /// Lets all ordinary processes run first. Where the kernel schedules sessions as groups
    /// (CONFIG_SCHED_AUTOGROUP), the session's own priority counts.
    pub(crate) fn run_after_others(&self) {
        let pid = self.child.id();
        // SAFETY: the call takes no pointer.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, NICE) };
        let _ = fs::write(format!("/proc/{pid}/autogroup"), NICE.to_string());
    }

    /// The output of the serial console.
    pub(crate) fn console(&mut self) -> String {
        read_all(&mut self.console).replace('\r', "")
    }

    /// The emulator's own output.
    pub(crate) fn messages(&mut self) -> String {
        read_all(&mut self.messages)
    }

    /// Sends it a signal, unless it has ended.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended.is_none() {
            let _ = nix::sys::signal::kill(Pid::from_raw(self.child.id() as i32), signal);
        }
    }

    /// Waits for its end, at most for `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        while self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
            if self.ended.is_none() {
                if begin.elapsed() >= limit {
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        self.ended
    }

    /// Kills it with its helpers, and reaps it.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none() {
            // The emulator's helpers are in its session, which is a process
            // group as well.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_all(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Gives the process a session of its own, since Ctrl-C is for the program and
/// not for the emulator, with the given descriptors open. The kernel kills it when
/// this process dies.
fn detach(command: &mut Command, inherited: Vec<OwnedFd>) {
    let parent = std::process::id() as i32;
    // SAFETY: the closure only makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
            for fd in &inherited {
                fcntl(fd.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            Ok(())
        });
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How dunectl ends: as the program did, or with a status of its own.

use std::process::ExitCode;

use dune_machine::{Error, Status, UNAVAILABLE};
use nix::sys::resource::{setrlimit, Resource};

/// dunectl or the machine failed. env(1) and docker run use the same number.
pub const FAILED: u8 = 125;

/// An option of dunectl is wrong. clap uses the same number.
const WRONG_OPTION: u8 = 2;

/// A module, or the administrator's binding, refused; the reason was printed.
pub const REFUSED: u8 = 1;

/// A way to end that is not an error of dunectl.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Code(u8),
    /// dunectl ends in the same way as the program.
    SameAs(Status),
}

/// Prints the error, and gives the exit status for it.
pub fn report(error: &Error) -> ExitCode {
    eprintln!("dunectl: {error}");
    ExitCode::from(match error {
        Error::Usage(_) => WRONG_OPTION,
        error if error.is_environment() => UNAVAILABLE,
        _ => FAILED,
    })
}

/// The exit status for `end`. Does not return if `end` is a deadly signal.
pub fn exit_code(end: End) -> ExitCode {
    match end {
        End::Code(code) => ExitCode::from(code),
        End::SameAs(Status::Signaled { signal, .. }) => die_by(signal),
        End::SameAs(status) => ExitCode::from(status.code() as u8),
    }
}

/// Restores the default action of SIGPIPE, for commands that only print: if their output
/// has no reader any more (`| head -1`), they end as other programs do. Rust ignores
/// SIGPIPE, and println! then panics. The commands that use a machine must not die by SIGPIPE.
pub fn restore_sigpipe() {
    // SAFETY: the default action needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Dies by the signal that ended the program, for the parent to see. No core is
/// dumped, since it would be dunectl's and not the program's.
fn die_by(signal: i32) -> ExitCode {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    // SAFETY: nothing else runs in this process any more, and the default
    // action needs no handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
    ExitCode::from(128u8.wrapping_add(signal as u8))
}

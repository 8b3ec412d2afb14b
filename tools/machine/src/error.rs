// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors, by their cause: callers distinguish a computer that lacks something
//! from a machine that failed.

use std::io;
use std::time::Duration;

/// The result of this library's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This computer lacks something: network, disk space, a program.
    #[error("{0}")]
    Environment(String),

    /// The kernel panicked.
    #[error("the machine panicked; the end of its log:\n{log}")]
    Panicked {
        /// The end of its log.
        log: String,
        /// Whether it had not loaded a module from outside its tree yet.
        early: bool,
    },

    /// The machine was too slow.
    #[error(
        "the machine did not {action} within {} seconds; from its log:\n{log}",
        .limit.as_secs()
    )]
    Hung {
        /// The verb for it, as in "boot".
        action: &'static str,
        /// How long that was waited for.
        limit: Duration,
        /// The first error in its log, and the end.
        log: String,
    },

    /// The emulator ended unexpectedly: its output.
    #[error("the emulator ended unexpectedly:\n{0}")]
    Ended(String),

    /// The connection to the agent broke while the emulator ran: the error and the output.
    #[error("the connection to the agent broke: {0}")]
    Connection(String),

    /// The agent in the machine reports a failure of its own.
    #[error("in the machine: {0}")]
    Agent(String),

    /// The caller asked for something that does not exist or cannot work.
    #[error("{0}")]
    Usage(String),

    /// A kernel's image or source is not as this library expects it.
    #[error("{0}")]
    Kernel(String),

    /// The agent could not try to start the program.
    #[error("{0}")]
    Refused(String),

    /// A system call failed.
    #[error("{action}: {source}")]
    Io {
        /// The action that failed.
        action: String,
        /// The system call's error.
        source: io::Error,
    },
}

/// The exit status of a command if the computer lacks something (EX_UNAVAILABLE of
/// sysexits.h).
pub const UNAVAILABLE: u8 = 69;

impl Error {
    /// Whether the computer lacks something, and no code is at fault.
    pub fn is_environment(&self) -> bool {
        match self {
            Error::Environment(_) => true,
            Error::Io { source, .. } => matches!(
                source.raw_os_error(),
                Some(libc::ENOSPC | libc::EDQUOT | libc::EROFS | libc::ENOMEM)
            ),
            _ => false,
        }
    }
}

/// Adds to an I/O error what was being done.
pub(crate) trait Context<T> {
    fn context(self, action: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, action: impl Into<String>) -> Result<T> {
        self.map_err(|e| Error::Io { action: action.into(), source: e.into() })
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong, by whose fault it is: callers report a computer that
//! lacks something apart from a machine that failed.

use std::io;
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This computer lacks something: network, disk space, a program.
    #[error("{0}")]
    Environment(String),

    /// The kernel panicked. With the end of its log, and whether it had no
    /// module yet but its own.
    #[error("the machine panicked; the end of its log:\n{log}")]
    Panicked { log: String, early: bool },

    /// Nothing ended in the time given. With the end of its log.
    #[error("the machine did not {what} within {} seconds; the end of its log:\n{log}", .limit.as_secs())]
    Hung { what: &'static str, limit: Duration, log: String },

    /// The emulator ended by itself. With what it said.
    #[error("the emulator ended unexpectedly:\n{0}")]
    Ended(String),

    /// The agent in the machine reports a failure of its own.
    #[error("in the machine: {0}")]
    Agent(String),

    /// A use of this library that cannot work.
    #[error("{0}")]
    Usage(String),

    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

impl Error {
    /// The computer lacks something, and no code is at fault.
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

/// Says what was being done when an I/O error came.
pub(crate) trait Context<T> {
    fn context(self, what: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|e| Error::Io { what: what.into(), source: e.into() })
    }
}

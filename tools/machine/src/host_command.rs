// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of the host with which machines are prepared: apt-get, tar, depmod and
//! others. They run in the C locale. A program that is not installed is an
//! Error::Environment that names it.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use crate::error::{Context, Error, Result};

/// Runs a program, and collects its output.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    command.env("LC_ALL", "C").output().map_err(|e| not_started(command, e))
}

/// Starts a program whose streams the caller serves.
pub(crate) fn spawn(command: &mut Command) -> Result<Child> {
    command.env("LC_ALL", "C").spawn().map_err(|e| not_started(command, e))
}

/// Runs a program with this input, and collects its output.
pub(crate) fn filter(command: &mut Command, input: &[u8]) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    let output = thread::scope(|scope| {
        // The exit status shows whether the program read all of it.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    });
    output.context(format!("running {}", name(command)))
}

/// The standard output of a program that has succeeded. The error of one that has not is
/// `failure` and the program's own reason.
pub(crate) fn stdout_of(output: Output, failure: impl Display) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    let reason = match reason.trim() {
        "" => output.status.to_string(),
        text => text.to_owned(),
    };
    Err(Error::Environment(format!("{failure}: {reason}")))
}

fn not_started(command: &Command, e: std::io::Error) -> Error {
    let name = name(command);
    match e.kind() {
        ErrorKind::NotFound => Error::Environment(format!(
            "{name} is missing: install the package that has it (in a source tree, ./setup does)"
        )),
        _ => Error::Io { action: format!("running {name}"), source: e },
    }
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named() {
        let error = spawn(&mut Command::new("no-such-program")).unwrap_err();
        assert!(error.is_environment());
        assert!(error.to_string().starts_with("no-such-program is missing: install "), "{error}");
    }

    #[test]
    fn other_errors_keep_their_reason() {
        let error = output(&mut Command::new("/etc/passwd")).unwrap_err();
        assert!(!error.is_environment());
        assert!(error.to_string().starts_with("running /etc/passwd: Permission denied"), "{error}");
    }

    #[test]
    fn a_failure_has_the_programs_reason() {
        let output = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap();
        let error = stdout_of(output, "cannot do it").unwrap_err();
        assert_eq!(error.to_string(), "cannot do it: why");
    }

    #[test]
    fn a_filter_reads_all_of_its_input() {
        let input = vec![b'x'; 1 << 20];
        let output = filter(Command::new("cat").arg("-"), &input).unwrap();
        assert_eq!(stdout_of(output, "cat").unwrap(), input);
    }
}

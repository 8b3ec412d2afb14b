// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that print end quietly when their output has no reader any more.

use std::io::pipe;
use std::process::{Command, Stdio};

fn ends_quietly(arguments: &[&str]) {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_dunectl"))
        .args(arguments)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "dunectl {arguments:?}");
}

#[test]
fn check_into_a_closed_pipe() {
    ends_quietly(&["check"]);
}

#[test]
fn list_into_a_closed_pipe() {
    ends_quietly(&["machine", "list"]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the harness itself: the ways in which a program in a machine
//! could differ from one on the host, and machines that fail.

mod broken;
mod streams;

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use anyhow::Result;
use dune_machine::Series;

use crate::context::Context;
use crate::test::tally::Tally;

/// The kernels that its tests boot.
pub const KERNELS: [Series; 2] = [Series::V6_1, Series::V6_12];

/// A check gives the reason of its failure.
type Check = std::result::Result<(), String>;

/// Runs all tests of the harness.
pub fn run(context: &Context, tally: &mut Tally) -> Result<()> {
    tally.line("the harness");
    streams::run(context, tally)?;
    broken::run(context, tally);
    Ok(())
}

/// `dunectl machine run OPTIONS -- sh -c SCRIPT`, with pipes as its streams.
fn machine_run(context: &Context, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(context.dunectl());
    command.args(["machine", "run", "--no-module"]).args(options);
    command.args(["--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.current_dir("/");
    command
}

fn start(mut command: Command) -> Result<Child, String> {
    command.spawn().map_err(|e| e.to_string())
}

fn output_of(command: Command, input: &[u8]) -> Result<Output, String> {
    let mut child = start(command)?;
    let mut stdin = child.stdin.take().ok_or("no pipe")?;
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The output shows whether the input was read.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let _ = writer.join();
    Ok(output)
}

fn expect<T: PartialEq + std::fmt::Debug>(subject: &str, got: T, wanted: T) -> Check {
    if got == wanted {
        return Ok(());
    }
    let mut text = format!("{subject}: got {got:?}, not {wanted:?}");
    let end = text.char_indices().nth(400).map_or(text.len(), |(end, _)| end);
    text.truncate(end);
    Err(text)
}

fn expect_in(subject: &str, text: &[u8], part: &str) -> Check {
    let text = String::from_utf8_lossy(text);
    if text.contains(part) {
        return Ok(());
    }
    Err(format!("{subject} does not contain {part:?}: {text:.400}"))
}

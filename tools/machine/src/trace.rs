// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of a machine with one CPU: each instruction that is executed, in the
//! kernel and in its guests, from one instruction of a program on. Bochs has a
//! debugger that prints them (bochs.rs). QEMU is asked for one step after the
//! other, as gdb does (struct Debugger here).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use crate::error::{Context, Error, Result};

/// The beginning of a trace, and its length.
#[derive(Debug, Clone)]
pub struct Trace {
    /// A linear address that is executed once.
    pub address: u64,
    /// How many instructions are traced.
    pub steps: usize,
}

/// An instruction that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its linear address.
    pub address: u64,
    /// Its bytes and those that follow it in memory. None, if they cannot be read.
    pub bytes: Option<Vec<u8>>,
}

/// No x86 instruction is longer.
const LONGEST: u64 = 15;

/// The steps in Bochs's output, which has lines such as
/// (0).[1234567] [0x000000012345] 0010:ffffffff81000000 (unk. ctxt): mov rax, rbx ; 4889d8
pub(crate) fn from_bochs(messages: &str) -> Vec<Step> {
    let step = |line: &str| {
        let (_, rest) = line.strip_prefix("(0).[")?.split_once("] [")?;
        let (place, instruction) = rest.split_once(" (")?;
        let (_, address) = place.rsplit_once(':')?;
        let (_, bytes) = instruction.rsplit_once("; ")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        Some(Step { address, bytes: Some(from_hex(bytes)?) })
    };
    messages.lines().filter_map(|line| step(line.trim_start_matches("<bochs:1> "))).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let digits = |at: usize| text.get(at..at + 2).and_then(|d| u8::from_str_radix(d, 16).ok());
    (0..text.len()).step_by(2).map(digits).collect()
}

/// Steps through a QEMU that was started with -S, by gdb's protocol, in a thread.
pub(crate) fn step_qemu(stream: UnixStream, trace: Trace) -> JoinHandle<Result<Vec<Step>>> {
    thread::spawn(move || Debugger { stream, received: Vec::new() }.trace(&trace))
}

struct Debugger {
    stream: UnixStream,
    received: Vec<u8>,
}

impl Debugger {
    fn trace(&mut self, trace: &Trace) -> Result<Vec<Step>> {
        let address = trace.address;
        self.ask(&format!("Z0,{address:x},1"))?;
        self.ask("c")?;
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < trace.steps {
            let address = self.pc()?;
            steps.push(Step { address, bytes: self.code(address)? });
            self.ask("s")?;
        }
        self.ask(&format!("z0,{address:x},1"))?;
        self.ask("D")?;
        Ok(steps)
    }

    /// Registers are 8 bytes each, little endian; RIP follows 16 others.
    fn pc(&mut self) -> Result<u64> {
        let registers = self.ask("g")?;
        let bytes = registers.get(256..272).and_then(from_hex);
        let bytes: Option<[u8; 8]> = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or_else(|| confused("registers", &registers))
    }

    /// Reads at most to the end of the page: the next one may be unmapped.
    fn code(&mut self, address: u64) -> Result<Option<Vec<u8>>> {
        let length = LONGEST.min(4096 - address % 4096);
        let answer = self.ask(&format!("m{address:x},{length:x}"))?;
        Ok(from_hex(&answer))
    }

    fn ask(&mut self, packet: &str) -> Result<String> {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        let describe = "speaking to QEMU's debugger stub";
        self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes()).context(describe)?;
        loop {
            if let Some(answer) = self.answer() {
                self.stream.write_all(b"+").context(describe)?;
                return Ok(answer);
            }
            let mut some = [0; 4096];
            let length = self.stream.read(&mut some).context(describe)?;
            if length == 0 {
                return Err(Error::Ended("QEMU's debugger stub has ended".to_owned()));
            }
            self.received.extend(&some[..length]);
        }
    }

    /// `$text#xx`, and acknowledgements in between.
    fn answer(&mut self) -> Option<String> {
        let begin = self.received.iter().position(|&byte| byte == b'$')?;
        let end = begin + self.received[begin..].iter().position(|&byte| byte == b'#')?;
        if self.received.len() < end + 3 {
            return None;
        }
        let text = String::from_utf8_lossy(&self.received[begin + 1..end]).into_owned();
        self.received.drain(..end + 3);
        Some(text)
    }
}

fn confused(subject: &str, answer: &str) -> Error {
    Error::Ended(format!("QEMU's debugger stub answered, asked for {subject}: {answer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_bochs_are_read() {
        let text = "(0) Breakpoint 1, 0x0000000000401234 in ?? ()\n\
            (0).[1234567] [0x00000012345] 0033:0000000000401234 (unk. ctxt): vmcall    ; 0f01c1\n\
            (0).[1234568] [0x00000012345] 0010:ffffffffc0001000 (unk. ctxt): push rdi ; 57\n";
        let steps = from_bochs(text);
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0], Step { address: 0x401234, bytes: Some(vec![0x0f, 0x01, 0xc1]) });
        assert_eq!(steps[1].address, 0xffff_ffff_c000_1000);
    }
}

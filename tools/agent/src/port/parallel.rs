// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first parallel port, which is written to without a driver: an emulated
//! printer takes a byte at each strobe and is never busy.

use std::arch::asm;
use std::io::{self, Write};

const DATA: u16 = 0x378;
const CONTROL: u16 = DATA + 2;

/// The signals "initialize" and "select", which stay set.
const IDLE: u8 = 0x0c;
const STROBE: u8 = IDLE | 1;

pub struct ParallelPort(());

/// Finds out whether this process may use the port.
pub fn open() -> io::Result<ParallelPort> {
    allow(true)?;
    allow(false)?;
    Ok(ParallelPort(()))
}

/// The thread has the right to use the port, and its children inherit it.
/// Programs must not get it, so the thread has it only while it writes.
fn allow(yes: bool) -> io::Result<()> {
    // SAFETY: this only changes which instructions of this thread fault.
    match unsafe { libc::ioperm(DATA.into(), 3, yes.into()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Write for ParallelPort {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        allow(true)?;
        for &byte in bytes {
            out(DATA, byte);
            out(CONTROL, STROBE);
            out(CONTROL, IDLE);
        }
        allow(false)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn out(port: u16, value: u8) {
    // SAFETY: allow(true) gave access to these ports, which are a printer's.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}

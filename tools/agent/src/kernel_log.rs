// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends the kernel's log to the harness.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use dune_protocol::{LogRecord, ToHarness};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use crate::port::Port;

/// Larger than any record (the kernel's limit is 8 KB with its dictionary).
const RECORD: usize = 16 * 1024;

/// Records in one message.
const BATCH: usize = 256;

#[derive(Clone)]
pub struct KernelLog {
    /// /dev/kmsg, not blocking; held locked while records are read and sent,
    /// so that flush() returns only when all earlier ones are on their way.
    source: Arc<Mutex<File>>,
    port: Port,
}

impl KernelLog {
    /// Opens the log and starts the thread that follows it.
    pub fn start(port: Port) -> Result<Self> {
        let open =
            || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let file = open()?;
        let waiting = file.try_clone()?;
        let log = KernelLog { source: Arc::new(Mutex::new(file)), port };
        let follower = log.clone();
        thread::spawn(move || loop {
            let mut fds = [PollFd::new(waiting.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) => {
                    if let Err(e) = follower.send_new() {
                        eprintln!("dune-agent: reading /dev/kmsg: {e}; its log ends here");
                        return;
                    }
                }
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        });
        Ok(log)
    }

    /// Sends all records that the kernel has logged so far. If they cannot be read, the
    /// thread that follows the log reports it.
    pub fn flush(&self) {
        let _ = self.send_new();
    }

    /// Sends the records that were not sent yet. An error would recur at each further try.
    fn send_new(&self) -> io::Result<()> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = vec![0; RECORD];
        let mut batch = Vec::new();
        let result = loop {
            match source.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => batch.extend(parse(&buffer[..n])),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                // EPIPE: records were overwritten before they were read.
                Err(e) if e.raw_os_error() == Some(libc::EPIPE) => continue,
                Err(e) => break Err(e),
            }
            if batch.len() >= BATCH {
                self.send(std::mem::take(&mut batch));
            }
        };
        if !batch.is_empty() {
            self.send(batch);
        }
        result
    }

    fn send(&self, batch: Vec<LogRecord>) {
        // An error means that the harness has gone, and then the log has no reader.
        let _ = self.port.send(&ToHarness::Log(batch));
    }
}

/// "priority,sequence,microseconds,flags[,...];text", then lines with a
/// leading blank that repeat the device's name for machines.
fn parse(record: &[u8]) -> Option<LogRecord> {
    let record = String::from_utf8_lossy(record);
    let (header, text) = record.split_once(';')?;
    let mut fields = header.split(',');
    let priority = fields.next()?.parse().ok()?;
    let time = fields.nth(1)?.parse().ok()?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let text = lines
        .take_while(|line| !line.starts_with(' '))
        .fold(first.to_owned(), |text, line| text + "\n" + line);
    Some(LogRecord { priority, time, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_error_ends_the_reading() {
        let directory = File::open("/").expect("the root directory can be opened");
        let source = Arc::new(Mutex::new(directory));
        let log = KernelLog { source, port: Port::new(io::sink()) };
        let error = log.send_new().expect_err("a directory cannot be read");
        assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
    }

    #[test]
    fn a_record_has_a_header_and_a_text() {
        let record = parse(b"6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n").unwrap();
        assert_eq!((record.priority, record.time), (6, 5_140_900));
        assert_eq!(record.text, "NET: Registered");
        assert_eq!(parse(b"no header"), None);
    }
}

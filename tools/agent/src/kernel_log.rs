// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends the kernel's log to the harness.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use dune_protocol::{LogRecord, ToHost};
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
    pub fn start(port: Port) -> Result<Self> {
        let open =
            || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let log = KernelLog { source: Arc::new(Mutex::new(open()?)), port };
        let (follower, waiting) = (log.clone(), log.source.lock().unwrap().try_clone()?);
        thread::spawn(move || loop {
            let mut fds = [PollFd::new(waiting.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) => follower.flush(),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        });
        Ok(log)
    }

    /// Sends all records that the kernel has logged so far.
    pub fn flush(&self) {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = vec![0; RECORD];
        let mut batch = Vec::new();
        loop {
            match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => batch.extend(parse(&buffer[..n])),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // EPIPE: records were overwritten before they were read.
                Err(_) => continue,
            }
            if batch.len() >= BATCH {
                self.send(std::mem::take(&mut batch));
            }
        }
        if !batch.is_empty() {
            self.send(batch);
        }
    }

    fn send(&self, batch: Vec<LogRecord>) {
        // The harness has gone, so the log has no reader.
        let _ = self.port.send(&ToHost::Log(batch));
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

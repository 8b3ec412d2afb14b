// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages to and from the agent: frames over the two ends of the emulator's
//! connection, with a window where the line to the agent loses bytes that are not
//! read in time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use dune_protocol::{decode_frame, write_frame, ToAgent, ToHarness};
use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use crate::emulator::Channel;
use crate::error::{Context, Result};

pub(crate) struct Connection {
    from: File,
    to: File,
    /// How many bytes may be sent now, where that is limited.
    window: Option<usize>,
    /// The beginning of a message.
    received: Vec<u8>,
    messages: VecDeque<ToHarness>,
}

/// A machine that reads nothing for this long is dead, even if it sends.
const SEND_LIMIT: Duration = Duration::from_secs(120);

impl Connection {
    /// A connection over these files, which do not block from now on.
    pub(crate) fn new(channel: Channel) -> Result<Self> {
        let Channel { from_agent: from, to_agent: to, window } = channel;
        for file in [&from, &to] {
            fcntl(file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .context("setting up the connection")?;
        }
        Ok(Connection { from, to, window, received: Vec::new(), messages: VecDeque::new() })
    }

    /// Continues to receive meanwhile: an emulator may stop until its output is
    /// read, and its messages open the window.
    pub(crate) fn send(&mut self, message: &ToAgent) -> io::Result<()> {
        let mut frame = Vec::new();
        write_frame(&mut frame, message)?;
        let mut left = &frame[..];
        let mut deadline = Instant::now() + SEND_LIMIT;
        while !left.is_empty() {
            let now = left.len().min(self.window.unwrap_or(usize::MAX));
            if now == 0 {
                self.wait_to_send(PollFlags::empty(), deadline)?;
                continue;
            }
            match self.to.write(&left[..now]) {
                Ok(n) => {
                    left = &left[n..];
                    deadline = Instant::now() + SEND_LIMIT;
                    self.window = self.window.map(|window| window - n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_to_send(PollFlags::POLLOUT, deadline)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Waits until the line to the agent is ready, or something has arrived.
    fn wait_to_send(&mut self, flags: PollFlags, deadline: Instant) -> io::Result<()> {
        let readable = {
            let mut fds = [
                PollFd::new(self.to.as_fd(), flags),
                PollFd::new(self.from.as_fd(), PollFlags::POLLIN),
            ];
            if wait(&mut fds, Some(deadline))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            fds[1].any().unwrap_or(true)
        };
        if readable {
            self.fill()
        } else {
            Ok(())
        }
    }

    /// The next message; `None` at the deadline.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> io::Result<Option<ToHarness>> {
        loop {
            if let Some(message) = self.next() {
                return Ok(Some(message));
            }
            let mut fds = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            if wait(&mut fds, deadline)? == 0 {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// A message that has already arrived.
    pub(crate) fn next(&mut self) -> Option<ToHarness> {
        self.messages.pop_front()
    }

    /// Whether next() has a message.
    pub(crate) fn has_next(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Reads what has arrived. To be called when something has.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 256 * 1024];
        match self.from.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                self.received.extend_from_slice(&buffer[..n]);
                self.decode()
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// The messages that have arrived completely.
    fn decode(&mut self) -> io::Result<()> {
        let mut used = 0;
        while let Some((message, length)) = decode_frame(&self.received[used..])? {
            used += length;
            match message {
                ToHarness::LineRead(bytes) => {
                    self.window = self.window.map(|window| window + bytes);
                }
                message => self.messages.push_back(message),
            }
        }
        self.received.drain(..used);
        Ok(())
    }
}

/// Readable when something has arrived.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

/// poll() until a deadline, also if signals arrive. At the deadline it returns 0 even if
/// something is ready: no limit of time would end a machine that never stops sending.
pub(crate) fn wait(fds: &mut [PollFd], deadline: Option<Instant>) -> io::Result<i32> {
    loop {
        let timeout = match deadline {
            None => PollTimeout::NONE,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(0);
                }
                // Rounded up, or the last millisecond would be spent spinning.
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
        };
        match poll(fds, timeout) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(n) => return Ok(n),
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use dune_protocol::read_frame;
    use nix::unistd::pipe;

    use super::*;

    /// A line that takes a few bytes at a time, and reports how many.
    #[test]
    fn bytes_in_flight_stay_within_the_window() {
        const WINDOW: usize = 5;
        let [(mut line, to_agent), (from_agent, answers)] =
            [(); 2].map(|()| pipe().map(|(read, write)| (File::from(read), write)).unwrap());
        let channel = Channel { from_agent, to_agent: to_agent.into(), window: Some(WINDOW) };
        let mut connection = Connection::new(channel).unwrap();
        let agent = std::thread::spawn(move || {
            let mut answers = File::from(answers);
            let (mut all, mut buffer) = (Vec::new(), [0; 100]);
            loop {
                match line.read(&mut buffer).unwrap() {
                    0 => return all,
                    n => {
                        assert!(n <= WINDOW);
                        all.extend_from_slice(&buffer[..n]);
                        write_frame(&mut answers, &ToHarness::LineRead(n)).unwrap();
                    }
                }
            }
        });
        let sent: Vec<u8> = (0..200).collect();
        connection.send(&ToAgent::Input(sent.clone())).unwrap();
        connection.to = File::open("/dev/null").unwrap();
        let all = agent.join().unwrap();
        match read_frame(&mut all.as_slice()).unwrap() {
            Some(ToAgent::Input(bytes)) => assert_eq!(bytes, sent),
            other => panic!("{other:?}"),
        }
        assert!(!connection.has_next(), "LineRead is not passed on");
    }

    #[test]
    fn deadlines_hold_though_something_is_always_ready() {
        let zeros = File::open("/dev/zero").unwrap();
        let wait = |deadline| {
            wait(&mut [PollFd::new(zeros.as_fd(), PollFlags::POLLIN)], Some(deadline)).unwrap()
        };
        assert_eq!(wait(Instant::now() + SEND_LIMIT), 1);
        assert_eq!(wait(Instant::now()), 0);
    }
}

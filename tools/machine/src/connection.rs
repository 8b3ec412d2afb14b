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

/// A limit of time, for several calls of [`wait`].
pub(crate) struct Limit {
    begin: Instant,
    time: Duration,
    /// Whether wait() has looked once after the limit.
    is_over: bool,
}

impl Limit {
    pub(crate) fn new(time: Duration) -> Self {
        Limit { begin: Instant::now(), time, is_over: false }
    }

    /// The time since it began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }
}

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
        let mut limit = Limit::new(SEND_LIMIT);
        while !left.is_empty() {
            let now = left.len().min(self.window.unwrap_or(usize::MAX));
            if now == 0 {
                self.wait_to_send(PollFlags::empty(), &mut limit)?;
                continue;
            }
            match self.to.write(&left[..now]) {
                Ok(n) => {
                    left = &left[n..];
                    limit = Limit::new(SEND_LIMIT);
                    self.window = self.window.map(|window| window - n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_to_send(PollFlags::POLLOUT, &mut limit)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Waits until the line to the agent is ready, or something has arrived.
    fn wait_to_send(&mut self, flags: PollFlags, limit: &mut Limit) -> io::Result<()> {
        let readable = {
            let mut fds = [
                PollFd::new(self.to.as_fd(), flags),
                PollFd::new(self.from.as_fd(), PollFlags::POLLIN),
            ];
            if wait(&mut fds, Some(limit))?.is_some() {
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

    /// The next message; `None` once the limit is over.
    pub(crate) fn receive(&mut self, limit: &mut Limit) -> io::Result<Option<ToHarness>> {
        loop {
            if let Some(message) = self.next() {
                return Ok(Some(message));
            }
            let mut fds = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            if wait(&mut fds, Some(limit))?.is_some() {
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

/// Polls until something is ready, and then returns `None`; a signal does not end the wait. Once
/// the limit is over, it returns the limit's time. What arrived until then must still be read: this
/// process may have been stopped, or may have waited for a slow reader of its output. So the first
/// call after the limit looks at what is ready. Later calls with the same limit do not: a machine
/// that never stops sending would otherwise never end.
pub(crate) fn wait(
    fds: &mut [PollFd],
    mut limit: Option<&mut Limit>,
) -> io::Result<Option<Duration>> {
    loop {
        let timeout = match &mut limit {
            None => PollTimeout::NONE,
            Some(limit) if limit.is_over => return Ok(Some(limit.time)),
            Some(limit) => {
                let left = limit.time.saturating_sub(limit.elapsed());
                limit.is_over = left.is_zero();
                // Rounded up, or the last millisecond would be spent spinning.
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
        };
        match poll(fds, timeout) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(None),
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
    fn a_limit_holds_though_something_is_always_ready() {
        let zeros = File::open("/dev/zero").unwrap();
        let wait = |limit: &mut Limit| {
            wait(&mut [PollFd::new(zeros.as_fd(), PollFlags::POLLIN)], Some(limit)).unwrap()
        };
        let mut limit = Limit::new(SEND_LIMIT);
        assert_eq!([wait(&mut limit), wait(&mut limit)], [None, None]);
        let mut limit = Limit::new(Duration::ZERO);
        assert_eq!([wait(&mut limit), wait(&mut limit)], [None, Some(Duration::ZERO)]);
    }

    #[test]
    fn what_arrived_before_the_limit_was_over_is_received_after_it() {
        let (from_agent, answers) = pipe().unwrap();
        let to_agent = File::open("/dev/null").unwrap();
        let channel = Channel { from_agent: from_agent.into(), to_agent, window: None };
        let mut connection = Connection::new(channel).unwrap();
        write_frame(&mut File::from(answers), &ToHarness::Ready).unwrap();
        let mut limit = Limit::new(Duration::ZERO);
        assert!(matches!(connection.receive(&mut limit), Ok(Some(ToHarness::Ready))));
        assert!(matches!(connection.receive(&mut limit), Ok(None)));
    }

    /// The window opens while this process does not run.
    #[test]
    fn a_window_that_opened_before_the_limit_was_over_is_used() {
        let [(_line, to_agent), (from_agent, answers)] = [(); 2].map(|()| pipe().unwrap());
        let channel =
            Channel { from_agent: from_agent.into(), to_agent: to_agent.into(), window: Some(0) };
        let mut connection = Connection::new(channel).unwrap();
        write_frame(&mut File::from(answers), &ToHarness::LineRead(1)).unwrap();
        let mut limit = Limit::new(Duration::ZERO);
        connection.wait_to_send(PollFlags::empty(), &mut limit).unwrap();
        assert_eq!(connection.window, Some(1));
        assert!(connection.wait_to_send(PollFlags::empty(), &mut limit).is_err());
    }
}
